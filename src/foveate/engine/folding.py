"""Folding what a store has into a projection: a record, a long past, and a past that was forgotten.

Reads what it needs and no more: a long history in pieces, of a long journal what was made since the messages that it is
about. Knows no policy, and not what is done with a view.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from msgspec import structs

from ..core import wire
from ..core.edits import Hide, Record, Restore, Span, Summarize, named_messages
from ..core.messages import Message
from ..core.profiles import Profile
from ..core.projection import Projection
from ..core.snapshots import Row
from ..ports import Database, Head, StoredMessage, TokenCounter
from .steps import Step

__all__ = ["Folding", "in_order", "row_of"]

_ROWS = 1_000
"""Messages read at a time where there are many."""
_SHORT = 512
"""Edits up to which a journal is read whole, since looking for a place in it costs as much."""
_WINDOW = 32
"""Edits in which a record is looked for that begins there."""


class Folding:
    """How the engine's projections are made. `State` has what it stands on."""

    store: Database
    profile: Profile
    counter: TokenCounter
    head: Head

    def _check_whole(self, rows: Sequence[StoredMessage], positions: Sequence[int]) -> None:
        raise NotImplementedError

    def _fold(self, projection: Projection, record: Record) -> Step[None]:
        """Apply one record, fetching what it names or restores and the projection does not hold."""
        unsure = projection.cancels_forgotten(record)
        if unsure is None or (unsure and (yield from self._hid_whole(unsure))):
            yield from self._fold_anew(projection)
        named = [id for id in named_messages(record.edits) if not projection.holds(id)]
        where: dict[str, int] = {}
        if named:
            where = yield partial(self.store.locate, self.head, named)
        runs = projection.needs(record, where)
        projection.apply(record, where)
        missing = sorted({position for first, last in runs for position in projection.missing(first, last)})
        if missing:
            rows = yield partial(self.store.get_many, self.head, missing)
            earlier = yield from self._records_since(missing[0], record.first - 1)
            records = [*earlier, record]
            ends = named_messages(
                Restore(edit.targets) for old in records for edit in old.edits if isinstance(edit, Restore)
            )
            where = yield partial(self.store.locate, self.head, ends)
            projection.reveal(map(row_of, rows), records, where)

    def _fold_up_to(self, projection: Projection, position: int, number: int) -> Step[None]:
        """Bring a projection up to these messages and edits, however many they are."""
        found = yield partial(self.store.records, structs.replace(self.head, number=number), projection.number)
        yield from self._fold_all(projection, position, [record for _, record in found])

    def _fold_all(
        self, projection: Projection, position: int, records: Sequence[Record], *, before_turn: int | None = None
    ) -> Step[None]:
        """Fold these records, and the messages up to `position` that come before call `before_turn`, as they came."""
        read, taken = projection.position, 0
        while read < position:
            last = min(read + _ROWS, position)
            rows = yield partial(self.store.messages, self.head, read + 1, last)
            self._check_whole(rows, range(read + 1, last + 1))
            read, until = rows[-1].position, taken
            while until < len(records) and records[until].position <= read:
                until += 1
            seen = [row for row in rows if before_turn is None or row.stamp.turn < before_turn]
            for one in in_order(seen, records[taken:until]):
                if isinstance(one, Record):
                    yield from self._fold(projection, one)
                else:
                    projection.append(row_of(one))
            taken = until
        for record in records[taken:]:
            yield from self._fold(projection, record)

    def _fold_anew(self, projection: Projection) -> Step[None]:
        """Let a projection know again what it forgot: everything up to where it stands is folded once more."""
        fresh = Projection(self.profile, self.counter)
        yield from self._fold_up_to(fresh, projection.position, projection.number)
        yield from self._void_erased(fresh)
        projection.take(fresh)

    def _void_erased(self, projection: Projection) -> Step[None]:
        """Let a projection that was folded from the beginning know what erasures did to reasoning."""
        if self.head.erased:
            erasures = yield partial(self.store.erasures, self.head)
            projection.void_erased(max((one.time for one in erasures), default=0))

    def _hid_whole(self, numbers: Sequence[int]) -> Step[bool]:
        """Whether any of these edits, which are numbered upwards, hid a message or a span, or summed one up."""
        found = yield from self._records_from(numbers[0], numbers[-1])
        edits = {number: edit for record in found for number, edit in record.numbered()}
        wanted = [edits[number] for number in numbers if number in edits]
        return any(isinstance(edit, Summarize) or (isinstance(edit, Hide) and _is_whole(edit)) for edit in wanted)

    def _records_since(self, position: int, number: int) -> Step[list[Record]]:
        """The records up to edit `number` that may be about the message at `position`: those made when it was there."""
        after = 0 if number <= _SHORT else (yield from self._number_before(position, number))
        found = yield partial(self.store.records, structs.replace(self.head, number=number), after)
        return [record for _, record in found if record.position >= position]

    def _number_before(self, position: int, number: int) -> Step[int]:
        """Of the edits up to `number`, the last of a record that was made before a message was at `position`."""
        low, high = 0, number
        while high - low > _SHORT:  # Positions grow along the journal, so a few looks into it find the place.
            middle = (low + high) // 2
            record = yield from self._record_behind(middle, high)
            if record is not None and record.position < position:
                low = record.last
            else:
                high = middle
        found = yield partial(self.store.records, structs.replace(self.head, number=high), low)
        return max((record.last for _, record in found if record.position < position), default=low)

    def _records_from(self, first: int, last: int) -> Step[list[Record]]:
        """The records that hold the edits first..last."""
        back = _WINDOW
        while True:
            after = max(0, first - 1 - back)
            found = yield partial(self.store.records, structs.replace(self.head, number=last), after)
            records = [record for _, record in found]
            if not after or (records and records[0].first <= first):
                return [record for record in records if record.last >= first]
            back *= 4

    def _record_behind(self, number: int, last: int) -> Step[Record | None]:
        """The first record that begins behind edit `number`, up to `last`."""
        size = _WINDOW
        while True:
            until = min(number + size, last)
            found = yield partial(self.store.records, structs.replace(self.head, number=until), number)
            if found or until == last:
                return found[0][1] if found else None
            size *= 4


def row_of(row: StoredMessage) -> Row:
    message = wire.decode_message(row.body) if row.body else Message("user", ())
    return Row(row.position, row.id, message, row.stamp, len(row.body))


def in_order(rows: Sequence[StoredMessage], records: Sequence[Record]) -> Iterator[StoredMessage | Record]:
    """Messages and records as they came: each record after the messages that were there when it was planned."""
    taken = 0
    for record in records:
        while taken < len(rows) and rows[taken].position <= record.position:
            yield rows[taken]
            taken += 1
        yield record
    yield from rows[taken:]


def _is_whole(edit: Hide) -> bool:
    return isinstance(edit.target, Span) or not edit.target.path
