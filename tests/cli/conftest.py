"""Fixtures for tests of the command line: a function that runs it, and a small recording."""

from __future__ import annotations

from pathlib import Path

import pytest
from recordings import call, write

from foveate.cli.app import main


@pytest.fixture(autouse=True)
def unlimited(monkeypatch) -> None:
    """Give output no width: piped output wraps at COLUMNS, which pytest-xdist sets."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def run(capsys):
    """Return a function that runs the command line in this process: arguments -> (exit code, output, errors)."""

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def db(run):
    """Return a function that runs `foveate db`, checks its exit code, and returns its output."""

    def db(*arguments: str, code: int = 0) -> str:
        found, out, err = run("db", *arguments)
        assert (found, err) == (code, "")
        return out

    return db


@pytest.fixture
def refused(run):
    """Return a function that runs `foveate db` with wrong arguments, and returns its message.

    The command must change no database in the current folder.
    """

    def refused(*arguments: str) -> str:
        before = {path.name: path.read_bytes() for path in Path().glob("*.db")}
        code, out, err = run("db", *arguments)
        assert (code, out) == (2, "")
        assert err.startswith("foveate: ")
        assert "Traceback" not in err
        assert {path.name: path.read_bytes() for path in Path().glob("*.db")} == before
        return err.removeprefix("foveate: ").rstrip("\n")

    return refused


@pytest.fixture
def recording(tmp_path) -> Path:
    """An agent that reads six files of a thousand words and edits one: chat completions, a message a line."""
    messages: list[dict] = [
        {"role": "system", "content": "You mend programs."},
        {"role": "user", "content": "Why does the login test fail?"},
    ]
    for number in range(6):
        messages += [call(f"c{number}", "read_file", {"path": f"src/part_{number}.py"})]
        messages += [{"role": "tool", "tool_call_id": f"c{number}", "content": f"def part_{number}(): pass\n" * 200}]
    messages += [call("edit", "edit_file", {"path": "src/part_0.py", "new": "def part_0(): return token_checker_5"})]
    messages += [{"role": "tool", "tool_call_id": "edit", "content": "done"}]
    messages += [{"role": "assistant", "content": "Mended."}]
    return write(tmp_path / "fix-login.jsonl", messages)
