"""Replies after they were stored: usage that is reported late, repeated records, and withdrawn replies.

Stamps never change, so late usage is a `Bill` in the journal, and a withdrawn reply is hidden by an edit.
"""

from __future__ import annotations

from msgspec.structs import replace

from ..core.edits import CALLER, Bill, Edit, Hide, Target, Unpin
from ..core.message_keys import message_key
from ..core.messages import Message
from ..core.stamps import Stamp, Usage, is_interrupted
from ..errors import BadInput, ConflictError
from ..expand.originals import decoded
from ..ports import StoredMessage
from . import validate
from .edit import Editor
from .journal_search import recent_records
from .state import PLANS, State

__all__ = ["Replies"]

_ROWS = 32
"""Messages read at a time: late usage is mostly about one of the newest replies."""


class Replies:
    """The stored replies of one conversation."""

    def __init__(self, state: State, editor: Editor) -> None:
        self._state, self._editor = state, editor
        self._billed: set[int] = set()  # calls that were billed before their reply was stored

    def find_recorded(self, call: int, reply: Message) -> StoredMessage | None:
        """Return the stored reply to a model call if it says what `reply` says and was not withdrawn."""
        state = self._state
        if not call or (state.is_call_pending() and call >= state.begun()):
            return None
        state.refresh()
        row, _ = self._find(call)
        is_same = (
            row is not None
            and row.id not in self.discarded(row.position)
            and message_key(decoded(row)) == message_key(reply)
        )
        return row if is_same else None

    def bill(self, call: int | str, usage: Usage) -> bool:
        """Record the usage of a model call. Return False if the call was billed already."""
        state, usage = self._state, validate.usage(usage)
        state.refresh()  # Another process may have made the call.
        for _ in range(PLANS):
            number, row, before = self._named(call)
            if self._is_billed(number, row, before):
                return False
            model, estimate = state.calls.request_of(number)
            bill = Bill(number, usage, row.id if row else "", model, estimate)
            if row is not None and row.stamp.usage is not None:
                bill = replace(bill, model=row.stamp.model, replaces=row.stamp.usage)
            try:
                state.note(bill, "bill")
            except ConflictError:  # The other writer may have billed it.
                state.refresh()
                continue
            if row is None:
                self._billed.add(number)
            return True
        raise ConflictError(f"Other writers kept changing {state.head.label}. Try again later.")

    def usage_of(self, position: int, id: str, stamp: Stamp) -> Usage | None:
        """Return the usage of a reply, also if it was reported late; None if it is not known."""
        if not self._state.head.number or (stamp.usage is not None and not is_interrupted(stamp.stop)):
            return stamp.usage
        return next((bill.usage for bill in self._bills(position) if bill.message == id), stamp.usage)

    def _is_billed(self, call: int, row: StoredMessage | None, before: int) -> bool:
        """Return whether usage of a call is known. `row`: its reply. `before`: the position of an earlier message.

        That of an interrupted reply is an estimate, and so it is not known before the first report.
        """
        if row is not None and row.stamp.usage is not None and not is_interrupted(row.stamp.stop):
            return True
        bills = self._bills(before)
        return any(bill.message == row.id if row and bill.message else bill.call == call for bill in bills)

    def _bills(self, since: int) -> list[Bill]:
        """Return the reports of usage that came after the message at position `since`."""
        records = recent_records(self._state.store, self._state.head, since)
        return [edit for record in records for edit in record.edits if isinstance(edit, Bill)]

    def unbilled(self, call: int, usage: Usage | None) -> Usage | None:
        """Return the usage of a new reply; None if it was reported before the reply."""
        if call not in self._billed:
            return usage
        self._billed.discard(call)
        return None

    def discard_edits(self, call: int | str) -> list[Edit]:
        """Return the edits that hide a reply and the results of its calls; none if nothing of it is shown."""
        self._state.refresh()
        number, row, _ = self._named(call)
        if row is None:
            return []
        reason = f"the reply to call {number} was withdrawn"
        edits: list[Edit] = []
        for part in (row, *self._results_of(row)):
            if self._state.projection.is_pinned(part.id):
                edits.append(Unpin(Target(part.id), reason=reason))
            if self._state.projection.holds(part.id):
                edits.append(Hide(Target(part.id), CALLER, reason))
        return edits

    # -------------------------------------------------------------------------------------------------------- finding

    def _named(self, call: int | str) -> tuple[int, StoredMessage | None, int]:
        """Return the number of a call, its reply, and the position of a message before it.

        Raises BadInput if there was no such call or the id or handle names no reply.
        """
        if isinstance(call, str):
            parsed, rows = self._editor.rows_of(call)
            if len(rows) > 1 or parsed.path or rows[0].stamp.origin != "assistant":
                raise BadInput(
                    f"{call!r:.60} names no reply. Pass the id that record() returned, or the call's number."
                )
            return rows[0].stamp.turn, rows[0], rows[0].position
        number, newest = validate.integer("call", call, 1), self._state.begun()
        if number > newest:
            raise BadInput(f"There was no model call {number}: this conversation had {newest} calls. See View.turn.")
        row, before = self._find(number)
        return number, row, before if row is None else row.position

    def _find(self, call: int) -> tuple[StoredMessage | None, int]:
        """Return the newest reply to a call, and the position of the newest message before the call."""
        state, end, found = self._state, self._state.head.position, None
        while end > 0:
            rows = state.store.messages(state.head, max(1, end - _ROWS + 1), end)
            for row in reversed(rows):
                if row.stamp.origin == "assistant" and row.stamp.turn == call and found is None:
                    found = row
                elif row.stamp.origin == "assistant" and row.stamp.turn < call:
                    return found, row.position
            end -= _ROWS
        return found, 0

    def _results_of(self, reply: StoredMessage) -> list[StoredMessage]:
        """Return the results of a reply's calls, up to the next reply."""
        open = {call.call_id for call in decoded(reply).calls}
        state, results, start = self._state, list[StoredMessage](), reply.position + 1
        while open and start <= state.head.position:
            for row in state.store.messages(state.head, start, start + _ROWS - 1):
                if row.stamp.origin == "assistant":
                    return results
                result = decoded(row).result
                if result is not None and result.call_id in open:
                    open.discard(result.call_id)
                    results.append(row)
            start += _ROWS
        return results

    def discarded(self, since: int) -> set[str]:
        """Return the ids of messages from position `since` on that the caller withdrew and that are not shown."""
        state = self._state
        records = recent_records(state.store, state.head, since) if state.head.number else ()
        edits = (edit for record in records for edit in record.edits)
        targets = (edit.target for edit in edits if isinstance(edit, Hide) and edit.policy == CALLER)
        named = {target.message for target in targets if isinstance(target, Target)}
        return {id for id in named if not state.projection.holds(id)}
