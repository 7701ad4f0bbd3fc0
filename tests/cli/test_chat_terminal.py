"""`foveate chat` at a real terminal and through a pipe: stopped and reopened."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from waiting import until

import foveate
from foveate.cli.chat.line_editor import LineEditor

pytestmark = pytest.mark.slow

pytest.importorskip("prompt_toolkit", reason="the extra `cli` is not installed in full")
pty = pytest.importorskip("pty", reason="pseudo-terminals are there on Linux and macOS")

SRC = Path(foveate.__file__).parent.parent
PATIENCE = 60.0
"""Seconds without output until a session has failed. Far more than it needs, because a machine may be busy."""
SPACES = re.compile(r"(?:\x08|\x1b\[(\d+)D)\x1b\[(\d+)C")
"""Some steps back and more steps forward: the line editor's way to print spaces."""
STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@pytest.fixture
def env(tmp_path) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("FOVEATE_")},
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "PYTHONPATH": str(SRC),
        "TERM": "xterm",
        "COLUMNS": "200",
    }


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "foveate", "chat", "talk", "--model", "demo", *arguments]


def heeds_ctrl_c() -> None:
    """Restore Ctrl-C in the child: a shell ignores it for background processes, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Session:
    """The command at its own pseudo-terminal."""

    def __init__(self, env: dict[str, str], folder: Path, *arguments: str) -> None:
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            heeds_ctrl_c()
            os.chdir(folder)
            os.execve(sys.executable, command(*arguments), env)
        self._raw = b""
        self._seen = 0
        self.code: int | None = None

    @property
    def text(self) -> str:
        """Return the whole output, without colours."""
        spaced = SPACES.sub(lambda move: " " * (int(move[2]) - int(move[1] or 1)), self._raw.decode(errors="replace"))
        return STYLE.sub("", spaced).replace("\r\n", "\n")

    @property
    def raw(self) -> bytes:
        return self._raw

    def until(self, mark: str, patience: float = PATIENCE) -> str:
        """Wait for `mark` behind the last one; return the text before it."""
        end = time.monotonic() + patience
        while (at := self.text.find(mark, self._seen)) < 0:
            assert time.monotonic() < end, f"no {mark!r} in {self.text[self._seen :]!r}"
            assert self._read(patience), f"ended before {mark!r}: {self.text!r}"
        before, self._seen = self.text[self._seen : at], at + len(mark)
        return before

    def interrupt_until(self, mark: str) -> None:
        """Press Ctrl-C until the output has `mark`: readline may miss one just before it waits.

        Wait between two attempts: a second Ctrl-C during the answer to the first ends the chat.
        """
        for patience in (PATIENCE / 3, PATIENCE / 2, PATIENCE):
            self.type("\x03")
            with suppress(AssertionError):
                self.until(mark, patience)
                return
        raise AssertionError(f"Ctrl-C leads to nothing: {self.text!r}")

    def type(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def end(self) -> int:
        """Wait for the end, and return the exit code."""
        while self._read():
            pass
        if self.code is None:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self._fd)
        return self.code

    def _read(self, patience: float = PATIENCE) -> bool:
        if self.code is not None:
            return False
        ready, _, _ = select.select([self._fd], [], [], patience)
        assert ready, f"nothing comes any more: {self.text!r}"
        try:
            piece = os.read(self._fd, 65_536)
        except OSError:  # What Linux says when the other side is closed.
            return False
        self._raw += piece
        return bool(piece)


@pytest.fixture
def session(env, tmp_path) -> Iterator[Session]:
    (tmp_path / "a.md").write_text("# A\nThe ship sails on.\n", encoding="utf-8")
    session = Session(env, tmp_path, "--tools", "files,shell")
    yield session
    if session.code is None:
        os.kill(session.pid, signal.SIGKILL)
        session.end()


def stored(tmp_path: Path) -> foveate.Conversation:
    return foveate.open_conversation("talk", store=f"sqlite:///{tmp_path}/data/foveate/chats.db", window=16_000)


def test_chat_works_at_a_terminal(session, tmp_path):
    session.until("\n> ")
    session.type("read a.md\n")
    output = session.until("\n> ")
    assert "  * read_file a.md  " in output
    assert "a.md has 2 lines. It begins:" in output
    assert " of 16,000 (" in output
    session.type("run printf '\\033[2Jgone'\n")
    session.until("allow it? [y/N/always, or why not] ")
    session.type("y\n")
    assert "␛[2Jgone" in session.until("\n> ")
    session.type("/why 1\n")
    assert "m1 is a message of role user" in session.until("\n> ")
    session.type("\x04")
    assert session.end() == 0
    assert b"\x1b[2J" not in session.raw
    with stored(tmp_path) as talk:
        assert len(talk) == 8


def test_pasted_text_of_many_lines_is_one_message(session, tmp_path):
    """Without bracketed paste, each line was sent and billed alone."""
    session.until("\n> ")
    session.type("\x1b[200~remember: def f():\r    return 1\r\rwhy does this fail\x1b[201~")
    session.until("... why does this fail")
    session.type("\r")
    session.until(" of 16,000 (")
    session.until("\n> ")
    session.type("\x04")
    assert session.end() == 0
    with stored(tmp_path) as talk:
        texts = [row.message.text for row in talk.history() if row.message.role == "user"]
    assert texts == ["remember: def f():\n    return 1\n\nwhy does this fail"]


def test_several_lines_can_be_typed(session, tmp_path):
    """Alt-Enter, and a backslash before Enter, continue a message on the next line."""
    session.until("\n> ")
    session.type("remember: one\x1b\r")
    session.until("... ")
    session.type("two\\\r")
    session.until("... ")
    session.type("three\r")
    session.until(" of 16,000 (")
    session.until("\n> ")
    session.type("\x04")
    assert session.end() == 0
    with stored(tmp_path) as talk:
        assert talk.history()[0].message.text == "remember: one\ntwo\nthree"


def test_tab_completes_commands_and_their_arguments(session):
    session.until("\n> ")
    session.type("hello\n")
    session.until(" of 16,000 (")
    session.until("\n> ")
    session.type("/wh\tm1\n")
    assert "m1 is a message of role user" in session.until("\n> ")
    session.type("/co\t")
    session.until("/context  /compact  /cost")
    session.until("> /co")
    session.type("st\n")
    assert "cost in input tokens" in session.until("\n> ")
    session.type("\x04")
    assert session.end() == 0


def test_dumb_terminal_gets_no_control_sequences(env, tmp_path):
    dumb = Session({**env, "TERM": "dumb"}, tmp_path)
    dumb.until("\n> ")
    dumb.type("hello\r")
    dumb.until(" of 16,000 (")
    dumb.until("\n> ")
    dumb.type("/quit\r")
    assert dumb.end() == 0
    assert b"\x1b" not in dumb.raw


def test_line_editor_names_its_missing_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    with pytest.raises(foveate.errors.MissingExtra, match=r'pip install "foveate\[cli\]"'):
        LineEditor()


def test_ctrl_c_stops_a_reply_and_not_the_chat(session, tmp_path):
    session.until("\n> ")
    session.type("count to 2000\n")  # More than a terminal holds that nobody reads: it does not end before.
    session.until(" 12 13")
    session.type("\x03")
    session.until("Stopped. ")
    session.until("\n> ")
    session.type("hello\n")
    session.until("Hello!")
    session.until("\n> ")
    session.interrupt_until("To end the chat, press Ctrl-D or type /quit.")
    session.until("\n> ")
    session.type("/quit\n")
    assert session.end() == 0
    with stored(tmp_path) as talk:
        assert [row.message.role for row in talk.history()] == ["user", "assistant", "user", "assistant"]
        assert [run.state for run in talk.journal.runs()] == ["stopped", "done"]
        assert talk.journal.verify() == []


def test_ctrl_c_and_resume_agree_with_the_screen(session, tmp_path):
    """The stored text is on the screen, and the other way round; the two parts of the answer are the whole."""
    session.until("\n> ")
    session.type("count to 700\n")
    seen = " 12 13"
    session.until("1 2 3 4 5")
    session.until(seen)
    session.type("\x03")
    seen += session.until("Stopped. Type /resume").replace("^C", "")
    session.until("\n> ")
    session.type("/resume\n")
    session.until(" 700.")
    session.until("\n> ")
    session.type("/cost\n")
    session.until("1 call stopped before the end")
    session.until("\n> ")
    session.type("/quit\n")
    assert session.end() == 0
    with stored(tmp_path) as talk:
        question, first, request, second = talk.history()
        assert [row.message.role for row in (question, request)] == ["user", "user"]
        assert first.stamp.stop.kind == "interrupted"
        assert first.message.text.split()[11:] == seen.split()
        numbers = [str(number) for number in range(1, 700)]
        assert f"{first.message.text} {second.message.text}".split() == [*numbers, "700."]
        assert [run.state for run in talk.journal.runs()] == ["done"]


def test_ctrl_c_during_a_command_keeps_the_chat_usable(session, tmp_path):
    session.until("\n> ")
    session.type("run touch begun; sleep 600; touch ended\n")
    session.until("allow it? [y/N/always, or why not] ")
    session.type("y\n")
    until((tmp_path / "begun").exists)
    session.type("\x03")
    session.until("Stopped. ")
    session.until("It is not known whether run_command was carried out.")
    session.until("\n> ")
    session.type("hello\n")
    session.until("Hello!")
    session.until("\n> ")
    session.type("/quit\n")
    assert session.end() == 0
    with stored(tmp_path) as talk:
        assert [row.message.role for row in talk.history()] == ["user", "assistant", "tool", "user", "assistant"]
        assert talk.history()[2].message.result.state == "interrupted"


def piped(env: dict[str, str], folder: Path, lines: str, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        command(*arguments), input=lines.encode(), capture_output=True, env=env, cwd=folder, timeout=2 * PATIENCE
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_piped_chat_is_plain_text_and_can_be_reopened(env, tmp_path):
    (tmp_path / "a.md").write_text("# A\n", encoding="utf-8")
    code, out, err = piped(env, tmp_path, "remember: the port is 8080\nread a.md")
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    code, out, err = piped(env, tmp_path, "what did I say about the port\n")
    assert (code, err) == (0, "")
    assert "talk with demo: 6 messages, 6 in the view with " in out
    assert "\n\n> what did I say about the port\nYou said: remember: the port is 8080\n" in out


def has_ended(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return not state or state.startswith("Z")


def test_ctrl_c_ends_a_script_and_keeps_the_chat_usable(env, tmp_path):
    process = subprocess.Popen(
        command("--tools", "shell", "--yes"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
        cwd=tmp_path,
        preexec_fn=heeds_ctrl_c,
    )
    assert process.stdin
    process.stdin.write(b"run echo $$ > begun; sleep 600\nhello\n")
    process.stdin.flush()
    begun = tmp_path / "begun"
    until(lambda: begun.exists() and begun.read_text())
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (130, b"Stopped.\n")
    assert b"Hello!" not in out
    until(lambda: has_ended(int(begun.read_text())))  # One that was just killed may take a moment.
    code, out_again, err_again = piped(env, tmp_path, "hello\n")
    assert (code, err_again) == (0, "")
    assert "Type /resume to continue it." in out_again
    assert "\nHello!" in out_again


def test_piped_output_wraps_at_words_in_columns(env, tmp_path):
    """The meter, receipts and answers keep their indent; words stay whole."""
    whole = piped({name: value for name, value in env.items() if name != "COLUMNS"}, tmp_path, "hello\n")[1]
    narrow = piped({**env, "COLUMNS": "40"}, tmp_path, "hello\n", "--store", "memory:")[1]
    assert max(map(len, whole.splitlines())) > 80
    assert max(map(len, narrow.splitlines())) <= 40
    assert "Hello! Try `what is in this folder`, or\n`tour`." in narrow
    assert "\n  [##" in narrow
    assert "\n  assistant 26 | " in narrow


def test_invalid_utf8_does_not_end_a_chat(env, tmp_path):
    done = subprocess.run(
        command(), input=b"hello \xff\xfe\n/nope \x1b[31m\n", capture_output=True, env=env, cwd=tmp_path, timeout=120
    )
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout


def test_ascii_terminal_gets_ascii(env, tmp_path):
    done = subprocess.run(
        command(),
        input="remember: größer\n/history\n".encode(),
        capture_output=True,
        env={**env, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        cwd=tmp_path,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()


def test_closed_pipe_ends_the_chat_silently(env, tmp_path):
    process = subprocess.Popen(
        command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd=tmp_path
    )
    assert process.stdin
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    _, err = process.communicate(b"count to 1000\n" * 20, timeout=120)
    assert process.returncode == 141
    assert err == b""
