"""Keys with their values: settings, headers, metrics, and the leaves of nested values.

A value without its key says nothing, and a key without its value says little. So each pair is shown whole or not at
all, below the path of its object.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ..core.scripts import beginning_of, whole_end
from .logs import failure_signs, reports_failure
from .names import is_name
from .pair_lines import split_pair
from .source import Source
from .values import Line, Reading

__all__ = ["Leaf", "lines_of_leaves", "list_leaf", "read_leaf", "read_values"]

PAIR_WORTH = 0.4
"""The worth of a pair apart from its identifiers, compared with an identifier."""
_PLAIN_WORTH = {"true": 0.5, "false": 0.5, "null": 0.1, "None": 0.1, "": 0.1, "[]": 0.1, "{}": 0.1}
"""The worth of values that say little, as a share of `PAIR_WORTH`."""
_RARE = 2.0
"""The same for the pairs of an item with a rare value."""
_REPEATED = 0.4
"""The same for pairs of the third and later items of a list."""
_FAILED = 3.0
"""The same for values that report a failure."""
_METRIC = 2.5
"""The same for a metric: its labels are long."""
_ITEMS_FIRST = 2
_HEADLINE = 0.5
_SERIES_LEAST = 4
"""Values of one key in a list whose counts are shown."""
_STATES_MOST = 5
"""Different values of a key that are counted one by one."""
_RANGES_MOST = 6
_RARE_SHARE = 0.1
_LONGEST_VALUE = 100
_LONGEST_PIECE = 160
_PIECES_MOST = 400
"""Pieces of one long value."""


class Leaf(Struct, gc=False):
    """A value with its key."""

    above: str
    """The path of its object: `services[3].usage`; "" for the outermost."""
    key: str
    """Its key in the object; "" for a value without one."""
    value: str
    """The value as written in the text, without quotes."""
    series: str = ""
    """The path of its key for all items of a list, `services[].usage.cpu`; "" outside of lists."""
    item: str = ""
    """The path of the list item around it; "" outside of lists."""
    index: int = 0
    """The index of that item."""
    rest: str = ""
    """Text that the value leaves out, of which identifiers may be listed."""

    def text(self) -> str:
        """Return key and value in one line."""
        value = self.value
        if " " in value and value[0] not in "[{":
            value = f'"{value}"'
        return f"{self.key}={value}" if self.key else value


def read_leaf(above: str, key: str, value: str) -> Leaf:
    """Return the leaf of a value, of which a long one is shown in part."""
    if len(value) <= _LONGEST_VALUE:
        return Leaf(above, key, value)
    begin = beginning_of(value, _LONGEST_VALUE // 2).rsplit(" ", 1)[0].rstrip("\\")
    return Leaf(above, key, f"{begin} … {len(value) - len(begin):,} more characters", rest=value)


def list_leaf(above: str, key: str, values: Sequence[str], count: int) -> Leaf:
    """Return the leaf of a list of `count` plain values: the first ones, and how many more there are."""
    shown = 0
    length = 0
    for value in values:
        length += len(value) + 2
        if shown and length > _LONGEST_VALUE - 10:
            break
        shown += 1
    listed = [beginning_of(value, _LONGEST_VALUE) for value in values[:shown]]
    more = [f"… {count - shown:,} more"] if count > shown else []
    return Leaf(above, key, f"[{', '.join(listed + more)}]", rest=", ".join(values) if more else "")


def lines_of_leaves(leaves: Sequence[Leaf], first: Sequence[Line] = ()) -> list[Line]:
    """Return `first`, facts about the keys of lists, and the leaves below the paths of their objects."""
    facts = _SeriesFacts(leaves)
    lines = [*first, *facts.lines]
    signs = failure_signs("\n".join([leaf.value for leaf in leaves]))
    objects: dict[str, list[Leaf]] = {}
    for leaf in leaves:
        if leaf.series not in facts.constant:
            objects.setdefault(leaf.above, []).append(leaf)
    for path, group in objects.items():
        above, mark = -1, ""
        if path and len(group) > 1:
            above = len(lines)
            lines.append(_headline(path))
        elif path:
            # A key that is an identifier stands apart, so that a search for it finds it.
            # Labels and lists follow their path directly.
            key = group[0].key
            mark = f"{path}: " if is_name(key) else path if key[:1] in ("", "{") else f"{path}."
        is_rare = group[0].item in facts.rare_items
        for position, leaf in enumerate(group):
            line = Line(0, leaf.text(), above=above, depth=int(above >= 0), item=True, mark=mark)
            line.worth = PAIR_WORTH * _PLAIN_WORTH.get(leaf.value, 1.0) * (_METRIC if leaf.key[:1] == "{" else 1.0)
            if is_rare:
                line.worth *= _RARE
                line.must = 2 if id(leaf) in facts.rare else int(position == 0)
            elif leaf.series and leaf.index >= _ITEMS_FIRST and id(leaf) not in facts.rare:
                line.worth *= _REPEATED
            if signs and reports_failure(leaf.value, signs):
                line.worth *= _FAILED
                line.must = max(line.must, 2)
            lines.append(line)
            if leaf.rest:
                lines.extend([Line(0, piece, above=above, depth=1) for piece in _pieces(leaf.rest)])
    return lines


def _headline(path: str) -> Line:
    """Return the path of an object. Its last key counts as an identifier if it is one."""
    around, _, key = path.rpartition(".")
    if not is_name(key):
        return Line(0, path, 0.0)
    return Line(0, key, _HEADLINE, mark=f"{around}: " if around else "")


class _SeriesFacts:
    """Facts about the values of one key in the items of a list: all are equal, counts, or a range."""

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self.lines: list[Line] = []
        self.constant: set[str] = set()
        """The keys whose values are all equal."""
        self.rare: set[int] = set()
        """The identities of the leaves with a rare value."""
        self.rare_items: set[str] = set()
        """The paths of their items."""
        series: dict[str, list[Leaf]] = {}
        for leaf in leaves:
            if leaf.series:
                series.setdefault(leaf.series, []).append(leaf)
        ranges = 0
        for name, group in series.items():
            if len(group) < _SERIES_LEAST:
                continue
            counts = Counter([leaf.value for leaf in group])
            if len(counts) == 1:
                self.constant.add(name)
                if group[0].value not in _PLAIN_WORTH:
                    line = Line(0, f"{name.removesuffix(group[0].key)}{group[0].text()} (×{len(group)})", must=2)
                    line.worth = PAIR_WORTH
                    self.lines.append(line)
            elif len(counts) <= _STATES_MOST and len(counts) <= len(group) // 2:
                self._add_states(name, group, counts)
            elif ranges < _RANGES_MOST and (ends := _ends(group)):
                ranges += 1
                self.lines.append(Line(0, f"{name} {ends[0].value} to {ends[1].value}", must=3))
                self.rare.add(id(ends[1]))

    def _add_states(self, name: str, group: Sequence[Leaf], counts: Counter[str]) -> None:
        listed = ", ".join([f"{beginning_of(value, 40)} ×{count}" for value, count in counts.most_common()])
        self.lines.append(Line(0, f"{name}: {listed}", must=4))
        for leaf in group:
            if counts[leaf.value] <= max(1, _RARE_SHARE * len(group)):
                self.rare.add(id(leaf))
                self.rare_items.add(leaf.item)


def _ends(group: Sequence[Leaf]) -> tuple[Leaf, Leaf] | None:
    """Return the leaves with the smallest and the largest number, if all values are numbers."""
    try:
        numbers = [float(leaf.value) for leaf in group]
    except ValueError:
        return None
    low, high = min(numbers), max(numbers)
    return (group[numbers.index(low)], group[numbers.index(high)]) if low < high else None


def _pieces(value: str) -> Iterator[str]:
    """Yield the lines of a long value, each in pieces that end at a space."""
    rest = _PIECES_MOST
    for row in re.split(r"\\n|\n", value):
        at = 0
        while at < len(row) and rest:
            end = at + _LONGEST_PIECE
            if end < len(row):
                end = max(row.rfind(" ", at, end), whole_end(row, at + _LONGEST_PIECE // 2))
            if piece := row[at:end].strip():
                rest -= 1
                yield piece
            at = end


_SECTION = re.compile(r"\[+[\w.\"' :/-]+\]+\Z")
_ITEM = re.compile(r"([ \t]*)((?:- +)+)(.+)")
_INDEX = re.compile(r"\[\d+\]")
_COMMENTED = 0.6


def read_values(source: Source) -> Reading:
    """Return the pairs of settings, headers or metrics. Sections, and keys with indented pairs below, become paths."""
    leaves: list[Leaf] = []
    others: list[Line] = []
    lists: dict[str, list[str]] = {}
    section = ""
    open_: list[tuple[int, str, str]] = []
    """Indentation, path and list item of the keys around the row."""
    items: Counter[str] = Counter()
    for number, row in source.rows:
        text = row.strip()
        if not text or text in ("---", "..."):
            continue
        if _SECTION.match(text):
            section = text.strip("[] ")
            open_.clear()
            continue
        listed = _ITEM.match(row)
        indent = len(listed[1]) if listed else len(row) - len(row.lstrip())
        # The items of a list may stand as far left as its key.
        while open_ and (open_[-1][0] > indent or (open_[-1][0] == indent and (not listed or open_[-1][2]))):
            open_.pop()
        path, item = (open_[-1][1], open_[-1][2]) if open_ else (section, "")
        pair = None if text.startswith(("#", ";", "//")) else split_pair(row)
        if pair is None:
            if listed:
                lists.setdefault(path, []).append(listed[3].strip())
            else:
                others.append(Line(number, text, _COMMENTED))
            continue
        if listed:
            path = item = f"{path}[{items[path]}]"
            items[item.rpartition("[")[0]] += 1
            open_.append((indent, path, item))
            indent += len(listed[2])
        key, value = pair
        if not value or value in ("|", ">", "|-", ">-"):
            open_.append((indent, f"{path}.{key}" if path else key, item))
            continue
        if value[0] in "\"'" and value[-1] == value[0] and len(value) > 1:
            value = value[1:-1]
        if key.endswith("}"):
            path, _, key = key.partition("{")
            key = f"{{{key}"
        leaf = read_leaf(path, key, value)
        if item:
            leaf.item, leaf.index = item, items[item.rpartition("[")[0]] - 1
            leaf.series = _INDEX.sub("[]", f"{path}.{key}")
        leaves.append(leaf)
    for path, values in lists.items():
        above, _, key = path.rpartition(".")
        leaves.append(list_leaf(above, key, values, len(values)))
    return Reading(lines_of_leaves(leaves) + others)
