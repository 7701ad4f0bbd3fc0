"""Hands tasks to sub-agents: each in a conversation of its own, to its end, within what is left of the limits.

Whatever goes wrong in a sub-agent is a result that the model reads, and never breaks the run around it. Knows a
sub-agent by what it is made of; its loop is handed in.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

from ..core.messages import State, Text, ToolCall, ToolResult
from ..core.runs import AgentRunStep, step_name
from ..errors import StoreError
from .actions import result_message
from .acts import Act, Do
from .events import Outcome, ToolAnswered, ToolCalled
from .limits import Limits
from .opening import Looping, Opened
from .past import Past
from .results import failure
from .running import Running, word
from .steps import SubAgent
from .subagents import inside, left, spent, within

__all__ = ["Handing", "Inner", "Opener"]

Opener = Callable[[Looping, str, Opened], object]
"""Opens the conversation of a sub-agent, by its name, for the agent around it: an Opened, or an awaitable of one."""

_log = logging.getLogger("foveate")


class Inner(Protocol):
    """The loop of a sub-agent (`looping.Looper`)."""

    running: Running | None

    def begin(self, task: str, *, streams: bool, limits: Limits | None = None, parent: str = "") -> Act[Outcome]: ...

    def resume(self, *, streams: bool, limits: Limits | None = None) -> Act[Outcome]: ...


class Handing:
    """How one agent hands tasks over."""

    def __init__(
        self, looping: Looping, opened: Opened, opener: Opener, inner: Callable[[Looping, Opened], Inner]
    ) -> None:
        """`inner`: makes the loop of a sub-agent."""
        self._looping, self._opened, self._opener, self._inner = looping, opened, opener, inner
        self._chat = opened.conversation

    def hand_over(self, running: Running, step: SubAgent, at: int, past: Past) -> Act[None]:
        """Let a sub-agent do a task, and tell what it came to. `at`: the number of the step that chose this."""
        started = time.monotonic()
        call = ToolCall(f"{at}.1", step.name, json.dumps({"task": step.task}, ensure_ascii=False))
        record = past.steps.get(call.call_id)
        if record is not None and past.has_told(running.run.id, record.number):
            return
        yield ToolCalled(call)
        if record is None:
            record = yield from running.begin_step("sub-agent", step.name, call=call.call_id, input=step.task)
        sub = self._looping.sub_agents.get(step.name)
        if record.state == "running":
            text, state = yield from self._come_to(running, sub, step, record)
            record = yield from running.end_step(record, output=text, error="" if state == "ok" else text)
        yield from self._tell(running, sub, record)
        its_state: State = "ok" if record.state == "done" else "error"
        result = ToolResult(call.call_id, (Text(record.output),), its_state, step.name)
        yield ToolAnswered(call, result, time.monotonic() - started)

    def _tell(self, running: Running, sub: Looping | None, record: AgentRunStep) -> Act[None]:
        state: State = "ok" if record.state == "done" else "error"
        message = result_message(record.name, [Text(record.output)], state, what="Result of the sub-agent")
        lease = self._opened.leases.of_sub_agent(record.name, sub.result_lease if sub else None)
        name = step_name(record.run, record.number)
        (id,) = yield from running.say(message, lease=lease, step=name)
        yield from running.link_step(record, id)

    def _come_to(
        self, running: Running, sub: Looping | None, step: SubAgent, record: AgentRunStep
    ) -> Act[tuple[str, State]]:
        """What a sub-agent came to, in words for the agent."""
        if sub is None:
            known = ", ".join(self._looping.sub_agents) or "none"
            return f"There is no sub-agent {word(step.name)[:80]!r}. Those you have: {known}.", "error"
        if reason := running.reached():
            return f"{sub.name} was not asked: the limit of {reason} is reached.", "error"
        try:
            outcome = yield from self._inside(running, sub, record, step.task)
        except StoreError:  # The store is that of this run too.
            raise
        except Exception as error:
            _log.warning("the sub-agent %s failed", sub.name, exc_info=error)
            return failure(sub.name, error), "error"
        match outcome.run.state:
            case "waiting":
                return f"{sub.name} asks: {outcome.text}\nHand it the task again, with the answer.", "ok"
            case "stopped":
                last = f" Its last words: {outcome.text}" if outcome.text else ""
                return f"{sub.name} reached the limit of {outcome.run.reason} before it was done.{last}", "error"
            case "failed":
                return f"{sub.name} gave up: {outcome.run.reason}", "error"
        return outcome.text, "ok"

    def _inside(self, running: Running, sub: Looping, record: AgentRunStep, task: str) -> Act[Outcome]:
        """The run of a sub-agent, begun or taken up."""
        opened: Opened = yield Do(partial(self._opener, sub, self._name_of(record), self._opened))
        inner = self._inner(sub, opened)
        limits = within(sub.limits, left(running.limits, running.run, running.seconds()))
        try:
            parent, streams = step_name(record.run, record.number), running.streams
            if (yield Do(opened.conversation.runs)):
                act = inner.resume(streams=streams, limits=limits)
            else:
                act = inner.begin(task, streams=streams, limits=limits, parent=parent)
            return (yield from inside(act, sub.name, parent))
        finally:
            if (ran := inner.running) is not None:
                running.limits = left(spent(running.limits, limits, ran.limits), ran.run)
            yield Do(opened.conversation.close)

    def recount(self, running: Running) -> Act[None]:
        """Count what sub-agents used before a run was taken up; one that had not ended counts when it has."""
        steps: list[AgentRunStep] = yield Do(partial(self._chat.steps, running.run.id))
        for record in steps:
            sub = self._looping.sub_agents.get(record.name)
            if record.kind != "sub-agent" or record.state == "running" or sub is None:
                continue
            opened: Opened = yield Do(partial(self._opener, sub, self._name_of(record), self._opened))
            try:
                for run in (yield Do(opened.conversation.runs)):
                    running.limits = left(running.limits, run)
            finally:
                yield Do(opened.conversation.close)

    def _name_of(self, record: AgentRunStep) -> str:
        """The conversation of the sub-agent that was handed a task in this step."""
        return f"{self._chat.name}/{step_name(record.run, record.number)}"
