"""The loop of an agent that calls tools: the model is called, its calls are answered, until it answers without a call.

`Talker` is one agent in one conversation, without the waiting: its methods are acts. Before anything is said, what a
run left open that broke off is closed; so whatever happened before, the next request is legal, and nothing is done
twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ..core.messages import Message
from ..core.runs import AgentRun, step_of
from ..errors import BadInput, BadSetting
from ..ports import Clock, Cost, Model
from ..shell import HistoryEntry
from .acts import Act, Do
from .answers import Wanted, Wrong, with_instruction
from .calling import Calling, answer_calls
from .claims import WAITS, Hold
from .earlier import follows, newest_run
from .events import Outcome, RunEnded
from .limits import BY_LIMIT, Limits
from .running import Running, begun
from .stopping import CUT, GO_ON, is_unfinished, refusal, unfit
from .unanswered import answer_open, open_calls

if TYPE_CHECKING:
    from ..async_conversation import AsyncConversation
    from ..conversation import Conversation

__all__ = ["Talker", "Talking"]

_LONGEST_TASK = 2_000
"""Characters of what was said that a run's record repeats; the whole of it is in the history."""
_TRIES = 3
"""Answers of a wanted type that are tried to be read."""


class Talking(Struct, frozen=True):
    """What an agent is made of, beside its conversation."""

    name: str
    model: Model
    calling: Calling
    system: object
    limits: Limits
    clock: Clock
    new_id: Callable[[], str]
    cost: Cost | None = None
    options: Mapping[str, Any] | None = None
    wanted: Wanted | None = None
    """The type of the final answer, if not plain text."""
    waits: float = WAITS
    """Seconds that another agent at work in the conversation is waited for."""


class Talker:
    """One agent in one conversation."""

    def __init__(self, talking: Talking, conversation: Conversation | AsyncConversation) -> None:
        """Raises BadSetting where the model speaks another format than the conversation."""
        if conversation.format.name != talking.model.format:
            raise BadSetting(
                f"{talking.model.name} speaks the format {talking.model.format}, and the conversation "
                f"{conversation.name!r} was opened with {conversation.format.name}. Leave format= out."
            )
        self._talking = talking
        self._chat = conversation
        self._tools = [tool.wire(conversation.format.name) for tool in talking.calling.tools.values()]
        self._system = talking.system
        if talking.wanted is not None:
            self._system = with_instruction(talking.system, talking.wanted.instruction)
        self._hold = Hold(conversation, waits=talking.waits)
        self._clean: int | None = None
        """How many messages there were when all that agents had begun here had come to its end; None: not known."""

    def send(self, said: object, *, streams: bool) -> Act[Outcome]:
        """Say something, and go on until the model has answered it.

        Raises BadInput where nothing is said, and ConversationBusy where another agent is at work here; nothing is
        said then.
        """
        if isinstance(said, str) and not said.strip():
            raise BadInput("Say something: a text that is blank asks for nothing.")
        return (yield from self._hold.during(partial(self._send, said, streams)))

    def _send(self, said: object, streams: bool) -> Act[Outcome]:
        yield Do(self._chat.refresh)
        yield from self._close_earlier()
        before = len(self._chat)
        yield Do(partial(self._chat.append, said, owner=self._hold.owner))
        if not isinstance(said, str):
            rows: list[HistoryEntry] = yield Do(partial(self._chat.history, before + 1))
            said = "\n".join(row.message.text for row in rows)
        return (yield from self._perform(self._running(self._begun(said), streams)))

    def resume(self, *, streams: bool) -> Act[Outcome]:
        """Go on where a run ended before the model had answered: broken off, failed, or stopped by a limit.

        A run that broke off goes on as the run it was; after a limit a new one begins. Where the model has answered,
        nothing is done: the outcome is that of the last run. Raises BadInput where there is nothing to go on with, and
        ConversationBusy where another agent is at work here.
        """
        return (yield from self._hold.during(partial(self._resume, streams)))

    def _resume(self, streams: bool) -> Act[Outcome]:
        yield Do(self._chat.refresh)
        run = yield from newest_run(self._chat, self._talking.name)
        newest = yield from self._newest()
        if newest is None or (run is None and _is_answer(newest)):
            raise BadInput("There is nothing to resume: the agent has not begun anything here. Send something.")
        if run is None or (not _is_answer(newest) and (run.reason in BY_LIMIT or run.state in ("done", "waiting"))):
            return (yield from self._perform(self._running(self._begun(self._last_said()), streams)))
        if not _is_answer(newest):
            running = self._running(run, streams)
            yield from running.take_up()
            return (yield from self._perform(running))
        why = refusal(newest.stamp.stop)
        is_told = run.state in ("done", "waiting") or (run.state == "failed" and run.reason == why)
        if not is_told and _is_of(newest, run):  # It had ended, but for its record.
            running = self._running(run, streams)
            yield from running.take_up()
            if why:
                return (yield from running.end("failed", newest.message.text, why))
            if outcome := (yield from self._final(running, newest.message.text)):
                return outcome
            return (yield from self._perform(running))
        last = Outcome(run.result, run)
        yield RunEnded(last)
        return last

    # ------------------------------------------------------------------------------------------------------- the loop

    def _perform(self, running: Running) -> Act[Outcome]:
        self._clean = None
        outcome = yield from running.performed(partial(self._loop, running))
        self._clean = len(self._chat)
        return outcome

    def _loop(self, running: Running) -> Act[Outcome]:
        said, tries, calling = "", 0, self._talking.calling
        yield from answer_open(running, calling)
        newest = yield from self._newest()
        if newest is not None and _was_cut(newest):
            yield from running.say(GO_ON, origin="derived")
        while True:
            if reason := running.reached():
                return (yield from running.end("stopped", said, reason))
            reply: Message = yield from running.call_model(system=self._system, tools=self._tools)
            said = reply.text or said
            if reply.calls:
                calls = yield from open_calls(self._chat, calling)
                yield from answer_calls(running, calling, calls, unfit=unfit(reply, running.stop, calls))
            if why := refusal(running.stop):
                return (yield from running.end("failed", reply.text, why))
            if reply.calls:
                continue
            if running.stop is not None and running.stop.kind == CUT:
                return (yield from running.end("stopped", reply.text, CUT))
            if not is_unfinished(running.stop):  # Else it wants to be asked to go on.
                tries += 1
                if outcome := (yield from self._final(running, reply.text, tries)):
                    return outcome

    def _final(self, running: Running, text: str, tries: int = 1) -> Act[Outcome | None]:
        """The end of a run whose model has answered; None where the answer cannot be read, and it was told so."""
        wanted = self._talking.wanted
        if wanted is None:
            return (yield from running.end("done", text))
        try:
            value = wanted.read(text)
        except Wrong as error:
            if tries < _TRIES:
                yield from running.say(str(error))
                return None
            reason = f"no answer of the type {wanted.name} in {tries} tries: {error}"
            return (yield from running.end("failed", text, reason))
        return (yield from running.end("done", text, value=value))

    # ------------------------------------------------------------------------------------------------- what was before

    def _close_earlier(self) -> Act[None]:
        """Answer what is open, and close a run that broke off: something else is said now, so nobody resumes it."""
        calling = self._talking.calling
        is_open = bool((yield from open_calls(self._chat, calling)))
        if not is_open and (yield from self._is_clean()):
            return
        run = yield from newest_run(self._chat, self._talking.name)
        has_ended = run is not None and (yield from self._has_ended(run))
        if not is_open and not has_ended and (run is None or not (yield from follows(self._chat, run))):
            return
        running = self._running(run or self._begun(""), streams=False)
        if run is None:
            closed = replace(running.run, state="done", reason="It answered calls that somebody else had left open.")
        elif has_ended:
            newest = yield from self._newest()
            closed = replace(run, state="done", reason="", result=newest.message.text if newest else "")
        elif run.state == "running":
            closed = replace(run, state="stopped", reason="It broke off, and something else was said.", result="")
        else:
            closed = run
        yield from running.take_up()
        yield from running.keep()
        yield from answer_open(running, calling)
        yield from running.close(closed.state, closed.result, closed.reason)

    def _is_clean(self) -> Act[bool]:
        """Whether nobody has left anything behind since all had come to its end."""
        if self._clean is None or self._hold.took_over:
            return False
        if len(self._chat) == self._clean:
            return True
        rows: list[HistoryEntry] = yield Do(partial(self._chat.history, self._clean + 1))
        return not any(row.stamp.step for row in rows)  # Else another agent was here.

    def _has_ended(self, run: AgentRun) -> Act[bool]:
        """Whether a run came to its answer, and its record does not say so: it broke off there, or the store failed."""
        newest = yield from self._newest()
        is_told = run.state not in ("running", "failed") or bool(run.result)
        if is_told or newest is None or refusal(newest.stamp.stop):
            return False
        return _is_answer(newest) and _is_of(newest, run)

    def _newest(self) -> Act[HistoryEntry | None]:
        """The newest message that is a part of the talk: originals that a program had shown again are none."""
        for position in range(len(self._chat), 0, -1):
            rows: list[HistoryEntry] = yield Do(partial(self._chat.history, position, position))
            if rows[0].message.role != "user" or rows[0].stamp.expanded is None:
                return rows[0]
        return None

    def _last_said(self) -> str:
        view = self._chat.view
        return next((e.source.text for e in view.entries if e.position == view.last_input and e.source), "")

    def _begun(self, task: str) -> AgentRun:
        talking = self._talking
        task = task if len(task) <= _LONGEST_TASK else f"{task[:_LONGEST_TASK]}..."
        return begun(talking.name, self._chat.name, task, id=talking.new_id(), now=talking.clock())

    def _running(self, run: AgentRun, streams: bool) -> Running:
        talking = self._talking
        return Running(
            run,
            self._chat,
            talking.model,
            limits=talking.limits,
            clock=talking.clock,
            cost=talking.cost,
            streams=streams,
            options=talking.options,
            owner=self._hold.owner,
        )


def _is_answer(row: HistoryEntry) -> bool:
    """Whether this is what a model says at the end: nothing waits for an answer after it, and it is all of it."""
    is_last = row.message.role == "assistant" and not row.message.calls
    return is_last and not is_unfinished(row.stamp.stop)


def _was_cut(row: HistoryEntry) -> bool:
    """Whether this is the beginning of an answer, which ends in the middle."""
    stop = row.stamp.stop
    return row.message.role == "assistant" and not row.message.calls and stop is not None and stop.kind == CUT


def _is_of(row: HistoryEntry, run: AgentRun) -> bool:
    return bool(row.stamp.step) and step_of(row.stamp.step)[0] == run.id
