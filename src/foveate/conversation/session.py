"""The parts of one open conversation, and what they do together. Without locks: the public classes take the lock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..core.caches import clear_caches
from ..core.conversation_names import ancestors, children_of
from ..core.edits import Bill, Edit, Pin, Record, Target, Task, Unpin, paths_overlap
from ..core.enrich import own_message
from ..core.events import Event, events_of_message, events_of_record
from ..core.explain import RELEASED, explain, explain_hidden, explain_other_policies
from ..core.messages import Message, ToolCall, ToolResult
from ..core.metadata import read_metadata, read_metadata_as
from ..core.plurals import plural
from ..core.receipts import Receipt, receipt_of
from ..core.results import is_action_result
from ..core.stamps import Lease, Stamp, Usage, is_interrupted
from ..core.stored_form import stored_edits
from ..core.summaries import replace_surrogates
from ..core.system_messages import position_of
from ..errors import BadInput, BadSetting, NoSuchConversation
from ..expand.excerpts import Excerpt, read_range
from ..expand.expander import NOT_EXPANDING, Expander, ExpandOptions, Place
from ..expand.originals import decoded, part_of
from ..expand.tool import TOOL, Items, Lines, Matches
from ..ports import CostOf, Erasure, Head, StoredMessage
from . import validate
from .append import Appender
from .calls import Caller, SessionLock
from .edit import Editor, Eraser
from .exchange import Exchange, ModelChoice
from .instrumentation import Places, Reporter
from .journal_search import number_at
from .offer import Offer
from .past import Past
from .plan import Planner
from .plugins import Plugin
from .prefetch import SummaryPrefetch
from .replies import Replies
from .state import State
from .weak_methods import weakly

if TYPE_CHECKING:
    from ..core.context import Context
    from ..core.retention import Ages
    from .retention import RetentionReport

__all__ = ["Fix", "HistoryEntry", "RepairReport", "Session"]

T = TypeVar("T")


class HistoryEntry(Struct, frozen=True):
    """A message of the history, its place, and its facts."""

    position: int
    """From 1."""
    id: str
    """The id of the message, a hash of its content and of the message before it."""
    message: Message
    """The message as it was appended."""
    stamp: Stamp
    """Facts about the message: its turn, time, origin, lease and usage."""
    is_released: bool = False
    """Whether content of the original was released, so that `message` has `[released]` in its place."""

    @property
    def handle(self) -> str:
        """The handle, such as `m12`."""
        return f"m{self.position}"

    @property
    def metadata(self) -> dict[str, Any]:
        """The application's facts about it, as a new dict; empty if there are none, or if they were erased."""
        return read_metadata(self.stamp.metadata)

    def metadata_as(self, kind: type[T]) -> T:
        """Return the application's facts as a value of this type: a dataclass, Struct, TypedDict or pydantic model.

        Raises BadInput if they are none, or were erased.
        """
        return read_metadata_as(self.stamp.metadata, kind)


class Fix(Struct, frozen=True):
    """A difference between the view and the history that a provider's rules require."""

    handle: str
    """The message that was made legal, or the one behind a message of the library's own."""
    why: str
    """The fault, and the content that the view shows now."""


class RepairReport(Struct, frozen=True):
    """A legal copy of a conversation, and the changes it needed."""

    body: dict[str, Any]
    """In wire form: `messages`, and `system` if the format keeps it apart."""
    changes: tuple[Fix, ...]
    """The changes, one sentence for each."""


class Session:
    """One open conversation."""

    def __init__(
        self,
        state: State,
        planner: Planner,
        prefetch: SummaryPrefetch,
        caller: Caller,
        *,
        on_event: Callable[[Event], object] | None = None,
        plugins: Sequence[Plugin] = (),
        expand: ExpandOptions = NOT_EXPANDING,
    ) -> None:
        self.state, self.planner, self.prefetch, self.caller = state, planner, prefetch, caller
        self.lock = SessionLock(caller, state.read_again)
        self.appender = Appender(state)
        self.editor = Editor(state)
        self.eraser = Eraser(state, self.editor)
        self.past = Past(state)
        self.reporter = Reporter(state, on_event)
        self.offer = Offer(state, expand.offer)
        self.exchange = Exchange(state, self.appender, self.editor, planner, self.reporter, self.offer, caller, plugins)
        say, show_again, lease_of = weakly(self.exchange.say), weakly(self.show_again), weakly(self.lease_of_copy)
        self.expander = Expander(
            state, self.editor, expand, add=say, expand=show_again, lease_of=lease_of, has_floor=bool(planner.floor)
        )
        self.exchange.expander = self.expander
        self.replies = self.exchange.replies = Replies(state, self.editor)
        state.may_offer_expand = expand.offer is not False

    @property
    def head(self) -> Head:
        """The newest message and edit."""
        return self.state.head

    def is_busy(self) -> bool:
        """Return whether an operation is in progress, or a summary is being written for a later one."""
        if self.prefetch.is_running() or not self.lock.try_acquire(0):
            return True
        self.lock.release()
        return False

    def save_at_close(self) -> None:
        """Save a snapshot if much is new. Does nothing while another thread uses the conversation."""
        if self.lock.try_acquire(0):
            try:
                if not self.lock.is_broken_off:
                    self.state.save_at_close()
            finally:
                self.lock.release()

    # --------------------------------------------------------------------------------------------------------- edits

    def edit(self, edits: Sequence[Edit], author: str = "edit") -> Receipt:
        """Commit edits, and report them."""
        checked = stored_edits(tuple(edits))
        places = self.reporter.places()
        return self._reported(self.editor.edit(checked, author), places)

    def _reported(self, record: Record, places: Places) -> Receipt:
        self.reporter.commit(record, places)
        return receipt_of(record)

    def apply_plan(
        self, system: object, tools: Sequence[Mapping[str, Any]], choice: ModelChoice
    ) -> tuple[Receipt, ...]:
        """Commit the plan of the next request, and report the commits."""
        before, places = self.head.number, self.reporter.places()
        self.exchange.apply_plan(system, tools, choice)
        self.reporter.commits(before, places)
        return tuple(self.receipts(before))

    def compact(self, focus: str) -> Receipt:
        """Compact, and report the commits."""
        focus = replace_surrogates(validate.text("focus=", focus))
        before, places = self.head.number, self.reporter.places()
        record = self.planner.compactor.compact(focus)
        self.reporter.commits(before, places)
        return receipt_of(record)

    def pin(self, handle: str | int, kind: type[Pin] | type[Unpin]) -> Receipt | None:
        """Pin or unpin what a handle names. None if nothing changes."""
        parsed, rows = self.editor.rows_of(handle)
        for row in rows:
            part_of(decoded(row), parsed.path, str(handle))
        pins = {entry.id: entry.pins for entry in self.state.followed().entries() if entry.outline is not None}

        def is_changed(id: str) -> bool:
            if id not in pins:
                return True
            if kind is Pin:
                return all(pinned.path != parsed.path for pinned in pins[id])
            return any(paths_overlap(pinned.path, parsed.path) for pinned in pins[id])

        reason = f"{handle} was named"
        edits = [kind(Target(row.id, parsed.path), reason=reason) for row in rows if is_changed(row.id)]
        return self.edit(edits, "pin" if kind is Pin else "unpin") if edits else None

    def undo(self, target: Receipt | int | None) -> Receipt:
        """Undo a receipt or the edit with a number; without either, the newest change."""
        places = self.reporter.places()
        if target is None:
            return self._reported(self.editor.undo_newest(), places)
        if not isinstance(target, Receipt):
            target = validate.integer("The argument of undo(), if not a Receipt,", target, 1)
        first, last = (target.first, target.last) if isinstance(target, Receipt) else (target, target)
        return self._reported(self.editor.undo(first, last), places)

    def fork(self, name: str, at: str | int | None) -> Head:
        """Create a conversation that shares the past up to a message, and its edits."""
        name = validate.conversation_name("The name of a fork", name)
        self.state.refresh()  # In a store that was rolled back, the fork would share another past.
        position = self.head.position if at is None else self._fork_position(at)
        if not 0 <= position <= self.head.position:
            there = plural(self.head.position, "message")
            raise BadSetting(f"This conversation has {there}; it cannot be forked at {position}.")
        return self.state.store.fork(self.head, name, position, number_at(self.state.store, self.head, position))

    def _fork_position(self, at: str | int) -> int:
        if not isinstance(at, str):
            return validate.integer("at= (the number of a message)", at)
        parsed = self.editor.parse(at)
        if parsed.path or parsed.last > parsed.first:
            raise BadInput(f"at= names one message, such as m5, not {at}.")
        return parsed.last

    # ------------------------------------------------------------------------------------------------------- replies

    def bill(self, call: int | str, usage: Usage) -> bool:
        """Record the usage of a call, and report it. Return False if the call was billed already."""
        before, places = self.head.number, self.reporter.places()
        is_new = self.replies.bill(call, usage)
        self.reporter.commits(before, places)
        return is_new

    def discard(self, call: int | str) -> Receipt | None:
        """Withdraw the reply to a call. None if nothing of it is shown."""
        edits = self.replies.discard_edits(call)
        if not edits:
            return None
        return self.edit(edits, "discard")

    # ----------------------------------------------------------------------------------------------------- expanding

    def show_again(self, handle: str | int, reason: str) -> Message:
        """Show an original again in its place; return the first message of it."""
        reason = validate.text("reason=", reason)
        parsed, rows = self.editor.rows_of(handle)
        original = part_of(decoded(rows[0]), parsed.path, str(handle))
        before, places = self.head.number, self.reporter.places()
        self.editor.expand(handle, reason)
        self.reporter.commits(before, places)
        return original

    def expand(
        self,
        handle: str | int,
        parts: Mapping[str, str | int | Sequence[int] | None],
        where: Place,
        reason: str,
    ) -> Message | Excerpt:
        """Show an original again, or return a part of it."""
        asked = {name: value for name, value in parts.items() if value is not None}
        if where not in ("view", "tail", "auto"):
            raise BadSetting(f"where= must be view, tail or auto, not {where!r:.60}.")
        if len(asked) > 1 or (asked and where != "view"):
            raise BadSetting("Pass one of lines=, items= and pattern=; a part is returned, so it takes no where=.")
        match asked:
            case {"lines": value}:
                return self.expander.part(Lines(handle, read_range(value, "lines=")))
            case {"items": value}:
                return self.expander.part(Items(handle, read_range(value, "items=")))
            case {"pattern": value}:
                return self.expander.part(Matches(handle, validate.text("pattern=", value)))
            case _ if where == "view":
                return self.expander.show_in_place(handle, validate.text("reason=", reason))
            case _:
                return self.expander.show(handle, where, validate.text("reason=", reason))

    def answer(self, call: object) -> ToolResult:
        """Answer one open call of the tool `expand`. A call that was answered before keeps its answer."""
        wanted = _id_of(call)
        for open_call in self.expander.open_calls():
            if open_call.call_id == wanted:
                return self.expander.answer(open_call)
        answered = self.expander.answers().get(wanted) if isinstance(wanted, str) else None
        if answered is not None and answered.result is not None:
            return answered.result
        raise BadInput(f"The newest reply has no open call {wanted!r:.80}. See open_calls().")

    # ------------------------------------------------------------------------------------------------------- erasing

    def erase(self, handle: str | int, reason: str, who: str) -> Erasure:
        """Erase what a handle names, and drop every copy of it in memory."""
        reason = validate.text("reason=", reason)
        who = validate.text("who=", who)
        before, places = self.head.number, self.reporter.places()
        erased = self.eraser.erase(handle, who, reason)
        self._forget()
        self.reporter.commits(before, places)
        return erased

    def apply_retention(self, ages: Ages, reason: str, who: str, dry_run: bool) -> RetentionReport:
        """Erase what is over its age."""
        from ..core.retention import read_ages  # Few conversations need it.
        from .retention import RetentionRun

        reason = validate.text("reason=", reason)
        who = validate.text("who=", who)
        validate.instance("dry_run=", dry_run, bool, "True or False")
        rules = read_ages(ages)
        before, places = self.head.number, self.reporter.places()
        report = RetentionRun(self.state, self.eraser).apply(rules, who, reason, dry_run=dry_run)
        if report.erased:
            self._forget()
        self.reporter.commits(before, places)
        return report

    def _forget(self) -> None:
        self.exchange.forget()
        clear_caches()

    # ------------------------------------------------------------------------------------------------------- reading

    def history(self, first: int, last: int | None) -> list[HistoryEntry]:
        """Return the messages at these positions as they were appended."""
        end = self.head.position if last is None else validate.integer("last=", last)
        rows = self.state.store.messages(self.head, validate.integer("first=", first), end)
        return [HistoryEntry(row.position, row.id, decoded(row), row.stamp, row.is_released) for row in rows]

    def listed(self) -> list[HistoryEntry]:
        """Return the messages that the caller's list has, as they were appended."""
        rows = self.state.store.messages(self.head, 1, self.head.position)
        removed = self.editor.withheld.removed(rows)
        own = ((row, own_message(decoded(row), row.stamp)) for row in rows if row.id not in removed and row.body)
        return [
            HistoryEntry(row.position, row.id, message, row.stamp, row.is_released)
            for row, message in own
            if message is not None
        ]

    def originals(self, handle: str | int) -> tuple[Message, ...]:
        """Return what a handle names as it was appended."""
        parsed, rows = self.editor.rows_of(handle)
        return tuple(part_of(decoded(row), parsed.path, str(handle)) for row in rows)

    def lease(self, handle: str | int) -> Lease:
        """Return the lease that counts for the message that a handle names."""
        from ..policies.leases import effective_lease
        from ..policies.message_terms import follows

        _, (row, *_) = self.editor.rows_of(handle)
        lease = self._lease_of(row)
        if not any(follows(policy, "leases") for policy in self.planner.policies):
            return effective_lease(Lease(expiration_mode="none"), lease)
        return lease

    def lease_of_copy(self, originals: Sequence[StoredMessage], is_result: bool) -> Lease | None:
        """Return the strictest lease of these messages for a copy of them; None if the copy has the same anyway."""
        from ..policies.leases import expires, most_aggressive

        leases = [lease for row in originals if expires(lease := self._lease_of(row))]
        if not leases:
            return None
        lease = replace(most_aggressive(leases), message_type="")
        by_itself = self.lease_that_counts(None, TOOL if is_result else "", is_result=is_result)
        is_same = replace(lease, action_id="", agent_action_id="") == by_itself
        return None if is_same else lease

    def _lease_of(self, row: StoredMessage) -> Lease:
        message = decoded(row)
        is_result = message.role == "tool" or is_action_result(message, row.stamp)
        return self.lease_that_counts(row.stamp.lease, row.stamp.tool if is_result else "", is_result=is_result)

    def lease_that_counts(self, own: Lease | None, tool: str, *, is_result: bool) -> Lease:
        """Return a message's own lease with what the policies add to it. `tool`: of a result."""
        from ..policies.expiry import ExpiryPolicy
        from ..policies.leases import effective_lease

        for policy in self.planner.policies:
            if isinstance(policy, ExpiryPolicy):
                return policy.lease_of(own, tool, is_result)
        return effective_lease(own)

    def records(self, after: int = 0) -> list[Record]:
        """Return the records of the journal that begin after edit number `after`."""
        return [record for _, record in self.state.store.records(self.head, after)]

    def receipts(self, after: int) -> list[Receipt]:
        """Return the receipts of the records that changed the view."""
        records = self.records(validate.integer("after= (the number of an edit)", after))
        return [
            receipt_of(record) for record in records if not all(isinstance(edit, Task | Bill) for edit in record.edits)
        ]

    def events(self, since: int) -> list[Event]:
        """Return the events of all messages and records, in order of time."""
        since = validate.integer("since= (milliseconds since 1970)", since)
        rows = self.state.store.messages(self.head, 1, self.head.position)
        events = [event for row in rows for event in events_of_message(row.position, row.id, row.stamp)]
        stamps = {row.id: row.stamp for row in rows}
        events += [event for record in self.records() for event in events_of_record(record, {}, stamps)]
        return sorted((event for event in events if event.time >= since), key=lambda event: (event.time, event.turn))

    def explain(self, handle: str | int) -> str:
        """Return why the messages of a handle look as they do in the view."""
        parsed, rows = self.editor.rows_of(handle)
        released = {row.id for row in rows if row.is_released}
        by_number = {number: record for record in self.records() for number, _ in record.numbered()}
        entries = [
            entry for entry in self.state.view().entries if entry.position <= parsed.last and parsed.first <= entry.last
        ]
        if not entries and not any(row.body for row in rows):
            return f"{handle} {'was' if len(rows) == 1 else 'were'} erased."
        if not entries:
            covers = self.state.projection.covers()
            hiding = [cover.number for cover in covers if cover.first <= parsed.last and parsed.first <= cover.last]
            unshown = explain_hidden(handle, hiding, by_number)
            return f"{unshown}\n{RELEASED}" if released else unshown
        lines = [explain(entry, by_number, is_released=entry.id in released) for entry in entries]
        for entry in entries:
            lines += explain_other_policies(entry, self.state.projection, self.state.frame, self.planner.policies)
        return "\n".join(lines)

    def context(self, cost_of: CostOf | None) -> Context:
        """Return the meter of the window."""
        from ..core.context import measure_context  # Only meters need it.

        if cost_of is not None:
            validate.function("cost_of=", cost_of)
        totals = self.past.totals()
        view = self.state.view()
        replies = (entry for entry in reversed(view.entries) if entry.stamp.origin == "assistant")
        newest = next((entry for entry in replies if not is_interrupted(entry.stamp.stop)), None)
        used = self.replies.usage_of(newest.position, newest.id, newest.stamp) if newest is not None else None
        return measure_context(
            view,
            totals,
            messages=self.head.position,
            tools=self.offer.tool_tokens(),
            last=used,
            count=self.state.counter,
            cost_of=cost_of,
        )

    def parent(self) -> str | None:
        """Return the name of the nearest conversation that this one is a child of."""
        for name in ancestors(self.head.name):
            with suppress(NoSuchConversation):
                return self.state.store.open(self.head.tenant, name, create=False).name
        return None

    def children(self) -> list[str]:
        """Return the names of the children of this conversation, and of theirs."""
        return children_of(self.head.name, self.state.store.names(self.head.tenant))

    def fixes(self) -> list[Fix]:
        """Return the differences that the provider's rules require."""
        entries = self.state.view().entries
        return [
            Fix(f"m{position_of(entries, index)}", entry.legalized)
            for index, entry in enumerate(entries)
            if entry.legalized
        ]

    def repair(self) -> RepairReport:
        """Return a legal copy of the view, and the changes it needed."""
        view = self.state.view()
        shown = {entry.position for entry in view.entries} | {
            position for entry in view.entries if entry.span for position in range(entry.position, entry.last + 1)
        }
        left_out = [
            Fix(row.handle, "a message without content is refused")
            for row in self.history(1, None)
            if row.position not in shown
        ]
        body = msgspec.json.decode(self.state.format.body(view, profile=self.state.profile))
        return RepairReport(body, (*self.fixes(), *left_out))


def _id_of(call: object) -> object:
    """Return the id of a call: of a ToolCall, or of the provider's block for one, whose name counts if it has none."""
    if isinstance(call, ToolCall):
        return call.call_id
    if isinstance(call, Mapping):
        return call.get("id") or call.get("name")
    return call if isinstance(call, str) else getattr(call, "id", None) or getattr(call, "name", None)
