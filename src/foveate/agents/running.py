"""One run of an agent: its record, its limits, its model calls. What all agents have in common.

`Running` belongs to one run. Its methods are acts (`acts.py`): they say what to do, in order, and are performed with or
without asyncio. What a call of the model leads to is the affair of each kind of agent. Everything is kept in the
conversation and its store before the next thing begins, so a run that ends anywhere is taken up from there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from ..core.messages import Message
from ..core.runs import AgentRun, AgentRunStep, RunState, StepKind, step_name
from ..core.stamps import Lease, Origin, Stop, Usage
from ..errors import BadSetting, StoreError
from ..ports import Clock, Cost, Model, StreamingModel
from .acts import Act, Do, Hear, Left
from .events import ModelReplied, Outcome, RunEnded, TextDelta, ViewChanged
from .limits import Limits, added

if TYPE_CHECKING:
    from ..async_conversation import AsyncConversation
    from ..conversation import Conversation
    from ..shell import HistoryEntry

__all__ = ["Running", "begun", "word"]

_log = logging.getLogger("foveate")
_REFUSALS = 5
"""How often a prompt is sent anew, smaller, because the provider said that it is too long."""
_ROWS = 50
"""Messages that are read at once, from the end of the history."""
_WORD = 500
"""Characters of a name that a store keeps."""


class Running:
    """A run that goes on."""

    def __init__(
        self,
        run: AgentRun,
        conversation: Conversation | AsyncConversation,
        model: Model,
        *,
        limits: Limits,
        clock: Clock,
        cost: Cost | None = None,
        streams: bool = True,
        options: Mapping[str, Any] | None = None,
        owner: str = "",
    ) -> None:
        """`owner`: who has the claim on the conversation, in whose name everything is kept; "": nobody asks.

        `streams`: whether pieces of replies are told as they come, or all in one piece where the model cannot.
        `options`: said to the model with every request, such as `{"temperature": 0}`.
        """
        if limits.money is not None and cost is None:
            raise BadSetting(f"limits.money needs the price of {model.name}, which is not known. Hand in cost=.")
        self.run = run
        self.conversation = conversation
        self.model = model
        self.limits = limits
        self.clock = clock
        self._cost = cost
        self.streams = streams
        self._streams = streams and hasattr(model, "stream")
        self._tells = streams and not self._streams
        self._options = dict(options or {})
        self._owner = owner
        self.first_turn = 0
        """Of a run that was taken up: the turn of the messages that it began with."""
        self.stop: Stop | None = None
        """Why the newest reply ended, where the provider said."""
        self._number = 0
        self._since = self._looked = run.begun
        """From when its time counts, and when the clock was looked at last, in milliseconds since 1970."""

    @property
    def outcome(self) -> Outcome:
        return Outcome(self.run.result, self.run)

    def seconds(self) -> float:
        """Since it began or was taken up, by the clock. One that is set back takes nothing off, and adds nothing."""
        now = self.clock()
        self._since += min(0, now - self._looked)
        self._looked = now
        return (now - self._since) / 1000

    def follows(self) -> bool:
        """Whether the work is still this agent's, as far as can be told. For any thread."""
        if not self._owner:
            return True
        try:
            return self.conversation.pulse(self._owner)[1]()
        except StoreError:  # The next write tells.
            return True

    @property
    def number(self) -> int:
        """Number of the newest step."""
        return self._number

    def reached(self) -> str:
        """The limit that the run has reached; "" while there is none."""
        milliseconds = round(self.seconds() * 1000)
        return self.limits.reached(replace(self.run, begun=0), milliseconds)

    def call_model(self, *, system: object = None, tools: Sequence[Mapping[str, Any]] = ()) -> Act[Message]:
        """One model call, a turn: plan, send, record. Returns the recorded reply. Raises what the SDK raises."""
        chat, begun_at = self.conversation, time.monotonic()
        number = chat.head.number
        prompt = yield Do(lambda: chat.prompt(system=system, tools=tools, owner=self._owner))
        yield from self._tell_changes(number)
        step = self._next_step("model", self.model.name)
        try:
            yield Do(
                partial(chat.keep_step, step, owner=self._owner)
            )  # Whoever is stopped while this is written leaves nothing begun.
            number = chat.head.number
            response = yield from self._sent(prompt)
            yield from self._tell_changes(number)
            message, usage = chat.format.parse_reply(response)
            self.stop = chat.format.stop_of(response)
            name = step_name(self.run.id, step.number)
            id = yield Do(partial(chat.record, response, step=name, call=step.turn, owner=self._owner))
        except BaseException as error:
            yield from self._failed(step, error)
            raise
        self._count(usage)
        yield from self.end_step(step, message=id)
        yield from self.keep()
        if self._tells and message.text:
            yield TextDelta(message.text)
        yield ModelReplied(message, id, usage, self.run.turns, time.monotonic() - begun_at, self.stop)
        return message

    def _tell_changes(self, number: int) -> Act[None]:
        """Tell what was done to the view since the edit with this number."""
        if self.conversation.head.number > number:
            for receipt in (yield Do(partial(self.conversation.receipts, number))):
                yield ViewChanged(receipt)

    def _count(self, usage: Usage) -> None:
        """One more model call."""
        cost = self._cost(usage) if self._cost else None
        total = self.run.cost if cost is None else (self.run.cost or 0.0) + cost
        self.run = replace(self.run, turns=self.run.turns + 1, usage=added(self.run.usage, usage), cost=total)

    def _failed(self, step: AgentRunStep, error: BaseException) -> Act[None]:
        """Write down that a step failed. Why it did counts for more than that this could not be written down."""
        try:
            yield from self.end_step(step, error=_said(error))
        except Exception as other:
            _log.warning("%s: how step %d ended could not be kept: %s", self.run.id, step.number, other)

    def _sent(self, prompt: dict[str, Any]) -> Act[object]:
        """The response to a prompt; where the provider says that it is too long, to a smaller one."""
        for _ in range(_REFUSALS):
            body = {**prompt, **self._options}
            try:
                if self._streams:
                    return (yield Hear(partial(cast(StreamingModel, self.model).stream, body)))
                return (yield Do(partial(self.model.complete, body), is_slow=True))
            except Exception as error:  # What is no such refusal is raised again by `refused`.
                prompt = yield Do(partial(self.conversation.refused, error, owner=self._owner))
        raise AssertionError("The conversation raises Refused before this.")

    def begin_step(self, kind: StepKind, name: str, *, call: str = "", input: str = "") -> Act[AgentRunStep]:
        """Write down that a step begins."""
        step = self._next_step(kind, name, call, input)
        yield Do(partial(self.conversation.keep_step, step, owner=self._owner))
        return step

    def _next_step(self, kind: StepKind, name: str, call: str = "", input: str = "") -> AgentRunStep:
        self._number += 1
        turn = self.conversation.view.turn - (kind != "model")  # A view is for the call that comes.
        return AgentRunStep(
            self.run.id, self._number, kind, word(name), word(call), input, turn=turn, begun=self.clock()
        )

    def end_step(
        self, step: AgentRunStep, *, output: str = "", error: str = "", message: str = ""
    ) -> Act[AgentRunStep]:
        """Write down how it ended; failed if there is an `error`."""
        state, now = ("failed" if error else "done"), self.clock()
        ended = replace(step, output=output, error=error, message=message, state=state, ended=now)
        yield Do(partial(self.conversation.keep_step, ended, owner=self._owner))
        return ended

    def link_step(self, step: AgentRunStep, message: str) -> Act[None]:
        """Write down which message a step led to, that had ended before the message was appended."""
        yield Do(partial(self.conversation.keep_step, replace(step, message=message), owner=self._owner))

    def say(
        self, said: object, *, lease: Lease | None = None, origin: Origin | None = None, step: str = ""
    ) -> Act[tuple[str, ...]]:
        """Append what the model is to be told; the ids of the messages. Raises ConversationBusy, and says nothing,
        where somebody
        has taken the work over. `step`: that it comes from.
        """
        how: dict[str, Any] = {"lease": lease, "origin": origin, "step": step, "owner": self._owner}
        ids: tuple[str, ...] = yield Do(partial(self.conversation.append, said, **how))
        return ids

    def keep(self) -> Act[None]:
        """Write down how the run stands."""
        yield Do(partial(self.conversation.keep_run, self.run, owner=self._owner))

    def end(self, state: RunState, result: str, reason: str = "", value: object = None) -> Act[Outcome]:
        """The end of the run: written down, then told."""
        yield from self.close(state, result, reason)
        outcome = Outcome(result, self.run, value)
        yield RunEnded(outcome)
        return outcome

    def close(self, state: RunState, result: str = "", reason: str = "") -> Act[None]:
        """Write down that the run has ended, and tell nobody."""
        self.run = replace(self.run, state=state, result=result, reason=reason, ended=self.clock())
        yield from self.keep()

    def take_up(self) -> Act[None]:
        """Take up a run that broke off, in this process or another: what its record does not count yet is counted.

        A call of the model that nobody heard the end of has failed; the reply is asked for again.
        """
        chat = self.conversation
        steps: list[AgentRunStep] = yield Do(partial(chat.steps, self.run.id))
        calls = [step for step in steps if step.kind == "model"]
        rows: list[HistoryEntry] = []
        if steps:
            known = [step for step in calls if step.message][: self.run.turns]
            rows = yield from self._rows_since(known[-1] if known else steps[0])
        led_to = {row.stamp.step: row for row in rows if row.stamp.step}
        answered = [step for step in calls if step.message or step_name(self.run.id, step.number) in led_to]
        counted = {step.number for step in answered[: self.run.turns]}
        self.run = replace(self.run, state="running", reason="", ended=0)
        for step in steps:
            row = led_to.get(step_name(self.run.id, step.number))
            if row is not None and step.kind == "model" and step.number not in counted:
                self._count(row.stamp.usage or Usage())
            if step.kind == "model" and (step.state == "running" or (row and step.state == "failed")):
                error = "" if row else "The run broke off before the model had answered."
                yield from self.end_step(step, message=row.id if row else "", error=error)
            elif row is not None and not step.message:
                yield from self.link_step(step, row.id)
        self._number = steps[-1].number if steps else 0
        # What a run begins with is said before its first model call; where it made none, before the one that comes.
        self.first_turn = (steps[0].turn if steps else chat.view.turn) - 1
        self._since = self._looked = self.clock()

    def give_up(self) -> Act[None]:
        """Write down of steps that were begun, and that nobody goes on with, that nobody knows how they ended."""
        steps: list[AgentRunStep] = yield Do(partial(self.conversation.steps, self.run.id))
        for step in steps:
            if step.state == "running":
                yield from self.end_step(step, error=f"It is not known whether {step.name} was carried out.")

    def _rows_since(self, step: AgentRunStep) -> Act[list[HistoryEntry]]:
        """The messages of the model call that a step belongs to and of later ones, read from the end: they are few."""
        found: list[HistoryEntry] = []
        last = len(self.conversation)
        while last > 0:
            rows: list[HistoryEntry] = yield Do(partial(self.conversation.history, max(1, last - _ROWS + 1), last))
            found = [row for row in rows if row.stamp.turn >= step.turn] + found
            if rows[0].stamp.turn < step.turn:
                break
            last -= _ROWS
        return found

    def performed(self, act: Callable[[], Act[Outcome]]) -> Act[Outcome]:
        """A whole run: begun in the records, and ended in them, however it ends."""
        yield from self.keep()
        try:
            return (yield from act())
        except Left:
            yield from self._broken_off("stopped", "whoever listened went away")
            raise
        except BaseException as error:
            is_stopped = not isinstance(error, Exception)
            yield from self._broken_off("stopped" if is_stopped else "failed", _said(error))
            raise

    def _broken_off(self, state: RunState, reason: str) -> Act[None]:
        if self.run.state != "running":  # It had come to its end, and whoever listened has heard of it.
            return
        self.run = replace(self.run, state=state, reason=reason, ended=self.clock())
        try:
            yield from self.keep()
        except Exception as error:  # Why the run broke off counts for more than that this could not be written down.
            _log.warning("%s: how the run ended could not be kept: %s", self.run.id, error)


def begun(agent: str, conversation: str, task: str, *, id: str, now: int, parent: str = "") -> AgentRun:
    """The record of a run that begins. `now`: milliseconds since 1970."""
    return AgentRun(id, agent, conversation, task, parent, begun=now, usage=Usage())


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")


def word(text: str) -> str:
    """A name or an id as every database keeps it: models make up names with anything in them."""
    return text.encode("utf-8", "replace").decode().replace("\0", "?")[:_WORD]
