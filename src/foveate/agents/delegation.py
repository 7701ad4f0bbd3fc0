"""Delegation: a sub-agent works on a task in its own conversation, within what is left of the limits.

Every failure of a sub-agent becomes a result that the model reads; it never breaks the run around it.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from ..core.messages import State, Text, ToolCall, ToolResult
from ..core.runs import AgentRunStep, step_name
from ..errors import StoreError
from .action_results import result_message
from .effects import Call, NextCall, Routine, Sleep, StartCalls, Stream
from .events import Outcome, SubAgentEvent, ToolAnswered, ToolCalled
from .limits import Limits, remaining, stricter, subtract_used
from .loop_config import LoopConfig
from .resources import Session
from .run import Run, storable_name
from .steps import SubAgent
from .tool_calls import failure_text

__all__ = ["Delegation", "EarlierStep", "OpenSession", "SubLoop"]

T = TypeVar("T")
OpenSession = Callable[[LoopConfig, str, Session], object]
"""Opens the named conversation of a sub-agent for the agent around it. Returns a Session, or an awaitable of one."""

_log = logging.getLogger("foveate")


class EarlierStep:
    """The records of a chosen step that was begun before the run broke off. Empty if it was not begun."""

    def __init__(self, reply: str = "", messages: frozenset[str] = frozenset(), steps: tuple[AgentRunStep, ...] = ()):
        """`reply`: id of the reply that chose the step. `messages`: steps that later messages name. `steps`: the steps
        after the reply.
        """
        self.reply = reply
        self._messages = messages
        self._steps = {step.call: step for step in steps if step.call}

    def find(self, call: str) -> AgentRunStep | None:
        """Return the step that answers a call."""
        return self._steps.get(call)

    def has_message(self, run: str, number: int) -> bool:
        """Return whether a message after the reply names this step."""
        return step_name(run, number) in self._messages


class SubLoop(Protocol):
    """The loop of a sub-agent (`step_loop.StepLoop`)."""

    run: Run | None

    def begin(
        self, task: str, *, streams: bool, limits: Limits | None = None, parent: str = ""
    ) -> Routine[Outcome]: ...

    def resume(self, *, streams: bool, limits: Limits | None = None, parent: str = "") -> Routine[Outcome]: ...


class Delegation:
    """Gives tasks of one agent to its sub-agents."""

    def __init__(
        self,
        config: LoopConfig,
        session: Session,
        open_session: OpenSession,
        new_loop: Callable[[LoopConfig, Session], SubLoop],
    ) -> None:
        """`new_loop`: creates the loop of a sub-agent."""
        self._config, self._session, self._open, self._new_loop = config, session, open_session, new_loop
        self._chat = session.conversation

    def delegate(self, run: Run, step: SubAgent, at: int, earlier: EarlierStep) -> Routine[None]:
        """Let a sub-agent do a task, and append its result. `at`: number of the step that chose this."""
        start = time.monotonic()
        call = ToolCall(f"{at}.1", step.name, json.dumps({"task": step.task}, ensure_ascii=False))
        record = earlier.find(call.call_id)
        if record is not None and earlier.has_message(run.record.id, record.number):
            return
        yield ToolCalled(call)
        if record is None:
            record = yield from run.begin_step("sub-agent", step.name, call=call.call_id, input=step.task)
        sub_agent = self._config.sub_agents.get(step.name)
        if record.state == "running":
            text, state = yield from self._result(run, sub_agent, step, record)
            record = yield from run.end_step(record, output=text, error="" if state == "ok" else text)
        state = "ok" if record.state == "done" else "error"
        message = result_message(record.name, [Text(record.output)], state, what="Result of the sub-agent")
        lease = self._session.catalog.lease_of_sub_agent(record.name, sub_agent.result_lease if sub_agent else None)
        (id,) = yield from run.append(message, lease=lease, step=step_name(record.run, record.number))
        yield from run.link_step(record, id)
        result = ToolResult(call.call_id, (Text(record.output),), state, step.name)
        yield ToolAnswered(call, result, time.monotonic() - start)

    def _result(
        self, run: Run, sub_agent: LoopConfig | None, step: SubAgent, record: AgentRunStep
    ) -> Routine[tuple[str, State]]:
        """Return the result of a task, in words for the model."""
        if sub_agent is None:
            known = ", ".join(self._config.sub_agents) or "none"
            return f"There is no sub-agent {storable_name(step.name)[:80]!r}. Those you have: {known}.", "error"
        name = sub_agent.name
        if reason := run.limit_reached():
            return f"{name} was not asked: the limit of {reason} is reached.", "error"
        try:
            outcome = yield from self._work(run, sub_agent, record, step.task)
        except StoreError:  # The store of this run too.
            raise
        except Exception as error:
            _log.warning("the sub-agent %s failed", name, exc_info=error)
            return failure_text(name, error), "error"
        match outcome.run.state:
            case "waiting":
                return f"{name} asks: {outcome.text}\nHand it the task again, with the answer.", "ok"
            case "stopped":
                last = f" Its last words: {outcome.text}" if outcome.text else ""
                return f"{name} reached the limit of {outcome.run.reason} before it was done.{last}", "error"
            case "failed":
                return f"{name} gave up: {outcome.run.reason}", "error"
        return outcome.text, "ok"

    def _work(self, run: Run, sub_agent: LoopConfig, record: AgentRunStep, task: str) -> Routine[Outcome]:
        """Begin or resume the run of a sub-agent."""
        session: Session = yield Call(partial(self._open, sub_agent, self._conversation_of(record), self._session))
        loop = self._new_loop(sub_agent, session)
        limits = stricter(sub_agent.limits, remaining(run.limits, run.record, run.elapsed_seconds()))
        try:
            parent, streams = step_name(record.run, record.number), run.streams
            if len(session.conversation):  # The task is there, even if the record of the run is not.
                routine = loop.resume(streams=streams, limits=limits, parent=parent)
            else:
                routine = loop.begin(task, streams=streams, limits=limits, parent=parent)
            return (yield from _wrap_events(routine, sub_agent.name, parent))
        finally:
            if loop.run is not None:
                run.limits = remaining(subtract_used(run.limits, limits, loop.run.limits), loop.run.record)
            yield Call(session.conversation.close)

    def count_earlier(self, run: Run) -> Routine[None]:
        """Count what sub-agents used before the run was resumed. A sub-agent that has not ended is counted later."""
        steps: list[AgentRunStep] = yield Call(partial(self._chat.journal.steps, run.record.id))
        for record in steps:
            sub_agent = self._config.sub_agents.get(record.name)
            if record.kind != "sub-agent" or record.state == "running" or sub_agent is None:
                continue
            session: Session = yield Call(partial(self._open, sub_agent, self._conversation_of(record), self._session))
            try:
                for inner in (yield Call(session.conversation.journal.runs)):
                    run.limits = remaining(run.limits, inner)
            finally:
                yield Call(session.conversation.close)

    def _conversation_of(self, record: AgentRunStep) -> str:
        """Return the name of the conversation of the sub-agent that got a task in this step."""
        return f"{self._chat.name}/{step_name(record.run, record.number)}"


def _wrap_events(routine: Routine[T], agent: str, step: str) -> Routine[T]:
    """Return the same routine, with its events wrapped as those of a sub-agent."""
    advance: Callable[[Any], Any] = routine.send
    value: Any = None
    while True:
        try:
            effect = advance(value)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        advance, value = routine.send, None
        match effect:
            case Stream(path=path):
                effect = replace(effect, path=((agent, step), *path))
            case Call() | StartCalls() | NextCall() | Sleep():
                pass
            case event:
                effect = SubAgentEvent(agent, step, event)
        try:
            value = yield effect
        except BaseException as error:  # The consumer may leave during an event.
            advance, value = routine.throw, error
