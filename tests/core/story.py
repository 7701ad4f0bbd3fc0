"""A conversation for tests of the core, without a store.

`Story` does in memory what a conversation does with a store. A test appends and edits, then reads the current view, the
view after a fold from the beginning, or the view after a resume from a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from foveate.core import ids, wire
from foveate.core.call_context import Budget, CallContext
from foveate.core.edits import Edit, Record, Restore, named_messages
from foveate.core.messages import Message
from foveate.core.profiles import PROFILES, Profile
from foveate.core.projection import Projection
from foveate.core.sizes import estimate, tokens_of
from foveate.core.snapshots import Row, Snapshot
from foveate.core.stamps import Stamp
from foveate.core.view import Entry, View

OPENAI = PROFILES["openai"]
ANTHROPIC = PROFILES["anthropic"]
BINDING = replace(ANTHROPIC, binds_reasoning=True)
NOW = 7
PLENTY = Budget(1_000_000, 0, 10**9, 10**6)


class Story:
    """Messages and edits, in order."""

    def __init__(self, *messages: Message, profile: Profile = OPENAI) -> None:
        self.profile = profile
        self.rows: list[Row] = []
        self.records: list[Record] = []
        self.projection = Projection(profile, estimate)
        self.say(*messages)

    # ----------------------------------------------------------------------------------------------------- telling

    def say(self, *messages: Message, turn: int | None = None) -> list[str]:
        """Append messages and return their ids. Each message of the assistant answers its own call."""
        text = []
        for message in messages:
            now = self.turn + (message.role == "assistant") if turn is None else turn
            body = wire.encode_message(message)
            id = ids.message_id(self.rows[-1].id if self.rows else "", ids.body_hash(body))
            stamp = Stamp(now, len(self.rows), tokens_of(message), message.role, self._source(message))
            row = Row(len(self.rows) + 1, id, message, stamp, len(body))
            self.rows.append(row)
            self.projection.append(row)
            text.append(id)
        return text

    def _source(self, message: Message) -> str:
        result = message.result
        called = [c for row in self.rows for c in row.message.calls if result and c.call_id == result.call_id]
        return (result.name if result else "") or (called[-1].name if called else "")

    def edit(self, *edits: Edit, turn: int | None = None) -> Record:
        """Commit edits, by default for the next call."""
        record = self.record_of(*edits, turn=turn)
        self.fold_in(self.projection, record, self.records)
        self.records.append(record)
        return record

    def record_of(self, *edits: Edit, turn: int | None = None) -> Record:
        first = self.records[-1].last + 1 if self.records else 1
        turn = self.turn + 1 if turn is None else turn
        return Record(first, edits, turn, NOW, self.rows[-1].id if self.rows else "", len(self.rows))

    # ------------------------------------------------------------------------------------------------------ asking

    @property
    def turn(self) -> int:
        """Return the number of calls begun."""
        return max((row.stamp.turn for row in self.rows), default=0)

    def id(self, position: int) -> str:
        return self.rows[position - 1].id

    def where(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the positions of messages, as a store does."""
        wanted = set(ids)
        return {row.id: row.position for row in self.rows if row.id in wanted}

    def view(self, budget: Budget = PLENTY, turn: int | None = None) -> View:
        return View(self.projection.entries(), self.turn + 1 if turn is None else turn, budget, CallContext(NOW))

    def frame(self, budget: Budget) -> Callable[[tuple[Entry, ...]], View]:
        return lambda entries: View(entries, self.turn + 1, budget, CallContext(NOW))

    # ------------------------------------------------------------------------------------------------ folding again

    def fold_in(self, projection: Projection, record: Record, earlier: list[Record]) -> None:
        """Apply a record and load the messages that it shows again."""
        where = self.where(id for id in named_messages(record.edits) if not projection.holds(id))
        runs = projection.needs(record, where)
        projection.apply(record, where)
        missing = sorted({position for first, last in runs for position in projection.missing(first, last)})
        if missing:
            records = [*earlier, record]
            ends = named_messages(Restore(e.targets) for old in records for e in old.edits if isinstance(e, Restore))
            projection.reveal([self.rows[position - 1] for position in missing], records, self.where(ends))

    def folded(self, start: Snapshot | None = None) -> Projection:
        """Return a new projection of the story: from the beginning, or from a snapshot."""
        if start is None:
            projection = Projection(self.profile, estimate)
        else:
            rows = [self.rows[position - 1] for position in start.positions()]
            projection = Projection.resume(start, rows, self.profile, estimate)
        rows = iter(self.rows[projection.position :])
        row = next(rows, None)
        for record in self.records:
            if record.first <= projection.number:
                continue
            while row is not None and row.position <= record.position:
                projection.append(row)
                row = next(rows, None)
            self.fold_in(projection, record, [old for old in self.records if old.first < record.first])
        while row is not None:
            projection.append(row)
            row = next(rows, None)
        return projection


def texts(projection: Projection) -> list[str]:
    return [entry.message.text for entry in projection.entries()]


def values(projection: Projection) -> list[tuple[object, ...]]:
    """Return all fields of all entries, to compare entries of different projections."""
    return [value_of(entry) for entry in projection.entries()]


def value_of(entry: Entry) -> tuple[object, ...]:
    return tuple(getattr(entry, field) for field in entry.__struct_fields__ if field != "_memo")
