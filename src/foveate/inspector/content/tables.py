"""Tables: rows of CSV, TSV, Markdown, semicolons or aligned columns, as a table with numbers to the right.

Texts whose rows do not agree on the number of columns stay text.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from markupsafe import Markup

from ...digest.tables import split_row
from .characters import visible

__all__ = ["render_rows", "split_table"]

_MOST_COLUMNS = 60
_MOST_CHARACTERS = 300
"""Characters of a cell that are shown."""
_NUMBER = re.compile(r"\s*[$€£]?\s*[-+]?\d[\d,]*(?:\.\d+)?\s*(?:%|[A-Za-z]{1,3})?\s*\Z")
_RULE = frozenset("|-: +=")


def split_table(lines: Sequence[str]) -> list[list[str]] | None:
    """Return the cells of each row, the names of the columns first; None if the lines are no table."""
    rows = [line for line in lines if line.strip()]
    if len(rows) < 2:
        return None
    mark = max(("\t", "|", ",", ";"), key=lambda each: rows[0].count(each))
    mark = mark if mark in rows[0] else ""
    cells = [row for row in (_cells(line, mark) for line in rows if not set(line.strip()) <= _RULE) if row]
    if len(cells) < 2:
        return None
    columns = len(cells[0])
    agree = sum([1 for row in cells if len(row) == columns])
    # If white space separates the columns, an empty cell moves the later cells to the left.
    if not 2 <= columns <= _MOST_COLUMNS or agree < len(cells) * (0.9 if mark else 1.0):
        return None
    return cells


def _cells(line: str, mark: str) -> list[str]:
    if mark in (",", ";"):
        try:
            return next(csv.reader([line], delimiter=mark), [])
        except csv.Error:
            return line.split(mark)
    return split_row(line, mark)


def render_rows(cells: Sequence[Sequence[str]]) -> Markup:
    """Return a table with the first row as names of the columns."""
    columns = max(map(len, cells))
    numbers = [_is_number_column([row[at] for row in cells[1:] if at < len(row)]) for at in range(columns)]
    head = "".join([_cell("th", name, at < columns and numbers[at]) for at, name in enumerate(cells[0])])
    body = "".join(
        [f"<tr>{''.join([_cell('td', text, numbers[at]) for at, text in enumerate(row)])}</tr>" for row in cells[1:]]
    )
    table = f'<table class="c-table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return Markup(f'<div class="c-scroll" tabindex="0">{table}</div>')


def _cell(tag: str, text: str, is_number: bool) -> str:
    shown = visible(text[:_MOST_CHARACTERS].strip())
    cut = f'<span class="c-cut">… {len(text):,} characters</span>' if len(text) > _MOST_CHARACTERS else ""
    opened = f'{tag} class="c-number"' if is_number else tag
    return f"<{opened}>{shown}{cut}</{tag}>"


def _is_number_column(values: Sequence[str]) -> bool:
    filled = [value[:40] for value in values if value.strip()]
    return bool(filled) and sum([1 for value in filled if _NUMBER.match(value)]) >= 0.8 * len(filled)
