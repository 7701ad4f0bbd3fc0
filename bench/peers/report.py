"""Tables of measured values: for a terminal, and in Markdown for the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from peers.runner import Found, Measured, Sizes

Values = dict[tuple[str, str], list[float]]
"""Values by library and measure."""

COLUMNS = {
    "turn": "turn, ms",
    "p99": "p99",
    "shown": "shown",
    "append": "append, ms",
    "import": "import, ms a message",
    "resume": "resume, ms",
    "memory": "memory, MB",
    "disk": "disk, B a message",
    "loading": "loading, ms",
}


def gathered(rows: Iterable[Measured]) -> Values:
    values: Values = {}
    for row in rows:
        values.setdefault((row.peer, row.measure), []).extend(row.values)
    return values


def costs(peers: Sequence[Found], values: Values, sizes: Sizes) -> list[list[str]]:
    """Return the rows of the table of costs, with its header."""
    rows = [["", *COLUMNS.values()]]
    for peer in peers:
        if any(name == peer.name for name, _ in values):
            rows.append([peer.name, *(_cell(peer.name, measure, values, sizes) for measure in COLUMNS)])
    return rows


def descriptions(peers: Sequence[Found], values: Values) -> list[list[str]]:
    """Return the rows of the table that says what is measured, and what the libraries do not do."""
    rows = [["", "version", "measured", "does not"]]
    for peer in peers:
        parted = max(values.get((peer.name, "parted"), [0]))
        lacks = [peer.lacks] if peer.lacks else []
        if parted:
            lacks.append(f"{parted:.0f} result{'s' * (parted > 1)} without a call after this resume")
        if peer.python is None:
            lacks = [f"not measured: `pip install {' '.join(peer.needs)}`"]
        rows.append([peer.name, peer.version or "-", peer.uses, "; ".join(lacks) or "-"])
    return rows


def _cell(peer: str, measure: str, values: Values, sizes: Sizes) -> str:
    """Return the median, with the least and the largest in brackets if there are several values."""
    turns = values.get((peer, "turn"), [])
    last = turns[-sizes.last :]
    blocks = [median(last[place : place + sizes.block]) for place in range(0, len(last), sizes.block)]
    late = "" if len(turns) in (0, sizes.turns) else f" at {len(turns):,} turns"
    if measure == "turn":
        return _spread(blocks, median(last)) + late if last else "-"
    if measure == "p99":
        return _number(sorted(last)[int(len(last) * 0.99)]) if last else "-"
    found = values.get((peer, measure))
    return _spread(found, median(found)) if found else "-"


def _spread(values: Sequence[float], middle: float) -> str:
    low, high = _number(min(values)), _number(max(values))
    return f"{_number(middle)} ({low}-{high})" if low != high else low


def _number(value: float) -> str:
    """Return at least two significant digits."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.095 else f"{value:.3f}"


def markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *body = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body])


def plain(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
