"""A pattern looked for in the files of one folder."""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Iterator

from ...errors import BadInput, MissingExtra
from ...open import find_pattern
from ..tools import Tool, ToolFailed, tool
from .bounded import line_cut, lines_of
from .folders import Folder

__all__ = ["search"]

_MOST_FOUND = 100
"""Lines."""
_MOST_LINE = 240
_SECONDS = 10.0
"""For all files together; each may take a second at most."""
_MOST_FILES = 20_000


def search(folder: str | os.PathLike[str]) -> tuple[Tool, ...]:
    """`search_files`: the lines of files in `folder` that a regular expression matches.

    Patterns cannot hang: they are stopped, by the package `regex` (extra `expand`). Where it is not installed a pattern
    is looked for to the letter, and the model is told so. Raises BadSetting where there is no such folder.
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
        looked = _Looked(f"(?i){pattern}" if ignore_case else pattern, pattern if not ignore_case else pattern.lower())
        places = [start] if start.is_file() else home.walk(start, files)
        found: list[str] = []
        for number, place in enumerate(places):
            if not os.path.isfile(place):
                continue
            if time.monotonic() > looked.until or number > _MOST_FILES:
                looked.notes.append(f"stopped at {home.name_of(place)}: there is too much here; name a folder or files")
                break
            try:
                text = home.text(home.name_of(place))
            except ToolFailed:
                looked.passed_over += 1
                continue
            found += [f"{home.name_of(place)}:{line}" for line in looked.lines(text, _MOST_FOUND + 1 - len(found))]
            if len(found) > _MOST_FOUND:
                del found[_MOST_FOUND:]
                looked.notes.append(f"the first {_MOST_FOUND} lines; there are more: narrow the pattern or the files")
                break
        return "\n".join([*(found or ["(no line matches)"]), *looked.told()])

    return (tool(search_files, is_repeatable=True),)


class _Looked:
    """One search: its pattern, its time, and what is to be said of it beside what was found."""

    def __init__(self, pattern: str, letters: str) -> None:
        self._pattern, self._letters = pattern, letters
        self._is_plain = False
        self.until = time.monotonic() + _SECONDS
        self.passed_over = 0
        """Files that are no text, or too large."""
        self.notes: list[str] = []

    def lines(self, text: str, most: int) -> list[str]:
        """The matching lines of one text, with their numbers; `most` of them."""
        begins = _begins(text)
        lines = lines_of(text)
        found: list[str] = []
        last = -1
        for at in self._places(text):
            number = bisect_right(begins, at) - 1
            if number == last or number >= len(lines):
                continue
            last = number
            found.append(f"{number + 1}: {line_cut(lines[number].strip(), _MOST_LINE)}")
            if len(found) == most:
                break
        return found

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
        said = text.lower() if self._pattern.startswith("(?i)") else text
        at = said.find(self._letters)
        while at >= 0:
            yield at
            at = said.find(self._letters, at + 1)

    def told(self) -> list[str]:
        if self.passed_over:
            files = "1 file" if self.passed_over == 1 else f"{self.passed_over} files"
            self.notes.append(f"{files} passed over: no text, or too large")
        return [f"[{note}]" for note in self.notes]


def _begins(text: str) -> list[int]:
    """Where each line begins."""
    begins = [0]
    at = text.find("\n")
    while at >= 0:
        begins.append(at + 1)
        at = text.find("\n", at + 1)
    return begins
