"""What an agent tells while it runs, one event at a time, and what a run comes to.

A closed union, to be read with `match`. Whoever only wants the end takes the `Outcome` of `RunEnded`.
"""

from __future__ import annotations

from msgspec import Struct

from ..core.messages import Message, ToolCall, ToolResult
from ..core.receipts import Receipt
from ..core.runs import AgentRun
from ..core.stamps import Stop, Usage

__all__ = [
    "AgentEvent",
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


class TextDelta(Struct, frozen=True):
    """A piece of what the model says, as it comes. The pieces of one reply, joined, are its text."""

    text: str


class ReasoningDelta(Struct, frozen=True):
    """A piece of what the model thinks, as it comes, where its provider shows that."""

    text: str


class ViewChanged(Struct, frozen=True):
    """The view was changed so that the coming call fits, or costs less."""

    receipt: Receipt


class ModelReplied(Struct, frozen=True):
    """The model has answered, and the answer is recorded."""

    message: Message
    id: str
    usage: Usage
    turn: int
    """Model calls of this run so far, this one with them."""
    seconds: float
    stop: Stop | None = None
    """Why the reply ended, where the provider said."""


class ToolCalled(Struct, frozen=True):
    """A tool, an action or a sub-agent is about to be called."""

    call: ToolCall


class ToolAnswered(Struct, frozen=True):
    """It has answered, well or badly, and the answer is recorded."""

    call: ToolCall
    result: ToolResult
    seconds: float


class Outcome(Struct, frozen=True):
    """What a run came to. As a string: its text."""

    text: str
    """The agent's last words."""
    run: AgentRun
    """State, reason, turns, tokens and cost."""
    value: object = None
    """What the last words say, where a type was asked for."""

    @property
    def is_done(self) -> bool:
        """Whether the run came to its end of itself: no limit stopped it, and nothing failed."""
        return self.run.state == "done"

    def __str__(self) -> str:
        return self.text


class RunEnded(Struct, frozen=True):
    """The run has ended; nothing follows."""

    outcome: Outcome


class SubAgentEvent(Struct, frozen=True):
    """Something that a sub-agent tells while it works on a task that it was handed."""

    agent: str
    step: str
    """The step that handed it the task (`core.runs.step_name`)."""
    event: AgentEvent


AgentEvent = (
    TextDelta | ReasoningDelta | ViewChanged | ModelReplied | ToolCalled | ToolAnswered | SubAgentEvent | RunEnded
)
