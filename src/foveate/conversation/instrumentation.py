"""Reports about one conversation: events to its listener; plans, commits, bills and sums to its observer.

Neither can break or change a conversation. If an observer raises, that is logged and it gets no more reports.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from ..core.edits import Bill, Record, Replace, Summarize
from ..core.events import Event, events_of_message, events_of_record
from ..core.growing import selecting
from ..core.stamps import Stamp, Usage
from ..core.totals import Tally
from ..core.view import Entry, View
from ..errors import StoreError
from ..expand.originals import decoded
from ..ports import Fact, Observer, StoredMessage
from .state import State

__all__ = ["Instrumentation", "Places", "Reporter"]

_log = logging.getLogger("foveate")

Facts = dict[str, Fact]

_SUMMARIES = selecting(lambda entry: entry.kind == "summary")


class Places:
    """The messages that a view shows before a change. They are collected once a change is reported."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self._entries = entries

    @cached_property
    def indices(self) -> Mapping[str, int]:
        """Their indices in the view, by their ids."""
        return {entry.id: index for index, entry in enumerate(self._entries)}

    @cached_property
    def stamps(self) -> Mapping[str, Stamp]:
        """Their stamps, by their ids."""
        return {entry.id: entry.stamp for entry in self._entries if entry.outline is not None}


class Instrumentation:
    """Reports to the observer of one conversation, if it has one."""

    def __init__(self) -> None:
        self._observer: Observer | None = None
        self._tally = Tally()
        self._has_gap = False
        """Whether the tally lacks a message between others."""
        self._name = ""

    def __bool__(self) -> bool:
        return self._observer is not None

    def attach(self, name: str, observer: Observer) -> None:
        """Report to this observer from now on. `name`: of the conversation, for the log."""
        self._name, self._observer, self._tally = name, observer, Tally()

    @contextmanager
    def planning(self) -> Iterator[Facts]:
        """Report the time in which a view is prepared. The facts in the dict are reported at its end."""
        facts: Facts = {}
        token = self._safely(lambda observer: observer.begin("plan"))
        try:
            yield facts
        except BaseException as error:
            caught = error  # The name of an exception ends with its block.
            self._safely(lambda observer: observer.end(token, facts, caught))
            raise
        self._safely(lambda observer: observer.end(token, facts, None))

    def is_behind(self, position: int) -> bool:
        """Return whether messages were not reported: older ones, or those of another writer."""
        return bool(self) and (self._has_gap or self._tally.position != position)

    def resume(self, view: View, records: Iterable[Record], position: int) -> None:
        """Take in an unreported past: what is shown, and what commits saved."""
        saved = sum(record.tokens_before - record.tokens_after for record in records)
        self._tally.resume_at(view.tokens + saved, position)
        self._has_gap = False

    def appended(self, rows: Iterable[StoredMessage]) -> None:
        """Report appended messages."""

        def report(observer: Observer) -> None:
            for row in rows:
                self._has_gap = self._has_gap or row.position != self._tally.position + 1
                self._tally.add_message(row.position, row.id, decoded(row), row.stamp)
                for action, facts in _facts_of_stamp(row.stamp):
                    observer.report(action, facts)

        self._safely(report)

    def recorded(self, records: Iterable[Record]) -> None:
        """Report commits."""

        def report(observer: Observer) -> None:
            for record in records:
                self._tally.add_record(record)
                for action, facts in _facts_of_record(record):
                    observer.report(action, facts)

        self._safely(report)

    def prepared(self, view: View, records: Sequence[Record], facts: Facts) -> None:
        """Put into `facts` what to report about a prepared view and the commits that made it."""

        def report(observer: Observer) -> None:
            self._tally.add_call(view.entries)
            saved = sum(record.tokens_before - record.tokens_after for record in records)
            edits = [edit for record in records for edit in record.edits]
            facts.update(
                turn=view.turn,
                tokens_before=view.tokens + saved,
                tokens_after=view.tokens,
                edits=len(edits),
                policies=tuple(dict.fromkeys(edit.policy for edit in edits if edit.policy)),
                compacted=bool(_SUMMARIES.of(view).indices),
            )

        self._safely(report)

    def count(self) -> None:
        """Report the sums."""
        self._safely(lambda observer: observer.count(self._tally.totals()))

    def _safely(self, report: Callable[[Observer], Any]) -> Any:
        if self._observer is None:
            return None
        try:
            return report(self._observer)
        except Exception:
            self._observer = None
            _log.warning("%s: its observer failed and gets no more reports", self._name, exc_info=True)
            return None


class Reporter:
    """Reports what was appended and committed to the listener and the observer of one conversation."""

    def __init__(self, state: State, on_event: Callable[[Event], object] | None) -> None:
        self.observer = Instrumentation()
        self._state, self._on_event = state, on_event
        self.is_active = on_event is not None
        """Whether there is a listener or an observer."""

    def attach(self, observer: Observer) -> None:
        """Report to this observer from now on."""
        self.observer.attach(self._state.head.name, observer)
        self.is_active = True

    def places(self) -> Places:
        """Return the messages of the view; none without a listener."""
        return Places() if self._on_event is None else Places(self._state.view().entries)

    def appended(self, before: int, own: Sequence[StoredMessage]) -> None:
        """Report what was appended after position `before`, by others too. `own`: the newest rows."""
        if not self.is_active or self._state.head.position <= before:
            return
        rows = self._rows(before, own)
        self.observer.appended(rows)
        if self._on_event is not None:
            view = self._state.view()
            events = (events_of_message(row.position, row.id, row.stamp, view.index_of(row.id)) for row in rows)
            self.emit(event for of_row in events for event in of_row)

    def _rows(self, before: int, own: Sequence[StoredMessage]) -> Sequence[StoredMessage]:
        state = self._state
        if own and own[0].position == before + 1 and own[-1].position == state.head.position:
            return own
        try:
            return state.store.messages(state.head, before + 1, state.head.position)
        except StoreError as error:  # The messages are stored all the same.
            _log.warning("%s: the messages of other writers are not reported: %s", state.head.log_name, error)
            return own

    def commits(self, before: int, places: Places) -> list[Record]:
        """Report the commits since edit `before`, and return them; none without a listener."""
        state = self._state
        if not self.is_active or state.head.number <= before:
            return []
        try:
            records = [record for _, record in state.store.records(state.head, before)]
        except StoreError as error:  # The commits are stored all the same.
            _log.warning("%s: the newest edits are not reported: %s", state.head.log_name, error)
            return []
        self.observer.recorded(records)
        self._emit_edits(records, places)
        return records

    def commit(self, record: Record, places: Places) -> None:
        """Report one commit."""
        self.observer.recorded([record])
        self._emit_edits([record], places)

    def _emit_edits(self, records: Sequence[Record], places: Places) -> None:
        if self._on_event is None or not records:
            return
        stamps = {**self.places().stamps, **places.stamps}  # A commit hides some messages, and shows others again.
        for record in records:
            self.emit(events_of_record(record, places.indices, stamps))

    def emit(self, events: Iterable[Event]) -> None:
        """Pass events to the listener."""
        if self._on_event is None:
            return
        for event in events:
            try:
                self._on_event(event)
            except Exception:  # A listener can neither break nor change a conversation.
                _log.exception("a listener failed on %s", event.kind)


def _facts_of_stamp(stamp: Stamp) -> Iterator[tuple[str, Facts]]:
    shown = stamp.expanded
    if shown is not None and shown.form != "view":  # A commit reports what is shown in its place.
        yield "expand", {"form": shown.form, "handle": shown.handle, "tokens": stamp.tokens, "turn": stamp.turn}
    if stamp.usage is not None:
        yield "record", {**_facts_of_usage(stamp.usage), "turn": stamp.turn}


def _facts_of_usage(usage: Usage) -> Facts:
    used = {name: getattr(usage, name) for name in Usage.__struct_fields__}
    known: Facts = {name: tokens for name, tokens in used.items() if tokens is not None}
    if (prompt := usage.prompt_tokens) is not None:
        known["input"] = prompt  # The conventions count cached tokens as input.
    return known


def _facts_of_record(record: Record) -> Iterator[tuple[str, Facts]]:
    sizes: Facts = {
        "turn": record.turn,
        "tokens_before": record.tokens_before,
        "tokens_after": record.tokens_after,
        "edits": len(record.edits),
    }
    for edit in record.edits:
        if isinstance(edit, Bill) and edit.replaces is None:  # Meters already counted the estimate.
            yield "record", {**_facts_of_usage(edit.usage), "turn": edit.call}
    if record.author == "expand":
        yield "expand", {"form": "view", **sizes}
    written = [edit for edit in record.edits if isinstance(edit, Summarize) or (isinstance(edit, Replace) and edit.by)]
    if written:
        policies = tuple(dict.fromkeys(edit.policy for edit in written if edit.policy))
        by = tuple(dict.fromkeys(edit.by for edit in written if edit.by))
        refused = sum(len(edit.refused) for edit in written)
        yield "compact", {**sizes, "policies": policies, "by": by, "refused": refused}
