"""Facts that a view keeps while it grows: its sizes, and the indices of its entries by id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .growing import Growing

if TYPE_CHECKING:
    from .view import Entry

__all__ = ["INDEXES", "SIZES"]

_STALE_MAX = 1_000
"""Ids of earlier views that the index of a view may hold."""


def _add_sizes(sizes: list[int], entry: Entry) -> None:
    sizes[0] += entry.tokens
    sizes[1] += entry.bytes
    sizes[2] += entry.images
    if entry.is_input:
        sizes[3] = entry.position


SIZES = Growing[list[int]](lambda: [0, 0, 0, 0], _add_sizes, list.copy, name="sizes", kind=list[int])
"""Tokens, bytes and images of all entries, and the position of the last input."""


class _Indexes:
    """Indices of entries by id, for entries that are added in order.

    Copies share one dictionary, since most of it stays right: a look-up compares the id. So it may hold ids of earlier
    views, and is made again when these are the most.
    """

    __slots__ = ("_entries", "by_id")

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self.by_id: dict[str, int] = {}

    def copy(self) -> _Indexes:
        twin = _Indexes()
        twin._entries, twin.by_id = self._entries.copy(), self.by_id
        return twin

    def add(self, entry: Entry) -> None:
        self._note(len(self._entries), entry)
        self._entries.append(entry)
        if len(self.by_id) > 4 * len(self._entries) + _STALE_MAX:
            self.by_id = {}
            for index, known in enumerate(self._entries):
                self._note(index, known)

    def _note(self, index: int, entry: Entry) -> None:
        if entry.kind in ("stand-in", "continuation"):
            return  # They have the id of the message before them.
        self.by_id[entry.id] = index
        if entry.span is not None:
            self.by_id[entry.span.last] = index


INDEXES = Growing[_Indexes](_Indexes, _Indexes.add, _Indexes.copy)
