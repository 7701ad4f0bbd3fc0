"""Delegation: sub-agents work on tasks, several at once, each in its own conversation.

Every failure of a sub-agent becomes a result that the model reads. It breaks neither the run around it nor the other
sub-agents. Only errors of the store and of the program's `approve` end all of them. The limits of every run around a
sub-agent include its model calls, tokens and money.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec.structs import replace

from ..core.messages import ResultState, Text, ToolCall, ToolResult
from ..core.runs import AgentRunStep, step_name
from ..core.tool_names import find_named
from ..errors import StoreError
from .agent_catalog import AgentCatalog
from .effects import Begin, Call, NextCall, NextEnded, Routine, Sleep, StartCalls, Stream
from .events import Outcome, SubAgentEvent, ToolAnswered, ToolCalled
from .limits import inner_total, sub_conversation
from .parallel import in_parallel
from .resources import Session
from .result_content import failure_text, result_message
from .run import Run
from .steps import SubAgentTask
from .sub_agents import SubAgentConfig

if TYPE_CHECKING:
    from ..conversation import AsyncConversation, Conversation

__all__ = ["Delegation", "EarlierStep", "OpenSession", "SubLoop"]

T = TypeVar("T")
OpenSession = Callable[[SubAgentConfig, str], object]
"""Opens the named conversation of a sub-agent. Returns a Session, or an awaitable of one."""

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
    """The loop of a sub-agent: `StepLoop` or `ToolLoop`."""

    def begin(self, content: object, *, streams: bool) -> Routine[Outcome]: ...

    def resume(self, *, streams: bool) -> Routine[Outcome]: ...


class Delegation:
    """Gives tasks of one agent to its sub-agents."""

    def __init__(
        self,
        conversation: Conversation | AsyncConversation,
        sub_agents: Mapping[str, SubAgentConfig],
        open_session: OpenSession,
        new_loop: Callable[[SubAgentConfig, Session, Run, str], SubLoop],
        *,
        max_parallel: int,
    ) -> None:
        """`conversation`: of the agent. `new_loop`: creates the loop of a sub-agent, from the run around it and the
        name of the step that gave the task. `max_parallel`: sub-agents that work at once.
        """
        self._chat, self._sub_agents = conversation, sub_agents
        self._open, self._new_loop = open_session, new_loop
        self._max_parallel = max_parallel

    def delegate(
        self, run: Run, tasks: Sequence[SubAgentTask], at: int, earlier: EarlierStep, catalog: AgentCatalog
    ) -> Routine[None]:
        """Let sub-agents work on the tasks of a step, and append their results in the order of the tasks.

        `at`: number of the step that chose this. `catalog`: knows the leases of results.
        """
        deliveries: list[_Delivery] = []
        for place, task in enumerate(tasks, 1):
            call = ToolCall(f"{at}.{place}", task.name, json.dumps({"task": task.task}, ensure_ascii=False))
            record = earlier.find(call.call_id)
            if record is None or not earlier.has_message(run.record.id, record.number):
                deliveries.append(_Delivery(place, task, call, record))
        for delivery in deliveries:
            yield ToolCalled(delivery.call)
        for delivery in deliveries:  # After all events: a consumer that leaves during an event leaves no task begun.
            if delivery.record is None:
                task, call = delivery.task, delivery.call
                delivery.record = yield from run.begin_step("sub-agent", task.name, call=call.call_id, input=task.task)

        def append_finished() -> Routine[None]:
            """Append the results that no unfinished one precedes."""
            while deliveries and (record := deliveries[0].record) is not None and record.state != "running":
                delivery = deliveries.pop(0)
                state: ResultState = "ok" if record.state == "done" else "error"
                content = (Text(record.output),)
                message = result_message(
                    record.name, content, state, delivery.place, len(tasks), what="Result of the sub-agent"
                )
                sub_agent = find_named(self._sub_agents, record.name)
                lease = catalog.lease_of_sub_agent(record.name, sub_agent.result_lease if sub_agent else None)
                (id,) = yield from run.append(message, lease=lease, step=step_name(record.run, record.number))
                yield from run.link_step(record, id)
                result = ToolResult(delivery.call.call_id, content, state, delivery.task.name)
                yield ToolAnswered(delivery.call, result, delivery.seconds)

        def work_on(delivery: _Delivery, record: AgentRunStep) -> Routine[None]:
            start = time.monotonic()
            text, state = yield from self.work(run, record, delivery.task.task)
            delivery.seconds = time.monotonic() - start
            delivery.record = yield from run.end_step(record, output=text, error="" if state == "ok" else text)
            yield from append_finished()

        yield from append_finished()
        yield from self.in_parallel(
            run, [work_on(each, each.record) for each in deliveries if each.record and each.record.state == "running"]
        )

    def has(self, name: str) -> bool:
        """Return whether there is a sub-agent of this name."""
        return name in self._sub_agents

    def in_parallel(
        self, run: Run, routines: Sequence[Routine[None]], others: Sequence[Routine[None]] = ()
    ) -> Routine[None]:
        """Run the routines of sub-agents at the same time, `max_parallel` of them, and `others` as well."""
        free = self._max_parallel
        checked = [*routines[:free], *(_if_still_owner(run, routine) for routine in routines[free:])]
        yield from in_parallel([*others, *checked], free + len(others))

    def work(self, run: Run, record: AgentRunStep, task: str) -> Routine[tuple[str, ResultState]]:
        """Let a sub-agent work on the task of a step, and return its result, in words for the model."""
        sub_agent = find_named(self._sub_agents, record.name)
        if sub_agent is None:
            known = ", ".join(self._sub_agents) or "none"
            return f"There is no sub-agent {record.name[:80]!r}. Those you have: {known}.", "error"
        name = sub_agent.name
        if reason := run.limit_reached():
            return f"{name} was not asked: the limit of {reason} is reached.", "error"
        try:
            outcome = yield from self._run(run, sub_agent, record, task)
        except StoreError:  # The store of this run too.
            raise
        except Exception as error:
            if error is run.approve_error:  # The program did not decide, so no agent goes on.
                raise
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

    def _run(self, run: Run, sub_agent: SubAgentConfig, record: AgentRunStep, task: str) -> Routine[Outcome]:
        """Begin or resume the run of a sub-agent."""
        name = sub_conversation(self._chat.name, record.run, record.number)
        session: Session = yield Call(partial(self._open, sub_agent, name))
        try:
            parent = step_name(record.run, record.number)
            loop = self._new_loop(sub_agent, session, run, parent)
            if len(session.conversation):  # The task is there, even if the record of the run is not.
                routine = loop.resume(streams=run.streams)
            else:
                routine = loop.begin(task, streams=run.streams)
            return (yield from _wrap_events(routine, sub_agent.name, parent))
        finally:
            yield Call(session.conversation.close)

    def count_earlier(self, run: Run) -> Routine[None]:
        """Count what sub-agents used before the run was resumed."""
        if self._sub_agents:
            access = self._chat._agent
            run.inner = yield Call(partial(inner_total, access.store, access.head.tenant, run.record), is_slow=True)


class _Delivery:
    """A task on its way to its result."""

    def __init__(self, place: int, task: SubAgentTask, call: ToolCall, record: AgentRunStep | None) -> None:
        """`place`: of the task in its step, from 1. `record`: its step, if that was begun before."""
        self.place, self.task, self.call, self.record = place, task, call, record
        self.seconds = 0.0


def _if_still_owner(run: Run, routine: Routine[T]) -> Routine[T]:
    """Return a routine that fails before it begins anything if another agent has taken over."""
    yield from run.save()  # Raises ConversationBusy.
    return (yield from routine)


def _wrap_events(routine: Routine[T], agent: str, step: str) -> Routine[T]:
    """Return the same routine, with its events wrapped as those of a sub-agent."""
    advance: Callable[[Any], Any] = routine.send
    value: Any = None
    while True:
        try:
            effect = advance(value)
        except StopIteration as done:
            outcome: T = done.value
            return outcome
        advance, value = routine.send, None
        match effect:
            case Stream(path=path):
                effect = replace(effect, path=((agent, step), *path))
            case Begin(effect=Stream(path=path) as inner):
                effect = Begin(replace(inner, path=((agent, step), *path)))
            case Call() | StartCalls() | NextCall() | Sleep() | Begin() | NextEnded():
                pass
            case event:
                effect = SubAgentEvent(agent, step, event)
        try:
            value = yield effect
        except BaseException as error:  # The consumer may leave during an event.
            advance, value = routine.throw, error
