"""A tool that searches the files of one folder for a pattern."""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Iterator

from ...errors import BadInput, MissingExtra
from ...open import find_pattern
from ..tools import Tool, ToolFailed, tool
from .folder import Folder, line_cut, lines_of

__all__ = ["search"]

_LINES_MAX = 100
_LINE_MAX = 240
"""Characters of a line."""
_SECONDS = 10.0
"""For all files; each may take at most a second."""
_FILES_MAX = 20_000


def search(folder: str | os.PathLike[str]) -> tuple[Tool, ...]:
    """Return `search_files`, which finds the lines of files in `folder` that match a regular expression.

    The package `regex` (extra `expand`) stops patterns that take too long. Without it, the tool searches for the
    pattern as literal text, and says so in its result. Raises BadSetting if there is no such folder.
    """
    home = Folder(folder)

    def search_files(pattern: str, path: str = ".", files: str = "*", ignore_case: bool = False) -> str:
        """Find the lines that match a regular expression, as FILE:LINE: TEXT.

        Args:
            pattern: A regular expression, matched within one file; ^ and $ are ends of lines.
            path: The folder, or the file, to look in.
            files: Only files whose names or paths fit this, such as *.py.
            ignore_case: Whether a and A are the same.
        """
        if not pattern:
            raise ToolFailed("The pattern is empty.")
        start = home.place(path)
        if not start.exists():
            raise ToolFailed(f"There is no {path[:200]}.")
        task = _Search(f"(?i){pattern}" if ignore_case else pattern, pattern if not ignore_case else pattern.lower())
        places = [start] if start.is_file() else home.walk(start, files)
        lines: list[str] = []
        for number, place in enumerate(places):
            if not os.path.isfile(place):
                continue
            if time.monotonic() > task.until or number > _FILES_MAX:
                task.notes.append(f"stopped at {home.name_of(place)}: there is too much here; name a folder or files")
                break
            try:
                text = home.text(home.name_of(place))
            except ToolFailed:
                task.skipped += 1
                continue
            lines += [f"{home.name_of(place)}:{line}" for line in task.lines(text, _LINES_MAX + 1 - len(lines))]
            if len(lines) > _LINES_MAX:
                del lines[_LINES_MAX:]
                task.notes.append(f"the first {_LINES_MAX} lines; there are more: narrow the pattern or the files")
                break
        return "\n".join([*(lines or ["(no line matches)"]), *task.summary()])

    return (tool(search_files, is_repeatable=True),)


class _Search:
    """One search: its pattern, its time limit, and its notes for the model."""

    def __init__(self, pattern: str, letters: str) -> None:
        self._pattern, self._letters = pattern, letters
        self._is_plain = False
        self.until = time.monotonic() + _SECONDS
        self.skipped = 0
        """Number of files that are no text, or too large."""
        self.notes: list[str] = []

    def lines(self, text: str, limit: int) -> list[str]:
        """Return the matching lines of one text with their numbers, at most `limit`."""
        begins = _line_starts(text)
        lines = lines_of(text)
        matches: list[str] = []
        last = -1
        for at in self._places(text):
            number = bisect_right(begins, at) - 1
            if number == last or number >= len(lines):
                continue
            last = number
            matches.append(f"{number + 1}: {line_cut(lines[number].strip(), _LINE_MAX)}")
            if len(matches) == limit:
                break
        return matches

    def _places(self, text: str) -> Iterator[int]:
        if not self._is_plain:
            try:
                yield from (begin for begin, _ in find_pattern(self._pattern, text))
            except MissingExtra:
                self._is_plain = True
                self.notes.append("looked for to the letter: patterns need the package regex, which is not installed")
            except BadInput as error:
                raise ToolFailed(str(error)) from error
            else:
                return
        text = text.lower() if self._pattern.startswith("(?i)") else text
        at = text.find(self._letters)
        while at >= 0:
            yield at
            at = text.find(self._letters, at + 1)

    def summary(self) -> list[str]:
        """Return the notes for the model."""
        if self.skipped:
            files = "1 file" if self.skipped == 1 else f"{self.skipped} files"
            self.notes.append(f"{files} passed over: no text, or too large")
        return [f"[{note}]" for note in self.notes]


def _line_starts(text: str) -> list[int]:
    """Return the position of the start of each line."""
    begins = [0]
    at = text.find("\n")
    while at >= 0:
        begins.append(at + 1)
        at = text.find("\n", at + 1)
    return begins
