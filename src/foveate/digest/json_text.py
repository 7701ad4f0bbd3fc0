"""JSON: keys with counts, then the values with their keys, below the paths of their objects."""

from __future__ import annotations

import re
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from ..core.scripts import beginning_of
from .pairs import Leaf, lines_of_leaves, list_leaf, read_leaf
from .source import Source
from .values import Line, Reading

__all__ = ["read_json", "skeleton"]

_MOST_PARSED = 16_000_000
"""Characters of a text that is parsed whole."""
_MOST_NESTED = 1_000_000
"""Objects and lists of such a text."""
_MOST_LEAVES = 20_000
_DEEPEST = 30
"""Levels with a path. Deeper values have the path of this level."""
_LONGEST_KEY = 60
_LISTED = 400
"""Values of one list that are read."""
_LONGEST_VALUE = 24
_KEYS = 12
_ROOM = 118

_TOKEN = re.compile(r'"((?:[^"\\\n]+|\\[^\n])*+)"?(\s*+:)?|([{\[])|([}\]])|([^\s"{}\[\],:]+)')
_BEGIN = re.compile(r"[{,]\s*(?=\"[^\"\\\n]{1,60}\"\s*:)")
"""The text before the first key of a stretch."""


def _parse(text: str) -> Any:
    """Return the value of a JSON text; None if it is no JSON, too long or nested too deeply."""
    if len(text) > _MOST_PARSED or text.count("[") + text.count("{") > _MOST_NESTED:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def skeleton(text: str) -> str:
    """Return keys and counts of the upper levels, as `{id: 7, name: {first}, orders: [12 of {id, total}]}`.

    Short values of the outermost object stand behind their keys. "" for no JSON.
    """
    value = _parse(text)
    if isinstance(value, dict):
        return _within(value, _ROOM, shows_values=True)
    if value is None and text[:1] == "{":
        # JSON Lines: the first object stands for all.
        first, _, more = text.partition("\n")
        value = _parse(first)
        if isinstance(value, dict) and more:
            return f"{more.count(chr(10)) + 1} lines as {_within(value, _ROOM)}"
    return _within(value, _ROOM) if isinstance(value, list) else ""


def _within(value: Any, most: int, *, shows_values: bool = False) -> str:
    for depth in (4, 3, 2, 1):
        shape = _shape(value, depth, shows_values=shows_values)
        if len(shape) <= most:
            return shape
    return beginning_of(shape, most - 1) + "…"


def _shape(value: Any, depth: int, *, shows_values: bool = False) -> str:
    """Return the shape of a value, down to `depth` levels; "" for a plain value. `shows_values`: of an object."""
    match value:
        case dict() if not depth:
            return f"{{{len(value)} keys}}"
        case dict():
            fields = []
            for key in list(value)[:_KEYS]:
                inner = value[key]
                shape = _shape(inner, depth - 1) if isinstance(inner, dict | list) and inner else ""
                if shows_values and isinstance(inner, str | int | float):
                    text = inner if isinstance(inner, str) else msgspec.json.encode(inner).decode()
                    shape = text if len(text) <= _LONGEST_VALUE else ""
                fields.append(f"{beginning_of(key, 40)}: {shape}" if shape else beginning_of(key, 40))
            more = f", … {len(value)} keys" if len(value) > _KEYS else ""
            return f"{{{', '.join(fields)}{more}}}"
        case list():
            shape = _shape(value[0], depth - 1) if depth and value and value[0] else ""
            return f"[{len(value)} of {shape}]" if shape else f"[{len(value)}]"
        case _:
            return ""


def read_json(source: Source) -> Reading:
    """Return the shape of a JSON value, facts about the keys of its lists, and its values with their keys.

    A text that ends before its value does, or of which only stretches are read, shows the values that it has.
    """
    # A long line is stored in pieces of one number.
    rows = ["".join([row for _, row in pieces]) for _, pieces in groupby(source.rows, itemgetter(0))]
    body = "\n".join(rows)
    value = _parse(source.text)
    value = value if isinstance(value, dict | list) else _parse(body)
    lines: list[Line] = []
    has_many = False
    if isinstance(value, dict | list) and value:
        lines.append(Line(0, _within(value, _ROOM), must=5))
    elif value is None and body.count("\n{") and isinstance(first := _parse(rows[0]), dict):
        has_many = True
        lines.append(Line(0, f"{len(rows):,} lines as {_within(first, _ROOM)}", must=5))
    leaves = _leaves(body, has_many)
    if not leaves:
        return Reading([Line(number, row.strip()) for number, row in source.rows if row])
    return Reading(lines_of_leaves(leaves, lines))


class _Level:
    """An object or a list that is open."""

    __slots__ = ("index", "is_list", "item", "item_index", "key", "path", "scalars", "series")

    def __init__(
        self, path: str, series: str, is_list: bool, key: str = "", item: str = "", item_index: int = 0
    ) -> None:
        self.path, self.series, self.is_list, self.key = path, series, is_list, key
        self.item, self.item_index = item, item_index
        self.index = 0
        self.scalars: list[str] = []


def _leaves(body: str, has_many: bool) -> list[Leaf]:
    """Return the leaves of a JSON text, which may end or begin in the middle. `has_many`: whether each line is one."""
    begin = 0
    if body[:1] not in "{[" and (found := _BEGIN.search(body)):
        begin = found.start()
    leaves: list[Leaf] = []
    outermost = level = _Level("", "", has_many)
    around: list[_Level] = []
    key = ""
    for match in _TOKEN.finditer(body, begin):
        string, colon, opening, closing, bare = match.groups()
        if colon is not None:
            key = string[:_LONGEST_KEY]
        elif opening:
            around.append(level)
            level = _inner(level, key, opening == "[", len(around))
            key = ""
        elif closing:
            if level.index and level.scalars:
                leaves.append(_list_leaf(level, around))
            if around:
                level = around.pop()
                # A second value after the first one: the texts of several files.
                outermost.is_list |= level is outermost
                outermost.index = max(outermost.index, 1)
            key = ""
        elif level.is_list:
            level.index += 1
            if len(level.scalars) < _LISTED:
                level.scalars.append(string if bare is None else bare)
        elif key or around:
            leaf = read_leaf(level.path, key, string if bare is None else bare)
            if level.item:
                leaf.series, leaf.item, leaf.index = f"{level.series}.{key}", level.item, level.item_index
            leaves.append(leaf)
            key = ""
            if len(leaves) >= _MOST_LEAVES:
                break
    return leaves


def _inner(level: _Level, key: str, is_list: bool, depth: int) -> _Level:
    """Return the object or list that begins in a level."""
    if depth > _DEEPEST:
        return _Level(level.path, level.series, is_list, key, level.item, level.item_index)
    if level.is_list:
        path = f"{level.path}[{level.index}]"
        level.index += 1
        return _Level(path, f"{level.series}[]", is_list, "", path, level.index - 1)
    path, series = (f"{level.path}.{key}", f"{level.series}.{key}") if level.path else (key, key)
    return _Level(path, series, is_list, key, level.item, level.item_index)


def _list_leaf(level: _Level, around: list[_Level]) -> Leaf:
    """Return the leaf of a list without objects."""
    above = around[-1].path if around and level.key else level.path
    return list_leaf(above, level.key, level.scalars, level.index)
