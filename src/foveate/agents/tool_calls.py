"""Calls of tools: each call of a reply is carried out as a step of the run, and answered by one result.

Results are appended in the order of the calls. Every failure becomes a result: an unknown tool, wrong arguments, an
error, a time limit, a refused approval. A result is stored in full in its step before it is appended, so a call that
was carried out is never carried out again, and no result is lost.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from ..conversation import validate
from ..core.messages import Content, Message, ResultState, Text, ToolCall, ToolResult
from ..core.runs import AgentRunStep, StepKind, step_name
from ..core.stamps import Lease, Stop
from ..core.tool_names import find_named
from ..errors import BadInput, BadSetting, StoreError
from .concurrency import call_in_thread
from .effects import Call, CallTimeout, FinishedCall, NextCall, Routine, StartCalls
from .events import ToolAnswered, ToolCalled
from .result_content import content_of, decode_content, encode_content, error_trace, failure_text, limit_size, sendable
from .run import Run
from .tools import OutcomeUnknown, Tool

if TYPE_CHECKING:
    from .delegation import Delegation

__all__ = [
    "CONTINUE",
    "CONTINUE_STOPPED",
    "CUT",
    "Approver",
    "ResultFormatter",
    "ToolSettings",
    "answer_calls",
    "is_unfinished",
    "refusal_reason",
    "unfit_calls",
]

_log = logging.getLogger("foveate")
_UNKNOWN = "Outcome unknown: "
"""Begins the error of a step whose call may have been carried out."""

Approver = Callable[[ToolCall], bool | str | Awaitable[bool | str]]
"""Decides whether a call may be carried out. Returns True, False, or a sentence why not, which the model receives."""

ResultFormatter = Callable[[ToolResult], tuple[Message, Lease | None] | None]
"""Returns the message that shows a result to the model, and its lease; None if the caller appends the message later."""


class ToolSettings(Struct, frozen=True):
    """The tools of an agent, and how their calls are answered."""

    tools: Mapping[str, Tool]
    """The tools, by the names that the model receives."""
    approve: Approver | None = None
    """Asked before a call of a tool that needs approval."""
    approve_all: bool = False
    """Whether `approve` is asked before every call."""
    max_parallel: int = 8
    """How many calls run at once."""
    format_result: ResultFormatter | None = None
    """Default: a message of role tool, with the lease of the tool."""
    noun: str = "tool"
    """The model's word for tools."""
    delegation: Delegation | None = None
    """Carries out the calls of tools that stand for sub-agents."""

    def find(self, name: str) -> Tool | None:
        """Return the tool that a model means by this name: `Query_Database` means `Query Database`."""
        return find_named(self.tools, name)

    def is_delegated(self, tool: Tool | None) -> bool:
        """Return whether a tool stands for a sub-agent."""
        return self.delegation is not None and tool is not None and self.delegation.has(tool.name)

    def needs_approval(self, tool: Tool) -> bool:
        """Return whether `approve` is asked before a call of this tool."""
        return self.approve_all or tool.needs_approval

    def check(self, *, asynchronous: bool) -> None:
        """Raise BadSetting if `approve` is missing, or something must be awaited and cannot be."""
        validate.integer("max_parallel= (calls that run at once)", self.max_parallel, 1)
        validate.instance("approve_all=", self.approve_all, bool, "True or False")
        asking = [name for name, tool in self.tools.items() if self.needs_approval(tool)]
        if self.approve is not None:
            validate.function("approve=", self.approve)
        elif asking:
            raise BadSetting(f"{', '.join(asking)} needs approval. Pass approve=, a function that decides.")
        if asynchronous:
            return
        if waiting := [name for name, tool in self.tools.items() if tool.is_async]:
            raise BadSetting(
                f"{', '.join(waiting)} must be awaited, and only an async agent can do that. Build the async agent."
            )
        if inspect.iscoroutinefunction(self.approve):
            raise BadSetting("approve= must be awaited, and only an async agent can do that. Build the async agent.")


def answer_calls(
    run: Run,
    settings: ToolSettings,
    calls: Sequence[ToolCall],
    earlier: Mapping[int, AgentRunStep | None] | None = None,
    unfit: Mapping[int, str] | None = None,
) -> Routine[None]:
    """Answer these calls, all of one reply.

    `earlier`: by place, the step of a call that was begun before, or None if that is unknown. `unfit`: by place, the
    answer to calls that are not carried out. Calls run in parallel if all their tools allow it (`Tool.is_parallel`),
    else one after another. Raises what `approve` raises, before any call is carried out.
    """
    pending = [_PendingCall(call) for call in calls]
    for place, item in enumerate(pending):
        if unfit and place in unfit:
            item.refuse(unfit[place])
        else:
            _look_up(item, settings)
        if earlier and place in earlier:
            _recall(item, earlier[place])
    for item in pending:
        if not item.has_answer and settings.needs_approval(item.known_tool):
            try:
                yield from _ask(item, settings)
            except Exception as error:
                run.end_with(error)
                raise
    are_parallel = all(item.has_answer or item.known_tool.is_parallel for item in pending)
    for batch in [pending] if are_parallel else [[item] for item in pending]:
        yield from _carry_out(run, settings, batch, pending)


class _PendingCall:
    """A call on its way to its result."""

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.tool: Tool | None = None
        self.arguments: dict[str, object] = {}
        self.step: AgentRunStep | None = None
        self.content: tuple[Content, ...] = ()
        self.state: ResultState = "ok"
        self.error = ""
        """For people: the error and its traceback."""
        self.seconds = 0.0
        self.has_answer = False
        """Whether `content` and `state` are known."""
        self.is_stored = False
        """Whether the step holds them."""
        self.is_appended = False

    @property
    def known_tool(self) -> Tool:
        assert self.tool is not None, "A call of an unknown tool is answered before this is read."
        return self.tool

    def answer(self, content: tuple[Content, ...], state: ResultState = "ok", error: str = "") -> None:
        self.content, self.state, self.error, self.has_answer = content, state, error, True

    def refuse(self, text: str, error: str = "") -> None:
        self.answer((Text(sendable(text)),), "error", error or text)

    def leave_open(self, text: str) -> None:
        """Answer that the outcome is unknown."""
        self.answer((Text(sendable(text)),), "interrupted", f"{_UNKNOWN}{text}")


def _look_up(item: _PendingCall, settings: ToolSettings) -> None:
    """Find the tool, and read the arguments."""
    item.tool = settings.find(item.call.name)
    if item.tool is None:
        known = ", ".join(settings.tools) or "none"
        item.refuse(f"There is no {settings.noun} {item.call.name[:80]!r}. The {settings.noun}s you have: {known}.")
        return
    try:
        item.arguments = item.tool.arguments(item.call.arguments)
    except BadInput as error:
        item.refuse(str(error))


def _recall(item: _PendingCall, step: AgentRunStep | None) -> None:
    """Take over what is known of a call that was begun before."""
    item.step = step
    if step is not None and step.state != "running":
        content, is_complete = limit_size(item.call.name, decode_content(step.output))
        state: ResultState = "ok" if step.state == "done" and is_complete else "error"
        item.answer(content, "interrupted" if step.error.startswith(_UNKNOWN) else state)
        item.is_stored = True
    elif not item.has_answer and not item.known_tool.is_repeatable:
        item.leave_open(
            f"It is not known whether {item.call.name} was carried out: the run broke off while it was going on. Look "
            "what became of it before you call it again."
        )


def _ask(item: _PendingCall, settings: ToolSettings) -> Routine[None]:
    """Ask whether the call may be carried out."""
    assert settings.approve is not None, "`ToolSettings.check` requires approve=."
    answer = yield Call(partial(settings.approve, item.call), is_slow=True, asks_user=True)
    match answer:
        case True:
            return
        case False:
            item.refuse(f"The user did not allow this call of {item.call.name}. Do not make it again.")
        case str() if answer.strip():
            item.refuse(f"The user did not allow this call of {item.call.name}: {answer}")
        case _:
            raise BadSetting(
                f"approve= returned {answer!r:.60} for {item.call.name}. It must return True, False, or a sentence "
                "why not."
            )


def _carry_out(
    run: Run, settings: ToolSettings, batch: Sequence[_PendingCall], pending: Sequence[_PendingCall]
) -> Routine[None]:
    """Carry out a batch of calls in parallel. Append results as soon as no earlier one is missing."""
    for item in batch:
        if not item.is_stored:
            yield ToolCalled(item.call)
    for item in batch:  # After all events: a consumer that leaves during an event leaves no call begun.
        if not item.is_stored:
            if item.step is None:  # A call that is repeated keeps its step.
                kind: StepKind = "sub-agent" if settings.is_delegated(item.tool) else "action"
                call = item.call
                item.step = yield from run.begin_step(kind, call.name, call=call.call_id, input=call.arguments)
            if item.has_answer:
                yield from _store(run, item)
    yield from _append(run, settings, pending)
    waiting = [item for item in batch if not item.has_answer]
    handed = [item for item in waiting if settings.is_delegated(item.tool)]
    called = [item for item in waiting if item not in handed]
    calls = [_call(run, settings, called, pending)] if called else []
    if settings.delegation is None or not handed:
        for routine in calls:
            yield from routine
        return
    tasks = [_delegate(run, settings, settings.delegation, item, pending) for item in handed]
    yield from settings.delegation.in_parallel(run, tasks, calls)


def _delegate(
    run: Run, settings: ToolSettings, delegation: Delegation, item: _PendingCall, pending: Sequence[_PendingCall]
) -> Routine[None]:
    """Let a sub-agent carry out a call, and append its result as soon as no earlier one is missing."""
    assert item.step is not None, "A call is begun before it is carried out."
    start = time.monotonic()
    text, state = yield from delegation.work(run, item.step, str(item.arguments["task"]))
    item.seconds = time.monotonic() - start
    item.answer((Text(sendable(text)),), state, "" if state == "ok" else text)
    yield from _store(run, item)
    yield from _append(run, settings, pending)


def _call(
    run: Run, settings: ToolSettings, waiting: Sequence[_PendingCall], pending: Sequence[_PendingCall]
) -> Routine[None]:
    """Call tools in parallel, and append results as soon as no earlier one is missing."""
    functions = [partial(item.known_tool.call, **item.arguments) for item in waiting]
    free = settings.max_parallel
    started = yield StartCalls(
        (*functions[:free], *(_if_still_owner(run, function) for function in functions[free:])),
        settings.max_parallel,
        timeouts=tuple(item.known_tool.timeout for item in waiting),
    )
    trouble: StoreError | None = None
    try:
        for _ in waiting:
            finished = yield NextCall(started)
            item = waiting[finished.index]
            try:
                if isinstance(finished.error, _NotStarted):
                    yield from run.save()  # Raises if the lock is lost.
                    continue
                _finish(item, finished)
                yield from _store(run, item)
                if trouble is None:
                    yield from _append(run, settings, pending)
            except StoreError as error:  # Still store the results of the other calls, if possible.
                if item.has_answer and not item.is_stored:
                    names = run.record.id, item.call.name, item.call.call_id
                    _log.warning("%s: %s was carried out (%s), and its result could not be stored: %s", *names, error)
                trouble = trouble or error
    finally:
        started.abandon()
    if trouble is not None:
        raise trouble


class _NotStarted(Exception):
    """Another agent had taken over when it was the call's turn."""


def _if_still_owner(run: Run, function: Callable[[], object]) -> Callable[[], object]:
    """Return a function that is called only if the agent still holds its lock when the call's turn comes."""
    if not inspect.iscoroutinefunction(function):

        def checked() -> object:
            if not run.is_owner():
                raise _NotStarted
            return function()

        return checked

    async def checked_async() -> object:
        if not await call_in_thread(run.is_owner):
            raise _NotStarted
        return await function()

    return checked_async


def _finish(item: _PendingCall, finished: FinishedCall) -> None:
    """Answer a call that has ended."""
    name, item.seconds = item.call.name, finished.seconds
    match finished.error:
        case None:
            try:
                item.answer(*content_of(finished.value))
            except BadInput as error:
                item.refuse(f"{name}: {error}", error_trace(error))
        case CallTimeout(seconds=seconds):
            item.refuse(
                f"{name} did not end within {seconds:g} seconds and was given up; a part of its work may be done. "
                "Look what became of it, or ask it for less."
            )
        case OutcomeUnknown() as error:
            item.leave_open(failure_text(name, error))
        case error:
            item.refuse(failure_text(name, error), error_trace(error))


def _store(run: Run, item: _PendingCall) -> Routine[None]:
    """Store the answer in full in its step."""
    assert item.step is not None, "A call is begun before it ends."
    output = encode_content(item.content)
    item.content, is_complete = limit_size(item.call.name, item.content)
    if not is_complete:
        item.state = "error"
    says_so = {"error": "The tool says so.", "interrupted": f"{_UNKNOWN}the tool says so."}
    error = item.error or says_so.get(item.state, "")
    item.step = yield from run.end_step(item.step, output=output, error=error)
    item.is_stored = True


def _append(run: Run, settings: ToolSettings, pending: Sequence[_PendingCall]) -> Routine[None]:
    """Append the stored results, up to the first call that has none."""
    for item in pending:
        if item.is_appended:
            continue
        if not item.is_stored or item.step is None:
            return
        name = item.tool.wire_name if item.tool else ""  # Providers refuse names that no tool can have.
        result = ToolResult(item.call.call_id, item.content, item.state, name)
        default = (Message("tool", (result,)), item.tool.lease if item.tool else None)
        formatted = settings.format_result(result) if settings.format_result else default
        if formatted is not None:
            message, lease = formatted
            ids = yield from run.append(message, lease=lease, step=step_name(item.step.run, item.step.number))
            yield from run.link_step(item.step, ids[-1])
        item.is_appended = True
        yield ToolAnswered(item.call, result, item.seconds)


# ------------------------------------------------------------------------------------------------- the end of a reply

CUT = "length"
"""Why a run ended, if its last reply was cut off."""
CONTINUE = "Your answer was cut off, for it was as long as it may be. Go on exactly where it broke off."
"""Asks the model to continue a reply that was cut off."""
CONTINUE_STOPPED = "Your answer was stopped here. Go on exactly where it broke off."
"""Asks the model to continue a reply that the user stopped."""

_REFUSALS = {"refusal": "refusal", "filtered": "filtered"}
_UNFIT = {
    "length": (
        "{name} was not called: your answer was cut off here, for it was as long as it may be. Call it again, with "
        "less in it, or do it in several steps."
    ),
    "refusal": "{name} was not called, for the answer that called it was refused.",
    "filtered": "{name} was not called, for the answer that called it was cut off by a filter of the provider.",
}


def refusal_reason(stop: Stop | None) -> str:
    """Return why a reply ends the run although it is no answer: `refusal` or `filtered`. "" if it does not."""
    return _REFUSALS.get(stop.kind, "") if stop else ""


def is_unfinished(stop: Stop | None) -> bool:
    """Return whether a reply without calls is incomplete: the provider paused, or it was cut off or stopped."""
    return stop is not None and stop.kind in ("paused", "length", "interrupted")


def unfit_calls(reply: Message, stop: Stop | None, calls: Sequence[ToolCall]) -> dict[int, str]:
    """Return, by place, the answers to calls that are not carried out because of how the reply ended.

    Of a reply that was cut off it is the call at its end: its arguments may be readable, and mean something else.
    """
    if stop is None or stop.kind not in _UNFIT:
        return {}
    parts = reply.parts[-1:] if stop.kind == "length" else reply.parts
    text = _UNFIT[stop.kind]
    return {place: text.format(name=call.name[:80]) for place, call in enumerate(calls) if call in parts}
