"""Selection: the lines of a text that are worth most for the characters they take, in their order.

A line is shown whole, with its number, or only its names are listed. A line that begins with `…` lists names of the
lines that are left out there. No identifier is listed twice.

The weights come from recorded agents. Later calls use little of logs, tables and searches: most of it was known
before, or is read once. The larger a text, the smaller the share of it that is used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush

from ..core.scripts import beginning_of, whole_end
from .names import called_runs, names_in, rate, worth_of
from .values import Line

__all__ = [
    "clip",
    "floor_for",
    "room_for",
    "room_for_musts",
    "room_for_pairs",
    "room_for_texts",
    "select_lines",
    "select_names",
]

_LARGEST = 16_000
_FLOOR = 0.0038
_GROWS = 0.25
_MUSTS_MIN = {"diff": 200, "json": 60, "log": 260, "output": 260, "prose": 40}
_MUSTS = {
    "code": 0.75, "diff": 0.06, "edit": 0.2, "json": 0.4, "listing": 0.5, "log": 0.65, "matches": 0.3, "output": 0.2,
    "page": 0.3, "prose": 0.15, "table": 0.8,
}  # fmt: skip
_PAIRS = {"json": 0.5, "log": 0.1, "output": 0.1, "table": 1.0, "values": 0.75}
"""The part of the room for keys with their values, and for rows of tables."""
_SIGNATURES = 0.1
_OUTLINE_GROWS = 1_000
"""In a small room the outline takes a smaller share, since one signature may fill it."""
_USED = {
    "code": 1.12, "diff": 0.6, "edit": 0.2, "json": 1.1, "listing": 3.0, "log": 0.25, "matches": 0.645, "output": 0.91,
    "prose": 0.88, "table": 0.3,
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


def room_for_musts(kind: str, room: int, tight: float = 1.0) -> int:
    """Return the part of the room for lines that must stay: enough for a total or an error.

    `tight`: the square of the room as a share of `room_for`. The outline of code takes a smaller part of a tight room,
    so that names find room too.
    """
    share = _MUSTS.get(kind, 0.2)
    if kind == "code":
        share = min(share * tight, room / _OUTLINE_GROWS)
    return max(int(room * share), min(_MUSTS_MIN.get(kind, 0), int(room * 0.7)))


def room_for_texts(kind: str, room: int, tight: float = 1.0) -> int:
    """Return the part of the room for full texts of lines that must stay: few signatures, but all other texts."""
    return int(room * _SIGNATURES * tight) if kind == "code" else room_for_musts(kind, room, tight)


def room_for_pairs(kind: str, room: int) -> int:
    """Return the part of the room for keys with their values. The rest lists further identifiers."""
    return int(room * _PAIRS.get(kind, 0.0))


_DIGIT = re.compile(r"[0-9][0-9]*")
_SAMPLES = 5
_MORE_ALIKE = 0.4
_LIST_BEGINS = 1
_LEAST_COST = 7
"""Characters of the shortest identifier and a space: what any line or list takes."""
_LONGEST_WHOLE = 160
_LONGEST_LIST = 150
_MOST_MUSTS = 1_000
_NUMBERED = 5
_APART = 0.4
_AGAIN = 1.15
_CALLED = 1.2
_BEGINS = 0.7
_WHOLE = 1.0
"""The largest cost of a whole line as a share of that of its names."""
_WHOLE_MORE = 3
_PAIR = 1.2
"""The same for a key with its value."""


def select_lines(
    lines: Sequence[Line],
    room: int,
    *,
    floor: float = 0.0,
    musts: int = 0,
    texts: int = 0,
    pairs: int = 0,
    fill: int = 0,
) -> str:
    """Return the best lines in at most `room` characters.

    `floor`: the least worth per character of a line that need not stay. `musts`: the characters for lines that must
    stay whole. `texts`: how many of these the full texts may take; further lines are shown in brief. `pairs`: the
    characters for lines with a worth of their own. `fill`: the characters that whole lines fill if identifiers take
    less.
    """
    selection = _Selection(lines, room, floor)
    selection.open_musts(musts, texts)
    if pairs:
        selection.pair(pairs)
    selection.cover()
    selection.fill(fill)
    return selection.text()


def select_names(names: Iterable[str], room: int, *, floor: float = 0.0) -> list[str]:
    """Return the identifiers that are worth most, in their order and in at most `room` characters with spaces.

    `floor`: the least worth per character. Of identifiers that differ in numbers only, the first few are worth more.
    """
    density: dict[str, float] = {}
    alike: dict[str, int] = {}
    for name in names:
        each = worth_of(name) / (len(name) + 1)
        if _DIGIT.search(name):
            series = _DIGIT.sub("0", name)
            seen = alike[series] = alike.get(series, 0) + 1
            if seen > _SAMPLES:
                each *= _MORE_ALIKE
        if each >= floor:
            density[name] = each
    kept = set()
    for name in sorted(density, key=density.__getitem__, reverse=True):
        if len(name) < room:
            kept.add(name)
            room -= len(name) + 1
    return [name for name in density if name in kept]


class _Selection:
    def __init__(self, lines: Sequence[Line], room: int, floor: float) -> None:
        self.lines = lines
        self.room = room
        self.floor = max(floor, 1e-9)
        self.used = 0
        self.whole: dict[int, str] = {}
        """The lines that are shown whole, by index."""
        self.listed: dict[int, list[str]] = {}
        """The names that are listed instead of a line, by its index."""
        self.kept: set[str] = set()
        self.value: dict[str, float] = {}
        self.density: dict[str, float] = {}
        """The worth of a name per character."""
        self.names: list[list[str]] = []
        self._find_names()

    def _find_names(self) -> None:
        value, names = self.value, self.names
        alike: dict[str, int] = {}
        for line in self.lines:
            here: list[str] = []
            text, weight = line.text, line.weight
            for run, parenthesis in called_runs(text):
                name, offset, each = rate(run)
                if not each:
                    continue
                # Only the first run may begin the line.
                each *= weight if here or offset or not text.startswith(run) else weight * _BEGINS
                if parenthesis and offset + len(name) == len(run):
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
                here.append(name)
            names.append(list(dict.fromkeys(here)) if len(here) > 1 else here)
        self.density = {name: worth / (len(name) + 1) for name, worth in value.items()}

    def open_musts(self, room: int, texts: int) -> None:
        """Show the lines with a rank, in brief if there is no room for their texts."""
        lines = self.lines
        must = sorted([(-line.must, index) for index, line in enumerate(lines) if line.must])[:_MOST_MUSTS]
        left = texts - sum([len(lines[index].brief or lines[index].text) + _NUMBERED for _, index in must])
        for _, index in must:
            line = lines[index]
            text = clip(line.text, _LONGEST_WHOLE)
            if line.brief and len(text) > len(line.brief):
                left -= len(text) - len(line.brief)
                if left < 0:
                    left += len(text) - len(line.brief)
                    text = line.brief
            if self.used + self._cost(index, text) <= room:
                self._show(index, text)

    def pair(self, room: int) -> None:
        """Show the lines with a worth of their own in this room, those that are worth most per character first."""
        room = min(self.room, self.used + room)
        waiting = []
        for index, line in enumerate(self.lines):
            if line.worth and index not in self.whole:
                worth = line.worth + sum([self.value[name] for name in self.names[index]])
                waiting.append((-worth / (min(len(line.text), _LONGEST_WHOLE) + 1), index))
        heapify(waiting)
        while waiting and self.used + _LEAST_COST <= room:
            estimate, index = heappop(waiting)
            line = self.lines[index]
            text = clip(line.text, _LONGEST_WHOLE)
            cost = self._cost(index, text)
            worth = line.worth + sum([self.value[name] for name in self.names[index] if name not in self.kept])
            ratio = worth / cost
            if ratio < self.floor:
                continue
            if waiting and -waiting[0][0] > ratio and -estimate > ratio * 1.02:
                heappush(waiting, (-ratio, index))
            elif self.used + cost <= room:
                self._show(index, text)

    def cover(self) -> None:
        """Show lines or list their names until the room is full, the best new identifiers per character first."""
        density, floor = self.density, self.floor
        waiting = []
        for index, names in enumerate(self.names):
            if names:
                # An upper bound of the worth of the line per character.
                ratio = density[names[0]] if len(names) == 1 else max([density[name] for name in names])
                if ratio >= floor:
                    waiting.append((-ratio, index))
        heapify(waiting)
        while waiting:
            if self.used + _LEAST_COST > self.room:
                return
            estimate, index = heappop(waiting)
            if index in self.whole:
                continue
            names, worth = self._next_names(index)
            if not names:
                continue
            text, cost = self._form(index, names)
            ratio = worth / cost
            if ratio < floor:
                continue
            if waiting and -waiting[0][0] > ratio and -estimate > ratio * 1.02:
                heappush(waiting, (-ratio, index))
                continue
            if self.used + cost > self.room:
                continue
            if text:
                self._show(index, text)
            else:
                self._show_above(index)
                self.listed.setdefault(index, []).extend(names)
                self.kept.update(names)
                self.used += cost
                heappush(waiting, (-ratio, index))

    def _next_names(self, index: int) -> tuple[list[str], float]:
        """Return the names of a line to show next, short ones first, and their worth."""
        value, kept = self.value, self.kept
        new = [name for name in self.names[index] if name not in kept]
        if not new:
            return new, 0.0
        if len(new) == 1:
            return new, value[new[0]]
        density = self.density
        least = _APART * max([density[name] for name in new])
        names = [name for name in new if value[name] >= least * (len(name) + 1)]
        return names, sum([value[name] for name in names])

    def _form(self, index: int, names: list[str]) -> tuple[str, int]:
        """Return the line and its cost, or "" and the cost of a list of these names, if it is much shorter."""
        line = self.lines[index]
        cost = sum([len(name) + 1 for name in names]) + (0 if index in self.listed else _LIST_BEGINS)
        is_item = line.item and not line.worth
        if index in self.listed and not is_item:
            return "", cost
        text = line.text
        if is_item or (line.worth and len(text) <= cost * _PAIR + _WHOLE_MORE):
            return clip(text, _LONGEST_WHOLE), self._cost(index, text)
        # Its cost is more than its length.
        if len(text) <= min(_LONGEST_WHOLE, cost * _WHOLE + _WHOLE_MORE):
            whole = self._cost(index, text)
            if whole <= cost * _WHOLE + _WHOLE_MORE:
                return text, whole
        if line.above >= 0 and line.above not in self.whole:
            cost += self._cost(line.above, self._headline(line.above))
        return "", cost

    def _cost(self, index: int, text: str) -> int:
        """Return the characters that a line takes, with the line above it if that is not shown yet."""
        line = self.lines[index]
        cost = len(text) + 1 + len(line.mark) + line.depth + (len(str(line.number)) + 1 if line.number else 0)
        if line.above >= 0 and line.above not in self.whole:
            cost += self._cost(line.above, self._headline(line.above))
        return cost

    def _headline(self, index: int) -> str:
        line = self.lines[index]
        return line.brief or clip(line.text, _LONGEST_WHOLE)

    def _show_above(self, index: int) -> None:
        above = self.lines[index].above
        if above >= 0 and above not in self.whole:
            self._show(above, self._headline(above))

    def _show(self, index: int, text: str) -> None:
        self.used += self._cost(index, text)
        above = self.lines[index].above
        if above >= 0 and above not in self.whole:
            self.used -= self._cost(above, self._headline(above))
            self._show_above(index)
        self.whole[index] = text
        names = self.listed.pop(index, None)
        if names:
            self.used -= sum([len(name) + 1 for name in names])
        self.kept.update(self.names[index] if text == self.lines[index].text else names_in(text))

    def fill(self, room: int) -> None:
        """Show whole lines, those with the largest weight first."""
        if self.used + 20 > room:
            return
        seen: set[str] = set()
        order = sorted(range(len(self.lines)), key=lambda index: (-self.lines[index].weight, index))
        for index in order[:400]:
            text = self.lines[index].text
            if text in seen or index in self.whole or (self.lines[index].item and len(text) > _LONGEST_WHOLE):
                continue
            seen.add(text)
            text = clip(text, _LONGEST_WHOLE)
            if self._cost(index, text) <= room - self.used:
                self._show(index, text)
                if self.used + 20 > room:
                    return

    def text(self) -> str:
        """Return the lines and lists in their order. Lists get the room that the lines leave."""
        rows = {index: self._row(index) for index in sorted(self.whole) if not self.lines[index].item}
        left = self.room + 1 - sum([len(row) + 1 for row in rows.values()])
        while left < 0:
            left += len(rows.popitem()[1]) + 1
        out: list[str] = []
        words: list[str] = []
        begin, kind, last = "", "", (-2, 0)
        for index in sorted([*self.whole, *self.listed]):
            line = self.lines[index]
            if index in self.listed or line.item:
                is_item = line.item and index not in self.listed
                here = f"{line.above} {line.depth}" if is_item else "…"
                if here != kind:
                    left = _write_words(out, words, begin, left)
                    kind = here
                    begin = " " * line.depth if is_item else f"{' ' * line.depth}… "
                    if is_item and last == (line.above, len(out)):
                        begin = out.pop() + ": "
                        left += len(begin) - 1
                words.extend(self.listed.get(index) or [line.mark + self.whole[index]])
            elif index in rows:
                left = _write_words(out, words, begin, left)
                kind = ""
                out.append(rows[index])
                last = (index, len(out))
        _write_words(out, words, begin, left)
        return "\n".join(out)

    def _row(self, index: int) -> str:
        line = self.lines[index]
        number = f"{line.number} " if line.number else ""
        return f"{number}{' ' * line.depth}{line.mark}{self.whole[index]}"


def _write_words(out: list[str], words: list[str], begin: str, left: int) -> int:
    """Add lines of these words to `out`, empty `words`, and return the characters that are left."""
    indent = begin if begin.endswith("… ") else " " * (len(begin) - len(begin.lstrip(" ")) + bool(begin.strip()))
    line = begin
    for word in words:
        longer = f"{line}{word}" if line.endswith(" ") or not line else f"{line} {word}"
        if len(longer) > _LONGEST_LIST and line != begin:
            out.append(line)
            left -= len(line) + 1
            line, longer = indent, indent + word
        if len(longer) >= left:
            break
        line = longer
    if words and line.strip(" …"):
        out.append(line.rstrip(" :"))
        left -= len(line) + 1
    words.clear()
    return left


def clip(text: str, most: int) -> str:
    """Return a text of at most `most` characters. A longer one ends at a word and counts those left out."""
    if len(text) <= most:
        return text
    room = most - 22
    if room < 20:
        return beginning_of(text, most)
    begin = text[:room]
    begin = begin[: max(begin.rfind(" "), whole_end(text, room * 2 // 3))].rstrip()
    return f"{begin} … {len(text) - len(begin):,} more characters"
