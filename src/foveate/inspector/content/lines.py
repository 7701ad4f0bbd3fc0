"""Lines of a long text: a window of them, found in linear time, and the size of the text without splitting it."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["FOLDED", "PAGE", "Limits", "Window", "count_lines", "window_of"]

_STRIDE = 65_536


class Limits(Struct, frozen=True):
    """How much of a text is shown at once."""

    lines: int
    """Most lines."""
    width: int
    """Most characters of a line. The rest of the line is cut, and its length is shown."""
    characters: int
    """Most characters of all lines together."""
    ends: int = 0
    """How many of the lines are the last ones of the text, where its end matters."""

    @property
    def half(self) -> Limits:
        """Return limits with half as many lines and characters."""
        return Limits(max(1, self.lines // 2), self.width, max(1, self.characters // 2), self.ends // 2)


FOLDED = Limits(12, 240, 1_200, 4)
"""A part in the row of its message."""
PAGE = Limits(500, 2_000, 30_000)
"""A page of a long text."""


class Window(Struct, frozen=True):
    """Some lines of a text."""

    rows: tuple[tuple[int, str, int], ...]
    """The number of each line from 1, its text up to the width, and the number of characters that are cut."""
    lines: int
    """Lines of the whole text."""
    characters: int
    """Characters of the whole text."""

    @property
    def first(self) -> int:
        """Return the number of the first line in the window; 1 for an empty text."""
        return self.rows[0][0] if self.rows else 1

    @property
    def last(self) -> int:
        """Return the number of the last line in the window; 0 for an empty text."""
        return self.rows[-1][0] if self.rows else 0

    @property
    def is_whole(self) -> bool:
        """Return whether the window shows every character of the text."""
        return len(self.rows) == self.lines and not any(cut for _, _, cut in self.rows)

    @property
    def text(self) -> str:
        """Return the lines as one text."""
        return "\n".join([row for _, row, _ in self.rows])


def count_lines(text: str) -> int:
    """Return the number of lines. A line break at the end ends the last line."""
    return text.count("\n") + (not text.endswith("\n")) if text else 0


def window_of(text: str, limits: Limits, first: int = 1, *, ends: bool = False) -> Window:
    """Return the lines from number `first` (from 1) within the limits, at least one if the text has it.

    `ends`: some of the lines are the last ones of the text, if not all lines are shown (`Limits.ends`).
    A carriage return before a line break belongs to the line break.
    """
    total = count_lines(text)
    number = min(max(1, first), max(1, total))
    if ends and limits.ends and total - number >= limits.lines:
        begin = Limits(limits.lines - limits.ends, limits.width, limits.characters * 2 // 3)
        end = Limits(limits.ends, limits.width, limits.characters // 3)
        rows = _rows(text, begin, number, total)
        rows += _rows(text, end, max(rows[-1][0] + 1, total - limits.ends + 1), total)
    else:
        rows = _rows(text, limits, number, total)
    return Window(tuple(rows), total, len(text))


def _rows(text: str, limits: Limits, number: int, total: int) -> list[tuple[int, str, int]]:
    rows: list[tuple[int, str, int]] = []
    at, room = _start_of(text, number), limits.characters
    while number <= total and len(rows) < limits.lines and (room > 0 or not rows):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        stop = end - 1 if at < end < len(text) and text[end - 1] == "\r" else end
        shown = min(stop - at, limits.width)
        rows.append((number, text[at : at + shown], stop - at - shown))
        room -= shown + 1
        at, number = end + 1, number + 1
    return rows


def _start_of(text: str, number: int) -> int:
    """Return the index of the first character of a line."""
    left, at = number - 1, 0
    while left > 0:
        inside = text.count("\n", at, at + _STRIDE)
        if inside >= left:
            for _ in range(left):
                at = text.index("\n", at) + 1
            return at
        left -= inside
        at += _STRIDE
    return at
