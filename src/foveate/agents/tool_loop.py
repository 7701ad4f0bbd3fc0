"""The loop of an agent that calls tools: call the model, answer its calls, until it answers without a call.

Before a new input is appended, the loop closes what an earlier run left open. So the next request is always legal, and
nothing is done twice.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ..conversation import HistoryEntry
from ..core.messages import Message, ToolCall, ToolResult
from ..core.runs import AgentRun, AgentRunStep, step_of
from ..core.stamps import Lease, is_interrupted
from ..errors import BadInput, BadSetting
from ..expand.tool import NAMES
from .agent_catalog import AgentCatalog
from .config import AgentConfig, WrongAnswer
from .delegation import Delegation
from .effects import Call, Routine
from .events import Outcome, RunEnded
from .limits import LIMIT_REASONS
from .lock import ConversationLock
from .run import Run, is_blank, is_open, new_record, newest_run, storable_name, task_of
from .tool_calls import CONTINUE, CONTINUE_STOPPED, CUT, answer_calls, is_unfinished, refusal_reason, unfit_calls

if TYPE_CHECKING:
    from ..conversation import AsyncConversation, Conversation
    from ..conversation.exchange import ModelChoice

__all__ = ["ToolLoop"]

_ANSWER_TRIES = 3
"""How often the model may try to answer with a value of `result_type`."""


class ToolLoop:
    """One agent in one conversation. Its methods are routines (`effects.py`)."""

    def __init__(
        self,
        config: AgentConfig,
        conversation: Conversation | AsyncConversation,
        delegation: Delegation,
        outer: Run | None,
        parent: str,
    ) -> None:
        """Of a sub-agent, `outer`: the run of the agent around it; `parent`: name of the step that gave the task.

        Raises BadSetting if model and conversation have different formats.
        """
        model = config.model
        assert model is not None, "`LoopFactory` fills in the model of the agent around it."
        if conversation.format.name != model.format:
            raise BadSetting(
                f"The model {model.name} has the format {model.format}, but conversation {conversation.name!r} was "
                f"opened with {conversation.format.name}. Leave format= out."
            )
        self._config, self._model = config, model
        self._chat, self._delegation = conversation, delegation
        self._outer, self._parent = outer, parent
        store = conversation._agent.store if config.catalog is True else (config.catalog or None)
        self._catalog = AgentCatalog(config.name, store, conversation._agent.head.tenant, config.override)
        self._tools = self._wire_tools()
        self._settings = replace(config.tools, format_result=self._with_lease, delegation=delegation)
        self._lock = ConversationLock(conversation, lock_timeout=config.lock_timeout)
        window = getattr(model, "window", None)
        self._choice: ModelChoice = (
            (None, None)  # The agent opens the conversation for this model, with the options of the program.
            if isinstance(config.conversation, str)
            else conversation._agent.choice_for(model.name, window if isinstance(window, int) else None)
        )
        """Model and window that each request names, for a conversation that may be opened for another model."""
        self._clean_length: int | None = None
        """Length of the history when nothing in it was open. None: unknown."""

    def begin(self, content: object, *, streams: bool) -> Routine[Outcome]:
        """Append an input, and run until the model has answered it.

        Raises BadInput for blank text, and ConversationBusy if another agent works here; nothing is appended then.
        """
        if is_blank(content):
            raise BadInput("The input is blank. Pass a text that asks for something.")
        return (yield from self._lock.hold(partial(self._begin, content, streams), content))

    def _begin(self, content: object, streams: bool) -> Routine[Outcome]:
        yield Call(self._chat.refresh)
        yield from self._read_catalog()
        yield from self._close_earlier()
        record, before = self._new_record(""), len(self._chat)  # First, for `new_id` may fail.
        yield Call(partial(self._chat._agent.append, content, owner=self._lock.owner))
        record = replace(record, task=(yield from task_of(self._chat, before)))
        return (yield from self._perform(self._run(record, streams)))

    def resume(self, *, streams: bool) -> Routine[Outcome]:
        """Continue where a run ended before the model had answered: broken off, failed, or stopped by a limit.

        A run that broke off continues as the same run; after a limit a new run begins. If the model has answered,
        nothing is done, and the outcome of the last run is returned. Raises BadInput if there is nothing to resume, and
        ConversationBusy if another agent works here.
        """
        return (yield from self._lock.hold(partial(self._resume, streams)))

    def _resume(self, streams: bool) -> Routine[Outcome]:
        yield Call(self._chat.refresh)
        yield from self._read_catalog()
        record = yield from newest_run(self._chat, self._config.name)
        newest = yield from self._newest()
        if newest is None or (record is None and _is_answer(newest)):
            raise BadInput("There is nothing to resume: the agent has not begun anything here. Send something.")
        is_answered = _is_answer(newest)
        if record is None or (
            not is_answered and (record.reason in LIMIT_REASONS or record.state in ("done", "waiting"))
        ):
            return (yield from self._perform(self._run(self._new_record(self._last_input()), streams)))
        if not is_answered:
            run = yield from self._resumed(record, streams)
            return (yield from self._perform(run))
        reason = refusal_reason(newest.stamp.stop)
        is_stored = record.state in ("done", "waiting") or (record.state == "failed" and record.reason == reason)
        if not is_stored and _is_of(newest, record):  # The run had ended, but its record does not say so.
            run = yield from self._resumed(record, streams)
            if reason:
                return (yield from run.finish("failed", newest.message.text, reason))
            if outcome := (yield from self._answer(run, newest.message.text)):
                return outcome
            return (yield from self._perform(run))
        run = self._run(record, streams)
        yield from self._delegation.count_earlier(run)
        yield RunEnded(run.outcome)
        return run.outcome

    def _resumed(self, record: AgentRun, streams: bool) -> Routine[Run]:
        """Return a run that broke off, with all that it used."""
        run = self._run(record, streams)
        yield from run.resume()
        yield from self._delegation.count_earlier(run)
        return run

    # ----------------------------------------------------------------------------------------------------- the catalog

    def _read_catalog(self) -> Routine[None]:
        """Read the catalog for one run."""
        yield Call(self._catalog.read, is_slow=True)
        self._tools = self._wire_tools()

    def _wire_tools(self) -> list[dict[str, Any]]:
        """Return the definitions of the tools, with the catalog's words about them."""
        tools = self._config.tools.tools.values()
        return [self._catalog.described(tool).wire(self._chat.format.name) for tool in tools]

    def _with_lease(self, result: ToolResult) -> tuple[Message, Lease | None]:
        """Return the message of a result, with the lease of its tool for this agent."""
        tool = self._config.tools.find(result.name)
        return Message("tool", (result,)), self._catalog.lease_of_tool(tool) if tool else None

    # -------------------------------------------------------------------------------------------------------- the loop

    def _perform(self, run: Run) -> Routine[Outcome]:
        self._clean_length = None
        outcome = yield from run.perform(partial(self._loop, run))
        self._clean_length = len(self._chat)
        return outcome

    def _loop(self, run: Run) -> Routine[Outcome]:
        text, tries, config = "", 0, self._config
        yield from self._answer_open(run)
        newest = yield from self._newest()
        if newest is not None and (request := _continue_request(newest)):
            yield from run.append(request, origin="derived")
        while True:
            if reason := run.limit_reached():
                return (yield from run.finish("stopped", text, reason))
            reply: Message = yield from run.call_model(system=config.system, tools=self._tools)
            text = reply.text or text
            if reply.calls:
                calls = yield from self._open_calls()
                yield from answer_calls(run, self._settings, calls, unfit=unfit_calls(reply, run.stop, calls))
            if reason := refusal_reason(run.stop):
                return (yield from run.finish("failed", reply.text, reason))
            if reply.calls:
                continue
            if run.stop is not None and run.stop.kind == CUT:
                return (yield from run.finish("stopped", reply.text, CUT))
            if not is_unfinished(run.stop):  # The provider did not pause: this is an answer.
                tries += 1
                if outcome := (yield from self._answer(run, reply.text, tries)):
                    return outcome

    def _answer(self, run: Run, text: str, tries: int = 1) -> Routine[Outcome | None]:
        """End a run whose model has answered. Returns None if the answer is no value of `result_type` and is redone."""
        result_type = self._config.result_type
        if result_type is None:
            return (yield from run.finish("done", text))
        try:
            value = result_type.read(text)
        except WrongAnswer as error:
            if tries < _ANSWER_TRIES:
                yield from run.append(str(error))
                return None
            reason = f"no answer of the type {result_type.name} in {tries} tries: {error}"
            return (yield from run.finish("failed", text, reason))
        return (yield from run.finish("done", text, value=value))

    # ------------------------------------------------------------------------------------------------------ open calls

    def _open_calls(self) -> Routine[tuple[ToolCall, ...]]:
        """Return the unanswered calls of the newest reply, without those that the conversation itself answers."""
        own = NAMES.difference(self._config.tools.tools) if self._chat._agent.answers_expand else frozenset()
        calls: tuple[ToolCall, ...] = yield Call(self._chat.open_calls)
        return tuple(call for call in calls if call.name not in own)

    def _answer_open(self, run: Run) -> Routine[None]:
        """Answer the calls that an earlier run left open.

        A call whose step holds its result is answered from there. A call that was not begun is carried out. A call that
        was begun, and whose end is unknown, is carried out again only if its tool is repeatable; else its result says
        that its end is unknown.
        """
        calls = yield from self._open_calls()
        if not calls:
            return
        entries = reversed(self._chat.view.entries)
        newest = next(entry for entry in entries if entry.outline and entry.outline.role == "assistant")
        reply, stamp = newest.source or newest.message, newest.stamp
        unfit = unfit_calls(reply, stamp.stop, calls)
        if not stamp.step:  # Another program called the model, and may have begun to answer.
            unknown = dict.fromkeys(range(len(calls)))
            yield from answer_calls(run, self._settings, calls, unknown, unfit)
            return
        steps: list[AgentRunStep] = yield from self._steps_since(stamp.step, stamp.turn)
        earlier: dict[int, AgentRunStep | None] = {}
        for place, call in enumerate(calls):
            key = storable_name(call.call_id), storable_name(call.name), call.arguments
            same = [step for step in steps if (step.call, step.name, step.input) == key]
            if same:
                earlier[place] = same[-1]
        yield from answer_calls(run, self._settings, calls, earlier, unfit)

    def _steps_since(self, reply: str, turn: int) -> Routine[list[AgentRunStep]]:
        """Return the steps that answer the calls of a reply, of its run and of later ones. `reply`: its step."""
        first, number = step_of(reply)
        runs: list[AgentRun] = yield Call(self._chat.journal.runs)
        ids = [run.id for run in runs]
        steps: list[AgentRunStep] = yield Call(partial(self._chat.journal.steps, first, number))
        # In a fork, the first run is stored under the name of the conversation that it came from.
        for id in ids[ids.index(first) + 1 :] if first in ids else ids:
            steps += yield Call(partial(self._chat.journal.steps, id))
        return [step for step in steps if step.kind in ("action", "sub-agent") and step.turn == turn]

    # ---------------------------------------------------------------------------------------------------- earlier runs

    def _close_earlier(self) -> Routine[None]:
        """Answer open calls, and close a run that broke off: after a new input it cannot be resumed."""
        has_open_calls = bool((yield from self._open_calls()))
        if not has_open_calls and (yield from self._is_clean()):
            return
        record = yield from newest_run(self._chat, self._config.name)
        has_answered = record is not None and (yield from self._has_answered(record))
        if has_open_calls or has_answered:
            must_close = True
        else:
            must_close = record is not None and (yield from is_open(self._chat, record))
        if not must_close:
            return
        run = yield from self._resumed(record or self._new_record(""), streams=False)
        if record is None:
            closed = replace(run.record, state="done", reason="It answered calls that another program had left open.")
        elif has_answered:
            newest = yield from self._newest()
            closed = replace(record, state="done", reason="", result=newest.message.text if newest else "")
        elif record.state == "running":
            closed = replace(record, state="stopped", reason="It broke off, and a new input came.", result="")
        else:
            closed = record
        yield from run.perform(partial(self._close, run, closed))

    def _close(self, run: Run, closed: AgentRun) -> Routine[Outcome]:
        yield from self._answer_open(run)
        yield from run.close(closed.state, closed.result, closed.reason)
        return run.outcome

    def _is_clean(self) -> Routine[bool]:
        """Return whether no agent has worked here since nothing was open."""
        if self._clean_length is None or self._lock.took_over:
            return False
        if len(self._chat) == self._clean_length:
            return True
        rows: list[HistoryEntry] = yield Call(partial(self._chat.history, self._clean_length + 1))
        return not any(row.stamp.step for row in rows)  # A message with a step comes from another agent.

    def _has_answered(self, record: AgentRun) -> Routine[bool]:
        """Return whether a run has its answer, and its record does not: it broke off there, or the store failed."""
        newest = yield from self._newest()
        is_stored = record.state not in ("running", "failed") or bool(record.result)
        if is_stored or newest is None or refusal_reason(newest.stamp.stop):
            return False
        return _is_answer(newest) and _is_of(newest, record)

    def _newest(self) -> Routine[HistoryEntry | None]:
        """Return the newest message, without originals that a program showed again."""
        for position in range(len(self._chat), 0, -1):
            rows: list[HistoryEntry] = yield Call(partial(self._chat.history, position, position))
            if rows[0].message.role != "user" or rows[0].stamp.expanded is None:
                return rows[0]
        return None

    def _last_input(self) -> str:
        view = self._chat.view
        entries = (entry for entry in view.entries if entry.position == view.last_input)
        return next((entry.outline.text for entry in entries if entry.outline), "")

    def _new_record(self, task: str) -> AgentRun:
        config = self._config
        return new_record(
            config.name, self._chat.name, task, id=config.new_id(), now=config.clock(), parent=self._parent
        )

    def _run(self, record: AgentRun, streams: bool) -> Run:
        config = self._config
        return Run(
            record,
            self._chat,
            self._model,
            limits=config.limits,
            clock=config.clock,
            cost=config.cost,
            streams=streams,
            options=config.options,
            owner=self._lock.owner,
            choice=self._choice,
            outer=self._outer,
        )


def _is_answer(row: HistoryEntry) -> bool:
    """Return whether this is a complete answer of the model, without calls."""
    is_last = row.message.role == "assistant" and not row.message.calls
    return is_last and not is_unfinished(row.stamp.stop)


def _continue_request(row: HistoryEntry) -> str:
    """Return a text that asks the model to continue this answer; "" if it was neither cut off nor stopped."""
    stop = row.stamp.stop
    if row.message.role != "assistant" or row.message.calls or stop is None:
        return ""
    if stop.kind == CUT:
        return CONTINUE
    # Without a text, the next request does not show it.
    return CONTINUE_STOPPED if is_interrupted(stop) and row.message.text.strip() else ""


def _is_of(row: HistoryEntry, run: AgentRun) -> bool:
    return bool(row.stamp.step) and step_of(row.stamp.step)[0] == run.id
