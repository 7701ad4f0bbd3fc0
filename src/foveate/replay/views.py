"""Log of the views of all calls, stored as changes from call to call."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ..core.edits import Record
from ..core.view import Entry

__all__ = ["ViewChange", "ViewLog"]

_WHOLE_EVERY = 64
"""Calls after which a whole view is stored, so that any view follows from few changes."""


class ViewChange(Struct, frozen=True):
    """The difference of two views: entries to remove at a place, and others to insert there."""

    start: int
    """Index of the first entry to remove, and of the first one to insert."""
    removed: int
    """Number of entries to remove."""
    added: tuple[Entry, ...]
    """Entries to insert."""


class ViewLog:
    """The views of all calls of one conversation. An unchanged entry must be the same object in every view."""

    def __init__(self) -> None:
        self.changes: list[ViewChange] = []
        """For each call, the change of its view from the view before it; the first changes the empty view."""
        self.records: Sequence[Record] = ()
        """The commits that shaped the views."""
        self._wholes: list[tuple[Entry, ...]] = []
        self._newest: Sequence[Entry] = ()

    def __len__(self) -> int:
        """Return the number of calls."""
        return len(self.changes)

    def add(self, entries: Sequence[Entry]) -> None:
        """Add the view of the next call."""
        before, now = self._newest, entries
        shorter = min(len(before), len(now))
        start = next((i for i in range(shorter) if before[i] is not now[i]), shorter)
        same = next((i for i in range(shorter - start) if before[-1 - i] is not now[-1 - i]), shorter - start)
        self.changes.append(ViewChange(start, len(before) - start - same, tuple(now[start : len(now) - same])))
        if len(self.changes) % _WHOLE_EVERY == 1:
            self._wholes.append(tuple(now))
        self._newest = now

    def at(self, call: int) -> tuple[Entry, ...]:
        """Return the entries that call `call` saw. The first call is 1. Raises IndexError for other numbers."""
        if not 1 <= call <= len(self.changes):
            raise IndexError(f"There are calls 1 to {len(self.changes)}, and no call {call}.")
        whole = (call - 1) // _WHOLE_EVERY
        entries = list(self._wholes[whole])
        for change in self.changes[whole * _WHOLE_EVERY + 1 : call]:
            entries[change.start : change.start + change.removed] = change.added
        return tuple(entries)
