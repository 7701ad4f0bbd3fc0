"""Events of a conversation, for logs, pages and subscribers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from .edits import (
    MARKS,
    Bill,
    Edit,
    Hide,
    Pin,
    Record,
    Replace,
    Restore,
    Span,
    Summarize,
    Target,
    Task,
    Unpin,
    ends_of,
)
from .stamps import Lease, Stamp

__all__ = ["EXPIRED", "Event", "EventKind", "added_event", "events_of_message", "events_of_record"]

EventKind = Literal[
    "message-added",
    "message-expired",
    "message-compacted",
    "message-removed",
    "message-expanded",
    "message-shown",
    "messages-summarized",
    "message-pinned",
    "message-unpinned",
    "compaction-pending",
    "compaction-done",
    "compaction-failed",
    "compaction-skipped",
    "plugin-failed",
    "list-departed",
]
"""`compacted`: the message shows something shorter; `removed`: it shows nothing; `expired`: its lease ended and nothing
of its content is visible; `expanded`: its original is visible again on request; `shown`: its original is visible
again because of a policy. `compaction-...`: the state of a `Task`; `plugin-failed`: a plugin (`policy`) was left
out. `list-departed`: the caller's list departed from the history after `position`, and `reason` says how. The
last two are only reported when they happen, and not stored.
"""

EXPIRED = "Expired after {turns} turns (limit: {limit})"
"""The reason of an edit that ends a lease. Such an edit has an event of its own."""

_EXPIRED = EXPIRED[: EXPIRED.index("{")]
_REMOVED = "Removed due to expiration"
_TASKS: dict[str, EventKind] = {
    "pending": "compaction-pending",
    "done": "compaction-done",
    "failed": "compaction-failed",
    "skipped": "compaction-skipped",
}


class Event(Struct, frozen=True):
    """One event."""

    kind: EventKind
    """The kind of event."""
    turn: int
    """The turn of the conversation."""
    time: int
    """Milliseconds since 1970."""
    message: str
    """Id of the message, or of the first message of a span; "" if an edit only names other edits."""
    position: int = 0
    """Its position in the history if it is known without a lookup, otherwise 0."""
    edit: int = 0
    """Number of the edit; 0 for an added message."""
    policy: str = ""
    """The policy, plugin or call that caused the event."""
    reason: str = ""
    """The reason of the edit."""
    tokens_saved: int = 0
    """Tokens that the edit saves: 0 if an original is shown again in its place, negative if at the end."""
    index: int | None = None
    """Its index from 0 in the view that the edit was made on; None if it was not visible or is unknown."""
    lease: Lease | None = None
    """The lease of the message; None if it has none, if the event is about several messages, or if it is unknown."""
    action_id: str = ""
    """The action that produced the message, by its lease, or the name of its tool; "" for other messages."""
    metadata: dict[str, Any] = {}
    """The application's own facts about the message."""


def added_event(position: int, id: str, stamp: Stamp, index: int | None = None) -> Event:
    """Return the event of an appended message."""
    return Event("message-added", stamp.turn, stamp.time, id, position, 0, "", "", 0, index, *_facts_of(stamp))


def _facts_of(stamp: Stamp | None) -> tuple[Lease | None, str, dict[str, Any]]:
    """Return lease, action and metadata of a message."""
    if stamp is None:
        return None, "", {}
    action = stamp.lease.action_id if stamp.lease else ""
    metadata = msgspec.json.decode(stamp.metadata) if stamp.metadata else {}
    return stamp.lease, action or (stamp.source if stamp.origin == "tool" else ""), metadata


def events_of_message(position: int, id: str, stamp: Stamp, index: int | None = None) -> Iterator[Event]:
    """Yield the events of an appended message: a second one if it shows an earlier original again, whole or in part.

    The second event is about the original. Its `tokens_saved` is negative.
    """
    yield added_event(position, id, stamp, index)
    shown = stamp.expanded
    if shown and shown.shows_original:
        reason = f"{'all' if shown.form == 'whole' else shown.form} of {shown.handle}, in m{position}"
        who = stamp.source or "expand"
        kind: EventKind = "message-expanded"
        yield Event(kind, stamp.turn, stamp.time, shown.message, policy=who, reason=reason, tokens_saved=-stamp.tokens)


def events_of_record(
    record: Record, places: Mapping[str, int] = {}, stamps: Mapping[str, Stamp] = {}
) -> Iterator[Event]:
    """Yield the events of one commit.

    `places`: indices in the view before it, by message id. `stamps`: stamps of messages, by id.
    """
    for number, edit in record.numbered():
        named = _message_of(edit)
        facts = _facts_of(stamps.get(named) if _is_about_one(edit) else None)
        for kind, reason, saved in _event_facts(edit):
            who, index = edit.policy or record.author, places.get(named)
            yield Event(kind, record.turn, record.time, named, 0, number, who, reason, saved, index, *facts)


def _event_facts(edit: Edit) -> Iterator[tuple[EventKind, str, int]]:
    """Yield kind, reason and saved tokens of each event of an edit. Only one event has the saved tokens."""
    match edit:
        case Task(policy=policy):
            if policy not in MARKS:
                yield _TASKS[edit.state], edit.reason, 0
        case Pin() | Unpin():
            yield ("message-pinned" if isinstance(edit, Pin) else "message-unpinned"), edit.reason, 0
        case Replace() if edit.reason.startswith(_EXPIRED):
            yield "message-expired", edit.reason, _saved(edit)
        case Hide(target=Target(path=())) if edit.reason.startswith(_EXPIRED):
            yield "message-expired", edit.reason, 0
            yield "message-removed", _REMOVED, _saved(edit)
        case Replace() | Hide(target=Target(path=(_, *_))):
            yield "message-compacted", edit.reason, _saved(edit)
        case Hide():
            yield "message-removed", edit.reason, _saved(edit)
        case Summarize():
            yield "messages-summarized", edit.reason, _saved(edit)
        case Restore():
            yield ("message-shown" if edit.policy else "message-expanded"), edit.reason, _saved(edit)
        case Bill():
            pass


def _saved(edit: Replace | Hide | Summarize | Restore) -> int:
    return edit.tokens_before - edit.tokens_after


def _is_about_one(edit: Edit) -> bool:
    """Return whether an edit names one message and no span of several."""
    match edit:
        case Restore(targets=targets):
            named = targets[0] if len(targets) == 1 else None
        case Summarize(span=span) | Task(span=span):
            named = span
        case Bill():
            return True
        case _:
            named = edit.target
    return isinstance(named, Target) or (isinstance(named, Span) and named.first == named.last)


def _message_of(edit: Edit) -> str:
    match edit:
        case Summarize(span=span):
            return span.first
        case Restore(targets=targets):
            return ends_of(targets[0])[0] if targets else ""
        case Hide(target=target):
            return ends_of(target)[0]
        case Task(span=span):
            return span.first if span else ""
        case Bill(message=message):
            return message
        case Replace(target=target) | Pin(target=target) | Unpin(target=target):
            return target.message
