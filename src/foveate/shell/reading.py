"""What is asked of a conversation, and changes nothing in it: its history, journal and sums, and what is wrong with it.

Steps that both shells perform in their own way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from .. import given
from ..core.edits import Record, Task
from ..core.events import Event, events_of_message, events_of_record
from ..core.explain import explain, explain_other_policies
from ..core.messages import Message
from ..core.receipts import Receipt, receipt_of
from ..core.totals import Totals
from ..core.view import View
from ..engine import Step
from ..expansion.hits import Hit
from ..expansion.originals import decoded, part_of
from ..ports import Cost, Erasure, Finding
from .answers import Fix, HistoryEntry, RepairReport
from .held import Held

if TYPE_CHECKING:
    from ..core.context import Context

__all__ = ["Reading"]


class Reading(Held):
    """The questions."""

    def _history(self, first: int, last: int | None) -> Step[list[HistoryEntry]]:
        end = self.head.position if last is None else given.whole("The last message of a history", last)
        given.whole("The first message of a history", first)
        rows = yield lambda: self._engine.store.messages(self.head, first, end)
        return [HistoryEntry(row.position, row.id, decoded(row), row.stamp) for row in rows]

    def _original(self, handle: str) -> Step[tuple[Message, ...]]:
        parsed, rows = yield from self._engine.named(handle)
        return tuple(part_of(decoded(row), parsed.path, handle) for row in rows)

    def _search(self, words: str, limit: int) -> Step[list[Hit]]:
        given.text("What is searched for", words)
        return (yield from self._expander.search(words, given.whole("limit=", limit, 1)))

    def _explain(self, handle: str) -> Step[str]:
        parsed, _ = yield from self._engine.named(handle)
        records = yield from self._records()
        by_number = {number: record for record in records for number, _ in record.numbered()}
        entries = [entry for entry in self.view.entries if entry.position <= parsed.first <= entry.last]
        if not entries:
            return f"{handle} is not shown: its content is blank or an edit hides it."
        told = [explain(entry, by_number) for entry in entries]
        for entry in entries:
            told += explain_other_policies(entry, self._engine.projection, self._engine.frame, self._engine.policies)
        return "\n".join(told)

    def _as_of(self, turn: int) -> Step[View]:
        return (yield from self._engine.as_of(given.whole("A turn", turn, 1)))

    def _receipts(self, after: int = 0) -> Step[list[Receipt]]:
        records = yield from self._records(given.whole("after= (the number of an edit)", after))
        return [receipt_of(record) for record in records if not all(isinstance(edit, Task) for edit in record.edits)]

    def _records(self, after: int = 0) -> Step[list[Record]]:
        found = yield lambda: self._engine.store.records(self.head, after)
        return [record for _, record in found]

    def _events(self, since: int) -> Step[list[Event]]:
        given.whole("since= (milliseconds since 1970)", since)
        rows = yield lambda: self._engine.store.messages(self.head, 1, self.head.position)
        records = yield from self._records()
        events = [event for row in rows for event in events_of_message(row.position, row.id, row.stamp)]
        events += [event for record in records for event in events_of_record(record)]
        return sorted((event for event in events if event.time >= since), key=lambda event: (event.time, event.turn))

    def _totals(self) -> Step[Totals]:
        return (yield from self._engine.totals())

    def _context(self, cost: Cost | None) -> Step[Context]:
        from ..core.context import measure_context  # What only meters need.

        if cost is not None:
            given.callable_("cost=", cost)
        totals = yield from self._engine.totals()
        view = self._engine.view()
        _, tools = self._offered(*self._asked_with) if view.budget.overhead else (None, ())
        weight = self._engine.limits.weight(tools, self._engine.counter)
        used = next((entry.stamp.usage for entry in reversed(view.entries) if entry.stamp.usage), None)
        return measure_context(
            view, totals, messages=len(self), tools=weight, last=used, count=self._engine.counter, cost=cost
        )

    def _mends(self) -> list[Fix]:
        return [Fix(entry.handle, entry.legalized) for entry in self.view.entries if entry.legalized]

    def _repair(self) -> Step[RepairReport]:
        rows = yield from self._history(1, None)
        shown = {entry.position for entry in self.view.entries} | {
            position for entry in self.view.entries if entry.span for position in range(entry.position, entry.last + 1)
        }
        left_out = [
            Fix(row.handle, "a message without content is refused") for row in rows if row.position not in shown
        ]
        body = msgspec.json.decode(self._engine.format.body(self.view, profile=self.profile))
        return RepairReport(body, (*self._mends(), *left_out))

    def _verify(self) -> Step[list[Finding]]:
        found: list[Finding] = yield lambda: self._engine.store.verify(self.head)
        return found

    def _erasures(self) -> Step[list[Erasure]]:
        found: list[Erasure] = yield lambda: self._engine.store.erasures(self.head)
        return found

    def _leftovers(self) -> Step[tuple[int, list[Finding]]]:
        found: tuple[int, list[Finding]] = yield lambda: self._engine.store.find_residue(self.head)
        return found
