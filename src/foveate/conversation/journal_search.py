"""Search in a journal: the records that may affect a message, or hold an edit, without reading all of a long one."""

from __future__ import annotations

from msgspec import structs

from ..core.edits import Record
from ..ports import Database, Head

__all__ = ["number_at", "number_before", "recent_records", "records_between", "records_since"]

_SHORT_JOURNAL = 512
"""Edits up to which a journal is read whole, since looking for a place in it costs as much."""
_WINDOW = 32
"""Edits in which the beginning of a record is looked for."""


def records_since(store: Database, head: Head, position: int) -> list[Record]:
    """Return the records up to `head` that may affect the message at `position`."""
    after = 0 if head.number <= _SHORT_JOURNAL else number_before(store, head, position)
    return [record for _, record in store.records(head, after) if record.position >= position]


def recent_records(store: Database, head: Head, position: int) -> list[Record]:
    """Return the same records. Cheap if the message is among the newest ones, in a short journal too."""
    window = _WINDOW
    while True:
        after = max(0, head.number - window)
        records = [record for _, record in store.records(head, after)]
        if not after or (records and records[0].position < position):
            return [record for record in records if record.position >= position]
        window *= 4


def records_between(store: Database, head: Head, first: int, last: int) -> list[Record]:
    """Return the records that hold the edits first..last."""
    window = _WINDOW
    while True:
        after = max(0, first - 1 - window)
        records = [record for _, record in store.records(structs.replace(head, number=last), after)]
        if not after or (records and records[0].first <= first):
            return [record for record in records if record.last >= first]
        window *= 4


def number_at(store: Database, head: Head, position: int) -> int:
    """Return the number of the newest edit that was made when `position` was the tip, or before."""
    return head.number if position == head.position else number_before(store, head, position + 1)


def number_before(store: Database, head: Head, position: int) -> int:
    """Return the newest edit, up to `head`, of a record that was made before a message was at `position`."""
    low, high = 0, head.number
    while high - low > _SHORT_JOURNAL:  # Positions grow along the journal, so a few reads find the place.
        middle = (low + high) // 2
        record = _record_after(store, head, middle, high)
        if record is not None and record.position < position:
            low = record.last
        else:
            high = middle
    rows = store.records(structs.replace(head, number=high), low)
    return max((record.last for _, record in rows if record.position < position), default=low)


def _record_after(store: Database, head: Head, number: int, last: int) -> Record | None:
    """Return the first record that begins after edit `number`, up to `last`."""
    size = _WINDOW
    while True:
        until = min(number + size, last)
        rows = store.records(structs.replace(head, number=until), number)
        if rows or until == last:
            return rows[0][1] if rows else None
        size *= 4
