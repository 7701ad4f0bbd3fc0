"""A run in progress: its record, its limits, its model calls. All kinds of agents use it.

`Run` belongs to one run. Its methods are routines (`effects.py`). Everything is stored before the next thing begins, so
a run that ends anywhere can be resumed from there.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from ..conversation import validate
from ..core.messages import Message
from ..core.runs import AgentRun, AgentRunStep, RunState, StepKind, step_name
from ..core.stamps import Lease, Origin, Stop, Usage
from ..core.totals import sum_usage
from ..errors import BadSetting, StoreError
from ..open import check_price
from ..ports import Clock, Cost, Model, StreamingModel
from .effects import Call, ConsumerGone, PartialReply, Routine, Stream
from .events import ModelReplied, Outcome, RunEnded, TextDelta, ViewChanged
from .limits import Limits, RunTotal

if TYPE_CHECKING:
    from ..conversation import AsyncConversation, Conversation, HistoryEntry
    from ..conversation.exchange import ModelChoice

__all__ = ["PAGE", "Run", "is_blank", "is_open", "new_record", "newest_run", "storable_name", "task_of"]

_log = logging.getLogger("foveate")
_REFUSALS = 5
"""How often a prompt that the provider calls too long is made smaller and sent again."""
PAGE = 50
"""Messages that are read at once, from the end of the history."""
_NAME_MAX = 500
"""Characters of a name that a store keeps."""
_TASK_MAX = 2_000
"""Characters of the input that a run's record repeats. The history holds all of it."""


class Run:
    """A run in progress."""

    def __init__(
        self,
        record: AgentRun,
        conversation: Conversation | AsyncConversation,
        model: Model,
        *,
        limits: Limits,
        clock: Clock,
        cost: Cost | None = None,
        streams: bool = True,
        options: Mapping[str, Any] | None = None,
        owner: str = "",
        choice: ModelChoice = (None, None),
        outer: Run | None = None,
    ) -> None:
        """`streams`: whether replies arrive in pieces, or in one piece if the model cannot stream. `options`: added to
        every request, such as `{"temperature": 0}`. `owner`: holder of the conversation's lock, checked at every write;
        "": no check. `choice`: model and window that each request names (`AgentAccess.choice_for`). `outer`: the run of
        the agent around this one, whose limits count too.
        """
        self.limits = limits
        self._outer = outer
        if limits.money is not None or any(run.limits.money is not None for run in self._outer_runs()):
            check_price("limits.money", model.name, cost)
        self.record = record
        """The record of the run, as it is stored."""
        self.conversation = conversation
        self.model = model
        self.clock = clock
        self.streams = streams
        self.inner = RunTotal()
        """The use of its sub-agents so far."""
        self.approve_error: Exception | None = None
        """An error that `approve` raised in a sub-agent. It ends this run too."""
        self._calls_in_progress = 0
        """Model calls of this run and its sub-agents that have begun and not ended."""
        self.first_turn = 0
        """Of a resumed run: the turn of its first messages."""
        self.stop: Stop | None = None
        """Why the newest reply ended, if the provider gave a reason."""
        self.number = 0
        """Number of the newest step."""
        self._cost = cost
        self._options = dict(options or {})
        self._owner = owner
        self._choice = choice
        self._model_streams = streams and hasattr(model, "stream")
        self._calls: dict[int, AgentRunStep] = {}
        """The steps of calls and of sub-agents, by number."""
        self._since = self._looked = record.begun
        """The start of its time, and the newest look at the clock, in milliseconds since 1970."""

    @property
    def outcome(self) -> Outcome:
        """How the run ended."""
        return Outcome(self.record.result, self.record, sub_agents=self.inner)

    def elapsed_seconds(self) -> float:
        """Return the time since the run began or was resumed. A clock that is set back changes nothing."""
        now = self.clock()
        self._since += min(0, now - self._looked)
        self._looked = now
        return (now - self._since) / 1000

    def limit_reached(self) -> str:
        """Return the limit that the run, or one around it, has reached; "" if none. Calls in progress count as turns,
        as other sub-agents may be about to use the last ones.
        """
        total = RunTotal.of(self.record) + self.inner
        used = replace(
            self.record, begun=0, turns=total.turns + self._calls_in_progress, usage=total.usage, cost=total.cost
        )
        own = self.limits.reached(used, round(self.elapsed_seconds() * 1000))
        return own or (self._outer.limit_reached() if self._outer else "")

    def is_owner(self) -> bool:
        """Return whether the agent still holds its lock, as far as is known. Callable from any thread."""
        if not self._owner:
            return True
        try:
            return self.conversation._agent.heartbeat(self._owner)[1]()
        except StoreError:  # The next write raises.
            return True

    def end_with(self, error: Exception) -> None:
        """Note an error that `approve` raised: the runs around this one end with it too."""
        for run in self._outer_runs():
            run.approve_error = error

    # ----------------------------------------------------------------------------------------------------- model calls

    def call_model(self, *, system: object, tools: Sequence[Mapping[str, Any]] = ()) -> Routine[Message]:
        """Make one model call, a turn: plan, send, record. Return the recorded reply. Raises what the SDK raises."""
        chat, start = self.conversation, time.monotonic()
        number = chat._agent.head.number
        model, window = self._choice
        facts: dict[str, Any] = {"system": system, "tools": tools, "model": model, "window": window}
        prompt = yield Call(partial(chat._agent.prompt, **facts, owner=self._owner))
        yield from self._emit_changes(number)
        step = self._next_step("model", self.model.name)
        arrived, response = PartialReply(chat.format.name), None
        try:
            yield from self._keep_step(step)  # Inside `try`: if this is interrupted, the step is marked as failed.
            number = chat._agent.head.number
            self._count_call_in_progress(1)
            try:
                response = yield from self._send(prompt, arrived)
            finally:
                self._count_call_in_progress(-1)
            yield from self._emit_changes(number)
            message, usage = chat.format.parse_reply(response)
            self.stop = chat.format.stop_of(response)
            name = step_name(self.record.id, step.number)
            id = yield Call(partial(chat._agent.record, response, step=name, call=step.turn, owner=self._owner))
        except Exception as error:
            yield from self._fail_step(step, error)
            raise
        except BaseException as error:  # The caller stops the run.
            yield from self._keep_partial(
                step, arrived.reply() if response is None else response, response is None, error
            )
            raise
        self._count(usage)
        yield from self.end_step(step, message=id)
        yield from self.save()
        if self.streams and not self._model_streams and message.text:
            yield TextDelta(message.text)
        yield ModelReplied(message, id, usage, self.record.turns, time.monotonic() - start, self.stop)
        return message

    def _keep_partial(
        self, step: AgentRunStep, reply: object, interrupted: bool, error: BaseException
    ) -> Routine[None]:
        """Record and count what had arrived of a reply when the caller stopped the run.

        `interrupted`: whether that is not all of it. If nothing had arrived, or it cannot be recorded, the step failed.
        """
        chat, name = self.conversation, step_name(self.record.id, step.number)
        facts: dict[str, Any] = {"interrupted": interrupted, "step": name, "call": step.turn, "owner": self._owner}
        try:
            id = "" if reply is None else (yield Call(partial(chat._agent.record, reply, **facts)))
            if id:
                rows: list[HistoryEntry] = yield Call(partial(chat.history, max(1, len(chat) - PAGE + 1)))
                self._count(next((row.stamp.usage for row in rows if row.id == id), None) or Usage())
                yield from self.end_step(step, message=id)
                return
        except Exception as other:
            _log.warning("%s: the partial answer could not be stored: %s", self.record.id, other)
        yield from self._fail_step(step, error)

    def _send(self, prompt: dict[str, Any], arrived: PartialReply) -> Routine[object]:
        """Return the response to a prompt. If the provider says that it is too long, send a smaller one."""
        for _ in range(_REFUSALS):
            body = {**prompt, **self._options}
            try:
                if self._model_streams:
                    stream = partial(cast(StreamingModel, self.model).stream, body)
                    return (yield Stream(stream, partial=arrived))
                return (yield Call(partial(self.model.complete, body), is_slow=True))
            except Exception as error:  # `refused` raises any other error again.
                prompt = yield Call(partial(self.conversation._agent.retry_smaller, error, owner=self._owner))
        raise AssertionError("The conversation raises Refused before this.")

    def _emit_changes(self, number: int) -> Routine[None]:
        """Emit the changes of the view since the edit with this number."""
        if self.conversation._agent.head.number > number:
            for receipt in (yield Call(partial(self.conversation.journal.receipts, number))):
                yield ViewChanged(receipt)

    def _count(self, usage: Usage) -> None:
        """Count one more model call."""
        cost = _dollars(self._cost(usage)) if self._cost else None
        total = self.record.cost if cost is None else (self.record.cost or 0.0) + cost
        for run in self._outer_runs():
            run.inner += RunTotal(1, usage, cost)
        usage = sum_usage(self.record.usage, usage)
        self.record = replace(self.record, turns=self.record.turns + 1, usage=usage, cost=total)

    def _count_call_in_progress(self, change: int) -> None:
        for run in (self, *self._outer_runs()):
            run._calls_in_progress += change

    def _outer_runs(self) -> Iterator[Run]:
        """Yield the runs around this one, the next first."""
        run = self._outer
        while run is not None:
            yield run
            run = run._outer

    # ----------------------------------------------------------------------------------------------------------- steps

    def begin_step(self, kind: StepKind, name: str, *, call: str, input: str) -> Routine[AgentRunStep]:
        """Store that a step begins."""
        step = self._next_step(kind, name, call, input)
        yield from self._keep_step(step)
        return step

    def end_step(
        self, step: AgentRunStep, *, output: str = "", error: str = "", message: str = ""
    ) -> Routine[AgentRunStep]:
        """Store how a step ended: failed if there is an `error`."""
        state, now = ("failed" if error else "done"), self.clock()
        ended = replace(step, output=output, error=error, message=message, state=state, ended=now)
        yield from self._keep_step(ended)
        return ended

    def link_step(self, step: AgentRunStep, message: str) -> Routine[None]:
        """Store which message an ended step led to."""
        yield from self._keep_step(replace(step, message=message))

    def fail_open_steps(self) -> Routine[None]:
        """Mark the steps of an abandoned run that were begun and not ended."""
        steps: list[AgentRunStep] = yield Call(partial(self.conversation.journal.steps, self.record.id))
        for step in steps:
            if step.state == "running":
                yield from self.end_step(step, error=f"It is not known whether {step.name} was carried out.")

    def _fail_step(self, step: AgentRunStep, error: BaseException) -> Routine[None]:
        """Store that a step failed. If that fails too, log it: the first error matters more."""
        try:
            yield from self.end_step(step, error=_describe(error))
        except Exception as other:
            _log.warning("%s: the end of step %d could not be stored: %s", self.record.id, step.number, other)

    def _next_step(self, kind: StepKind, name: str, call: str = "", input: str = "") -> AgentRunStep:
        self.number += 1
        turn = self.conversation.view.turn - (kind != "model")  # The view belongs to the coming model call.
        call, name = storable_name(call), storable_name(name)
        return AgentRunStep(self.record.id, self.number, kind, name, call, input, turn=turn, begun=self.clock())

    def _keep_step(self, step: AgentRunStep) -> Routine[None]:
        yield Call(partial(self.conversation._agent.keep_step, step, owner=self._owner))
        if step.kind in ("action", "sub-agent"):
            self._calls[step.number] = step

    # --------------------------------------------------------------------------------------------------- the whole run

    def append(
        self, content: object, *, lease: Lease | None = None, origin: Origin | None = None, step: str = ""
    ) -> Routine[tuple[str, ...]]:
        """Append messages for the model, and return their ids. `step`: name of the step that they come from.

        Raises ConversationBusy, and appends nothing, if another agent has taken over.
        """
        facts: dict[str, Any] = {"lease": lease, "origin": origin, "step": step, "owner": self._owner}
        ids: tuple[str, ...] = yield Call(partial(self.conversation._agent.append, content, **facts))
        return ids

    def save(self) -> Routine[None]:
        """Store the run's record."""
        yield Call(partial(self.conversation._agent.keep_run, self.record, owner=self._owner))

    def perform(self, routine: Callable[[], Routine[Outcome]]) -> Routine[Outcome]:
        """Run a routine from the beginning of the run to its end, and store both, however it ends."""
        yield from self.save()
        try:
            return (yield from routine())
        except ConsumerGone:
            yield from self._break_off("stopped", "the consumer closed the stream")
            raise
        except BaseException as error:
            is_stopped = not isinstance(error, Exception)
            yield from self._break_off("stopped" if is_stopped else "failed", _describe(error))
            if not self.record.parent and (advice := self._advice()) not in getattr(error, "__notes__", ()):
                error.add_note(advice)
            raise

    def _advice(self) -> str:
        """Return what is known of a run that broke off, and what the program can do."""
        begun = [step for step in self._calls.values() if step.state == "running"]
        done = _list_calls(step for step in self._calls.values() if step.state == "done")
        unknown = _list_calls(step for step in begun if step.kind != "sub-agent")
        delegated = _list_calls(step for step in begun if step.kind == "sub-agent")
        text = f"Run {self.record.id} is stored. resume() continues it; the same input, sent again, begins a new one."
        if done:
            text += f" Carried out, and not repeated by resume(): {done}."
        if unknown:
            text += f" Not known whether carried out, and repeated only if the tool is repeatable: {unknown}."
        if delegated:
            text += f" Sub-agents that resume() continues where they ended: {delegated}."
        return text

    def finish(self, state: RunState, result: str, reason: str = "", value: object = None) -> Routine[Outcome]:
        """End the run: store its end, then emit it."""
        yield from self.close(state, result, reason)
        outcome = Outcome(result, self.record, value, self.inner)
        yield RunEnded(outcome)
        return outcome

    def close(self, state: RunState, result: str = "", reason: str = "") -> Routine[None]:
        """Store the end of the run without an event."""
        self.record = replace(self.record, state=state, result=result, reason=reason, ended=self.clock())
        yield from self.save()

    def _break_off(self, state: RunState, reason: str) -> Routine[None]:
        if self.record.state != "running":  # It had ended, and its end was emitted.
            return
        self.record = replace(self.record, state=state, reason=reason, ended=self.clock())
        try:
            yield from self.save()
        except Exception as error:  # The reason for the break matters more than this error.
            _log.warning("%s: the end of the run could not be stored: %s", self.record.id, error)

    def resume(self) -> Routine[None]:
        """Resume a run that broke off, in this process or another: count what its record does not count yet.

        A model call without a recorded reply has failed; the reply is requested again.
        """
        chat = self.conversation
        steps: list[AgentRunStep] = yield Call(partial(chat.journal.steps, self.record.id))
        calls = [step for step in steps if step.kind == "model"]
        rows: list[HistoryEntry] = []
        if steps:
            linked = [step for step in calls if step.message][: self.record.turns]
            rows = yield from self._rows_since(linked[-1] if linked else steps[0])
        replies = {row.stamp.step: row for row in rows if row.stamp.step}
        answered = [step for step in calls if step.message or step_name(self.record.id, step.number) in replies]
        counted = {step.number for step in answered[: self.record.turns]}
        self.record = replace(self.record, state="running", reason="", ended=0)
        self._calls = {step.number: step for step in steps if step.kind in ("action", "sub-agent")}
        for step in steps:
            row = replies.get(step_name(self.record.id, step.number))
            if row is not None and step.kind == "model" and step.number not in counted:
                self._count(row.stamp.usage or Usage())
            if step.kind == "model" and (step.state == "running" or (row and step.state == "failed")):
                error = "" if row else "The run broke off before the model had answered."
                yield from self.end_step(step, message=row.id if row else "", error=error)
            elif row is not None and not step.message:
                yield from self.link_step(step, row.id)
        self.number = steps[-1].number if steps else 0
        # The first messages of a run are appended before its first model call, which may be the coming one.
        self.first_turn = (steps[0].turn if steps else chat.view.turn) - 1
        self._since = self._looked = self.clock()

    def _rows_since(self, step: AgentRunStep) -> Routine[list[HistoryEntry]]:
        """Return the messages from the step's model call on, read from the end: they are few."""
        rows: list[HistoryEntry] = []
        last = len(self.conversation)
        while last > 0:
            page: list[HistoryEntry] = yield Call(partial(self.conversation.history, max(1, last - PAGE + 1), last))
            rows = [row for row in page if row.stamp.turn >= step.turn] + rows
            if page[0].stamp.turn < step.turn:
                break
            last -= PAGE
        return rows


def new_record(agent: str, conversation: str, task: str, *, id: str, now: int, parent: str) -> AgentRun:
    """Return the record of a run that begins. `now`: milliseconds since 1970.

    Raises BadSetting if the program's `new_id` returned no name for it.
    """
    if not validate.text("The result of new_id=", id):
        raise BadSetting("new_id= returned an empty text. Each run needs an id of its own.")
    return AgentRun(id, agent, conversation, task, parent, begun=now, usage=Usage())


def is_blank(content: object) -> bool:
    """Return whether an input asks for nothing: blank text, or an empty list."""
    return not content.strip() if isinstance(content, str) else isinstance(content, list | tuple) and not content


def task_of(chat: Conversation | AsyncConversation, after: int) -> Routine[str]:
    """Return the task for the record of a run: the text of the input after a position, without earlier turns."""
    rows: list[HistoryEntry] = yield Call(partial(chat.history, after + 1))
    last = max((place for place, row in enumerate(rows, 1) if row.message.role == "assistant"), default=0)
    task = "\n".join(row.message.text for row in rows[last:])
    return task if len(task) <= _TASK_MAX else f"{task[:_TASK_MAX]}..."


def newest_run(chat: Conversation | AsyncConversation, agent: str) -> Routine[AgentRun | None]:
    """Return the newest run of the agent of this name in a conversation."""
    runs: list[AgentRun] = yield Call(chat.journal.runs)
    return next((run for run in reversed(runs) if run.agent == agent), None)


def is_open(chat: Conversation | AsyncConversation, run: AgentRun) -> Routine[bool]:
    """Return whether a run, or a step of it, has no stored end: it broke off, or its end could not be stored."""
    if run.state in ("done", "waiting"):
        return False
    steps: list[AgentRunStep] = [] if run.state == "running" else (yield Call(partial(chat.journal.steps, run.id)))
    return run.state == "running" or any(step.state == "running" for step in steps)


def storable_name(text: str) -> str:
    """Return a name or id in a form that every database keeps: models put anything into names."""
    return text.encode("utf-8", "replace").decode().replace("\0", "?")[:_NAME_MAX]


def _dollars(cost: object) -> float | None:
    """Return what `cost=` returned as a float, or None if the price is unknown. Raises BadSetting."""
    if cost is None:
        return None
    if isinstance(cost, Real | Decimal) and math.isfinite(cost):
        return float(cost)
    raise BadSetting(f"cost= returned {cost!r:.60}. It must return dollars, a finite number, or None if unknown.")


def _list_calls(steps: Iterable[AgentRunStep]) -> str:
    return ", ".join(f"{step.name} ({step.call})" for step in steps)


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")
