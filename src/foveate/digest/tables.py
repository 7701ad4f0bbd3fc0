"""JSON and tables: keys with types, counts, the first rows, and the rows with the smallest and largest values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from .source import Source
from .values import Line, Reading

__all__ = ["read_json", "read_table", "skeleton", "split_row"]

_MOST_PARSED = 2_000_000
_KEYS = 12
_ROOM = 118
_LONGEST_SHAPE = 150
_EXTREMES = 3
"""Number columns whose smallest and largest values are shown."""


def _parse(text: str) -> Any:
    """Return the value of a JSON text; None if it is no JSON, too long or nested too deeply."""
    if len(text) > _MOST_PARSED:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def _parse_lines(text: str) -> list[Any]:
    """Return the values of JSON Lines; [] if a line is no JSON."""
    lines = [line for line in text.split("\n") if line.strip()] if text[:1] in "{[" else []
    values = [_parse(line) for line in lines[:2_000]]
    return values if len(lines) > 1 and None not in values else []


def skeleton(text: str) -> str:
    """Return keys and counts of the upper levels, as `{name: {first}, orders: [12 of {id, total}]}`; "" for no JSON."""
    value = _parse(text)
    if value is None and text[:1] == "{":
        # JSON Lines: the first object stands for all.
        first, _, more = text.partition("\n")
        value = _parse(first)
        if isinstance(value, dict) and more:
            return f"{more.count(chr(10)) + 1} lines as {_within(value, _ROOM, False)}"
    return _within(value, _ROOM, False) if isinstance(value, dict | list) else ""


def _within(value: Any, most: int, typed: bool) -> str:
    for depth in (4, 3, 2, 1):
        shape = _shape(value, depth, typed)
        if len(shape) <= most:
            return shape
    return _within(value, most, False) if typed else shape[: most - 1] + "…"


def _shape(value: Any, depth: int, typed: bool) -> str:
    """Return the shape of a value, down to `depth` levels."""
    match value:
        case dict() if not depth:
            return f"{{{len(value)} keys}}"
        case dict():
            fields = []
            for key in list(value)[:_KEYS]:
                inner = value[key]
                nested = isinstance(inner, dict | list) and inner
                shape = _shape(inner, depth - 1, typed) if nested or typed else ""
                fields.append(f"{key[:40]}: {shape}" if shape else key[:40])
            more = f", … {len(value)} keys" if len(value) > _KEYS else ""
            return f"{{{', '.join(fields)}{more}}}"
        case list():
            first = value[0] if value else None
            inner = (
                f" of {_shape(first, depth - 1, typed)}" if depth and isinstance(first, dict | list) and first else ""
            )
            return f"[{len(value)}{inner}]"
        case bool():
            return "bool" if typed else ""
        case int() | float():
            return "number" if typed else ""
        case None:
            return "null" if typed else ""
        case _:
            return "text" if typed else ""


def read_json(source: Source, text: str) -> Reading:
    """Return the shape of a JSON value, facts about its longest list, and its lines."""
    lines = [Line(number, row.strip()) for number, row in source.rows if row]
    body = "\n".join([row for _, row in source.rows])
    value = _parse(text)
    value = value if isinstance(value, dict | list) else _parse(body)
    if value is None:
        value = _parse_lines(body)
    if not isinstance(value, dict | list) or not value:
        return Reading(lines)
    facts = [Line(0, _within(value, _LONGEST_SHAPE, True), must=5, brief=_within(value, _ROOM, False))]
    path, rows = _longest_list(value)
    if len(rows) > 2 and isinstance(rows[0], dict):
        where = f"{path} " if path else ""
        facts += [
            Line(0, f"{where}{name} {low} to {high}", must=3) for name, low, high in list(_ranges(rows))[:_EXTREMES]
        ]
        facts.append(Line(0, f"{where}first {msgspec.json.encode(rows[0]).decode()}", must=2))
        facts.append(Line(0, f"{where}last {msgspec.json.encode(rows[-1]).decode()}", must=1))
    return Reading(facts + lines)


def _longest_list(value: Any) -> tuple[str, list[Any]]:
    """Return the path and the items of the longest list in the upper levels of a value."""
    if isinstance(value, list):
        return "", value
    best: tuple[str, list[Any]] = ("", [])
    for key, inner in value.items():
        if isinstance(inner, list) and len(inner) > len(best[1]):
            best = (str(key)[:40], inner)
        elif isinstance(inner, dict):
            for name, deep in inner.items():
                if isinstance(deep, list) and len(deep) > len(best[1]):
                    best = (f"{str(key)[:40]}.{str(name)[:40]}", deep)
    return best


def _ranges(rows: Sequence[Any]) -> Iterator[tuple[str, float, float]]:
    """Yield the number columns of objects with their smallest and largest values."""
    for key in list(rows[0])[:_KEYS]:
        values = [row.get(key) for row in rows[:20_000] if isinstance(row, dict)]
        numbers = [each for each in values if isinstance(each, int | float) and not isinstance(each, bool)]
        if len(numbers) > 2 and min(numbers) != max(numbers):
            yield str(key)[:40], min(numbers), max(numbers)


_NUMBER = re.compile(r"[$€£]?\s*(-?\d[\d,]*(?:\.\d+)?)\s*(?:%|[A-Za-z]{1,3})?\Z")
_RULE = frozenset("|-: +=")
_SPACES = re.compile(r"\s{2,}")


def split_row(row: str, mark: str) -> list[str]:
    """Return the cells of a row. `mark`: what separates them, or "" for two spaces and more."""
    if not mark:
        return _SPACES.split(row.strip())
    return [cell.strip() for cell in row.strip().strip("|").split(mark)] if mark == "|" else row.split(mark)


def read_table(source: Source) -> Reading:
    """Return the names of the columns, the first and the last row, and the rows with extreme values."""
    lines = [Line(number, row.strip()) for number, row in source.rows if row.strip()]
    if not lines:
        return Reading(lines)
    mark = max(("\t", "|", ",", ";"), key=lambda each: lines[0].text.count(each))
    mark = mark if mark in lines[0].text else ""
    ruled = len(lines) > 1 and set(lines[1].text) <= _RULE
    rows = lines[2 if ruled else 1 :]
    columns = split_row(lines[0].text, mark)
    lines[0].must = 5
    if not rows:
        return Reading(lines)
    rows[0].must, rows[-1].must = 4, 3
    facts: list[Line] = []
    for column, name in enumerate(columns):
        values = []
        for line in rows[:20_000]:
            cells = split_row(line.text, mark)
            if column < len(cells) and (number := _NUMBER.match(cells[column].strip())):
                values.append((float(number[1].replace(",", "")), line, cells[column].strip()))
        if len(values) < max(3, len(rows) * 0.8):
            continue
        low, high = min(values, key=lambda each: each[0]), max(values, key=lambda each: each[0])
        if low[0] == high[0] or len(facts) == _EXTREMES:
            continue
        facts.append(Line(0, f"{name.strip()} {low[2]} to {high[2]}", must=4))
        low[1].must, high[1].must = max(low[1].must, 1), max(high[1].must, 2)
    return Reading(
        [lines[0], *facts, *[line for line in lines[1:] if line is not lines[1] or not ruled]],
        f"{len(columns)} columns",
    )
