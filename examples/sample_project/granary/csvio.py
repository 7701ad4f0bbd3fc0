"""Reading semicolon-separated files with a header, column by column, keeping a list of what was wrong.

A bad row never stops a file: it is left out and named. What to do about it is up to the caller.
"""

import csv
from dataclasses import dataclass
from datetime import date
from typing import Any, Callable

from granary.errors import GranaryError, RowError
from granary.money import Money

REQUIRED = object()


def text(value):
    return value


def integer(value):
    return int(value.replace("_", ""))


def amount(value):
    return Money.parse(value)


def day(value):
    return date.fromisoformat(value)


def choice(*allowed):
    def convert(value):
        if value not in allowed:
            raise ValueError(f"{value!r} is none of {', '.join(allowed)}")
        return value

    return convert


@dataclass(frozen=True)
class Column:
    name: str
    convert: Callable[[str], Any] = text
    default: Any = REQUIRED


def problem(row, message):
    return RowError(row, message)


def read(path, columns):
    """All good rows as (row number, dict), and a RowError for each bad one. The header is row 1."""
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.reader(file, delimiter=";")
        header = next(reader, [])
        missing = [column.name for column in columns if column.default is REQUIRED and column.name not in header]
        if missing:
            raise RowError(1, f"columns are missing: {', '.join(missing)}")
        good, bad = [], []
        for number, values in enumerate(reader, start=2):
            if not any(value.strip() for value in values):
                continue
            try:
                good.append((number, _row(dict(zip(header, values)), columns)))
            except (ValueError, GranaryError) as error:
                bad.append(RowError(number, str(error)))
    return good, bad


def _row(values, columns):
    row = {}
    for column in columns:
        raw = values.get(column.name, "").strip()
        if raw:
            try:
                row[column.name] = column.convert(raw)
            except (ValueError, GranaryError) as error:
                raise ValueError(f"{column.name}: {error}") from None
        elif column.default is REQUIRED:
            raise ValueError(f"{column.name} is empty")
        else:
            row[column.name] = column.default
    return row


def write(path, header, rows):
    """Write rows of values, formatted by `str`; returns how many."""
    count = 0
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=";", lineterminator="\n")
        writer.writerow(header)
        for row in rows:
            writer.writerow([str(value) for value in row])
            count += 1
    return count
