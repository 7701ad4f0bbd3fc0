"""Lines in little room: the identifiers that are worth most for their length, each beside other words of its line.

A kept line is abridged to its kept identifiers and what stands between them where that is short; `…` marks what is left
out of a line, a number before a line where lines are left out. No identifier is kept twice. It knows nothing of kinds:
readers choose the lines and weigh them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .names import RUN, RUN_CHARACTER, worth
from .shapes import Line

__all__ = ["squeeze"]

_WORDS = re.compile(r"[^\W\d_]\w+")
_NEAR = 60
_LONGEST_MUST = 160
_OCCURRENCES = 6


class _Open:
    """A line that is shown, as yet abridged to these spans."""

    __slots__ = ("line", "shown", "spans", "whole")

    def __init__(self, line: Line) -> None:
        self.line = line
        self.spans: list[tuple[int, int]] = []
        self.whole = False
        self.shown = ""


def squeeze(lines: Sequence[Line], room: int, *, musts: float = 0.35, fill: float = 0.0) -> str:
    """The best of the lines in at most `room` characters, in their order.

    `musts`: share of the room for lines that must be kept, whole. `fill`: share of the room up to which lines are
    shown in full once every identifier is in, or none fits.
    """
    return _Squeeze(lines, room).run(musts, fill)


class _Squeeze:
    def __init__(self, lines: Sequence[Line], room: int) -> None:
        self.lines = lines
        self.room = room
        self.used = 0
        self.open: dict[int, _Open] = {}
        self.kept: set[str] = set()
        self.places: dict[str, list[tuple[int, int, int]]] = {}
        self.value: dict[str, float] = {}
        self.numbered = max(3, len(str(lines[-1].number if lines else 0)) + 1)

    def run(self, musts: float, fill: float) -> str:
        self._open_musts(int(self.room * musts))
        for name in self._ranking():
            if name not in self.kept:
                self._keep(name)
        if fill:
            self._fill(int(self.room * fill))
        return self._text()

    def _open_musts(self, room: int) -> None:
        for index, line in enumerate(self.lines):
            if line.must and index not in self.open:
                cost = min(len(line.text), _LONGEST_MUST) + 1 + self.numbered // 2
                if self.used + cost > room:
                    continue
                self._show_whole(index)

    def _show_whole(self, index: int) -> None:
        line = self.lines[index]
        opened = self.open.get(index)
        before = len(opened.shown) + 1 + self.numbered // 3 if opened else 0
        if not opened:
            opened = self.open[index] = _Open(line)
            if line.above >= 0 and line.above not in self.open:
                self._show_whole(line.above)
        opened.whole = True
        opened.shown = _clip(line.text)
        self.used += len(opened.shown) + 1 + self.numbered // 3 - before
        for run in RUN.findall(opened.shown):
            self.kept.add(worth(run)[0])

    def _ranking(self) -> list[str]:
        """Names by what they are worth for their length, the best first."""
        places, value = self.places, self.value
        counts: dict[str, int] = {}
        crowd: list[int] = []
        for index, line in enumerate(self.lines):
            here = 0
            weight = line.weight
            for found in RUN.finditer(line.text):
                name, offset, each = worth(found.group())
                if not each:
                    continue
                here += 1
                at = places.get(name)
                if at is None:
                    start = found.start() + offset
                    places[name] = [(index, start, start + len(name))]
                    value[name] = each * weight
                    counts[name] = 1
                else:
                    counts[name] += 1
                    if len(at) < _OCCURRENCES:
                        start = found.start() + offset
                        at.append((index, start, start + len(name)))
                        if weight * each > value[name]:
                            value[name] = weight * each
            crowd.append(here)
        ranked = []
        for order, (name, at) in enumerate(places.items()):
            most = max([crowd[index] for index, _, _ in at])
            cost = len(name) + (3 if most > 2 else 5 if most > 1 else 9)
            ranked.append((-value[name] * (1.15 if counts[name] > 1 else 1.0) / cost, order, name))
        ranked.sort()
        self.crowd = crowd
        return [name for _, _, name in ranked]

    def _keep(self, name: str) -> None:
        """Show the name where it costs least."""
        places = self.places[name]
        best: tuple[int, int, int, int] | None = None
        for index, start, end in places:
            opened = self.open.get(index)
            if opened and not opened.whole:
                best = (0, index, start, end)
                break
            above = self.lines[index].above
            rank = 20 - min(self.crowd[index], 12) - int(4 * self.lines[index].weight)
            if above >= 0 and above not in self.open:
                rank += 3
            if best is None or rank < best[0]:
                best = (rank, index, start, end)
        assert best is not None
        _, index, start, end = best
        line = self.lines[index]
        opened = self.open.get(index)
        if opened and opened.whole:
            return
        above = line.above if line.above >= 0 and line.above not in self.open else -1
        spans = [*opened.spans, (start, end)] if opened else [(start, end)]
        spans.sort()
        shown = _abridged(line.text, spans)
        cost = len(shown) - len(opened.shown) if opened else len(shown) + 1 + self.numbered // 3
        if above >= 0:
            cost += len(_clip(self.lines[above].text)) + 1 + self.numbered // 3
        if self.used + cost > self.room:
            return
        if opened is None:
            opened = self.open[index] = _Open(line)
        if above >= 0:
            cost -= len(_clip(self.lines[above].text)) + 1 + self.numbered // 3
            self._show_whole(above)
        opened.spans = spans
        opened.shown = shown
        self.used += cost
        self.kept.add(name)

    def _fill(self, room: int) -> None:
        order = sorted(range(len(self.lines)), key=lambda index: (-self.lines[index].weight, index))
        for index in order[:400]:
            if self.used + 20 > room:
                return
            opened = self.open.get(index)
            if opened and opened.whole:
                continue
            cost = len(_clip(self.lines[index].text)) - (len(opened.shown) if opened else -1 - self.numbered)
            if cost > 0 and self.used + cost <= room:
                self._show_whole(index)

    def _text(self) -> str:
        out: list[str] = []
        left = self.room
        previous, silent = -99, 0
        for index in sorted(self.open):
            opened = self.open[index]
            number = opened.line.number
            shown = opened.shown
            if number and (number - previous > 4 or silent >= 7):
                shown = f"{number} {shown}"
                silent = 0
            else:
                silent += 1
            if number:
                previous = number
            if len(shown) + 1 > left:
                continue
            left -= len(shown) + 1
            out.append(shown)
        return "\n".join(out)


def _clip(text: str) -> str:
    return text if len(text) <= _LONGEST_MUST else text[: _LONGEST_MUST - 1] + "…"


def _abridged(text: str, spans: list[tuple[int, int]]) -> str:
    if len(spans) == 1:
        spans = _with_neighbour(text, *spans[0])
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
    """The span and a short word of its line that is near, so that the name does not stand alone."""
    best, least = None, 99
    for word in _WORDS.finditer(text, max(0, start - _NEAR), end + _NEAR):
        first, last = word.span()
        if last > start and first < end:
            continue
        far = start - last if last <= start else first - end + 2
        cost = last - first + (0 if far <= 3 else 1 + far // 12)
        if cost < least:
            best, least = (first, last), cost
    if best is None:
        return [(start, end)]
    return [best, (start, end)] if best[0] < start else [(start, end), best]
