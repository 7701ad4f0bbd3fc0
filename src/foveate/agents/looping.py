"""The loop of an agent whose model answers with next steps: each is carried out, and the model is called again.

`Looper` is one agent in one conversation, without the waiting: its methods are acts. What a step comes to is kept in
the records of the run before the next thing begins, and told in a message that names its step; so a run that broke off
anywhere is taken up there, and nothing is done twice. Knows nothing of stores and of how models are opened.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from ..core.edits import Hide, Target
from ..core.messages import Content, Message, State, Text, ToolCall, ToolResult, user
from ..core.runs import AgentRun, AgentRunStep, step_name
from ..core.stamps import Lease
from ..errors import BadInput, StoreError
from ..shell import Historic
from .actions import one_message, result_message
from .acts import Act, Do
from .calling import Calling, answer_calls
from .events import Answered, Called, Ended, Outcome
from .limits import Limits
from .opening import OWN, Looping, Opened
from .results import failure, sendable
from .running import Running, begun, word
from .steps import Actions, BadStep, Chat, ExpandMessage, Failed, NextStep, Retry, SubAgent, Success, read_step
from .subagents import left, quiet, spent, within

__all__ = ["Looper", "Opener"]

Opener = Callable[[Looping, str, Opened], object]
"""Opens the conversation of a sub-agent, by its name, in the house of the agent around it: an Opened, or an awaitable
of one.
"""

_log = logging.getLogger("foveate")
_BY_LIMIT = ("turns", "tokens", "money", "time")
_NOTE = Lease(message_type="retry-context")
_AGAIN = (
    "Your answer could not be carried out: {why}. Answer again, with one JSON object as your instructions describe it."
)


class _Past(Struct, frozen=True):
    """What is known of a step that was begun before."""

    reply: str = ""
    """Id of the reply that it is in; "" if it was not begun before."""
    messages: frozenset[str] = frozenset()
    """Steps that messages after the reply name."""
    steps: Mapping[str, AgentRunStep] = {}
    """Those after the reply, by the calls that they answer."""

    def has_told(self, run: str, number: int) -> bool:
        """Whether a message names this step."""
        return step_name(run, number) in self.messages


class Looper:
    """One agent in one conversation."""

    def __init__(self, looping: Looping, opened: Opened, opener: Opener, new_id: Callable[[], str]) -> None:
        self._looping, self._opened, self._opener, self._new_id = looping, opened, opener, new_id
        self._chat = opened.conversation
        self._wrong = 0
        """Answers in a row that could not be carried out."""
        self._expanded = 0
        """Messages that were expanded in a row, and nothing else was done."""
        self._running: Running | None = None
        """The newest run."""

    # ------------------------------------------------------------------------------------------------------------ runs

    def begin(self, task: str, *, streams: bool, limits: Limits | None = None, parent: str = "") -> Act[Outcome]:
        """A new run: from a task, or what the user says, to its end."""
        earlier = yield from self._last_run()
        if earlier is not None and earlier.state == "running":
            closed = replace(earlier, state="stopped", reason="it broke off", ended=self._looping.clock())
            yield Do(partial(self._chat.keep_run, closed))
        running = self._made(self._begun(task, parent), streams, limits)
        return (yield from running.performed(partial(self._first, running, task)))

    def resume(self, *, streams: bool, limits: Limits | None = None) -> Act[Outcome]:
        """Go on where a run ended before it was done: broken off, failed, or stopped by a limit.

        A run that broke off goes on as the run it was; after a limit a new one begins. Of one that is done, or waits
        for the user, the outcome is told again. Raises BadInput where there was none.
        """
        yield Do(self._chat.refresh)
        run = yield from self._last_run()
        if run is None:
            raise BadInput(f"There is nothing to resume: {self._looping.name} has not run in {self._chat.name!r}.")
        if run.state in ("done", "waiting"):
            outcome = Outcome(run.result, run)
            yield Ended(outcome)
            return outcome
        if run.state == "stopped" and run.reason in _BY_LIMIT:
            running = self._made(self._begun(run.task, run.parent), streams, limits)
            return (yield from running.performed(partial(self._loop, running)))
        running = self._made(run, streams, limits)
        yield from running.take_up()
        return (yield from running.performed(partial(self._taken_up, running)))

    def _last_run(self) -> Act[AgentRun | None]:
        runs: list[AgentRun] = yield Do(self._chat.runs)
        return next((run for run in reversed(runs) if run.agent == self._looping.name), None)

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
        )
        self._running = running
        return running

    # -------------------------------------------------------------------------------------------------------- the loop

    def _first(self, running: Running, task: str) -> Act[Outcome]:
        yield Do(partial(self._chat.append, task, step=step_name(running.run.id, 0)))
        return (yield from self._loop(running))

    def _taken_up(self, running: Running) -> Act[Outcome]:
        """Go on behind the last thing that the history holds of the run."""
        run = running.run.id
        rows: list[Historic] = yield Do(self._chat.history)
        own = [row for row in rows if row.stamp.step.rpartition("/")[0] == run]
        replies = [row for row in own if row.message.role == "assistant"]
        if not own:
            return (yield from self._first(running, running.run.task))
        for step in (yield Do(partial(self._chat.steps, run))):
            if step.kind == "sub-agent":
                yield from self._recount(running, step)
        if replies:
            reply = replies[-1]
            at = int(reply.stamp.step.rpartition("/")[2])
            steps: list[AgentRunStep] = yield Do(partial(self._chat.steps, run, at))
            told = frozenset(row.stamp.step for row in own if row.position > reply.position)
            past = _Past(reply.id, told, {step.call: step for step in steps if step.call})
            outcome = yield from self._carry_out(running, reply.message, at, past)
            if outcome is not None:
                return outcome
        return (yield from self._loop(running))

    def _loop(self, running: Running) -> Act[Outcome]:
        said = ""
        while True:
            if reason := running.reached():
                return (yield from running.end("stopped", said, reason))
            reply: Message = yield from running.call_model(system=self._looping.system)
            said = reply.text or said
            outcome = yield from self._carry_out(running, reply, running.number, _Past())
            if outcome is not None:
                return outcome

    def _carry_out(self, running: Running, reply: Message, at: int, past: _Past) -> Act[Outcome | None]:
        """Carry out the step in a reply. `at`: the number of the step that the reply came from."""
        try:
            step = read_step(reply.text)
        except BadStep as error:
            return (yield from self._refuse(running, at, past, str(error)))
        if self._looping.verbose:
            _log.info("[Turn %d] %s: %s", self._chat.view.turn - 1, self._looping.name, _told(step))
        if not isinstance(step, ExpandMessage):
            self._wrong = self._expanded = 0
        match step:
            case Actions():
                yield from self._act(running, step, at, past)
            case SubAgent():
                yield from self._hand_over(running, step, at, past)
            case ExpandMessage():
                return (yield from self._expand(running, step, at, past))
            case Retry(reason):
                yield from self._note(running, at, past, f"Go on: {reason}" if reason else "Go on.")
            case Chat(message):
                return (yield from running.end("waiting", message))
            case Success(message):
                return (yield from running.end("done", message))
            case Failed(reason):
                return (yield from running.end("failed", "", reason))
        return None

    def _refuse(self, running: Running, at: int, past: _Past, why: str) -> Act[Outcome | None]:
        """Tell the model what is wrong with its answer; give up after so many in a row."""
        self._wrong += 1
        if self._wrong > self._looping.tries:
            reason = f"{self._wrong} answers in a row could not be carried out; of the last one: {why}"
            return (yield from running.end("failed", "", reason))
        yield from self._note(running, at, past, _AGAIN.format(why=why.rstrip(".")))
        return None

    def _note(self, running: Running, at: int, past: _Past, text: str) -> Act[None]:
        """Tell the model something that no action said and no user: a request ends with words for the model."""
        if not past.has_told(running.run.id, at):
            name = step_name(running.run.id, at)
            yield Do(partial(self._chat.append, user(sendable(text)), lease=_NOTE, step=name))

    # --------------------------------------------------------------------------------------------------------- actions

    def _act(self, running: Running, step: Actions, at: int, past: _Past) -> Act[None]:
        """Carry out actions: one result message each, in their order."""
        run, looping = running.run.id, self._looping
        calls = [ToolCall(f"{at}.{n}", one.name, one.arguments) for n, one in enumerate(step.actions, 1)]
        found = [past.steps.get(call.call_id) for call in calls]
        results: list[tuple[Message, Lease]] = []
        failed = 0

        def told(result: ToolResult) -> tuple[Message, Lease] | None:
            nonlocal failed
            place, tool = int(result.call_id.rpartition(".")[2]), looping.actions.get(result.name)
            message = result_message(word(result.name), result.content, result.state, place, len(calls))
            results.append((message, self._opened.leases.of_action(word(result.name), tool)))
            failed += result.state != "ok"
            return None if looping.one_message else results[-1]

        def is_told(place: int) -> bool:
            record = found[0 if looping.one_message else place]
            return record is not None and past.has_told(run, record.number)

        places = [place for place in range(len(calls)) if not is_told(place)]
        calling = Calling(looping.actions, looping.approve, at_most=looping.at_most, told=told)
        earlier = {n: found[place] for n, place in enumerate(places) if found[place] is not None}
        yield from answer_calls(running, calling, [calls[place] for place in places], earlier)
        if looping.one_message and results:
            steps: list[AgentRunStep] = yield Do(partial(self._chat.steps, run, at))
            message, lease = one_message([one for one, _ in results], [lease for _, lease in results], failed)
            name = step_name(run, steps[0].number)
            (id,) = yield Do(partial(self._chat.append, message, lease=lease, step=name))
            for one in steps:
                yield from running.link_step(one, id)

    # ------------------------------------------------------------------------------------------------------- expansion

    def _expand(self, running: Running, step: ExpandMessage, at: int, past: _Past) -> Act[Outcome | None]:
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
        try:
            yield Do(partial(self._chat.expand, step.message, reason=step.reason))
        except BadInput as error:
            if not (is_again and self._is_whole(step.message)):
                yield from running.end_step(record, error=str(error))
                return (yield from self._refuse(running, at, past, str(error)))
        self._wrong, self._expanded = 0, self._expanded + 1
        if looping.tells_expansions:
            told = f"[Expanded message {name} to full content at agent's request]"
            yield from self._note(running, at, past, told)
        else:  # Nothing is said of it: the request goes to the model anew, with the message whole.
            yield from self._hide_reply(running, at, past, name)
        yield from running.end_step(record, output=f"{name} is shown whole")
        return None

    def _is_whole(self, name: str | int) -> bool:
        entries = self._chat.view.entries
        named = [entry for entry in entries if name in (entry.handle, entry.id)]
        return bool(named) and not any(entry.shrunk for entry in named)

    def _hide_reply(self, running: Running, at: int, past: _Past, name: str) -> Act[None]:
        id = past.reply
        if not id:
            (step, *_) = yield Do(partial(self._chat.steps, running.run.id, at - 1))
            id = step.message
        if any(entry.id == id for entry in self._chat.view.entries):
            why = f"The step was carried out: {name} is shown whole"
            yield Do(partial(self._chat.edit, Hide(Target(id), OWN, why)))

    # ------------------------------------------------------------------------------------------------------ sub-agents

    def _hand_over(self, running: Running, step: SubAgent, at: int, past: _Past) -> Act[None]:
        """Let a sub-agent do a task, to its end, in a conversation of its own; tell what it came to."""
        name, started = word(step.name), time.monotonic()
        call = ToolCall(f"{at}.1", step.name, json.dumps({"task": step.task}, ensure_ascii=False))
        record = past.steps.get(call.call_id)
        if record is not None and past.has_told(running.run.id, record.number):
            return
        yield Called(call)
        if record is None:
            record = yield from running.begin_step("sub-agent", step.name, call=call.call_id, input=step.task)
        sub = self._looping.sub_agents.get(step.name)
        if record.state == "running":
            text, state = yield from self._come_to(running, sub, step, record)
            error = "" if state == "ok" else text
            record = yield from running.end_step(record, output=text, error=error)
        state = "ok" if record.state == "done" else "error"
        content: tuple[Content, ...] = (Text(record.output),)
        message = result_message(name, content, state, what="Result of the sub-agent")
        lease = self._opened.leases.of_sub_agent(name, sub.result_lease if sub else None)
        called = step_name(running.run.id, record.number)
        (id,) = yield Do(partial(self._chat.append, message, lease=lease, step=called))
        yield from running.link_step(record, id)
        yield Answered(call, ToolResult(call.call_id, content, state, step.name), time.monotonic() - started)

    def _come_to(
        self, running: Running, sub: Looping | None, step: SubAgent, record: AgentRunStep
    ) -> Act[tuple[str, State]]:
        """What a sub-agent came to, in words for the agent. A failure of its own is no failure of this run."""
        if sub is None:
            known = ", ".join(self._looping.sub_agents) or "none"
            return f"There is no sub-agent {word(step.name)[:80]!r}. Those you have: {known}.", "error"
        if reason := running.reached():
            return f"{sub.name} was not asked: the limit of {reason} is reached.", "error"
        try:
            outcome = yield from self._inside(running, sub, record, step.task)
        except StoreError:
            raise
        except Exception as error:
            _log.warning("the sub-agent %s failed", sub.name, exc_info=error)
            return failure(sub.name, error), "error"
        run = outcome.run
        match run.state:
            case "waiting":
                return f"{sub.name} asks: {outcome.text}\nHand it the task again, with the answer.", "ok"
            case "stopped":
                last = f" Its last words: {outcome.text}" if outcome.text else ""
                return f"{sub.name} reached the limit of {run.reason} before it was done.{last}", "error"
            case "failed":
                return f"{sub.name} gave up: {run.reason}", "error"
        return outcome.text, "ok"

    def _inside(self, running: Running, sub: Looping, record: AgentRunStep, task: str) -> Act[Outcome]:
        """The run of a sub-agent, begun or taken up, within what is left of this run's limits."""
        called = step_name(record.run, record.number)
        opened: Opened = yield Do(partial(self._opener, sub, f"{self._chat.name}/{called}", self._opened))
        looper = Looper(sub, opened, self._opener, self._new_id)
        since = (self._looping.clock() - running.since) / 1000
        limits = within(sub.limits, left(running.limits, running.run, since))
        try:
            is_begun = bool((yield Do(opened.conversation.runs)))
            act = looper.resume(streams=False, limits=limits) if is_begun else None
            act = act or looper.begin(task, streams=False, limits=limits, parent=called)
            return (yield from quiet(act))
        finally:
            if (ran := looper._running) is not None:
                running.limits = left(spent(running.limits, limits, ran.limits), ran.run)
            yield Do(opened.conversation.close)

    def _recount(self, running: Running, step: AgentRunStep) -> Act[None]:
        """Count what a sub-agent used before this run was taken up."""
        sub = self._looping.sub_agents.get(step.name)
        if sub is None or step.state == "running":
            return
        name = f"{self._chat.name}/{step_name(step.run, step.number)}"
        opened: Opened = yield Do(partial(self._opener, sub, name, self._opened))
        try:
            for run in (yield Do(opened.conversation.runs)):
                running.limits = left(running.limits, run)
        finally:
            yield Do(opened.conversation.close)


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
