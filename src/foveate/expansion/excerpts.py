"""Parts of an original: lines, items, and what a pattern matches. Pure: a text in, a piece of it out.

Lines and items are cut out of the text as they stand in it, to the byte. What matches a pattern is shown with the
numbers of its lines and some lines around it, so that those can be asked for next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Literal

from msgspec import Struct

from ..errors import BadInput
from .items import items_of
from .ranges import Range

__all__ = ["Excerpt", "Find", "count_lines", "items", "lines", "matches"]

Find = Callable[[str, str], Iterator[tuple[int, int]]]
"""Start and end of each match of a pattern in a text, in order. Raises BadInput for a pattern that is none, and for one
that takes too long, at any match.
"""

AROUND = 2
"""Lines that are shown before and behind a match."""
MOST_SHOWN = 40
"""Matches that are shown."""
MOST_COUNTED = 1_000
MOST_CHARACTERS = 12_000
"""Of an excerpt by a pattern; what goes beyond is cut, and told."""
LONGEST_LINE = 400
"""Of a longer line only what is around the match is shown."""


class Excerpt(Struct, frozen=True):
    """A part of an original."""

    handle: str
    """What it is a part of."""
    form: Literal["lines", "items", "pattern"]
    text: str
    """Lines and items: the piece of the original, to the byte. Pattern: lines behind their numbers, `12:` where it
    matches and `12-` around that, groups parted by `--`.
    """
    first: int
    """Number of the first line, item or match, from 1."""
    last: int
    total: int
    """How many there are in the whole."""
    what: str
    """What they are, in the plural."""
    header: str = ""
    """For rows: the line that names the columns."""
    note: str = ""
    """What else is to be known, such as what was cut."""

    def __str__(self) -> str:
        """As the model reads it: a line that says what it is, then the text."""
        number = f"{self.first:,}-{self.last:,}" if self.last > self.first else f"{self.first:,}"
        columns = f"; columns: {self.header}" if self.header else ""
        note = f"; {self.note}" if self.note else ""
        return f"[{self.handle}: {self.what} {number} of {self.total:,}{columns}{note}]\n{self.text}"


def count_lines(text: str) -> int:
    """A line ends with a line feed; what stands behind the last one is a line if it is not empty."""
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def lines(handle: str, text: str, wanted: Range) -> Excerpt:
    """The lines in this range. Raises BadInput where there are none."""
    total = count_lines(text)
    first, last = _within(handle, wanted, total, "lines")
    before = text.split("\n", first - 1)
    start = len(text) - len(before[-1])
    rest = before[-1].split("\n", last - first + 1)
    end = len(text) - (len(rest[-1]) if len(rest) > last - first + 1 else 0)
    return Excerpt(handle, "lines", text[start:end], first, last, total, "lines")


def items(handle: str, text: str, wanted: Range) -> Excerpt:
    """The items in this range, with what stands between them. Raises BadInput where there are none."""
    found = items_of(text)
    total = found.count()
    first, last = _within(handle, wanted, total, f"items ({found.what})")
    spans = islice(found.spans(), first - 1, last)
    start, end = next(spans)
    for span in spans:
        end = span[1]
    return Excerpt(handle, "items", text[start:end], first, last, total, found.what, found.header)


def _within(handle: str, wanted: Range, total: int, what: str) -> tuple[int, int]:
    run = wanted.within(total)
    if run is None:
        raise BadInput(f"{handle} has {total:,} {what}; {wanted} are not among them.")
    return run


def matches(handle: str, text: str, pattern: str, find: Find) -> Excerpt:
    """The lines that a pattern matches, with some around. Raises BadInput where it matches nothing, or is none."""
    spans: list[tuple[int, int]] = []
    total = 0
    for span in islice(find(pattern, text), MOST_COUNTED):
        total += 1
        if total <= MOST_SHOWN:
            spans.append(span)
    if not total:
        raise BadInput(f"Nothing in {handle} matches {pattern[:80]!r}. It has {count_lines(text):,} lines.")
    page = _Page(text)
    shown = 0
    for span in spans:
        if page.size > MOST_CHARACTERS:
            break
        page.add(*span)
        shown += 1
    notes = [
        f"the first {MOST_COUNTED:,} were counted" if total == MOST_COUNTED else "",
        "long lines and long matches are cut" if page.is_cut else "",
    ]
    note = ", ".join(filter(None, notes))
    return Excerpt(handle, "pattern", page.written(), 1, shown, total, "matches", note=note)


class _Page:
    """Lines of a text behind their numbers, in their order, each once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at, self._number = 0, 1  # The start of a line, and its number.
        self._lines: dict[int, tuple[bool, str]] = {}
        self.size = 0
        self.is_cut = False

    def add(self, start: int, end: int) -> None:
        """Take the lines of a match, and some around it."""
        text = self._text
        begin = text.rfind("\n", 0, start) + 1
        number = self._number + text.count("\n", self._at, begin)
        self._at, self._number = begin, number
        before = begin
        first = number
        while first > max(1, number - AROUND):
            before = text.rfind("\n", 0, before - 1) + 1
            first -= 1
        at = before
        behind = AROUND
        for number in range(first, first + AROUND + MOST_SHOWN):
            if at >= len(text) or behind < 0:
                return
            stop = text.find("\n", at)
            stop = len(text) if stop < 0 else stop
            is_match = at < max(end, start + 1) and stop >= start
            if stop >= end:
                behind -= 1
            self._put(number, at, stop, start if is_match else None)
            at = stop + 1
        self.is_cut = True

    def _put(self, number: int, start: int, stop: int, match: int | None) -> None:
        if number in self._lines and (match is None or self._lines[number][0]):
            return
        low, high = start, stop
        if stop - start > LONGEST_LINE:
            low = max(start, min((match or start) - LONGEST_LINE // 2, stop - LONGEST_LINE))
            high = min(stop, low + LONGEST_LINE)
            self.is_cut = True
        line = f"{'…' if low > start else ''}{self._text[low:high]}{'…' if high < stop else ''}"
        self._lines[number] = (match is not None, line)
        self.size += len(line)

    def written(self) -> str:
        told: list[str] = []
        previous = 0
        for number in sorted(self._lines):
            is_match, line = self._lines[number]
            if told and number > previous + 1:
                told.append("--")
            told.append(f"{number}{':' if is_match else '-'}{line}")
            previous = number
        return "\n".join(told)
