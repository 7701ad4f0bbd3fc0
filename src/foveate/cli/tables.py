"""Tables as lines of text, in the width that the output has.

A table that is too wide wraps its longest texts at words. If that is not enough, the longest text of each row goes
below it; a table of figures is turned, with a line for each title. If that is not enough either, each row becomes a
block: its first cell, and a line for each other one. Widths are cells of a terminal: a Chinese character takes two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from rich.cells import cell_len

__all__ = ["table_lines"]

_GAP = 2
"""Columns between two cells."""
_LEAST = 20
"""Columns that a wrapped text has at least."""


def table_lines(
    titles: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, room: int | None = None
) -> list[tuple[str, bool]]:
    """Return the lines of a table, each with whether it is a title.

    The first `left` columns are aligned to the left, the others to the right. A table without `titles` has no line of
    them. `room`: columns of the output; None if it has no width.
    """
    every: Sequence[Sequence[str]] = [titles, *rows] if titles else list(rows)
    below: list[str] = []
    """The cells that go to a line of their own."""
    widths = _widths(every, left, room)
    if widths is None and left > 1:
        columns = list(zip(*every, strict=True))
        longest = max(range(1, left), key=lambda place: max(map(cell_len, columns[place])))
        below = [f"  {cell}" if cell else "" for cell in columns[longest]]
        every, left = [(*row[:longest], *row[longest + 1 :]) for row in every], left - 1
        widths = _widths(every, left, room)
    elif widths is None and titles:
        every = list(zip(*every, strict=True))
        widths = _widths(every, left, room)
    if widths is None:
        return list(_blocks(titles, rows))
    return [
        (line, bool(titles) and number == 0)
        for number, row in enumerate(every)
        for line in (*_lines(row, widths, left), *filter(None, below[number : number + 1]))
    ]


def _widths(rows: Sequence[Sequence[str]], left: int, room: int | None) -> list[int] | None:
    """Return the width of each column so that the table fits `room`, or None if it cannot fit."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    if room is None or not widths:
        return widths
    # Figures stay whole: of the right columns, only titles wrap.
    least = [
        max(map(_longest_word, column))
        if place < left
        else max(_longest_word(column[0]), *map(cell_len, column[1:]), 0)
        for place, column in enumerate(zip(*rows, strict=True))
    ]
    floors = [
        min(width, max(few, _LEAST)) if place < left else few
        for place, (width, few) in enumerate(zip(widths, least, strict=True))
    ]
    while sum(widths) + _GAP * (len(widths) - 1) > room:
        place = max(range(len(widths)), key=lambda place: widths[place] - floors[place])
        if widths[place] <= floors[place]:
            return None
        widths[place] -= 1
    return widths


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split()), default=0)


def _lines(row: Sequence[str], widths: Sequence[int], left: int) -> Iterator[str]:
    """Yield the lines of one row."""
    cells = [[cell] if cell_len(cell) <= width else _wrap(cell, width) for cell, width in zip(row, widths, strict=True)]
    for pieces in zip_longest(*cells, fillvalue=""):
        aligned = (
            f"{piece}{' ' * (width - cell_len(piece))}" if place < left else f"{' ' * (width - cell_len(piece))}{piece}"
            for place, (piece, width) in enumerate(zip(pieces, widths, strict=True))
        )
        yield (" " * _GAP).join(aligned).rstrip()


def _wrap(text: str, width: int) -> list[str]:
    """Return a text in lines of at most `width` cells, if its words are not longer."""
    lines: list[str] = []
    for word in filter(None, text.split(" ")):
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _blocks(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[tuple[str, bool]]:
    """Yield a block for each row: its first cell, then the others, each with its title."""
    across = max(map(len, titles[1:]), default=0)
    for first, *others in rows:
        yield first, True
        for title, cell in zip_longest(titles[1:], others, fillvalue=""):
            if cell:
                yield (f"  {title.ljust(across)}  {cell}" if across else f"  {cell}"), False
