"""A tool that runs shell commands in one folder. Processes that a command starts end with it."""

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
from .folder import Folder

__all__ = ["shell", "stop_commands"]

_CHARACTERS_MAX = 16_000
_TIMEOUT_MAX = 3_600
_PIECE = 65_536
_TAIL = 64
"""Pieces at the end of an output that are kept. The pieces between the first one and these are dropped."""
_LOOK = 0.1
"""Seconds to wait for output that a command left in its pipe."""
_LOOKS = 20
"""How often to look while a process that left the command's group holds the pipe open. Looks are counted, not seconds,
because this program may have stood still meanwhile.
"""
_PIPE_MAX = 4_194_304
"""Bytes that are read after a command has ended: more than a pipe holds."""
_running: set[subprocess.Popen[bytes]] = set()
"""Commands that run now in this program."""
_starting = threading.RLock()
"""Held while a command starts, so that `stop_commands` sees it."""
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
    """Return `run_command`, which runs a command of `/bin/sh` that starts in `folder`.

    A command can reach everything that this program can, also outside of the folder. So each one needs approval, unless
    `needs_approval` is False. `timeout`: seconds, after which the command is killed. When it ends, the processes that
    it started are killed too, except those that created their own session.

    A command sees only these variables of this program, because others may be secrets: PATH, HOME, USER, LOGNAME,
    SHELL, LANG, LANGUAGE, LC_*, TERM, TMPDIR, TZ. `environment`: names of more variables to pass on, such as
    ("JAVA_HOME", "CI"); or a mapping of names to values, which replaces all of them. Raises BadSetting if there is no
    such folder, or for a timeout that is not above 0.
    """
    home = Folder(folder)
    if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not 0 < timeout <= _TIMEOUT_MAX:
        raise BadSetting(f"timeout= must be seconds above 0 and at most {_TIMEOUT_MAX:,}, not {timeout!r:.60}.")
    variables = _variables(environment)

    def run_command(command: str) -> str:
        """Run a command of the shell, and return what it printed and its exit code.

        Nothing can be typed into it, and nothing that it starts goes on after it.

        Args:
            command: The command, as for sh -c.
        """
        return _run(command, home, timeout, variables)

    return (tool(run_command, needs_approval=needs_approval, is_parallel=False),)


def stop_commands() -> None:
    """Kill all commands that run in this program, with the processes that they started."""
    with _starting:
        for process in list(_running):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)


def _run(command: str, home: Folder, timeout: float, environment: Mapping[str, str]) -> str:
    if "\0" in command or not command.strip():
        raise ToolFailed("There is no command.")
    start = time.monotonic()
    with _starting:
        process = _start(command, home, environment)
        _running.add(process)
    output = _Output(process)
    try:
        code: int | None = process.wait(timeout)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        _kill(process)
        _running.discard(process)
    text = _head_and_tail(output.text(), _CHARACTERS_MAX)
    if code is None:
        end = f"[killed after {timeout:g} seconds, with all that it had started]"
    else:
        end = f"[exit code {code}{_signal_name(code)}, {time.monotonic() - start:.1f} s]"
    return f"{text.rstrip()}\n{end}" if text.strip() else end


def _start(command: str, home: Folder, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=home.root,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # A new process group, which can be killed as a whole.
        )
    except (OSError, ValueError) as error:  # The command is too long, or the folder is gone.
        raise ToolFailed(f"The command could not be started: {error}.") from error


class _Output:
    """The beginning and the end of a process's output, read while it runs."""

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
            # A process that left the group may hold the pipe open after the end, and write on.
            while looks > 0 and room > 0:
                has_ended = self._has_ended.is_set()  # Read this before the look: all output is in the pipe by then.
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
        """Return the output, or its two ends. Call it after the process and all that it started have ended."""
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


def _signal_name(code: int) -> str:
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
        environment = list(environment)
        names = [*environment]
    if not all(isinstance(name, str) for name in names):
        raise BadSetting(
            f'environment= must be names of variables, such as ("JAVA_HOME",), or a mapping of names to values, not '
            f"{type(environment).__name__}."
        )
    if isinstance(environment, Mapping):
        return dict(environment)
    return {name: os.environ[name] for name in (*_BASE, *environment) if name in os.environ}


def _head_and_tail(text: str, limit: int) -> str:
    """Return the beginning and the end of a text, `limit` characters in all, cut at line ends if some are near."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit // 2], text[len(text) - limit // 2 :]
    if (end := head.rfind("\n")) > len(head) // 2:
        head = head[: end + 1]
    if -1 < (begin := tail.find("\n")) < len(tail) // 2:
        tail = tail[begin + 1 :]
    missing = text[len(head) : len(text) - len(tail)]
    omitted = f"{len(missing):,} characters, {missing.count(chr(10)):,} lines left out"
    note = f"[... {omitted}; write it to a file and look at parts of it ...]"
    return f"{head.rstrip(chr(10))}\n{note}\n{tail}"
