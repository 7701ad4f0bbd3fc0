"""Views and sums of earlier model calls: the history folded again, call by call."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from threading import Lock

import msgspec
from msgspec import Struct, structs

from ..core.edits import Record
from ..core.plain_handles import plain_entries
from ..core.profiles import Profile
from ..core.projection import Projection
from ..core.slots import Counter
from ..core.snapshots import Cover, Row, Snapshot
from ..core.totals import Tally, Totals
from ..core.view import Entry, View
from ..errors import BadInput
from ..ports import Database, Head, StoredMessage
from .journal_search import records_between
from .loading import Loader, in_order, row_of
from .state import State

__all__ = ["LateChange", "Past", "PastCall", "RestartPoints", "Walk"]

_ROWS = 1_000
"""Messages read at a time."""
_SPACING = 400
"""Messages and edits between two restart points, at first."""
_POINTS_MAX = 512
"""Restart points above which every second one is dropped, and the spacing doubles."""
_BYTES_MAX = 32_000_000
"""Bytes of all restart points above which the same happens."""

_NEAR = 5_000
"""Messages that a quick look may fold."""


class PastCall(Struct, frozen=True):
    """One model call with a reply, as a walk passes it."""

    turn: int
    """The number of the call."""
    reply: StoredMessage
    """Its reply."""
    items: tuple[Row | Record, ...]
    """Messages and commits since the call before, in their order: what this call saw for the first time."""


class LateChange(Exception):
    """Another writer added something to a call that a walk has passed. Begin a new walk."""


class _Point(Struct, frozen=True):
    """A place from which a walk can begin: after everything that the call `turn` saw."""

    turn: int
    position: int
    number: int
    snapshot: bytes

    @property
    def size(self) -> int:
        return self.position + self.number

    def decoded(self) -> Snapshot:
        return msgspec.json.decode(self.snapshot, type=Snapshot)


class RestartPoints:
    """Places in the past of one conversation from which a walk can begin. They take a bounded amount of memory.

    Several threads may walk at the same time.
    """

    def __init__(self) -> None:
        self._points: list[_Point] = []
        self._spacing = _SPACING
        self._lock = Lock()

    def wants(self, turn: int, projection: Projection) -> bool:
        """Return whether no point is near this place, after the call `turn`."""
        before, after = self._around(turn)
        size = projection.position + projection.number
        is_far = size - (before.size if before else 0) >= self._spacing
        return is_far and (after is None or after.size - size >= self._spacing)

    def add(self, turn: int, projection: Projection) -> None:
        """Add the place at which this projection is, after the call `turn`."""
        projection.forget()
        snapshot = projection.snapshot()
        point = _Point(turn, snapshot.position, snapshot.number, snapshot.encode())
        with self._lock:
            insort(self._points, point, key=_turn_of)
            if len(self._points) > _POINTS_MAX or sum(len(each.snapshot) for each in self._points) > _BYTES_MAX:
                self._points = self._points[1::2]
                self._spacing *= 2

    def before(self, turn: int) -> tuple[_Point | None, int | None]:
        """Return the newest point that call `turn` saw all of, and the number of an edit that it did not see."""
        before, after = self._around(turn)
        return before, after.number if after else None

    def range_of(self, turn: int, position: int) -> tuple[int, int]:
        """Return a range of positions that has the newest message of call `turn`. `position`: of the newest of all."""
        before, after = self._around(turn)
        return before.position if before else 0, after.position if after else position

    def _around(self, turn: int) -> tuple[_Point | None, _Point | None]:
        points = self._points
        at = bisect_right(points, turn, key=_turn_of)
        return points[at - 1] if at else None, points[at] if at < len(points) else None

    def drop_from(self, turn: int) -> None:
        """Forget the points from call `turn` on: another writer added something to it."""
        with self._lock:
            self._points = self._points[: bisect_left(self._points, turn, key=_turn_of)]


def _turn_of(point: _Point) -> int:
    return point.turn


class Walk:
    """The history of one branch, folded call by call up to a head.

    It reads the store, and shares nothing with the open conversation. So another thread may walk without its lock.
    """

    def __init__(
        self,
        store: Callable[[], Database],
        head: Head,
        profile: Profile,
        counter: Counter,
        points: RestartPoints | None,
    ) -> None:
        """`store`: returns the store; it is called before each read. `points`: where the walk leaves restart points."""
        self._store, self.head, self._profile, self._counter = store, head, profile, counter
        self._points = points
        self.projection = self._empty()
        """Everything that the call `turn` saw."""
        self.turn = 0
        """The newest call that was passed."""
        self.rest: tuple[list[StoredMessage], list[Record]] = [], []
        """Messages and commits that were read and that no passed call saw."""

    def _empty(self) -> Projection:
        return Projection(self._profile, self._counter)

    @property
    def _loader(self) -> Loader:
        return Loader(self.head, self._store, self._empty)

    def start_at(self, snapshot: Snapshot, turn: int) -> None:
        """Begin after everything that call `turn` saw, in place of the beginning."""
        rows = self._loader.rows_at(snapshot.positions())
        self.projection = Projection.resume(snapshot, rows, self._profile, self._counter)
        self.turn = turn

    def copy(self) -> Walk:
        """Return an independent copy."""
        twin = Walk(self._store, self.head, self._profile, self._counter, self._points)
        twin.projection, twin.turn, twin.rest = self.projection.copy(), self.turn, self.rest
        return twin

    def calls(self, *, last: int | None = None, until: int | None = None) -> Iterator[PastCall]:
        """Fold what each further call saw for the first time, and yield the call. `projection` then shows its view.

        `last`: the last call to fold. `until`: number of an edit that this call did not see, if one is known. Then
        `rest` has what was read and not folded. Raises LateChange; a walk from the beginning never does.
        """
        head, before = self.head, self.turn
        position = self.projection.position
        known = head if until is None else structs.replace(head, number=until)
        records = [record for _, record in self._store().records(known, self.projection.number)]
        if before and any(record.turn <= before for record in records):
            raise LateChange
        rows: list[StoredMessage] = []
        while position < head.position:
            end = min(position + _ROWS, head.position)
            rows += self._store().messages(head, position + 1, end)
            position = end
            replies = {row.stamp.turn: row for row in reversed(rows) if row.stamp.origin == "assistant"}
            replies.pop(self.turn, None)
            if before and any(turn < before for turn in replies):
                raise LateChange
            queue = _Queue(rows, records)
            for turn in sorted(replies):
                if last is not None and turn > last:
                    break
                items = self._fold(*queue.seen_by(turn))
                self.turn = turn
                if self._points is not None and self._points.wants(turn, self.projection):
                    self._points.add(turn, self.projection)
                yield PastCall(turn, replies[turn], items)
            rows, records = queue.rest()
            if last is not None and queue.newest_turn > last:
                break
        self.rest = rows, records

    def fold_rest(self, turn: int | None = None) -> tuple[Row | Record, ...]:
        """Fold what the call `turn` saw of the rest, and return it. None: all of the rest.

        `calls` does not know of calls without a reply.
        """
        queue = _Queue(*self.rest)
        seen = self.rest if turn is None else queue.seen_by(turn)
        self.rest = [], []
        return self._fold(*seen)

    def _fold(self, rows: Sequence[StoredMessage], records: Sequence[Record]) -> tuple[Row | Record, ...]:
        """Fold these messages and commits, and return them in their order."""
        loader, items = self._loader, list[Row | Record]()
        for item in in_order(rows, records):
            if isinstance(item, Record):
                loader.fold(self.projection, item)
                items.append(item)
            else:
                row = row_of(item)
                self.projection.append(row)
                items.append(row)
        return tuple(items)

    def entries(self) -> tuple[Entry, ...]:
        """Return the entries of the call that was passed last, as its request showed them."""
        entries = self.projection.entries()
        return entries if self.projection.offers_expand else plain_entries(entries, self._counter)


class _Queue:
    """Messages and commits that wait for their calls, in order."""

    def __init__(self, rows: Sequence[StoredMessage], records: Sequence[Record]) -> None:
        self._rows, self._records = rows, records
        # A message that came behind one of a later turn was appended after the later call began.
        self._row_turns = list(accumulate((row.stamp.turn for row in rows), max))
        self._record_turns = list(accumulate((record.turn for record in records), max))
        self._row = self._record = 0

    @property
    def newest_turn(self) -> int:
        """Return the newest turn of all its messages."""
        return self._row_turns[-1] if self._row_turns else 0

    def seen_by(self, turn: int) -> tuple[Sequence[StoredMessage], Sequence[Record]]:
        """Return what the call `turn` saw beyond the calls before it."""
        row, record = self._row, self._record
        self._row = bisect_left(self._row_turns, turn, row)
        self._record = bisect_right(self._record_turns, turn, record)
        if self._row < len(self._rows):  # A commit that knew of a later message belongs to a later call.
            known = self._rows[self._row].position - 1
            self._record = bisect_right(self._records, known, record, self._record, key=lambda edits: edits.position)
        return self._rows[row : self._row], self._records[record : self._record]

    def rest(self) -> tuple[list[StoredMessage], list[Record]]:
        """Return what no call saw so far."""
        return list(self._rows[self._row :]), list(self._records[self._record :])


class Past:
    """The earlier model calls of one conversation."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._summed: _Sums | None = None
        self._points, self._place = RestartPoints(), (0, 0, 0)

    def view_at(self, turn: int) -> View:
        """Return what the model saw at call `turn`. Raises BadInput if there was no such call."""
        return self.look_at(turn)[0]

    def look_at(self, turn: int) -> tuple[View, list[Cover]]:
        """Return what the model saw at call `turn`, and the hidden and summarized ranges of that time.

        Folds from the last restart point before the call; the first look at an early call leaves such points.
        """
        state = self._state
        state.follow_head()
        newest = state.next_turn()  # The coming call counts.
        if turn > newest:
            raise BadInput(f"{state.head.label} has turns 1 to {newest}; there is no turn {turn}.")
        if reply := self._reply_without_edits(turn):
            projection = state.projection
            entries, last_input = projection.entries(), projection.last_input(reply - 1)
            entries = tuple(entry for entry in entries if entry.position < reply)
            entries = entries if projection.offers_expand else plain_entries(entries, state.counter)
        else:
            walk = self._walk_to(turn)
            projection = walk.projection
            entries, last_input = walk.entries(), projection.facts.last_input
        view = View(entries, turn, state.limits.budget(entries), newest_input=last_input)
        return view, projection.covers()

    def walk(self) -> Walk:
        """Return a walk from the beginning to the head. Another thread may use it without the conversation's lock."""
        state = self._state
        return Walk(lambda: state.database, state.head, state.profile, state.counter, self.points)

    def is_near(self, turn: int) -> bool:
        """Return whether a look at this call is quick, because a place to begin at is near before it."""
        begin, end = self.points.range_of(turn, self._state.head.position)
        if end - begin > _NEAR and (saved := self._saved_before(turn)) is not None:
            begin = max(begin, saved.position)
        return end - begin <= _NEAR or bool(self._reply_without_edits(turn))

    @property
    def points(self) -> RestartPoints:
        """The restart points, as far as the conversation still has this past."""
        if self._place != _place(self._state):
            self._points, self._place = RestartPoints(), _place(self._state)
        return self._points

    def _reply_without_edits(self, turn: int) -> int:
        """Return the position of the reply to the newest call, if no edit came after what this call saw; else 0.

        Then the call saw the beginning of what is shown now, and nothing needs to be folded.
        """
        state = self._state
        if state.head.erased or turn != state.projection.facts.turn:
            return 0
        entries = state.projection.entries()
        reply = next((each.position for each in entries if each.span is None and each.stamp.turn >= turn), 0)
        number = state.head.number
        newest = records_between(state.store, state.head, number, number) if number else []
        return 0 if any(record.turn > turn or record.position >= reply for record in newest) else reply

    def _walk_to(self, turn: int) -> Walk:
        """Return a walk that shows what call `turn` saw, from the newest place that is known before it."""
        points, state = self.points, self._state
        saved = self._saved_before(turn)
        while True:
            walk = Walk(lambda: state.store, state.head, state.profile, state.counter, points)
            point, until = points.before(turn)
            if saved is not None and (point is None or saved.position > point.position):
                walk.start_at(saved, saved.facts.turn)
            elif point is not None:
                walk.start_at(point.decoded(), point.turn)
            start = walk.turn
            try:
                for _ in walk.calls(last=turn, until=until):
                    pass
            except LateChange:
                points.drop_from(start)
                saved = None
                continue
            if walk.turn < turn:
                walk.fold_rest(turn)
            return walk

    def _saved_before(self, turn: int) -> Snapshot | None:
        """Return the snapshot in the store, if call `turn` saw everything in it."""
        state = self._state
        if state.head.erased:  # It shows what the erasures left, and this past does not.
            return None
        found = state.store.snapshot(state.head)
        snapshot = Snapshot.decode(found[2]) if found else None
        if snapshot is None or not snapshot.facts.turn or snapshot.facts.turn >= turn:
            return None
        newest = records_between(state.store, state.head, snapshot.number, snapshot.number) if snapshot.number else []
        return None if any(record.turn > turn for record in newest) else snapshot

    def totals(self) -> Totals:
        """Return the sums over all model calls. Reads the whole history once, then what came since."""
        sums, self._summed = self._summed, None  # Start again if anything below fails.
        if sums is None or not sums.is_of(self._state):
            sums = _Sums(self._state, self.points)
        sums.walk.head = self._state.head
        try:
            sums.add_calls()
        except LateChange:
            sums = _Sums(self._state, self.points)
            sums.add_calls()
        sums.walk.projection.forget()
        self._summed = sums.copy()
        sums.add(sums.walk.fold_rest())
        return sums.tally.totals()


class _Sums:
    """How far the history is folded, and its sums up to there."""

    def __init__(self, state: State, points: RestartPoints) -> None:
        self.walk, self.tally = Walk(lambda: state.store, state.head, state.profile, state.counter, points), Tally()
        self._place = _place(state)

    def is_of(self, state: State) -> bool:
        """Return whether the conversation still has this past: same branch, and nothing of it was erased."""
        return self._place == _place(state)

    def copy(self) -> _Sums:
        twin = _Sums.__new__(_Sums)
        twin.walk, twin.tally, twin._place = self.walk.copy(), self.tally.copy(), self._place
        twin.walk.rest = [], []
        return twin

    def add_calls(self) -> None:
        """Add everything that the newest call was shown."""
        for call in self.walk.calls():
            self.add(call.items)
            projection = self.walk.projection
            self.tally.add_call(projection.entries(), projection.erased_tokens() if self.walk.head.erased else 0)

    def add(self, items: Sequence[Row | Record]) -> None:
        """Add messages and commits."""
        for item in items:
            if isinstance(item, Record):
                self.tally.add_record(item)
            else:
                self.tally.add_message(item.position, item.id, item.message, item.stamp)


def _place(state: State) -> tuple[int, int, int]:
    return state.head.root, state.head.branch, state.head.erased
