"""Line charts as text: each character is a Braille pattern of two by four dots.

Each line has its name at its right end, and a colour if the terminal has colours.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ..replay.numbers import brief, count, ticks

__all__ = ["Line", "Piece", "draw"]

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_EMPTY = 0x2800


class Line(Struct, frozen=True):
    """One line of a chart."""

    name: str
    values: Sequence[float]


class Piece(Struct, frozen=True):
    """Adjacent characters of one line. `line`: index of that line, -1 for axes."""

    text: str
    line: int = -1


def draw(lines: Sequence[Line], *, width: int = 100, height: int = 10) -> list[list[Piece]]:
    """Return the rows of the chart, top to bottom, at most `width` characters wide; empty without data."""
    longest = max((len(line.values) for line in lines), default=0)
    top = max((max(line.values) for line in lines if line.values), default=0)
    names = [line.name[: width // 4] for line in lines]
    across = width - 8 - max(map(len, names), default=0)
    if longest < 2 or top <= 0 or across < 12:
        return []
    cells: dict[tuple[int, int], tuple[int, int]] = {}
    ends: list[int] = []
    for index, line in enumerate(lines):
        ends.append(_trace(cells, index, line.values, longest, top, across, height))
    labels = {min(height - 1, round((1 - tick / top) * (height - 1))): brief(tick) for tick in ticks(top)}
    named = _apart(ends, height)
    rows: list[list[Piece]] = []
    for row in range(height):
        pieces = [Piece(f"{labels.get(row, ''):>5} │" if row in labels else "      │")]
        for column in range(across):
            bits, owner = cells.get((column, row), (0, -1))
            pieces.append(Piece(chr(_EMPTY + bits) if bits else " ", owner))
        if row in named:
            pieces.append(Piece(f" {names[named[row]]}", named[row]))
        rows.append(_joined(pieces))
    rows.append([Piece("      └" + "─" * across)])
    rows.append([Piece(_below(longest, across))])
    return rows


def _trace(
    cells: dict[tuple[int, int], tuple[int, int]],
    index: int,
    values: Sequence[float],
    longest: int,
    top: float,
    across: int,
    height: int,
) -> int:
    """Draw one line into the cells. Returns the row in which it ends."""
    wide, high = across * 2, height * 4
    previous: int | None = None
    row = height - 1
    for x in range(wide):
        first, last = x * longest // wide, max((x + 1) * longest // wide, x * longest // wide + 1)
        here = values[first:last]
        if not here:
            break
        y = high - 1 - round(max(here) / top * (high - 1))
        low, up = (y, y) if previous is None else (min(y, previous), max(y, previous))
        for dot in range(low, up + 1):
            key = (x // 2, dot // 4)
            cells[key] = (cells.get(key, (0, 0))[0] | _DOTS[dot % 4][x % 2], index)
        previous, row = y, y // 4
    return row


def _apart(ends: Sequence[int], height: int) -> dict[int, int]:
    """Place each line's name near its end, one name a row. Returns row -> line."""
    taken: dict[int, int] = {}
    for line in sorted(range(len(ends)), key=lambda index: ends[index]):
        free = sorted((abs(row - ends[line]), row) for row in range(height) if row not in taken)
        if free:
            taken[free[0][1]] = line
    return taken


def _below(calls: int, across: int) -> str:
    """Return the labels below the axis."""
    text = [" "] * (across + 16)
    for tick in ticks(calls, max(2, across // 16)):
        if tick != int(tick) or not tick:
            continue
        label = count(tick)
        start = 7 + min(across - 1, round((tick - 0.5) / calls * across)) - len(label) // 2
        text[start : start + len(label)] = label
    return "".join(text).rstrip()


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Join adjacent pieces of one line."""
    joined: list[Piece] = []
    for piece in pieces:
        if joined and joined[-1].line == piece.line:
            joined[-1] = Piece(joined[-1].text + piece.text, piece.line)
        else:
            joined.append(piece)
    return joined
