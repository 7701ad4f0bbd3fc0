"""Places to keep conversations: `memory` (the oracle), and one SQL store with a thin driver for each database."""

from __future__ import annotations

from typing import Literal, NamedTuple

from ..errors import BadSetting

__all__ = ["Place", "place_of"]


class Place(NamedTuple):
    """What the URL of a store says."""

    kind: Literal["memory", "sqlite"]
    path: str
    search: bool = True
    """Whether an index of words is kept."""


def place_of(url: str) -> Place:
    """What a URL names: `memory:`, or `sqlite:///PATH`, which may end in `?search=off`. Else BadSetting."""
    if url in ("memory:", "memory://"):
        return Place("memory", "")
    if url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        path, mark, setting = url.removeprefix("sqlite:///").rpartition("?search=")
        if mark and setting not in ("on", "off"):
            raise BadSetting(f"search= in the URL of a store is on or off, not {setting!r}.")
        if path:
            return Place("sqlite", path, setting == "on")
        if not mark:
            return Place("sqlite", setting)
    raise BadSetting(f"There is no store {url!r}. Known: memory: and sqlite:///PATH, for example sqlite:///chat.db.")
