"""What the tests of the command line may use: a way to run it, and a small recording."""

from __future__ import annotations

from pathlib import Path

import pytest
from recordings import call, write

from foveate.cli.app import main


@pytest.fixture
def run(capsys):
    """Runs the command line in this process: arguments in, (exit code, standard output, standard error) out."""

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run


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
