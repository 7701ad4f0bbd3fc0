"""Loading: the messages and edits of one branch are read from the store, and folded into projections.

A long history is read in pieces; of a long journal only the records are read that can affect the messages in question.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

from msgspec import structs

from ..core import ids, wire
from ..core.caches import register
from ..core.edits import Hide, Record, Restore, Span, Summarize, named_messages
from ..core.ids import redacted_record
from ..core.messages import Message
from ..core.projection import Projection
from ..core.snapshots import Row
from ..errors import Damaged, StoreError, StoreRolledBack
from ..ports import Database, Head, StoredMessage
from .journal_search import records_between, records_since

__all__ = ["Loader", "OriginalReader", "in_order", "rolled_back", "row_of"]

_ROWS = 1_000
"""Messages read at a time."""


class Loader:
    """Reads one branch of a conversation up to a head."""

    def __init__(self, head: Head, store: Callable[[], Database], empty: Callable[[], Projection]) -> None:
        """`store`: returns the store; it is called before each read. `empty`: returns an empty projection."""
        self._head, self._store, self._empty = head, store, empty

    # ---------------------------------------------------------------------------------------------------- reading

    def rows_at(self, positions: Sequence[int]) -> Iterator[Row]:
        """Yield the messages at these positions. Few are in memory at a time: the view may show little of them."""
        for start in range(0, len(positions), _ROWS):
            wanted = positions[start : start + _ROWS]
            rows = self._store().get_many(self._head, wanted)
            self._check_complete(rows, wanted)
            yield from map(row_of, rows)

    def check_tip(self) -> None:
        """Raise Damaged unless the store has the newest message."""
        wanted = [self._head.position]
        self._check_complete(self._store().get_many(self._head, wanted), wanted)

    def _check_complete(self, rows: Sequence[StoredMessage], positions: Sequence[int]) -> None:
        """Raise Damaged unless these are the rows at these positions."""
        missing = sorted(set(positions) - {row.position for row in rows}) if len(rows) != len(positions) else []
        if not missing and rows and rows[-1].position == self._head.position and rows[-1].id != self._head.tip:
            missing = [self._head.position]
        if missing:
            is_run = len(missing) > 1
            raise self._damaged(f"messages {missing[0]} to {missing[-1]}" if is_run else f"message {missing[0]}")

    def _damaged(self, missing: str) -> Damaged:
        return Damaged(
            f"The conversation {self._head.label} has {self._head.position} messages and {self._head.number} edits, "
            f"but {missing} cannot be found in its store. Run `foveate db verify` to see what is wrong, then restore a "
            "backup."
        )

    def catch_up(self, projection: Projection, seen: Head | None = None) -> list[StoredMessage]:
        """Fold into a projection what the store has beyond it; return the messages.

        Raises StoreRolledBack if that does not follow `seen`, and Damaged if rows are missing.
        """
        head = self._head
        rows = self._store().messages(head, projection.position + 1, head.position)
        records = self._store().records(head, projection.number)
        is_at_seen = seen and (projection.position, projection.number) == (seen.position, seen.number)
        if seen and is_at_seen and not _follows(seen, head, rows, records):
            raise rolled_back(seen, head)
        self._check_complete(rows, range(projection.position + 1, head.position + 1))
        newest = records[-1][1].last if records else projection.number
        if newest != head.number or (records and records[-1][0] != head.record):
            raise self._damaged(f"edit {head.number}")
        self._add(projection, rows, [record for _, record in records])
        return rows

    def _add(self, projection: Projection, rows: Sequence[StoredMessage], records: Sequence[Record]) -> None:
        for item in in_order(rows, records):
            if isinstance(item, Record):
                self.fold(projection, item)
            else:
                projection.append(row_of(item))

    # ---------------------------------------------------------------------------------------------------- folding

    def fold(self, projection: Projection, record: Record) -> None:
        """Apply one record, and fetch the messages that it names or restores and the projection does not hold."""
        unsure = projection.cancels_forgotten(record)
        if unsure is None or (unsure and self._hid_whole(unsure)):
            self._fold_again(projection)
        named = [id for id in named_messages(record.edits) if not projection.holds(id)]
        where: dict[str, int] = {}
        if named:
            where = self._store().locate(self._head, named)
        spans = projection.needs(record, where)
        projection.apply(record, where)
        missing = sorted({position for first, last in spans for position in projection.missing(first, last)})
        if missing:
            rows = self._store().get_many(self._head, missing)
            earlier = records_since(self._store(), structs.replace(self._head, number=record.first - 1), missing[0])
            records = [*earlier, record]
            ends = named_messages(
                Restore(edit.targets) for old in records for edit in old.edits if isinstance(edit, Restore)
            )
            where = self._store().locate(self._head, ends)
            projection.reveal(map(row_of, rows), records, where)

    def fold_up_to(self, projection: Projection, position: int, number: int) -> None:
        """Bring a projection to these numbers of messages and edits, however many they are."""
        edited = self._store().records(structs.replace(self._head, number=number), projection.number)
        records = [record for _, record in edited]
        read, done = projection.position, 0
        while read < position:
            last = min(read + _ROWS, position)
            rows = self._store().messages(self._head, read + 1, last)
            self._check_complete(rows, range(read + 1, last + 1))
            read, until = rows[-1].position, done
            while until < len(records) and records[until].position <= read:
                until += 1
            self._add(projection, rows, records[done:until])
            projection.release_originals()
            done = until
        for record in records[done:]:
            self.fold(projection, record)

    def _fold_again(self, projection: Projection) -> None:
        """Restore what a projection forgot: fold everything up to its place once more."""
        fresh = self._empty()
        self.fold_up_to(fresh, projection.position, projection.number)
        self.void_erased(fresh)
        projection.take(fresh)

    def void_erased(self, projection: Projection) -> None:
        """Apply the effect of erasures on reasoning to a projection that was folded from the beginning."""
        if self._head.erased:
            erasures = self._store().erasures(self._head)
            projection.void_erased(max((erasure.time for erasure in erasures), default=0))

    def _hid_whole(self, numbers: Sequence[int]) -> bool:
        """Return whether one of these edits, in ascending order, hid or summarised whole messages."""
        records = records_between(self._store(), self._head, numbers[0], numbers[-1])
        edits = {number: edit for record in records for number, edit in record.numbered()}
        wanted = [edits[number] for number in numbers if number in edits]
        return any(isinstance(edit, Summarize) or (isinstance(edit, Hide) and _is_whole(edit)) for edit in wanted)


def rolled_back(seen: Head, now: Head) -> StoreRolledBack:
    """Return the error for a store that lost what was seen of a conversation."""
    return StoreRolledBack(now.name, (seen.position, seen.number), (now.position, now.number), now.tenant)


def row_of(row: StoredMessage) -> Row:
    """Return a stored row with its message decoded."""
    message = wire.decode_message(row.body) if row.body else Message("user", ())
    return Row(row.position, row.id, message, row.stamp, len(row.body))


def in_order(rows: Sequence[StoredMessage], records: Sequence[Record]) -> Iterator[StoredMessage | Record]:
    """Yield messages and records in their order: each record after the messages that were there when it was made."""
    done = 0
    for record in records:
        while done < len(rows) and rows[done].position <= record.position:
            yield rows[done]
            done += 1
        yield record
    yield from rows[done:]


def _is_whole(edit: Hide) -> bool:
    return isinstance(edit.target, Span) or not edit.target.path


def _follows(seen: Head, now: Head, rows: Sequence[StoredMessage], records: Sequence[tuple[str, Record]]) -> bool:
    """Return whether the branch still runs through what was seen of it. `rows` and `records`: what it has beyond.

    A store can lose what it acknowledged, in a failover or when an older backup replaces it. Other writers may have
    continued from there, so that numbers alone look like progress; the hash chains show the difference.
    """
    if now.position < seen.position or now.number < seen.number:
        return False
    is_chained = ids.message_id(seen.tip, rows[0].body_hash) == rows[0].id if rows else now.tip == seen.tip
    return is_chained and (_is_chained(seen.record, *records[0]) if records else now.record == seen.record)


def _is_chained(parent: str, id: str, record: Record) -> bool:
    if id == ids.record_id(parent, redacted_record(record)):
        return True
    return id == ids.legacy_record_id(parent, wire.encode_record(record))


_ORIGINALS_MAX = 262_144
"""Bytes of originals that are cached after they were read."""


class OriginalReader:
    """Reads originals that views do not show, and caches the newest, so that one turn reads few of them twice.

    It refers to the store, and not to the conversation: entries, which refer to it, must not be part of a cycle.
    """

    def __init__(self, store: Database) -> None:
        self.head: Head
        """The branch that is read, at a position after the messages that are asked for."""
        self._store = store
        self._known: OrderedDict[str, tuple[Message, int]] = OrderedDict()
        self._size = 0
        register(self)

    def __call__(self, position: int, id: str, /) -> Message:
        """Return the message at a position; an empty message if it is erased. Raises StoreError."""
        known = self._known.get(id)
        if known is not None:
            return known[0]
        rows = [row for row in self._store.get_many(self.head, [position]) if row.id == id]
        if not rows:
            raise StoreError(f"The original of m{position} is not in {self.head.label}. Read the conversation again.")
        message, size = row_of(rows[0]).message, len(rows[0].body)
        if size <= _ORIGINALS_MAX:
            self._known[id], self._size = (message, size), self._size + size
        while self._size > _ORIGINALS_MAX and self._known:
            self._size -= self._known.popitem(last=False)[1][1]
        return message

    def cache_clear(self) -> None:
        """Forget all messages, after some were erased."""
        self._known.clear()
        self._size = 0
