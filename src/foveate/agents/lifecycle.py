"""What becomes of messages while an agent runs, told in the five kinds that the document names.

Made from the conversation's own events; what is of another kind is not told. Whoever listens can neither break a run
nor change it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Literal, cast, get_args

from msgspec import Struct

from ..core.events import Event
from ..core.messages import Message
from ..core.view import Entry

__all__ = ["Lifecycle", "LifecycleKind", "MessageLifecycleEvent"]

_log = logging.getLogger("foveate")

LifecycleKind = Literal["message-added", "message-expired", "message-compacted", "message-removed", "message-expanded"]
_KINDS = get_args(LifecycleKind)


class MessageLifecycleEvent(Struct, frozen=True):
    """One thing that became of a message."""

    type: LifecycleKind
    turn: int
    """Number of the model call that it happened for."""
    message_index: int | None
    """Its place, from 0, in what the model saw when this was decided; None where it was not shown."""
    message: Message | None
    """As it is shown from now on; for what is removed, as it was shown last. None where that is not known any more."""
    message_id: str
    reason: str = ""
    tokens_saved: int = 0
    """Below zero where something is shown again."""
    can_expand: bool = False
    """Whether something shorter is shown of it, and the model may have the original back."""


class Lifecycle:
    """Listens to the events of one conversation, and tells those that are about the life of messages."""

    def __init__(self, listener: Callable[[MessageLifecycleEvent], object], own: str) -> None:
        """`own`: the name under which the agent makes edits of its own, which are not told."""
        self._listener, self._own = listener, own
        self._entries: Callable[[], Iterable[Entry]] = tuple
        self._shown: dict[str, Message] = {}

    def begin(self, entries: Callable[[], Iterable[Entry]]) -> None:
        """From now on look here for what is shown."""
        self._entries = entries
        self._shown = {entry.id: entry.message for entry in entries()}

    def __call__(self, event: Event) -> None:
        """Take in one event."""
        if event.kind not in _KINDS or event.policy == self._own:
            return
        found = next((entry for entry in self._entries() if entry.id == event.message), None)
        message = self._shown.get(event.message) if found is None else found.message
        if found is not None:
            self._shown[event.message] = found.message
        elif event.kind == "message-removed":  # One that expires is told of twice: removed last.
            self._shown.pop(event.message, None)
        told = MessageLifecycleEvent(
            cast(Any, event.kind),
            event.turn,
            event.index,
            message,
            event.message,
            event.reason or (_added(found) if event.kind == "message-added" else ""),
            event.tokens_saved,
            found is not None and bool(found.shrunk) and found.expandable,
        )
        try:
            self._listener(told)
        except Exception:
            _log.exception("on_message_lifecycle failed on %s", event.kind)


def _added(entry: Entry | None) -> str:
    """Why a message was added, where that is more than that somebody said it."""
    lease = entry.stamp.lease if entry else None
    if lease is None or not lease.message_type:
        return ""
    return f"{lease.message_type} of {lease.action_id}" if lease.action_id else lease.message_type
