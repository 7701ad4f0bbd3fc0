"""The sessions in `docs/guides/chat.md` run, and print what the page shows.

A line `...` matches any number of lines, and `...` in a line matches anything. The test ignores figures: one more word
in the description of a tool changes every count of tokens.
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
    """Return the text without figures, and with single spaces."""
    return FIGURE.sub(lambda found: " " if found[0].startswith(" ") else "0", text)


def pattern(printed: str) -> re.Pattern[str]:
    """Return a block of the page as a pattern of the complete output."""
    lines = [line for line in printed.rstrip("\n").split("\n") if not (line.startswith("> ") and "{" in printed[:2])]
    patterns = [".*" if line == "..." else r".*".join(map(re.escape, worded(line).split("..."))) for line in lines]
    return re.compile(r"\n".join(patterns) + r"\n?", re.DOTALL)


def test_sessions_of_the_page_match_the_real_output(run, tmp_path, monkeypatch):
    shutil.copytree(ROOT / "examples" / "sample_project", tmp_path / "sample_project")
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / "docs" / "guides" / "chat.md").read_text(encoding="utf-8"))
    assert len(blocks) == 8
    for command, printed in blocks:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in typed(printed))))
        code, out, err = run(*shlex.split(command)[1:])
        assert (code, err) == ("--policy off" in command, "")  # Without a policy, the tour hits the window.
        assert pattern(printed).fullmatch(worded(out)), out


def typed(printed: str) -> list[str]:
    """Return the lines that a user types in a session, without the last exchange at its beginning."""
    lines = printed.split("\n")
    begins = 1 if printed.startswith("{") else next((i for i, line in enumerate(lines) if not line), len(lines))
    matches = [re.match(r"> (.*)|    allow it\? \[y/N/always, or why not\] (.*)", line) for line in lines[begins:]]
    return [match[1] or match[2] for match in matches if match]
