"""The loop of an agent whose model answers with next steps: each is carried out, and the model is called again.

`Looper` is one agent in one conversation, without the waiting: its methods are acts. What a step comes to is kept in
the records of the run before the next thing begins, and told in a message that names its step; so a run that broke off
anywhere is taken up there, and nothing is done twice. Knows nothing of stores and of how models are opened.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Literal

from ..core.edits import Hide, Target
from ..core.handles import parse_handle
from ..core.messages import Message, user
from ..core.runs import AgentRun, AgentRunStep, step_name
from ..core.stamps import Lease
from ..errors import BadEdit, BadInput, MissingExtra
from ..shell import HistoryEntry
from .acting import carry_out
from .acts import Act, Do
from .claims import Hold
from .earlier import follows, newest_run
from .events import Outcome, RunEnded
from .handing import Handing, Opener
from .limits import BY_LIMIT, Limits
from .opening import OWN, Looping, Opened
from .past import Past
from .results import sendable
from .running import Running, begun
from .step_form import BadStep, read_step
from .steps import Actions, Chat, ExpandMessage, Failed, NextStep, Retry, SubAgent, Success
from .stopping import refusal

__all__ = ["Looper"]

_log = logging.getLogger("foveate")
_NOTE = Lease(message_type="retry-context")
_PART = Lease(message_type="action-result", action_id="expand-message")
_AGAIN = (
    "Your answer could not be carried out: {why}. Answer again, with one JSON object as your instructions describe it."
)
_ROWS = 50
"""Messages that are read at once, from the end of the history."""
_CUT = "it was cut off, for it was as long as it may be; say less, or do it in several steps"


class Looper:
    """One agent in one conversation."""

    def __init__(self, looping: Looping, opened: Opened, opener: Opener, new_id: Callable[[], str]) -> None:
        self._looping, self._opened, self._new_id = looping, opened, new_id
        self._chat = opened.conversation
        self._handing = Handing(looping, opened, opener, lambda sub, its: Looper(sub, its, opener, new_id))
        self._wrong = 0
        """Answers in a row that could not be carried out."""
        self._expanded = 0
        """Messages that were expanded in a row, and nothing else was done."""
        self._hold = Hold(self._chat, waits=looping.waits)
        self._clean: int | None = None
        """How many messages there were when the newest run had come to its end, and its record said so; None: not
        known.
        """
        self.running: Running | None = None
        """The newest run."""

    # ------------------------------------------------------------------------------------------------------------ runs

    def begin(self, task: str, *, streams: bool, limits: Limits | None = None, parent: str = "") -> Act[Outcome]:
        """A new run: from a task, or what the user says, to its end. Raises ConversationBusy where another agent is at
        work.
        """
        return (yield from self._hold.during(partial(self._begin, task, streams, limits, parent)))

    def _begin(self, task: str, streams: bool, limits: Limits | None, parent: str) -> Act[Outcome]:
        yield Do(self._chat.refresh)
        is_clean = len(self._chat) == self._clean and not self._hold.took_over
        earlier = None if is_clean else (yield from newest_run(self._chat, self._looping.name))
        if earlier is not None and (yield from follows(self._chat, earlier)):
            broken = self._made(earlier, streams=False, limits=None)
            yield from broken.take_up()
            yield from broken.give_up()
            state, reason = (earlier.state, earlier.reason) if earlier.ended else ("stopped", "it broke off")
            yield from broken.close(state, earlier.result, reason)
        running = self._made(self._begun(task, parent), streams, limits)
        return (yield from self._perform(running, partial(self._first, running, task)))

    def resume(self, *, streams: bool, limits: Limits | None = None) -> Act[Outcome]:
        """Go on where a run ended before it was done: broken off, failed, or stopped by a limit.

        A run that broke off goes on as the run it was; after a limit a new one begins. Of one that is done, or waits
        for the user, the outcome is told again. Raises BadInput where there was none, and ConversationBusy where
        another agent is
        at work.
        """
        return (yield from self._hold.during(partial(self._resume, streams, limits)))

    def _resume(self, streams: bool, limits: Limits | None) -> Act[Outcome]:
        yield Do(self._chat.refresh)
        run = yield from newest_run(self._chat, self._looping.name)
        if run is None:
            raise BadInput(f"There is nothing to resume: {self._looping.name} has not run in {self._chat.name!r}.")
        if run.state in ("done", "waiting"):
            outcome = Outcome(run.result, run)
            yield RunEnded(outcome)
            return outcome
        if run.state == "stopped" and run.reason in BY_LIMIT:
            running = self._made(self._begun(run.task, run.parent), streams, limits)
            return (yield from self._perform(running, partial(self._loop, running)))
        running = self._made(run, streams, limits)
        yield from running.take_up()
        return (yield from self._perform(running, partial(self._taken_up, running)))

    def _perform(self, running: Running, act: Callable[[], Act[Outcome]]) -> Act[Outcome]:
        self._clean = None
        outcome = yield from running.performed(act)
        self._clean = len(self._chat)
        return outcome

    def _begun(self, task: str, parent: str) -> AgentRun:
        now = self._looping.clock()
        return begun(self._looping.name, self._chat.name, task, id=self._new_id(), now=now, parent=parent)

    def _made(self, run: AgentRun, streams: bool, limits: Limits | None) -> Running:
        self._wrong = self._expanded = 0
        running = Running(
            run,
            self._chat,
            self._opened.model,
            limits=limits or self._looping.limits,
            clock=self._looping.clock,
            cost=self._opened.cost,
            streams=streams,
            options=self._looping.options,
            owner=self._hold.owner,
        )
        self.running = running
        return running

    # -------------------------------------------------------------------------------------------------------- the loop

    def _first(self, running: Running, task: str) -> Act[Outcome]:
        yield from running.say(task, step=step_name(running.run.id, 0))
        return (yield from self._loop(running))

    def _taken_up(self, running: Running) -> Act[Outcome]:
        """Go on behind the last thing that the history holds of the run."""
        run = running.run.id
        own = yield from self._newest_rows(running)
        replies = [row for row in own if row.message.role == "assistant"]
        if not own:
            return (yield from self._first(running, running.run.task))
        yield from self._handing.recount(running)
        if replies:
            reply = replies[-1]
            at = int(reply.stamp.step.rpartition("/")[2])
            steps: list[AgentRunStep] = yield Do(partial(self._chat.steps, run, at))
            told = frozenset(row.stamp.step for row in own if row.position > reply.position)
            past = Past(reply.id, told, {step.call: step for step in steps if step.call})
            running.stop = reply.stamp.stop
            outcome = yield from self._carry_out(running, reply.message, at, past)
            if outcome is not None:
                return outcome
        return (yield from self._loop(running))

    def _newest_rows(self, running: Running) -> Act[list[HistoryEntry]]:
        """What the history holds of a run, from its newest reply on, or else from its task; read from the end."""
        run, found, last = running.run.id, list[HistoryEntry](), len(self._chat)
        while last > 0:
            rows: list[HistoryEntry] = yield Do(partial(self._chat.history, max(1, last - _ROWS + 1), last))
            own = [row for row in rows if row.stamp.step.rpartition("/")[0] == run]
            found = own + found
            is_begun = any(row.message.role == "assistant" or row.stamp.step == step_name(run, 0) for row in own)
            if is_begun or rows[0].stamp.turn < running.first_turn:
                break
            last -= _ROWS
        return found

    def _loop(self, running: Running) -> Act[Outcome]:
        said = ""
        while True:
            if reason := running.reached():
                return (yield from running.end("stopped", said, reason))
            reply: Message = yield from running.call_model(system=self._looping.system)
            said = reply.text or said
            outcome = yield from self._carry_out(running, reply, running.number, Past())
            if outcome is not None:
                return outcome

    def _carry_out(self, running: Running, reply: Message, at: int, past: Past) -> Act[Outcome | None]:
        """Carry out the step in a reply. `at`: the number of the step that the reply came from."""
        if reply.calls and self._chat.expands and not reply.text.strip():
            return None  # It used the tool `expand`, which the conversation has answered.
        if why := refusal(running.stop):
            return (yield from running.end("failed", reply.text, why))
        if running.stop is not None and running.stop.kind == "paused":
            return None  # It wants to be asked to go on.
        try:
            step = read_step(reply.text)
        except BadStep as error:
            why = _CUT if running.stop is not None and running.stop.kind == "length" else str(error)
            return (yield from self._refuse(running, at, past, why))
        if self._looping.verbose:
            _log.info("[Turn %d] %s: %s", self._chat.view.turn - 1, self._looping.name, _told(step))
        if not isinstance(step, ExpandMessage):
            self._wrong = self._expanded = 0
        match step:
            case Actions():
                yield from carry_out(running, self._looping, self._opened.leases, step, at, past)
            case SubAgent():
                yield from self._handing.hand_over(running, step, at, past)
            case ExpandMessage():
                return (yield from self._expand(running, step, at, past))
            case Retry(reason):
                yield from self._keep_step(running, "retry", reason, at, past)
                yield from self._note(running, at, past, f"Go on: {reason}" if reason else "Go on.")
            case Chat(message):
                yield from self._keep_step(running, "chat", message, at, past)
                return (yield from running.end("waiting", message))
            case Success(message):
                return (yield from running.end("done", message))
            case Failed(reason):
                return (yield from running.end("failed", "", reason))
        return None

    def _keep_step(self, running: Running, kind: Literal["chat", "retry"], said: str, at: int, past: Past) -> Act[None]:
        """Write down a step that needs nothing to be done."""
        record = past.steps.get(f"{at}.1")
        if record is None:
            record = yield from running.begin_step(kind, kind, call=f"{at}.1", input=said)
        if record.state == "running":
            yield from running.end_step(record)

    def _refuse(self, running: Running, at: int, past: Past, why: str) -> Act[Outcome | None]:
        """Tell the model what is wrong with its answer; give up after so many in a row."""
        self._wrong += 1
        if self._wrong > self._looping.tries:
            reason = f"{self._wrong} answers in a row could not be carried out; of the last one: {why}"
            return (yield from running.end("failed", "", reason))
        yield from self._note(running, at, past, _AGAIN.format(why=why.rstrip(".")))
        return None

    def _note(self, running: Running, at: int, past: Past, text: str) -> Act[None]:
        """Tell the model something that no action said and no user: a request ends with words for the model."""
        if not past.has_told(running.run.id, at):
            name = step_name(running.run.id, at)
            yield from running.say(user(sendable(text)), lease=_NOTE, step=name)

    # ------------------------------------------------------------------------------------------------------- expansion

    def _expand(self, running: Running, step: ExpandMessage, at: int, past: Past) -> Act[Outcome | None]:
        """Show a message whole again. What cannot be expanded is told to the model, and changes nothing."""
        name, looping = str(step.message), self._looping
        record = past.steps.get(f"{at}.1")
        if record is not None and record.state == "failed":
            return (yield from self._refuse(running, at, past, record.error))
        if record is not None and record.state == "done":
            return None
        if self._expanded >= looping.expansions:
            many = f"{self._expanded} messages in a row were expanded, and nothing else was done; choose another step"
            return (yield from self._refuse(running, at, past, many))
        is_again = record is not None
        if record is None:
            record = yield from running.begin_step("expand", name, call=f"{at}.1", input=step.reason)
        output = f"{name} is shown whole"
        try:
            if step.part:
                output = yield from self._show_part(running, step, record, past)
            else:
                yield Do(partial(self._chat.expand, step.message, reason=step.reason))
        except (BadInput, MissingExtra) as error:
            if step.part or not (is_again and self._is_whole(step.message)):
                yield from running.end_step(record, error=str(error))
                return (yield from self._refuse(running, at, past, str(error)))
        self._wrong, self._expanded = 0, self._expanded + 1
        # Where nothing is said of it, the request goes to the model anew, with the message whole.
        if not step.part and (looping.tells_expansions or not (yield from self._has_hidden(running, at, past, name))):
            yield from self._note(running, at, past, f"[Expanded message {name} to full content at agent's request]")
        yield from running.end_step(record, output=output)
        return None

    def _show_part(self, running: Running, step: ExpandMessage, record: AgentRunStep, past: Past) -> Act[str]:
        """Tell the model a part of a message. It expires like the message that it is of."""
        excerpt = yield Do(partial(self._chat.expand, step.message, **step.part))
        if not past.has_told(running.run.id, record.number):
            place = parse_handle(excerpt.handle).first
            (row,) = yield Do(partial(self._chat.history, place, place))
            name = step_name(record.run, record.number)
            yield from running.say(user(str(excerpt)), lease=row.stamp.lease or _PART, step=name)
        return str(excerpt)

    def _is_whole(self, name: str | int) -> bool:
        named = [
            entry for index, entry in enumerate(self._chat.view.entries) if name in (index, entry.handle, entry.id)
        ]
        return bool(named) and not any(entry.shrunk for entry in named)

    def _has_hidden(self, running: Running, at: int, past: Past, name: str) -> Act[bool]:
        """Hide the reply that asked. Whether that could be done."""
        id = past.reply
        if not id:
            (step, *_) = yield Do(partial(self._chat.steps, running.run.id, at - 1))
            id = step.message
        if any(entry.id == id for entry in self._chat.view.entries):
            why = f"The step was carried out: {name} is shown whole"
            try:
                yield Do(partial(self._chat.edit, Hide(Target(id), OWN, why)))
            except BadEdit:  # Somebody has pinned it.
                return False
        return True


def _told(step: NextStep) -> str:
    """A step in a line for people."""
    match step:
        case Actions(actions):
            return f"Actions: {', '.join(one.name for one in actions)}"
        case SubAgent(name):
            return f"Sub-Agent: {name}"
        case ExpandMessage(message):
            return f"expand-message: {message}"
        case Chat(said) | Success(said):
            return f"{type(step).__name__}: {said}"
        case Retry(reason) | Failed(reason):
            return f"{type(step).__name__}: {reason}"
