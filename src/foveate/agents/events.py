"""Events of a running agent, the outcome of a run, and events in the life of a message.

`AgentEvent` is a closed union: read it with `match`. `Outcome` arrives in the last event, `RunEnded`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Literal, cast, get_args

from msgspec import Struct

from ..core.events import Event
from ..core.messages import Message, ToolCall, ToolResult
from ..core.receipts import Receipt
from ..core.runs import AgentRun
from ..core.stamps import Lease, Stop, Usage
from ..core.view import Entry
from .limits import RunTotal

__all__ = [
    "AgentEvent",
    "Lifecycle",
    "LifecycleKind",
    "LifecycleListener",
    "MessageLifecycleEvent",
    "ModelReplied",
    "Outcome",
    "ReasoningDelta",
    "RunEnded",
    "SubAgentEvent",
    "TextDelta",
    "ToolAnswered",
    "ToolCalled",
    "ViewChanged",
]

_log = logging.getLogger("foveate")
_LONGEST = 100


class TextDelta(Struct, frozen=True):
    """A piece of the model's answer, as it arrives. The pieces of one reply, joined, are its text."""

    text: str
    """The piece."""


class ReasoningDelta(Struct, frozen=True):
    """A piece of the model's reasoning, as it arrives, if the provider shows it."""

    text: str
    """The piece."""


class ViewChanged(Struct, frozen=True):
    """The view was changed so that the coming call fits into the window, or costs less."""

    receipt: Receipt
    """The change."""


class ModelReplied(Struct, frozen=True):
    """The model has replied, and the reply is recorded."""

    message: Message
    """The reply."""
    id: str
    """Its id in the history."""
    usage: Usage
    """The tokens of this call."""
    turn: int
    """Number of model calls in this run, including this one."""
    seconds: float
    """How long the call took."""
    stop: Stop | None = None
    """Why the reply ended, if the provider gave a reason."""


class ToolCalled(Struct, frozen=True):
    """A tool, an action or a sub-agent is about to be called."""

    call: ToolCall
    """The call."""


class ToolAnswered(Struct, frozen=True):
    """A call has ended, with a result or an error, and the result is recorded."""

    call: ToolCall
    """The call."""
    result: ToolResult
    """Its result."""
    seconds: float
    """How long it took."""


class Outcome(Struct, frozen=True):
    """How a run ended. `str()` is one short line: the beginning of its text."""

    text: str
    """The agent's last words."""
    run: AgentRun
    """Its record: state, reason, turns, tokens and cost."""
    value: object = None
    """The final answer as a value of `result_type`, if the agent has one."""
    sub_agents: RunTotal = RunTotal()
    """The use of its sub-agents, with theirs."""

    @property
    def total(self) -> RunTotal:
        """The use of the run, together with its sub-agents."""
        return RunTotal.of(self.run) + self.sub_agents

    @property
    def is_done(self) -> bool:
        """Return whether the run reached its end: no limit stopped it, and nothing failed."""
        return self.run.state == "done"

    def __str__(self) -> str:
        line = " ".join(self.text.split())
        line = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."
        if self.run.state in ("done", "waiting"):
            return line or self.run.state
        facts = f"{self.run.state}: {self.run.reason}" if self.run.reason else self.run.state
        return f"{line} [{facts}]".lstrip()


class RunEnded(Struct, frozen=True):
    """The run has ended. No event follows."""

    outcome: Outcome
    """How it ended."""


class SubAgentEvent(Struct, frozen=True):
    """An event of a sub-agent that works on a task."""

    agent: str
    """Name of the sub-agent."""
    step: str
    """The step that gave it the task (`core.runs.step_name`)."""
    event: AgentEvent
    """The sub-agent's event."""


AgentEvent = (
    TextDelta | ReasoningDelta | ViewChanged | ModelReplied | ToolCalled | ToolAnswered | SubAgentEvent | RunEnded
)
"""A report of a running agent."""

# -------------------------------------------------------------------------------------------------- life of a message

LifecycleKind = Literal["message-added", "message-expired", "message-compacted", "message-removed", "message-expanded"]
"""The kind of an event, as in `Event`."""
_KINDS = get_args(LifecycleKind)


class MessageLifecycleEvent(Struct, frozen=True):
    """One event in the life of a message of a loop agent."""

    type: LifecycleKind
    """The kind of the event."""
    turn: int
    """Number of the model call that it happened for."""
    message_index: int | None
    """Place of the message, from 0, in the view that the decision was made on. None if it was not shown."""
    message: Message | None
    """The message as the view shows it from now on; of a removed one, as it was shown last. None if that is unknown."""
    message_id: str
    """Id of the message in the history."""
    reason: str = ""
    """Why it happened."""
    tokens_saved: int = 0
    """Tokens that the view lost. Of an expansion: 0 in its place, negative in a message of its own."""
    can_expand: bool = False
    """Whether the view shows a shorter form, and the model may have the original back."""
    lease: Lease | None = None
    """The lease of the message, if it has one."""
    action_id: str = ""
    """The action that produced the message; "" for other messages."""
    metadata: dict[str, Any] = {}
    """The application's own facts about the message."""
    agent: str = ""
    """Name of the agent, or of the sub-agent, whose conversation holds the message."""
    conversation: str = ""
    """Name of that conversation: each task of a sub-agent has its own."""


LifecycleListener = Callable[[MessageLifecycleEvent], object]
"""Called with each event. Its result is not used, and its errors are logged."""


class Lifecycle:
    """Passes the events of one conversation that are about the life of messages on to listeners."""

    def __init__(self, listeners: Iterable[LifecycleListener], *, agent: str, conversation: str, own: str) -> None:
        """`agent`, `conversation`: their names. `own`: the policy name of the agent's own edits, which are not passed
        on.
        """
        self._listeners, self._own = tuple(listeners), own
        self._agent, self._conversation = agent, conversation
        self._entries: Callable[[], Iterable[Entry]] = tuple
        self._shown: dict[str, Message] = {}

    def begin(self, entries: Callable[[], Iterable[Entry]]) -> None:
        """Set the function that returns the entries of the view."""
        self._entries = entries
        self._shown = {entry.id: entry.message for entry in entries()}

    def __call__(self, event: Event) -> None:
        if event.kind not in _KINDS or event.policy == self._own:
            return
        shown = next((entry for entry in self._entries() if entry.id == event.message), None)
        message = self._shown.get(event.message) if shown is None else shown.message
        if shown is not None:
            self._shown[event.message] = shown.message
        elif event.kind == "message-removed":  # A message that expires has two events; "removed" is the last.
            self._shown.pop(event.message, None)
        lifecycle_event = MessageLifecycleEvent(
            cast(Any, event.kind),
            event.turn,
            event.index,
            message,
            event.message,
            event.reason or (_origin(shown) if event.kind == "message-added" else ""),
            event.tokens_saved,
            shown is not None and bool(shown.shrunk) and shown.expandable,
            event.lease,
            event.action_id,
            event.metadata,
            self._agent,
            self._conversation,
        )
        for listener in self._listeners:
            try:
                listener(lifecycle_event)
            except Exception:
                _log.exception("on_message_lifecycle failed on %s", event.kind)


def _origin(entry: Entry | None) -> str:
    """Return where an added message comes from, if it is a result."""
    lease = entry.stamp.lease if entry else None
    if lease is None or not lease.message_type:
        return ""
    return f"{lease.message_type} of {lease.action_id}" if lease.action_id else lease.message_type
