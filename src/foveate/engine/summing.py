"""Sums over all calls of a conversation: the history folded call by call, each shown as `as_of` shows it.

What was folded once is kept up to the newest call, so that asking again costs what came since. Knows nothing of what
the sums mean: that is `core/totals.py`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import partial
from itertools import accumulate

from ..core.edits import Record
from ..core.projection import Projection
from ..core.totals import Tally, Totals
from ..ports import StoredMessage
from .state import State, in_order, row_of
from .steps import Step

__all__ = ["Summing"]

_ROWS = 1_000
"""Messages read at a time."""


class Summing(State):
    """The step that sums up."""

    _folded: _Folded | None = None

    def totals(self) -> Step[Totals]:
        """What all that was managed came to. Reads the whole history once, and then what came since."""
        folded, self._folded = self._folded, None  # Begun anew if anything below fails.
        if folded is None or not folded.is_of(self):
            folded = _Folded(self)
        left = yield from self._sum_up(folded)
        if left is None:
            folded = _Folded(self)
            left = yield from self._sum_up(folded)
        assert left is not None  # Nothing is late for what was just begun.
        folded.past.forget()
        self._folded = folded.copy()
        yield from self._take_in(folded, *left)
        return folded.tally.totals()

    def _sum_up(self, folded: _Folded) -> Step[tuple[list[StoredMessage], list[Record]] | None]:
        """Take in all that the newest call was shown, and return what came since. None where something came that
        belongs to a call that was summed up before, so that all must be begun anew: of two writers one may be late.
        """
        before = folded.turn
        found = yield partial(self.store.records, self.head, folded.number)
        records = [record for _, record in found]
        if before and any(record.turn <= before for record in records):
            return None
        made = list(accumulate((record.turn for record in records), max))  # What came behind others was not there yet.
        rows: list[StoredMessage] = []
        read, told = folded.position, 0
        while read < self.head.position:
            end = min(read + _ROWS, self.head.position)
            rows += yield partial(self.store.messages, self.head, read + 1, end)
            read, seen = end, 0
            said = list(accumulate((row.stamp.turn for row in rows), max))
            turns = {row.stamp.turn for row in rows if row.stamp.origin == "assistant"} - {folded.turn}
            if before and any(turn < before for turn in turns):
                return None
            for turn in sorted(turns):
                until, last = bisect_left(said, turn, seen), bisect_right(made, turn, told)
                yield from self._take_in(folded, rows[seen:until], records[told:last])
                folded.tally.add_call(folded.past.entries())
                folded.turn, seen, told = turn, until, last
            rows = rows[seen:]
        return rows, records[told:]

    def _take_in(self, folded: _Folded, rows: Sequence[StoredMessage], records: Sequence[Record]) -> Step[None]:
        for one in in_order(rows, records):
            if isinstance(one, Record):
                yield from self._fold(folded.past, one)
                folded.tally.add_record(one)
                folded.number = one.last
            else:
                row = row_of(one)
                folded.past.append(row)
                folded.tally.add_message(row.position, row.id, row.message, row.stamp)
                folded.position = row.position


class _Folded:
    """How far the history is folded, and what that came to."""

    def __init__(self, engine: State) -> None:
        self.past, self.tally = Projection(engine.profile, engine.counter), Tally()
        self.position = self.number = self.turn = 0
        self._place = _place(engine)

    def is_of(self, engine: State) -> bool:
        """Whether the conversation still has this past: it is on the same branch, and nothing of it was erased."""
        return self._place == _place(engine)

    def copy(self) -> _Folded:
        """The same, to go on from apart."""
        made = _Folded.__new__(_Folded)
        made.past, made.tally = self.past.copy(), self.tally.copy()
        made.position, made.number, made.turn, made._place = self.position, self.number, self.turn, self._place
        return made


def _place(engine: State) -> tuple[int, int, int]:
    return engine.head.root, engine.head.branch, engine.head.erased
