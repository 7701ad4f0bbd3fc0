"""What the record says of an agent's earlier runs: which was the newest, and whether it still goes on."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..core.runs import AgentRun, AgentRunStep
from .acts import Act, Do

if TYPE_CHECKING:
    from ..async_conversation import AsyncConversation
    from ..conversation import Conversation

__all__ = ["follows", "newest_run"]


def newest_run(chat: Conversation | AsyncConversation, agent: str) -> Act[AgentRun | None]:
    """The newest run of the agent of this name in a conversation; None where it had none."""
    runs: list[AgentRun] = yield Do(chat.runs)
    return next((run for run in reversed(runs) if run.agent == agent), None)


def follows(chat: Conversation | AsyncConversation, run: AgentRun) -> Act[bool]:
    """Whether a run, or a step of it, is said to go on: it broke off, or its end could not be written down."""
    if run.state in ("done", "waiting"):
        return False
    steps: list[AgentRunStep] = [] if run.state == "running" else (yield Do(partial(chat.steps, run.id)))
    return run.state == "running" or any(step.state == "running" for step in steps)
