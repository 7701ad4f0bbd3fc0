"""Whether what a store holds goes on from what was seen of it, or the store went back behind that.

A store can lose what it acknowledged: it fails over to a server that was behind, or an older backup takes its place.
Then others may have gone on from there, so that numbers alone look like progress. The chains tell: what is new must
follow from the last that was seen. Pure: ends and rows in, an answer out.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core import ids, wire
from ..core.edits import Record
from ..core.redacted_form import redacted_record
from ..ports import Head, StoredMessage

__all__ = ["follows"]


def follows(seen: Head, now: Head, rows: Sequence[StoredMessage], records: Sequence[tuple[str, Record]]) -> bool:
    """Whether the branch of both still runs through what was seen of it. `rows` and `records`: what it has beyond."""
    if now.position < seen.position or now.number < seen.number:
        return False
    is_chained = ids.message_id(seen.tip, rows[0].body_hash) == rows[0].id if rows else now.tip == seen.tip
    return is_chained and (_follows(seen.record, *records[0]) if records else now.record == seen.record)


def _follows(parent: str, id: str, record: Record) -> bool:
    if id == ids.record_id(parent, redacted_record(record)):
        return True
    return id == ids.legacy_record_id(parent, wire.encode_record(record))
