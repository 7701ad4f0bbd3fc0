"""What agents did, for good: runs, and the steps they are made of. No mechanism that changes a view touches these.

A message names the step it came from (`Stamp.step`), so that from anything the model was ever shown one finds what was
really done, in full. Plain values; who carries steps out is `foveate.agents`.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .stamps import Usage

__all__ = ["AgentRun", "AgentRunStep", "Claim", "RunState", "StepKind", "StepState", "step_name", "step_of"]

RunState = Literal["running", "done", "waiting", "stopped", "failed"]
"""`waiting`: for the user, who was asked something; `stopped`: by a limit, or by whoever ran it."""
StepKind = Literal["model", "action", "sub-agent", "chat", "expand", "retry"]
"""`model`: a call of the model; `action`: of a tool or an action."""
StepState = Literal["running", "done", "failed"]


class AgentRun(Struct, frozen=True):
    """One run of an agent: from a task, or what a user said, to its end."""

    id: str
    agent: str
    """The agent's name."""
    conversation: str
    """Name of the conversation it writes to."""
    task: str = ""
    parent: str = ""
    """The step (see `step_name`) that started it, for the run of a sub-agent."""
    state: RunState = "running"
    reason: str = ""
    """Why it ended as it did: by a limit (`turns`, `tokens`, `money`, `time`; `length`: of a reply), for what was not
    to be said (`refusal`, `filtered`), or a sentence; "" where it just came to its end.
    """
    result: str = ""
    """What it came to: its last words, or what it hands to whoever started it."""
    turns: int = 0
    """Model calls."""
    usage: Usage = Usage()
    """Of all its calls together; None where the provider did not say."""
    cost: float | None = None
    """US dollars; None where the price is not known."""
    begun: int = 0
    """Milliseconds since 1970."""
    ended: int = 0
    """0 while it runs."""


class AgentRunStep(Struct, frozen=True):
    """One step of a run. Written when it begins, and once more when it has ended."""

    run: str
    """Id of the run."""
    number: int
    """From 1, along the run."""
    kind: StepKind
    name: str = ""
    """Of the tool, the action, the sub-agent or the model."""
    call: str = ""
    """Id of the call that it answers, where there is one."""
    input: str = ""
    """What it was given: JSON text."""
    output: str = ""
    """What came of it, in full, whatever becomes of the message that tells the model. Of a model call "": the message
    itself is in the history.
    """
    error: str = ""
    state: StepState = "running"
    message: str = ""
    """Id of the message that it led to, where there is one."""
    turn: int = 0
    """Number of the conversation's model call that it belongs to."""
    begun: int = 0
    """Milliseconds since 1970."""
    ended: int = 0


class Claim(Struct, frozen=True):
    """Who is at work in a conversation, so that nobody else is. There while somebody is, and no record of anything."""

    owner: str
    """A name that no other work has, before or after."""
    beats: int
    """Signs of life since the claim was first made, each counted: one that stays as it is may have been left behind."""


def step_name(run: str, number: int) -> str:
    """How a message's stamp, or a run of a sub-agent, names a step: `RUN/NUMBER`."""
    return f"{run}/{number}"


def step_of(name: str) -> tuple[str, int]:
    """The run and the number in a step's name. Raises ValueError for what is none."""
    run, _, number = name.rpartition("/")
    return run, int(number)
