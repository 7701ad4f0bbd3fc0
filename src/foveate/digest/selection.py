"""Selection: the lines of a text that are worth most for the characters they take, in their order.

A kept line is abridged to its kept identifiers and the text between them where that is short; `…` marks an omission in
a line, a number before a line marks omitted lines. No identifier is kept twice, and none stands alone: a line with one
identifier keeps a short word next to it.

The weights come from recorded agents. Later calls use little of diffs, logs, tables and searches: most of it was known
before, or is read once. The larger a text, the smaller the share of it that is used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from .names import RUN, RUN_CHARACTER, rate
from .values import Line

__all__ = ["floor_for", "room_for", "room_for_musts", "select_lines"]

_LARGEST = 16_000
_FLOOR = 0.0019
_GROWS = 0.3
_ONE_LINE = {"json": 60, "log": 80, "output": 80, "prose": 40}
_MUSTS = {
    "diff": 0.15, "json": 0.2, "log": 0.5, "matches": 0.2, "output": 0.05, "prose": 0.05, "table": 0.6,
}  # fmt: skip
_USED = {
    "diff": 0.4, "edit": 0.2, "listing": 3.0, "log": 0.25, "matches": 0.6, "table": 0.3,
}  # fmt: skip
"""How often identifiers of a kind of text are used later, compared with other kinds."""


def room_for(characters: int) -> int:
    """Return the characters that a digest of a text of this length may have: a quarter, at most 16,000.

    On average a digest takes half of it: `digest` fills the room only as far as identifiers are worth it.
    """
    return min(characters // 4, _LARGEST)


def floor_for(kind: str, characters: int, room: int) -> float:
    """Return the least worth per character of a kept text; it is lower if there is little room."""
    tight = min(1.0, room / max(1, room_for(characters)))
    return _FLOOR * math.pow(characters, _GROWS) / _USED.get(kind, 1.0) * tight * tight


def room_for_musts(kind: str, room: int) -> int:
    """Return the part of the room for lines that must stay: enough for a total or an error."""
    share = _MUSTS.get(kind, 0.1)
    least = _ONE_LINE.get(kind, 0)
    return max(int(room * share), min(least, room // 2))


_WORDS = re.compile(r"[^\W\d_]\w+")
_NEAR = 60
_NUMBER = re.compile(r"(?<![\w.])\d[\w.]{0,9}(?![\w.])")
_DIGIT = re.compile(r"[0-9]+")
_SAMPLES = 5
_MORE_ALIKE = 0.4
_BREAK = 1.5
_SHORT = 3
_EMPTY = frozenset(["of", "in", "to", "is", "on", "at", "by", "an", "as", "or", "be", "it", "we", "so", "the", "and"])
_LONGEST_MUST = 120
_MOST_MUSTS = 400
_LEAST_MUST = 30
_FIRST = 3
_APART = 0.4
_AGAIN = 1.15
_CALLED = 1.2
_BEGINS = 0.8

Name = tuple[str, int, int]
"""An identifier, and its beginning and end in its line."""


class _Open:
    """A line that is shown."""

    __slots__ = ("shown", "spans", "whole")

    def __init__(self, shown: str, spans: list[tuple[int, int]], whole: bool) -> None:
        self.shown = shown
        self.spans = spans
        self.whole = whole


def select_lines(lines: Sequence[Line], room: int, *, floor: float = 0.0, musts: int = 0, fill: int = 0) -> str:
    """Return the best lines in at most `room` characters.

    `floor`: the least worth per character of a line that need not stay. `musts`: the characters for lines that must
    stay whole. `fill`: the characters that whole lines fill if identifiers take less.
    """
    return _Selection(lines, room, floor).run(musts, fill)


class _Selection:
    def __init__(self, lines: Sequence[Line], room: int, floor: float) -> None:
        self.lines = lines
        self.room = room
        self.floor = floor
        self.used = 0.0
        self.open: dict[int, _Open] = {}
        self.kept: set[str] = set()
        self.value: dict[str, float] = {}
        self.names: list[list[Name]] = []

    def run(self, musts: int, fill: int) -> str:
        self._find_names()
        self._open_musts(musts)
        self._cover()
        self._fill(fill)
        return self._text()

    def _find_names(self) -> None:
        value, names = self.value, self.names
        alike: dict[str, int] = {}
        for line in self.lines:
            here: list[Name] = []
            text, weight = line.text, line.weight
            for match in RUN.finditer(text):
                name, offset, each = rate(match.group())
                if not each:
                    continue
                start = match.start() + offset
                end = start + len(name)
                each *= weight if start else weight * _BEGINS
                if text[end : end + 1] == "(":
                    each *= _CALLED
                known = value.get(name)
                if known is None:
                    if _DIGIT.search(name):
                        series = _DIGIT.sub("0", name)
                        seen = alike.get(series, 0)
                        alike[series] = seen + 1
                        if seen >= _SAMPLES:
                            each *= _MORE_ALIKE
                    value[name] = each
                elif each * _AGAIN > known:
                    value[name] = each * _AGAIN
                here.append((name, start, end))
            names.append(here)

    def _open_musts(self, room: int) -> None:
        must = sorted([(-line.must, index) for index, line in enumerate(self.lines) if line.must])
        for _, index in must[:_MOST_MUSTS]:
            line = self.lines[index]
            left = int(room - self.used - self._break(line))
            if len(_clip(line.text)) <= left:
                self._show_whole(index)
            elif line.must >= _FIRST and left >= _LEAST_MUST:
                self._show_whole(index, left)

    def _show_whole(self, index: int, most: int = _LONGEST_MUST) -> None:
        opened = self.open.get(index)
        if opened and opened.whole:
            return
        line = self.lines[index]
        if line.above >= 0 and line.above not in self.open:
            self._show_whole(line.above)
        shown = _clip(line.text, most)
        self.used += len(shown) - len(opened.shown) if opened else len(shown) + self._break(line)
        self.open[index] = _Open(shown, [], True)
        self.kept.update([name for name, _, end in self.names[index] if end <= len(shown)])

    # ---------------------------------------------------------------------------------------------------- what is kept

    def _cover(self) -> None:
        """Open lines until the room is full, those first whose new identifiers are worth most per character."""
        waiting = []
        for index, names in enumerate(self.names):
            if names:
                ratio = self._at_best(index, names)
                if ratio >= self.floor and ratio > 0:
                    waiting.append((-ratio, index))
        heapify(waiting)
        floor = max(self.floor, 1e-9)
        while waiting:
            estimate, index = heappop(waiting)
            bundle = self._bundle(index)
            if bundle is None:
                continue
            ratio, cost, new, shown, spans = bundle
            if ratio < floor:
                continue
            if waiting and -waiting[0][0] > ratio and -estimate > ratio * 1.02:
                heappush(waiting, (-ratio, index))
                continue
            if self.used + cost > self.room:
                continue
            above = self.lines[index].above
            if above >= 0 and above not in self.open:
                self._show_whole(above)
                cost -= len(self.open[above].shown) + self._break(self.lines[above])
            self.open[index] = _Open(shown, spans, False)
            self.used += cost
            self.kept.update(new)
            if len(new) < len(self.names[index]):
                heappush(waiting, (-ratio, index))

    def _break(self, line: Line) -> float:
        """Return the characters of a line besides its words: its end, its mark, and every few lines a number."""
        return _BREAK + len(line.mark)

    def _at_best(self, index: int, names: list[Name]) -> float:
        """Return an upper bound of the worth of a line per character."""
        value = self.value
        if len(names) == 1:
            name = names[0][0]
            return value[name] / (len(name) + _BREAK + 3)
        best = 0.0
        total, length = 0.0, _BREAK
        for name, _, _ in names:
            total += value[name]
            length += len(name) + 1
            best = max(best, value[name] / (len(name) + 1 + _BREAK * 0.5))
        return max(best, total / length)

    def _bundle(self, index: int) -> tuple[float, float, list[str], str, list[tuple[int, int]]] | None:
        """Return the part of a line to show next: its worth per character, cost, names, text and spans."""
        opened = self.open.get(index)
        if opened and opened.whole:
            return None
        line = self.lines[index]
        value, kept = self.value, self.kept
        new: dict[str, tuple[int, int]] = {}
        best = 0.0
        for name, start, end in self.names[index]:
            if name not in kept and name not in new:
                new[name] = (start, end)
                best = max(best, value[name] / (end - start + 1))
        if not new:
            return None
        # Short names of a line come first.
        names = [name for name in new if value[name] >= _APART * best * (len(name) + 1)]
        spans = sorted([*(opened.spans if opened else ()), *[new[name] for name in names]])
        shown = _abridged(line.text, spans)
        cost = len(shown) - len(opened.shown) if opened else len(shown) + self._break(line)
        if line.above >= 0 and line.above not in self.open:
            cost += len(_clip(self.lines[line.above].text)) + self._break(self.lines[line.above])
        cost = max(cost, 1)
        return sum([value[name] for name in names]) / cost, cost, names, shown, spans

    def _fill(self, room: int) -> None:
        """Show whole lines, those with the largest weight first."""
        if self.used + 20 > room:
            return
        order = sorted(range(len(self.lines)), key=lambda index: (-self.lines[index].weight, index))
        seen: set[str] = set()
        for index in order[:400]:
            opened = self.open.get(index)
            text = self.lines[index].text
            if text in seen or (opened and opened.whole):
                continue
            seen.add(text)
            cost = len(_clip(self.lines[index].text)) - (
                len(opened.shown) if opened else -self._break(self.lines[index])
            )
            if 0 < cost <= room - self.used:
                self._show_whole(index)
                if self.used + 20 > room:
                    return

    def _text(self) -> str:
        out: list[str] = []
        left = self.room
        previous, silent = -99, 99
        for index in sorted(self.open):
            number, shown = self.lines[index].number, self.lines[index].mark + self.open[index].shown
            if number and silent >= (5 if number - previous > 6 else 14):
                shown = f"{number} {shown}"
                silent = 0
            else:
                silent += 1
            previous = number or previous
            if len(shown) + 1 > left:
                continue
            left -= len(shown) + 1
            out.append(shown)
        return "\n".join(out)


def _clip(text: str, most: int = _LONGEST_MUST) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _abridged(text: str, spans: list[tuple[int, int]]) -> str:
    """Return the spans of a line with the text between them, if it is short."""
    if len(spans) == 1:
        spans = _with_neighbour(text, *spans[0])
        if len(spans) == 1 and len(text) <= spans[0][1] - spans[0][0] + _SHORT:
            return text
    pieces = []
    last = -1
    for start, end in spans:
        if last >= 0:
            gap = text[last:start].strip()
            if not gap:
                pieces.append(" ")
            elif len(gap) <= 2 and not RUN_CHARACTER.search(gap):
                pieces.append(gap)
            else:
                pieces.append("…")
        pieces.append(text[start:end])
        last = end
    return "".join(pieces)


def _with_neighbour(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the span and a short word near it, so that the name does not stand alone."""
    best, least = None, 99
    for word in _WORDS.finditer(text, max(0, start - _NEAR), end + _NEAR):
        first, last = word.span()
        if last > start and first < end:
            continue
        far = start - last if last <= start else first - end + 2
        cost = last - first + (0 if far <= 3 else 1 + far // 12)
        if word[0].lower() in _EMPTY:
            cost += 3
        if cost < least:
            best, least = (first, last), cost
    if best is None:
        number = _NUMBER.search(text, end, end + _NEAR)
        return [(start, end), number.span()] if number else [(start, end)]
    return [best, (start, end)] if best[0] < start else [(start, end), best]
