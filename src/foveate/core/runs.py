"""Permanent records of agents: runs and their steps.

A message names its step (`Stamp.step`), so the full work behind any message can be found. Mechanisms that change views
never change these records. Plain values; `foveate.agents` executes the steps.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .stamps import Usage

__all__ = ["AgentRun", "AgentRunStep", "LockHolder", "RunState", "StepKind", "StepState", "step_name", "step_of"]

RunState = Literal["running", "done", "waiting", "stopped", "failed"]
"""How far a run is. `waiting`: for an answer of the user; `stopped`: by a limit or by the caller."""
StepKind = Literal["model", "action", "sub-agent", "chat", "expand", "retry"]
"""`model`: a model call; `action`: a tool or an action."""
StepState = Literal["running", "done", "failed"]
"""`failed`: with an error, or its end is unknown."""


class AgentRun(Struct, frozen=True):
    """One run of an agent: from a task or user message to its end."""

    id: str
    """Id of the run."""
    agent: str
    """The agent's name."""
    conversation: str
    """Name of the conversation that it writes to."""
    task: str = ""
    """The task; "" for a run without one."""
    parent: str = ""
    """For the run of a sub-agent: the step that started it (see `step_name`)."""
    state: RunState = "running"
    """The state of the run."""
    reason: str = ""
    """Why it ended: a limit (`turns`, `tokens`, `money`, `time`; `length`: of a reply), a refused or filtered reply
    (`refusal`, `filtered`), or a sentence; "" for a normal end.
    """
    result: str = ""
    """Its result: the last text, or the value for the caller."""
    turns: int = 0
    """Number of model calls."""
    usage: Usage = Usage()
    """Usage of all its calls together; None if the provider did not report it."""
    cost: float | None = None
    """US dollars; None if the price is unknown."""
    begun: int = 0
    """Start in milliseconds since 1970."""
    ended: int = 0
    """End in milliseconds since 1970; 0 while it is running."""


class AgentRunStep(Struct, frozen=True):
    """One step of a run. It is written at its start and again at its end."""

    run: str
    """Id of the run."""
    number: int
    """Number of the step within the run, from 1."""
    kind: StepKind
    """The kind of step."""
    name: str = ""
    """Name of the tool, action, sub-agent or model."""
    call: str = ""
    """Id of the call that it answers, if any."""
    input: str = ""
    """Its input as JSON text."""
    output: str = ""
    """Its full output, regardless of later edits of the message; `[released]` if the original of that was released.
    "" for a model call, whose message is in the history.
    """
    error: str = ""
    """The error, if it failed."""
    state: StepState = "running"
    """The state of the step."""
    message: str = ""
    """Id of the message that it produced, if any."""
    turn: int = 0
    """Number of the conversation's model call that it belongs to."""
    begun: int = 0
    """Start in milliseconds since 1970."""
    ended: int = 0
    """End in milliseconds since 1970; 0 while it is running."""


class LockHolder(Struct, frozen=True):
    """The lock of a conversation: its owner, as long as the owner is active. It is not a permanent record."""

    owner: str
    """A unique name of the owner."""
    heartbeats: int
    """Number of heartbeats since the lock was first taken. If it stays unchanged, the owner may be gone."""


def step_name(run: str, number: int) -> str:
    """Return the name of a step in stamps and runs: `RUN/NUMBER`."""
    return f"{run}/{number}"


def step_of(name: str) -> tuple[str, int]:
    """Return run and number of a step's name. Raises ValueError for an invalid name."""
    run, _, number = name.rpartition("/")
    return run, int(number)
