"""What of a folder is not worth telling: what programs leave there, and what its `.gitignore` names.

Only the `.gitignore` of the folder itself is read, and patterns are those of `fnmatch`, for which a star also stands
for slashes: more may be left out than git would, never in the folder itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate
from itertools import groupby
from operator import itemgetter
from pathlib import Path

__all__ = ["LEFT_BY_PROGRAMS", "Ignored"]

LEFT_BY_PROGRAMS = ("*-wal", "*-shm", "*-journal", "*.pyc", "*.swp", "*~", ".DS_Store", ".*.part")
"""Among them what SQLite has beside a database, which may be the conversation's own."""
_MOST = 100_000
"""Characters of a `.gitignore` that are read."""


class Ignored:
    """The patterns of one folder; the last that fits decides, as for git."""

    def __init__(self, root: Path, more: Iterable[str] = ()) -> None:
        patterns = [_pattern(line) for line in (*LEFT_BY_PROGRAMS, *more, *_lines(root / ".gitignore"))]
        # Neighbours of one kind are one regular expression: thousands of files are asked about.
        self._rules = [
            (*kind, re.compile("|".join(translate(pattern) for *_, pattern in several)).match)
            for kind, several in groupby(patterns, key=itemgetter(0, 1, 2))
        ]

    def __call__(self, path: str, is_folder: bool) -> bool:
        """Whether the file or folder with this path, relative to the folder, is left out."""
        name = path.rpartition("/")[2]
        is_out = False
        for has_path, for_folders, says, fits in self._rules:
            if is_out != says and (is_folder or not for_folders) and fits(path if has_path else name):
                is_out = says
        return is_out


def _pattern(line: str) -> tuple[bool, bool, bool, str]:
    """Whether it is about the whole path, about folders alone, and whether it leaves out or takes in; the pattern."""
    says = not line.startswith("!")
    line = line.removeprefix("!")
    for_folders = line.endswith("/")
    line = line.rstrip("/")
    has_path = "/" in line.removeprefix("**/")
    return has_path, for_folders, says, line.removeprefix("**/").lstrip("/")


def _lines(place: Path) -> list[str]:
    try:
        with place.open(encoding="utf-8", errors="replace") as file:
            text = file.read(_MOST)
    except OSError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip(" /!") and not line.startswith("#")]
