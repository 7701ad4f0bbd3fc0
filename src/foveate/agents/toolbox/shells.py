"""Commands of a shell, in one folder. What a command starts ends with it."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping

from ...errors import BadSetting
from ..tools import Tool, ToolFailed, tool
from .bounded import head_and_tail
from .folders import Folder

__all__ = ["shell", "stop_commands"]

_MOST_CHARACTERS = 16_000
_LONGEST_TIMEOUT = 3_600
_PIECE = 65_536
_TAIL = 64
"""Pieces at the end of an output that are held while it comes: what is between the first and these is dropped."""
_LOOK = 0.1
"""Seconds that are waited for output that a command left in its pipe."""
_LOOKS = 20
"""How often, at most, where somebody who left the command's group holds the pipe open. Looks are counted, not seconds:
time in which this program stood still is none in which nothing came.
"""
_PIPE_MAX = 4_194_304
"""Bytes that are read at most once a command has ended: more than a pipe holds."""
_going_on: set[subprocess.Popen[bytes]] = set()
"""Commands that run now, in this program."""
_beginning = threading.RLock()
"""Held while a command is begun, so that whoever stops them all finds it."""
_BASE = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NUMERIC",
    "LC_TIME",
    "TERM",
    "TMPDIR",
    "TZ",
)
"""Variables of this program that every command sees."""


def shell(
    folder: str | os.PathLike[str],
    timeout: float = 60,
    *,
    environment: Iterable[str] | Mapping[str, str] = (),
    needs_approval: bool = True,
) -> tuple[Tool, ...]:
    """`run_command`: a command of `/bin/sh`, begun in `folder`.

    A command can reach all that this program can, whatever the folder: so each is approved first, unless
    `needs_approval` is False. `timeout`: seconds; then the command is killed. When it has ended, or was killed, what it
    started is killed too, but for what made itself a session of its own. A command sees the base variables of
    this program (PATH, HOME, USER, LOGNAME, SHELL, LANG, LANGUAGE, LC_*, TERM, TMPDIR, TZ) and no others, as they may
    be secrets. `environment` names more of them, such as ("JAVA_HOME", "CI"); a mapping of names to values replaces
    them all. Raises BadSetting if there is no such folder, or for a timeout that is not above 0.
    """
    home = Folder(folder)
    if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not 0 < timeout <= _LONGEST_TIMEOUT:
        raise BadSetting(f"timeout= is seconds, above 0 and at most {_LONGEST_TIMEOUT:,}; not {timeout!r:.60}.")
    variables = _variables(environment)

    def run_command(command: str) -> str:
        """Run a command of the shell, and return what it printed and its exit code.

        Nothing can be typed into it, and nothing that it starts goes on after it.

        Args:
            command: The command, as for sh -c.
        """
        return _run(command, home, timeout, variables)

    return (tool(run_command, needs_approval=needs_approval, together=False),)


def stop_commands() -> None:
    """Kill the commands that go on now in this program, with what they started: whoever waited for them is gone."""
    with _beginning:
        for process in list(_going_on):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)


def _run(command: str, home: Folder, timeout: float, environment: Mapping[str, str]) -> str:
    if "\0" in command or not command.strip():
        raise ToolFailed("There is no command.")
    begun = time.monotonic()
    with _beginning:
        process = _begun(command, home, environment)
        _going_on.add(process)
    output = _Output(process)
    try:
        code: int | None = process.wait(timeout)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        _kill(process)
        _going_on.discard(process)
    said = head_and_tail(output.text(), _MOST_CHARACTERS, "; write it to a file and look at parts of it")
    if code is None:
        end = f"[killed after {timeout:g} seconds, with all that it had started]"
    else:
        end = f"[exit code {code}{_name_of(code)}, {time.monotonic() - begun:.1f} s]"
    return f"{said.rstrip()}\n{end}" if said.strip() else end


def _begun(command: str, home: Folder, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=home.root,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # A group of its own, to be killed as one.
        )
    except (OSError, ValueError) as error:  # Too long a command, or the folder is gone.
        raise ToolFailed(f"The command could not be started: {error}.") from error


class _Output:
    """What a process prints, read while it runs: its beginning and its end, however much it is."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self._pipe = process.stdout
        self._head = b""
        self._tail: deque[bytes] = deque(maxlen=_TAIL)
        self._size = 0
        self._has_ended = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        looks, room = _LOOKS, _PIPE_MAX
        with contextlib.suppress(OSError, ValueError), self._pipe, selectors.DefaultSelector() as selector:
            selector.register(self._pipe, selectors.EVENT_READ)
            # What left the group may hold the pipe open when all has ended, and write on; its output is nobody's.
            while looks > 0 and room > 0:
                has_ended = self._has_ended.is_set()  # Before it is looked: what is there by then is all there is.
                if selector.select(_LOOK):
                    if not (piece := os.read(self._pipe.fileno(), _PIECE)):
                        return
                    self._keep(piece)
                    room -= len(piece) * has_ended
                else:
                    looks -= has_ended

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if len(self._head) < _PIECE:
            self._head += piece
        else:
            self._tail.append(piece)

    def text(self) -> str:
        """All of it, or its two ends. Asked once the process has ended, and what it started."""
        self._has_ended.set()
        self._reader.join()
        tail = b"".join(list(self._tail))
        missing = self._size - len(self._head) - len(tail)
        between = f"\n[... {missing:,} bytes were dropped ...]\n".encode() if missing > 0 else b""
        return (self._head + between + tail).decode("utf-8", "replace").replace("\r\n", "\n")


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _name_of(code: int) -> str:
    with contextlib.suppress(ValueError):
        return f" ({signal.Signals(-code).name})" if code < 0 else ""
    return ""


def _variables(environment: Iterable[str] | Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a command sees."""
    if isinstance(environment, Mapping):
        names: list[object] = [text for item in environment.items() for text in item]
    elif isinstance(environment, str) or not isinstance(environment, Iterable):
        names = [None]
    else:
        environment = names = list(environment)  # type: ignore[assignment]
    if not all(isinstance(name, str) for name in names):
        raise BadSetting(
            f'environment= must be names of variables, such as ("JAVA_HOME",), or a mapping of names to values, not '
            f"{type(environment).__name__}."
        )
    if isinstance(environment, Mapping):
        return dict(environment)
    return {name: os.environ[name] for name in (*_BASE, *environment) if name in os.environ}
