"""Tables: the names of the columns, the first rows, and the rows with the smallest and largest values."""

from __future__ import annotations

import re
from collections import Counter

from .source import Source
from .values import Line, Reading

__all__ = ["read_table", "split_row"]

_EXTREMES = 4
"""Number columns whose smallest and largest values are shown, and columns of states whose counts are."""
_STATES_MOST = 5
_RARE_SHARE = 0.1
_MOST_ROWS = 20_000
_LONGEST_ROW = 160
_ROW_WORTH = 3.0
"""The worth of a row, compared with an identifier. Its identifiers alone are not listed: they say little."""

_NUMBER = re.compile(r"[$€£]?\s*(-?\d[\d,]*(?:\.\d+)?)\s*(?:%|[A-Za-z]{1,3})?\Z")
_RULE = frozenset("|-: +=")
_SPACES = re.compile(r"\s{2,}")
_GAPS = re.compile(r" {3,}")


def split_row(row: str, mark: str) -> list[str]:
    """Return the cells of a row. `mark`: what separates them, "" for two spaces and more, or " " for any."""
    if mark == " ":
        return row.split()
    if not mark:
        return _SPACES.split(row.strip())
    return [cell.strip() for cell in row.strip().strip("|").split(mark)] if mark == "|" else row.split(mark)


def read_table(source: Source) -> Reading:
    """Return the names of the columns, the first and the last row, and the rows with extreme or rare values.

    A row is shown whole below the names of its columns, unless it is very long.
    """
    lines = [Line(number, _GAPS.sub("  ", row.strip())) for number, row in source.rows if row.strip()]
    if not lines:
        return Reading(lines)
    mark = max(("\t", "|", ",", ";"), key=lambda each: lines[0].text.count(each))
    mark = mark if mark in lines[0].text else ""
    ruled = len(lines) > 1 and set(lines[1].text) <= _RULE
    rows = lines[2 if ruled else 1 :]
    if not mark and rows and len(split_row(lines[0].text, "")) != len(split_row(rows[0].text, "")):
        mark = " "
    columns = split_row(lines[0].text, mark)
    lines[0].must = 5
    if not rows:
        return Reading(lines)
    rows[0].must, rows[-1].must = 3, 2
    for line in rows:
        if len(line.text) <= _LONGEST_ROW:
            line.weight, line.worth = 0.0, _ROW_WORTH
    split = [(split_row(line.text, mark), line) for line in rows[:_MOST_ROWS]]
    facts: list[Line] = []
    states = 0
    for column, name in enumerate(columns):
        cells = [(row[column].strip(), line) for row, line in split if column < len(row)]
        values = [
            (float(number[1].replace(",", "")), line, cell) for cell, line in cells if (number := _NUMBER.match(cell))
        ]
        if len(values) < max(3, len(rows) * 0.8):
            counts = Counter([cell for cell, _ in cells])
            if 1 < len(counts) <= min(_STATES_MOST, len(cells) // 4) and states < _EXTREMES:
                states += 1
                facts.append(
                    Line(0, f"{name.strip()}: {', '.join([f'{cell} ×{n}' for cell, n in counts.most_common()])}")
                )
                facts[-1].must = 3
                for cell, line in cells:
                    if counts[cell] <= max(1, _RARE_SHARE * len(cells)):
                        line.must = max(line.must, 4)
            continue
        low, high = min(values, key=lambda each: each[0]), max(values, key=lambda each: each[0])
        if low[0] == high[0] or len(facts) - states == _EXTREMES:
            continue
        facts.append(Line(0, f"{name.strip()} {low[2]} to {high[2]}", must=3))
        # The first column of numbers is what a table is about.
        is_first = len(facts) - states == 1
        low[1].must, high[1].must = max(low[1].must, 1), max(high[1].must, 4 if is_first else 2)
    return Reading(
        [lines[0], *facts, *[line for line in lines[1:] if line is not lines[1] or not ruled]],
        f"{len(columns)} columns",
    )
