"""What happened in a conversation, one event at a time: for logs, for pages, for whoever subscribes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from .edits import Edit, Hide, Pin, Replace, Restore, Span, Summarize, Target, Unpin
from .journal import Record
from .stamps import Stamp

__all__ = ["Event", "EventKind", "added", "of_record"]

EventKind = Literal[
    "message-added",
    "content-replaced",
    "content-hidden",
    "span-summarized",
    "content-restored",
    "message-pinned",
    "message-unpinned",
]

_KINDS: dict[type, EventKind] = {
    Replace: "content-replaced",
    Hide: "content-hidden",
    Summarize: "span-summarized",
    Restore: "content-restored",
    Pin: "message-pinned",
    Unpin: "message-unpinned",
}


class Event(Struct, frozen=True):
    """One thing that happened."""

    kind: EventKind
    turn: int
    time: int
    """Milliseconds since 1970."""
    message: str
    """Id of the message concerned; of the first one of a span; "" where an edit only names other edits."""
    position: int = 0
    """Its place in the history where that is known without looking it up, else 0."""
    edit: int = 0
    """Number of the edit; 0 for an added message."""
    policy: str = ""
    reason: str = ""
    tokens_saved: int = 0


def added(position: int, id: str, stamp: Stamp) -> Event:
    """The event of an appended message."""
    return Event("message-added", stamp.turn, stamp.time, id, position)


def of_record(record: Record) -> Iterator[Event]:
    """The events of one commit, one per edit."""
    for number, edit in record.numbered():
        saved = 0 if isinstance(edit, Pin | Unpin) else edit.tokens_before - edit.tokens_after
        kind = _KINDS[type(edit)]
        named = _named(edit)
        yield Event(kind, record.turn, record.time, named, 0, number, edit.policy or record.author, edit.reason, saved)


def _named(edit: Edit) -> str:
    match edit:
        case Summarize(span=span):
            return span.first
        case Restore(targets=targets):
            return next((named.first if isinstance(named, Span) else named.message for named in targets), "")
        case Hide(target=target):
            return target.message if isinstance(target, Target) else target.first
        case Replace(target=target) | Pin(target=target) | Unpin(target=target):
            return target.message
