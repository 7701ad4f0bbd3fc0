"""The sessions in `docs/chat.md` are run: what is typed there is typed, and what is printed there is printed.

A line `...` stands for any number of lines, and `...` in a line for anything. Words are compared, and figures are not:
what a tool or a policy says of itself in one word more changes every count of tokens.
"""

from __future__ import annotations

import io
import re
import shlex
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BLOCK = re.compile(r"^```console\n\$ (.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FIGURE = re.compile(r"(?<![\w/.*])m?\d[\d,.]*\d|(?<![\w/.*])m?\d|[#.]{24}| {2,}")


def worded(text: str) -> str:
    """The same text without its figures, and with single spaces."""
    return FIGURE.sub(lambda found: " " if found[0].startswith(" ") else "0", text)


def pattern(printed: str) -> re.Pattern[str]:
    """What a block shows, as a pattern of all that the command prints."""
    lines = [line for line in printed.rstrip("\n").split("\n") if not (line.startswith("> ") and "{" in printed[:2])]
    told = [".*" if line == "..." else r".*".join(map(re.escape, worded(line).split("..."))) for line in lines]
    return re.compile(r"\n".join(told) + r"\n?", re.DOTALL)


def test_the_sessions_of_the_page_are_what_is_printed(run, tmp_path, monkeypatch):
    shutil.copytree(ROOT / "examples" / "sample_project", tmp_path / "sample_project")
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / "docs" / "chat.md").read_text(encoding="utf-8"))
    assert len(blocks) == 5
    for command, printed in blocks:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in typed(printed))))
        code, out, err = run(*shlex.split(command)[1:])
        assert (code, err) == (0, "")
        assert pattern(printed).fullmatch(worded(out)), out


def typed(printed: str) -> list[str]:
    """What was typed in a session, answers to questions among it. The last line of what was said before is none."""
    lines = printed.split("\n")
    begins = 1 if printed.startswith("{") else next((i for i, line in enumerate(lines) if not line), len(lines))
    found = [re.match(r"> (.*)|    allow it\? \[y/N/always, or why not\] (.*)", line) for line in lines[begins:]]
    return [one[1] or one[2] for one in found if one]
