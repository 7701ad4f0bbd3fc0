"""How much of a text is worth keeping: by its kind and its size.

Measured on recorded agents. Of what diffs, logs, tables and searches show, later calls use little: most of it was known
before, or is looked at once. The larger a text, the smaller the share of it that is used.
"""

from __future__ import annotations

import math

__all__ = ["floor_for", "room_for", "room_for_musts"]

_LARGEST = 16_000
_FLOOR = 0.0019
_GROWS = 0.3
_ONE_LINE = {"json": 60, "log": 80, "output": 80, "prose": 40}
_MUSTS = {
    "diff": 0.15, "json": 0.2, "log": 0.5, "matches": 0.2, "output": 0.05, "prose": 0.05, "table": 0.6,
}  # fmt: skip
_USED = {
    "diff": 0.4, "edit": 0.2, "listing": 3.0, "log": 0.25, "matches": 0.6, "table": 0.3,
}  # fmt: skip
"""How often identifiers of a kind of text are used later, against the others'."""


def room_for(characters: int) -> int:
    """Characters that a digest of a text of this length may have: a quarter, 16,000 at most.

    Over many texts they take half of it: `digest` uses the room only as far as identifiers are worth it.
    """
    return min(characters // 4, _LARGEST)


def floor_for(kind: str, characters: int, room: int) -> float:
    """The worth for a character below which nothing of a text is kept; lower in little room, so that it is used."""
    tight = min(1.0, room / max(1, room_for(characters)))
    return _FLOOR * math.pow(characters, _GROWS) / _USED.get(kind, 1.0) * tight * tight


def room_for_musts(kind: str, room: int) -> int:
    """What of the room is for lines that must stay; enough for a total or an error, where those are what matters."""
    share = _MUSTS.get(kind, 0.1)
    least = _ONE_LINE.get(kind, 0)
    return max(int(room * share), min(least, room // 2))
