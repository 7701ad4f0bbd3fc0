"""Views and sums of earlier model calls: the history folded again, call by call."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from ..core.edits import Record
from ..core.plain_handles import plain_entries
from ..core.projection import Projection
from ..core.totals import Tally, Totals
from ..core.view import View
from ..errors import BadInput
from ..ports import StoredMessage
from .loading import in_order, row_of
from .state import State

__all__ = ["Past"]

_ROWS = 1_000
"""Messages read at a time."""


class Past:
    """The earlier model calls of one conversation."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._summed: _Sums | None = None

    def view_at(self, turn: int) -> View:
        """Return what the model saw at call `turn`. Raises BadInput if there was no such call."""
        state = self._state
        state.follow_head()
        newest = state.next_turn()  # The coming call counts.
        if turn > newest:
            raise BadInput(f"{state.head.name!r} has turns 1 to {newest}; there is no turn {turn}.")
        rows = state.store.records(state.head)
        records = [record for _, record in rows if record.turn <= turn]
        past = Projection(state.profile, state.counter)
        state.loader.fold_all(past, state.head.position, records, before_turn=turn)
        entries = past.entries() if past.offers_expand else plain_entries(past.entries(), state.counter)
        return View(entries, turn, state.limits.budget(entries), newest_input=past.facts.last_input)

    def totals(self) -> Totals:
        """Return the sums over all model calls. Reads the whole history once, then what came since."""
        sums, self._summed = self._summed, None  # Start again if anything below fails.
        if sums is None or not sums.is_of(self._state):
            sums = _Sums(self._state)
        rest = self._add_calls(sums)
        if rest is None:
            sums = _Sums(self._state)
            rest = self._add_calls(sums)
        assert rest is not None  # Nothing is late for new sums.
        sums.past.forget()
        self._summed = sums.copy()
        self._add(sums, *rest)
        return sums.tally.totals()

    def _add_calls(self, sums: _Sums) -> tuple[list[StoredMessage], list[Record]] | None:
        """Add everything that the newest call was shown, and return what came since.

        Returns None if another writer added something to a call that was summed before; then all is summed again.
        """
        state = self._state
        before = sums.turn
        records = [record for _, record in state.store.records(state.head, sums.number)]
        if before and any(record.turn <= before for record in records):
            return None
        record_turns = list(accumulate((record.turn for record in records), max))
        rows: list[StoredMessage] = []
        read, added = sums.position, 0
        while read < state.head.position:
            end = min(read + _ROWS, state.head.position)
            rows += state.store.messages(state.head, read + 1, end)
            read, seen = end, 0
            row_turns = list(accumulate((row.stamp.turn for row in rows), max))
            turns = {row.stamp.turn for row in rows if row.stamp.origin == "assistant"} - {sums.turn}
            if before and any(turn < before for turn in turns):
                return None
            for turn in sorted(turns):
                until, last = bisect_left(row_turns, turn, seen), bisect_right(record_turns, turn, added)
                self._add(sums, rows[seen:until], records[added:last])
                sums.tally.add_call(sums.past.entries())
                sums.turn, seen, added = turn, until, last
            rows = rows[seen:]
        return rows, records[added:]

    def _add(self, sums: _Sums, rows: Sequence[StoredMessage], records: Sequence[Record]) -> None:
        for item in in_order(rows, records):
            if isinstance(item, Record):
                self._state.loader.fold(sums.past, item)
                sums.tally.add_record(item)
                sums.number = item.last
            else:
                row = row_of(item)
                sums.past.append(row)
                sums.tally.add_message(row.position, row.id, row.message, row.stamp)
                sums.position = row.position


class _Sums:
    """How far the history is folded, and its sums up to there."""

    def __init__(self, state: State) -> None:
        self.past, self.tally = Projection(state.profile, state.counter), Tally()
        self.position = self.number = self.turn = 0
        self._place = _place(state)

    def is_of(self, state: State) -> bool:
        """Return whether the conversation still has this past: same branch, and nothing of it was erased."""
        return self._place == _place(state)

    def copy(self) -> _Sums:
        twin = _Sums.__new__(_Sums)
        twin.past, twin.tally = self.past.copy(), self.tally.copy()
        twin.position, twin.number, twin.turn, twin._place = self.position, self.number, self.turn, self._place
        return twin


def _place(state: State) -> tuple[int, int, int]:
    return state.head.root, state.head.branch, state.head.erased
