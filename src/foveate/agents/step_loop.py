"""The loop of an agent whose model answers with next steps: carry out the step, call the model again.

The result of a step is stored in the records of the run before the next thing begins, and appended in a message that
names its step. So a run that broke off anywhere can be resumed there, and nothing is done twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Literal

from msgspec.structs import replace

from ..conversation import HistoryEntry
from ..core.edits import Hide, Target
from ..core.handles import parse_handle
from ..core.messages import Message, ToolCall, ToolResult, user
from ..core.runs import AgentRun, AgentRunStep, step_name
from ..core.stamps import Lease, is_interrupted
from ..errors import BadEdit, BadInput, MissingExtra
from .delegation import Delegation, EarlierStep
from .effects import Call, Routine
from .events import Outcome, RunEnded
from .limits import LIMIT_REASONS
from .lock import ConversationLock
from .loop_config import LoopConfig
from .resources import OWN_POLICY, Session
from .result_content import merged_message, result_message, sendable
from .run import PAGE, Run, is_blank, is_open, new_record, newest_run, storable_name, task_of
from .steps import Actions, BadStep, Chat, ExpandMessage, Failed, NextStep, Retry, SubAgents, Success, read_step
from .tool_calls import ToolSettings, answer_calls, refusal_reason

__all__ = ["StepLoop"]

_log = logging.getLogger("foveate")
_NOTE_LEASE = Lease(message_type="retry-context")
_EXCERPT_LEASE = Lease(message_type="action-result", action_id="expand-message")
_INVALID = (
    "Your answer could not be carried out: {why}. Answer again, with one JSON object as your instructions describe it."
)
_STOPPED = "Your answer was stopped here. Answer again, with one JSON object as your instructions describe it."
_CUT_OFF = "it was cut off, for it was as long as it may be; say less, or do it in several steps"


class StepLoop:
    """One agent in one conversation. Its methods are routines (`effects.py`)."""

    def __init__(
        self,
        config: LoopConfig,
        session: Session,
        delegation: Delegation,
        new_id: Callable[[], str],
        outer: Run | None,
        parent: str,
    ) -> None:
        """`new_id`: returns ids of runs. Of a sub-agent, `outer`: the run of the agent around it; `parent`: name of the
        step that gave the task.
        """
        self._config, self._session, self._delegation = config, session, delegation
        self._new_id, self._outer, self._parent = new_id, outer, parent
        self._chat = session.conversation
        self._lock = ConversationLock(self._chat, lock_timeout=config.lock_timeout)
        self._system = config.system
        self._invalid_steps = 0
        """Answers in a row that could not be carried out."""
        self._expansions = 0
        """Expansions in a row without another step."""
        self._clean_length: int | None = None
        """Length of the history when the newest run had ended and its record said so. None: unknown."""

    # ------------------------------------------------------------------------------------------------------------ runs

    def begin(self, content: object, *, streams: bool) -> Routine[Outcome]:
        """Run from a task, or the user's answer, to the end. `content`: what `Conversation.append` takes.

        Raises BadInput for a blank task, and ConversationBusy if another agent works here; nothing is appended then.
        """
        if is_blank(content):
            raise BadInput("The task is blank. Pass a text that says what is to be done.")
        return (yield from self._lock.hold(partial(self._begin, content, streams), content))

    def _begin(self, content: object, streams: bool) -> Routine[Outcome]:
        yield Call(self._chat.refresh)
        yield from self._read_catalog()
        is_clean = len(self._chat) == self._clean_length and not self._lock.took_over
        earlier = None if is_clean else (yield from newest_run(self._chat, self._config.name))
        if earlier is not None and (yield from is_open(self._chat, earlier)):
            broken = self._new_run(earlier, streams=False)
            yield from broken.resume()
            yield from broken.fail_open_steps()
            state, reason = (earlier.state, earlier.reason) if earlier.ended else ("stopped", "it broke off")
            yield from broken.close(state, earlier.result, reason)
        run, before = self._new_run(self._new_record(""), streams), len(self._chat)
        # The input is appended before the record is stored, which could not repeat its images.
        yield from run.append(content, step=step_name(run.record.id, 0))
        run.record = replace(run.record, task=(yield from task_of(self._chat, before)))
        return (yield from self._perform(run, partial(self._loop, run)))

    def resume(self, *, streams: bool) -> Routine[Outcome]:
        """Continue where a run ended before it was done: broken off, failed, or stopped by a limit.

        A run that broke off continues as the same run; after a limit a new run begins. Of a run that is done, or waits
        for the user, the outcome is returned again. Raises BadInput if there was no run, and ConversationBusy if
        another agent works here.
        """
        return (yield from self._lock.hold(partial(self._resume, streams)))

    def _resume(self, streams: bool) -> Routine[Outcome]:
        yield Call(self._chat.refresh)
        yield from self._read_catalog()
        record = yield from newest_run(self._chat, self._config.name)
        if (unrecorded := (yield from self._unrecorded())) is not None:
            run = self._new_run(unrecorded, streams)
            return (yield from self._perform(run, partial(self._loop, run)))
        if record is None:
            raise BadInput(f"There is nothing to resume: {self._config.name} has not run in {self._chat.name!r}.")
        if record.state in ("done", "waiting"):
            run = self._new_run(record, streams)
            yield from self._delegation.count_earlier(run)
            yield RunEnded(run.outcome)
            return run.outcome
        if record.state == "stopped" and record.reason in LIMIT_REASONS:
            run = self._new_run(self._new_record(record.task), streams)
            return (yield from self._perform(run, partial(self._loop, run)))
        run = self._new_run(record, streams)
        yield from run.resume()
        return (yield from self._perform(run, partial(self._continue, run)))

    def _read_catalog(self) -> Routine[None]:
        """Read the catalog for one run: the leases of results, and the system prompt with its words about actions."""
        config, catalog = self._config, self._session.catalog
        yield Call(catalog.read, is_slow=True)
        is_described = catalog.describes(config.actions)
        self._system = config.described_system(catalog.described) if is_described else config.system

    def _perform(self, run: Run, routine: Callable[[], Routine[Outcome]]) -> Routine[Outcome]:
        self._clean_length = None
        outcome = yield from run.perform(routine)
        self._clean_length = len(self._chat)
        return outcome

    def _new_record(self, task: str) -> AgentRun:
        now = self._config.clock()
        return new_record(self._config.name, self._chat.name, task, id=self._new_id(), now=now, parent=self._parent)

    def _new_run(self, record: AgentRun, streams: bool) -> Run:
        self._invalid_steps = self._expansions = 0
        return Run(
            record,
            self._chat,
            self._session.model,
            limits=self._config.limits,
            clock=self._config.clock,
            cost=self._session.cost,
            streams=streams,
            options=self._config.options,
            owner=self._lock.owner,
            outer=self._outer,
        )

    # -------------------------------------------------------------------------------------------------------- the loop

    def _unrecorded(self) -> Routine[AgentRun | None]:
        """Return the record of a run that broke off when its input was appended and its record was not stored."""
        rows: list[HistoryEntry] = yield Call(partial(self._chat.history, max(1, len(self._chat) - PAGE + 1)))
        id, _, number = rows[-1].stamp.step.rpartition("/") if rows else ("", "", "")
        runs: list[AgentRun] = (yield Call(self._chat.journal.runs)) if number == "0" else []
        if number != "0" or any(run.id == id for run in runs):
            return None
        first = next(row.position for row in rows if row.stamp.step == rows[-1].stamp.step)
        return replace(self._new_record((yield from task_of(self._chat, first - 1))), id=id)

    def _continue(self, run: Run) -> Routine[Outcome]:
        """Continue after the last message of the run in the history."""
        id = run.record.id
        rows = yield from self._newest_rows(run)
        if not rows and not self._ends_with_input():  # Earlier versions stored the record before its task.
            yield from run.append(run.record.task, step=step_name(id, 0))
        replies = [row for row in rows if _is_reply(row, id)]
        yield from self._delegation.count_earlier(run)
        if replies:
            reply = replies[-1]
            at = int(reply.stamp.step.rpartition("/")[2])
            steps: list[AgentRunStep] = yield Call(partial(self._chat.journal.steps, id, at))
            messages = frozenset(row.stamp.step for row in rows if row.position > reply.position)
            run.stop = reply.stamp.stop
            earlier = EarlierStep(reply.id, messages, tuple(steps))
            outcome = yield from self._carry_out(run, reply.message, at, earlier)
            if outcome is not None:
                return outcome
        return (yield from self._loop(run))

    def _newest_rows(self, run: Run) -> Routine[list[HistoryEntry]]:
        """Return a run's messages from its newest reply on, or else from its task. Reads from the end."""
        id, rows, last = run.record.id, list[HistoryEntry](), len(self._chat)
        while last > 0:
            page: list[HistoryEntry] = yield Call(partial(self._chat.history, max(1, last - PAGE + 1), last))
            own = [row for row in page if row.stamp.step.rpartition("/")[0] == id]
            rows = own + rows
            is_complete = any(row.message.role == "assistant" or row.stamp.step == step_name(id, 0) for row in own)
            if is_complete or page[0].stamp.turn < run.first_turn:
                break
            last -= PAGE
        return rows

    def _ends_with_input(self) -> bool:
        """Return whether the view ends with a message for the model."""
        entries = self._chat.view.entries
        return bool(entries) and entries[-1].message.role != "assistant"

    def _loop(self, run: Run) -> Routine[Outcome]:
        text = ""
        while True:
            if reason := run.limit_reached():
                return (yield from run.finish("stopped", text, reason))
            reply: Message = yield from run.call_model(system=self._system)
            text = reply.text or text
            outcome = yield from self._carry_out(run, reply, run.number, EarlierStep())
            if outcome is not None:
                return outcome

    def _carry_out(self, run: Run, reply: Message, at: int, earlier: EarlierStep) -> Routine[Outcome | None]:
        """Carry out the step in a reply. `at`: number of the step that the reply comes from."""
        if reply.calls and self._chat._agent.answers_expand and not reply.text.strip():
            return None  # The reply calls the tool `expand`, which the conversation has answered.
        if reason := refusal_reason(run.stop):
            return (yield from run.finish("failed", reply.text, reason))
        if run.stop is not None and run.stop.kind == "paused":
            return None  # The provider paused: the next call continues.
        if is_interrupted(run.stop):
            if reply.text.strip():  # Otherwise the next request does not show it.
                yield from self._note(run, at, earlier, _STOPPED)
            return None
        try:
            step = read_step(reply.text)
        except BadStep as error:
            why = _CUT_OFF if run.stop is not None and run.stop.kind == "length" else str(error)
            return (yield from self._refuse(run, at, earlier, why))
        if self._config.verbose:
            _log.info("[Turn %d] %s: %s", self._chat.view.turn - 1, self._config.name, _describe(step))
        if not isinstance(step, ExpandMessage):
            self._invalid_steps = self._expansions = 0
        match step:
            case Actions():
                yield from self._carry_out_actions(run, step, at, earlier)
            case SubAgents(tasks):
                yield from self._delegation.delegate(run, tasks, at, earlier, self._session.catalog)
            case ExpandMessage():
                return (yield from self._expand(run, step, at, earlier))
            case Retry(reason):
                yield from self._keep_step(run, "retry", reason, at, earlier)
                yield from self._note(run, at, earlier, f"Go on: {reason}" if reason else "Go on.")
            case Chat(message):
                yield from self._keep_step(run, "chat", message, at, earlier)
                return (yield from run.finish("waiting", message))
            case Success(message):
                return (yield from run.finish("done", message))
            case Failed(reason):
                return (yield from run.finish("failed", "", reason))
        return None

    def _keep_step(
        self, run: Run, kind: Literal["chat", "retry"], text: str, at: int, earlier: EarlierStep
    ) -> Routine[None]:
        """Store a step that needs nothing to be done."""
        record = earlier.find(f"{at}.1")
        if record is None:
            record = yield from run.begin_step(kind, kind, call=f"{at}.1", input=text)
        if record.state == "running":
            yield from run.end_step(record)

    def _refuse(self, run: Run, at: int, earlier: EarlierStep, why: str) -> Routine[Outcome | None]:
        """Tell the model what is wrong with its answer. Too many wrong answers in a row end the run."""
        self._invalid_steps += 1
        if self._invalid_steps > self._config.max_invalid_steps:
            reason = f"{self._invalid_steps} answers in a row could not be carried out; of the last one: {why}"
            return (yield from run.finish("failed", "", reason))
        yield from self._note(run, at, earlier, _INVALID.format(why=why.rstrip(".")))
        return None

    def _note(self, run: Run, at: int, earlier: EarlierStep, text: str) -> Routine[None]:
        """Append a note for the model, so that the next request ends with a message of role user."""
        if not earlier.has_message(run.record.id, at):
            name = step_name(run.record.id, at)
            yield from run.append(user(sendable(text)), lease=_NOTE_LEASE, step=name)

    # --------------------------------------------------------------------------------------------------------- actions

    def _carry_out_actions(self, run: Run, step: Actions, at: int, earlier: EarlierStep) -> Routine[None]:
        """Carry out the actions of a step. Results are messages of role user: one each, in order, or one for all."""
        config, id = self._config, run.record.id
        calls = [
            ToolCall(f"{at}.{place}", action.name, action.arguments) for place, action in enumerate(step.actions, 1)
        ]
        records = [earlier.find(call.call_id) for call in calls]
        results: list[tuple[Message, Lease]] = []
        failed = 0

        def format_result(result: ToolResult) -> tuple[Message, Lease] | None:
            nonlocal failed
            place = int(result.call_id.rpartition(".")[2])
            tool = settings.find(step.actions[place - 1].name)
            name = tool.name if tool else storable_name(step.actions[place - 1].name)
            message = result_message(name, result.content, result.state, place, len(calls))
            results.append((message, self._session.catalog.lease_of_action(name, tool)))
            failed += result.state != "ok"
            return None if config.merge_results else results[-1]

        def has_message(place: int) -> bool:
            record = records[0 if config.merge_results else place]
            return record is not None and earlier.has_message(id, record.number)

        places = [place for place in range(len(calls)) if not has_message(place)]
        settings = ToolSettings(
            config.actions,
            config.approve,
            max_parallel=config.max_parallel,
            format_result=format_result,
            noun="action",
        )
        begun = {n: records[place] for n, place in enumerate(places) if records[place] is not None}
        yield from answer_calls(run, settings, [calls[place] for place in places], begun)
        if config.merge_results and results:
            steps: list[AgentRunStep] = yield Call(partial(self._chat.journal.steps, id, at))
            shown, leases = zip(*results, strict=True)
            counting: list[Lease] = []
            for each in leases:
                counting.append((yield Call(partial(self._chat._agent.lease_that_counts, each))))
            message, lease = merged_message(shown, leases, counting, failed)
            name = step_name(id, steps[0].number)  # A message names one step: the first.
            (message_id,) = yield from run.append(message, lease=lease, step=name)
            for record in steps:
                yield from run.link_step(record, message_id)

    # ------------------------------------------------------------------------------------------------------- expansion

    def _expand(self, run: Run, step: ExpandMessage, at: int, earlier: EarlierStep) -> Routine[Outcome | None]:
        """Show a message in full again. If that fails, the model receives a note, and nothing changes."""
        name, config = str(step.message), self._config
        record = earlier.find(f"{at}.1")
        if record is not None and record.state == "failed":
            return (yield from self._refuse(run, at, earlier, record.error))
        if record is not None and record.state == "done":
            return None
        if self._expansions >= config.max_expansions:
            why = f"{self._expansions} messages in a row were expanded, and nothing else was done; choose another step"
            return (yield from self._refuse(run, at, earlier, why))
        is_repeated = record is not None
        if record is None:
            record = yield from run.begin_step("expand", name, call=f"{at}.1", input=step.reason)
        output = f"{name} is shown whole"
        try:
            if step.part:
                output = yield from self._show_part(run, step, record, earlier)
            else:
                yield Call(partial(self._chat._agent.expand, step.message, reason=step.reason))
        except (BadInput, MissingExtra) as error:
            if step.part or not (is_repeated and self._is_complete(step.message)):
                yield from run.end_step(record, error=str(error))
                return (yield from self._refuse(run, at, earlier, str(error)))
        self._invalid_steps, self._expansions = 0, self._expansions + 1
        # Without a note, the model gets the same request again, with the full message in it.
        if not step.part and (config.announce_expansions or not (yield from self._hide_reply(run, at, earlier, name))):
            yield from self._note(run, at, earlier, f"[Expanded message {name} to full content at agent's request]")
        yield from run.end_step(record, output=output)
        return None

    def _show_part(self, run: Run, step: ExpandMessage, record: AgentRunStep, earlier: EarlierStep) -> Routine[str]:
        """Append a part of a message. It expires like the message that it belongs to."""
        excerpt = yield Call(partial(self._chat._agent.expand, step.message, **step.part))
        if not earlier.has_message(run.record.id, record.number):
            place = parse_handle(excerpt.handle).first
            (row,) = yield Call(partial(self._chat.history, place, place))
            name = step_name(record.run, record.number)
            yield from run.append(user(str(excerpt)), lease=row.stamp.lease or _EXCERPT_LEASE, step=name)
        return str(excerpt)

    def _is_complete(self, name: str | int) -> bool:
        """Return whether the view shows a message in full."""
        entries = [
            entry for index, entry in enumerate(self._chat.view.entries) if name in (index, entry.handle, entry.id)
        ]
        return bool(entries) and not any(entry.shrunk for entry in entries)

    def _hide_reply(self, run: Run, at: int, earlier: EarlierStep, name: str) -> Routine[bool]:
        """Hide the reply that asked for an expansion. Return whether that succeeded."""
        id = earlier.reply
        if not id:
            (step, *_) = yield Call(partial(self._chat.journal.steps, run.record.id, at - 1))
            id = step.message
        if any(entry.id == id for entry in self._chat.view.entries):
            why = f"The step was carried out: {name} is shown whole"
            try:
                yield Call(partial(self._chat.edit, Hide(Target(id), OWN_POLICY, why)))
            except BadEdit:  # The reply is pinned.
                return False
        return True


def _is_reply(row: HistoryEntry, run: str) -> bool:
    """Return whether this is a reply in a run, and no earlier turn that came with its task."""
    return row.message.role == "assistant" and row.stamp.step != step_name(run, 0)


def _describe(step: NextStep) -> str:
    """Return a step as one line for people."""
    match step:
        case Actions(actions):
            return f"Actions: {', '.join(action.name for action in actions)}"
        case SubAgents(tasks):
            return f"Sub-Agent: {', '.join(task.name for task in tasks)}"
        case ExpandMessage(message):
            return f"expand-message: {message}"
        case Chat(text) | Success(text):
            return f"{type(step).__name__}: {text}"
        case Retry(reason) | Failed(reason):
            return f"{type(step).__name__}: {reason}"
