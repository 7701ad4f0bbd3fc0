"""Parts of an original: lines, items, and matches of a pattern. Pure: a text in, a piece of it out.

A range is written `40-80`, `40-`, `-20` or `7`; numbers count from 1 and both ends are included. Lines and items are
cut out of the text to the byte. Matches are shown with the numbers of their lines and some lines around them, so that
these can be asked for next.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Literal

from msgspec import Struct

from ..core.json_escapes import decode_escapes
from ..core.scripts import whole_end
from ..errors import BadInput
from .items import items_of

__all__ = ["Excerpt", "Find", "Range", "count_lines", "items", "lines", "matches", "read_range"]

Find = Callable[[str, str], Iterator[tuple[int, int]]]
"""Yields start and end of each match of a pattern in a text, in order.

Raises BadInput, at any match, for a wrong pattern and for one that takes too long.
"""

AROUND = 2
"""Lines shown before and after a match."""
MOST_SHOWN = 40
"""Matches shown, at most."""
MOST_COUNTED = 1_000
MOST_CHARACTERS = 12_000
"""Of an excerpt by a pattern; the rest is cut, and a note says so."""
LONGEST_LINE = 400
"""Of a longer line only the characters around the match are shown."""
_NUMBER = r"[lL#]?(\d{1,12})"
_SHAPE = re.compile(rf"(?:{_NUMBER})?(?:\s*(-|–|—|:|\.\.|to)\s*(?:{_NUMBER})?)?")
"""Two numbers at most, with the separators that people write."""


class Range(Struct, frozen=True):
    """`first` to `last`, from 1, both included. `last` 0: to the end; `first` 0: the last `last` ones."""

    first: int
    last: int

    def within(self, total: int) -> tuple[int, int] | None:
        """Return first and last of `total` elements; None if the range holds none of them."""
        if not self.first:
            first, last = max(1, total - self.last + 1), total
        else:
            first, last = self.first, min(self.last or total, total)
        return (first, last) if first <= last else None

    def __str__(self) -> str:
        if self.first == self.last:
            return str(self.first)
        return f"{self.first or ''}-{self.last or ''}"


class Excerpt(Struct, frozen=True):
    """A part of an original."""

    handle: str
    """Of the original."""
    form: Literal["lines", "items", "pattern"]
    """The kind of excerpt."""
    text: str
    """Lines and items: the piece of the original, to the byte. Pattern: lines after their numbers, `12:` for matches
    and `12-` around them, groups separated by `--`.
    """
    first: int
    """Number of the first line, item or match, from 1."""
    last: int
    """The number of the last line or item in the excerpt."""
    total: int
    """How many the original has."""
    what: str
    """Their name, in the plural."""
    header: str = ""
    """For rows: the line with the names of the columns."""
    note: str = ""
    """Remarks, such as that something was cut."""

    def __str__(self) -> str:
        """Return the text for the model, after a line that describes it."""
        number = f"{self.first:,}-{self.last:,}" if self.last > self.first else f"{self.first:,}"
        columns = f"; columns: {self.header}" if self.header else ""
        note = f"; {self.note}" if self.note else ""
        return f"[{self.handle}: {self.what} {number} of {self.total:,}{columns}{note}]\n{self.text}"


def read_range(value: object, what: str) -> Range:
    """Read a range from text, a number, or two numbers in a list. Raises BadInput, which names `what` it is of."""
    text = value
    if isinstance(value, list | tuple) and 1 <= len(value) <= 2 and all(type(number) is int for number in value):
        text = "-".join(map(str, value))
    elif type(value) is int:
        text = str(value)
    match = _SHAPE.fullmatch(text.strip()) if isinstance(text, str) else None
    ends = [int(end) for end in (match[1], match[3]) if end] if match else []
    if match and ends and min(ends) > 0 and ends == sorted(ends):
        if not match[2]:
            return Range(ends[0], ends[0])
        return Range(int(match[1] or 0), int(match[3] or 0))
    raise BadInput(
        f'{what} are told as "40-80" (from 1, both ends included), "40-" (to the end), "-20" (the last 20) or "7", '
        f"not {reprlib.repr(value)}."
    )


def count_lines(text: str) -> int:
    """Count lines: each ends with a line feed; text after the last one is a line too."""
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def lines(handle: str, text: str, wanted: Range) -> Excerpt:
    """Return the lines in a range. Raises BadInput if there are none."""
    total = count_lines(text)
    first, last = _within(handle, wanted, total, "lines")
    before = text.split("\n", first - 1)
    start = len(text) - len(before[-1])
    rest = before[-1].split("\n", last - first + 1)
    end = len(text) - (len(rest[-1]) if len(rest) > last - first + 1 else 0)
    return Excerpt(handle, "lines", text[start:end], first, last, total, "lines")


def items(handle: str, text: str, wanted: Range) -> Excerpt:
    """Return the items in a range, with the text between them. Raises BadInput if there are none."""
    all_items = items_of(text)
    total = all_items.count()
    first, last = _within(handle, wanted, total, f"items ({all_items.what})")
    spans = islice(all_items.spans(), first - 1, last)
    start, end = next(spans)
    for span in spans:
        end = span[1]
    return Excerpt(handle, "items", text[start:end], first, last, total, all_items.what, all_items.header)


def _within(handle: str, wanted: Range, total: int, what: str) -> tuple[int, int]:
    span = wanted.within(total)
    if span is None:
        raise BadInput(f"{handle} has {total:,} {what}; {wanted} are not among them.")
    return span


def matches(handle: str, text: str, pattern: str, find: Find) -> Excerpt:
    """Return the lines that a pattern matches, and some around them. Raises BadInput if there is no match.

    If nothing matches, letters that JSON has as escapes are decoded.
    """
    spans: list[tuple[int, int]] = []
    total = 0
    for span in islice(find(pattern, text), MOST_COUNTED):
        total += 1
        if total <= MOST_SHOWN:
            spans.append(span)
    if not total and (letters := decode_escapes(text)) != text:
        return matches(handle, letters, pattern, find)
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
    return Excerpt(handle, "pattern", page.render(), 1, shown, total, "matches", note=note)


class _Page:
    """Lines of a text after their numbers, in order, each once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at, self._number = 0, 1  # The start of a line, and its number.
        self._lines: dict[int, tuple[bool, str]] = {}
        self.size = 0
        self.is_cut = False

    def add(self, start: int, end: int) -> None:
        """Add the lines of a match, and some around it."""
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
        after = AROUND
        for number in range(first, first + AROUND + MOST_SHOWN):
            if at >= len(text) or after < 0:
                return
            stop = text.find("\n", at)
            stop = len(text) if stop < 0 else stop
            is_match = at < max(end, start + 1) and stop >= start
            if stop >= end:
                after -= 1
            self._put(number, at, stop, start if is_match else None)
            at = stop + 1
        self.is_cut = True

    def _put(self, number: int, start: int, stop: int, match: int | None) -> None:
        if number in self._lines and (match is None or self._lines[number][0]):
            return
        low, high = start, stop
        if stop - start > LONGEST_LINE:
            low = max(start, min((match or start) - LONGEST_LINE // 2, stop - LONGEST_LINE))
            low, high = whole_end(self._text, low), whole_end(self._text, min(stop, low + LONGEST_LINE))
            self.is_cut = True
        line = f"{'…' if low > start else ''}{self._text[low:high]}{'…' if high < stop else ''}"
        self._lines[number] = (match is not None, line)
        self.size += len(line)

    def render(self) -> str:
        """Return the lines, with `--` between groups."""
        rendered: list[str] = []
        previous = 0
        for number in sorted(self._lines):
            is_match, line = self._lines[number]
            if rendered and number > previous + 1:
                rendered.append("--")
            rendered.append(f"{number}{':' if is_match else '-'}{line}")
            previous = number
        return "\n".join(rendered)
