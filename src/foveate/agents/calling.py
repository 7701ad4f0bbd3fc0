"""Carries out the calls of a reply: each a step of the run, each answered by one result, in the order of the calls.

Whatever happens to a call, its result says it: a tool that is not there, arguments that are wrong, an error, a limit of
time, a refusal of whoever was asked. What a call came to is kept in full in its step before its result is appended, so
a call that was carried out is never carried out again, and nothing of it is lost.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct

from .. import given
from ..core.messages import Content, Message, State, Text, ToolCall, ToolResult
from ..core.runs import AgentRunStep, step_name
from ..core.stamps import Lease
from ..errors import BadInput, BadSetting, StoreError
from .acts import Act, Begin, Do, Finished, Next, TookTooLong
from .batches import threaded
from .events import ToolAnswered, ToolCalled
from .results import content_of, failure, kept, read, sendable, sized, trace
from .running import Running
from .tools import Tool

__all__ = ["Approve", "Calling", "Telling", "answer_calls"]

_log = logging.getLogger("foveate")

Approve = Callable[[ToolCall], bool | str | Awaitable[bool | str]]
"""Asked before a call is carried out: True, or False, or a sentence why not, which the model is told."""

Telling = Callable[[ToolResult], tuple[Message, Lease | None] | None]
"""How a model is told of a result: the message, and when that expires; None: somebody else tells it."""


class Calling(Struct, frozen=True):
    """How an agent answers calls."""

    tools: Mapping[str, Tool]
    approve: Approve | None = None
    approves_all: bool = False
    """Whether each call is asked for, whatever its tool says."""
    at_most: int = 8
    """Calls that go on at once."""
    told: Telling | None = None
    """By default in a message of role tool, with the lease of the tool."""
    noun: str = "tool"
    """What the model knows tools as."""

    def needs_approval(self, tool: Tool) -> bool:
        """Whether somebody is asked before a call of this tool."""
        return self.approves_all or tool.needs_approval

    def check(self, *, asynchronous: bool) -> None:
        """Raises BadSetting where nobody could be asked, or what must be awaited could not be."""
        given.whole("at_most= (calls that go on at once)", self.at_most, 1)
        given.instance("approves_all=", self.approves_all, bool, "True or False")
        asking = [name for name, tool in self.tools.items() if self.needs_approval(tool)]
        if self.approve is not None:
            given.callable_("approve=", self.approve)
        elif asking:
            raise BadSetting(f"{', '.join(asking)} needs approval. Hand in approve=, a function that is asked.")
        if asynchronous:
            return
        if waiting := [name for name, tool in self.tools.items() if tool.is_async]:
            raise BadSetting(
                f"{', '.join(waiting)} must be awaited, which only the async agent can do. Build that one."
            )
        if inspect.iscoroutinefunction(self.approve):
            raise BadSetting("approve= must be awaited, which only the async agent can do. Build that one.")


def answer_calls(
    running: Running,
    calling: Calling,
    calls: Sequence[ToolCall],
    earlier: Mapping[int, AgentRunStep | None] | None = None,
    unfit: Mapping[int, str] | None = None,
) -> Act[None]:
    """Answer these calls, all of one reply.

    `earlier`: by their places, the step of a call that was begun before, or None where there is no telling. `unfit`: by
    their places, what is told of calls that are not carried out, whatever they say. Calls go on
    beside each other if all their tools may (`Tool.together`), else one after another. Raises what `approve` raises,
    before anything is carried out.
    """
    opened = [_Open(call) for call in calls]
    for place, one in enumerate(opened):
        if unfit and place in unfit:
            one.refuse(unfit[place])
        else:
            _look(one, calling)
        if earlier and place in earlier:
            _recall(one, earlier[place])
    for one in opened:
        if not one.is_known and calling.needs_approval(one.its_tool):
            yield from _ask(one, calling)
    are_together = all(one.is_known or one.its_tool.together for one in opened)
    for batch in [opened] if are_together else [[one] for one in opened]:
        yield from _carry_out(running, calling, batch, opened)


def _carry_out(running: Running, calling: Calling, batch: Sequence[_Open], opened: Sequence[_Open]) -> Act[None]:
    """Carry out calls beside each other, and append what is known and comes next each time that one has ended."""
    for one in batch:
        if not one.is_kept:
            yield ToolCalled(one.call)
    for one in batch:  # After all of them were told: whoever leaves while he is told leaves none of them begun.
        if not one.is_kept:
            yield from _begin(running, one)
            if one.is_known:
                yield from _end(running, one)
    yield from _append(running, calling, opened)
    waiting = [one for one in batch if not one.is_known]
    if not waiting:
        return
    called = [partial(one.its_tool.call, **one.arguments) for one in waiting]
    free = calling.at_most
    yield Begin(
        (*called[:free], *(_in_turn(running, call) for call in called[free:])),
        calling.at_most,
        timeouts=tuple(one.its_tool.timeout for one in waiting),
    )
    trouble: StoreError | None = None
    for _ in waiting:
        finished = yield Next()
        one = waiting[finished.index]
        try:
            if isinstance(finished.error, _NotBegun):
                yield from running.keep()  # Which says what has become of the claim.
                continue
            _finish(one, finished)
            yield from _end(running, one)
            if trouble is None:
                yield from _append(running, calling, opened)
        except StoreError as error:  # What the others come to is kept, if it can be.
            if one.is_known and not one.is_kept:
                who = running.run.id, one.call.name, one.call.call_id
                _log.warning("%s: %s was carried out (%s), and what it came to could not be kept: %s", *who, error)
            trouble = trouble or error
    if trouble is not None:
        raise trouble


class _NotBegun(Exception):
    """A call's turn came when somebody had taken the work over."""


def _in_turn(running: Running, call: Callable[[], object]) -> Callable[[], object]:
    """A call that waits for others to end: it is made only if the work is still this agent's when its turn comes."""
    if not inspect.iscoroutinefunction(call):

        def made() -> object:
            if not running.follows():
                raise _NotBegun
            return call()

        return made

    async def awaited() -> object:
        if not await threaded(running.follows):
            raise _NotBegun
        return await call()

    return awaited


class _Open:
    """A call on its way to its result."""

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.tool: Tool | None = None
        self.arguments: dict[str, object] = {}
        self.step: AgentRunStep | None = None
        self.content: tuple[Content, ...] = ()
        self.state: State = "ok"
        self.error = ""
        """For people: what was raised, and where."""
        self.seconds = 0.0
        self.is_known = False
        """Whether it is known what its result says."""
        self.is_kept = False
        """Whether its step says it."""
        self.is_appended = False

    @property
    def its_tool(self) -> Tool:
        assert self.tool is not None, "A call of a tool that is not there is answered before this is asked."
        return self.tool

    def answer(self, content: tuple[Content, ...], state: State = "ok", error: str = "") -> None:
        self.content, self.state, self.error, self.is_known = content, state, error, True

    def refuse(self, told: str, error: str = "") -> None:
        self.answer((Text(sendable(told)),), "error", error or told)


def _look(one: _Open, calling: Calling) -> None:
    """Find the tool and read the arguments."""
    one.tool = calling.tools.get(one.call.name)
    if one.tool is None:
        known = ", ".join(calling.tools) or "none"
        one.refuse(f"There is no {calling.noun} {one.call.name[:80]!r}. The {calling.noun}s you have: {known}.")
        return
    try:
        one.arguments = one.tool.arguments(one.call.arguments)
    except BadInput as error:
        one.refuse(str(error))


def _recall(one: _Open, step: AgentRunStep | None) -> None:
    """What is known of a call that was begun before."""
    one.step = step
    if step is not None and step.state != "running":
        content, is_shown = sized(one.call.name, read(step.output))
        one.answer(content, "error" if step.state == "failed" or not is_shown else "ok")
        one.is_kept = True
    elif not one.is_known and not one.its_tool.is_repeatable:
        one.refuse(
            f"It is not known whether {one.call.name} was carried out: the run broke off while it was going on. Look "
            "what became of it before you call it again."
        )


def _ask(one: _Open, calling: Calling) -> Act[None]:
    """Ask whether the call may be carried out."""
    assert calling.approve is not None, "An agent that must ask has somebody to ask."
    said = yield Do(partial(calling.approve, one.call), is_slow=True)
    match said:
        case True:
            return
        case False:
            one.refuse(f"The user did not allow this call of {one.call.name}. Do not make it again.")
        case str() if said.strip():
            one.refuse(f"The user did not allow this call of {one.call.name}: {said}")
        case _:
            raise BadSetting(
                f"approve= returned {said!r:.60} for {one.call.name}. It returns True, False, or a sentence why not."
            )


def _begin(running: Running, one: _Open) -> Act[None]:
    """Write down that it begins. A call that is carried out again keeps its step."""
    if one.step is None:
        call = one.call
        one.step = yield from running.begin_step("action", call.name, call=call.call_id, input=call.arguments)


def _finish(one: _Open, finished: Finished) -> None:
    """What a call that has ended is answered."""
    name, one.seconds = one.call.name, finished.seconds
    match finished.error:
        case None:
            try:
                one.answer(*content_of(finished.value))
            except BadInput as error:
                one.refuse(f"{name}: {error}", trace(error))
        case TookTooLong(seconds=seconds):
            one.refuse(
                f"{name} did not end within {seconds:g} seconds and was given up; a part of its work may be done. "
                "Look what became of it, or ask it for less."
            )
        case error:
            one.refuse(failure(name, error), trace(error))


def _end(running: Running, one: _Open) -> Act[None]:
    """Write down what it came to, in full, before anybody is told."""
    assert one.step is not None, "A call is begun before it ends."
    output = kept(one.content)
    one.content, is_shown = sized(one.call.name, one.content)
    if not is_shown:
        one.state = "error"
    error = one.error or ("The tool says so." if one.state != "ok" else "")
    one.step = yield from running.end_step(one.step, output=output, error=error)
    one.is_kept = True


def _append(running: Running, calling: Calling, opened: Sequence[_Open]) -> Act[None]:
    """Append the results that are kept, as far as none is missing before them."""
    for one in opened:
        if one.is_appended:
            continue
        if not one.is_kept or one.step is None:
            return
        name = one.tool.name if one.tool else ""  # A provider refuses names that no tool could have.
        result = ToolResult(one.call.call_id, one.content, one.state, name)
        plain = (Message("tool", (result,)), one.tool.lease if one.tool else None)
        said = calling.told(result) if calling.told else plain
        if said is not None:
            message, lease = said
            step = step_name(one.step.run, one.step.number)
            ids = yield from running.say(message, lease=lease, step=step)
            yield from running.link_step(one.step, ids[-1])
        one.is_appended = True
        yield ToolAnswered(one.call, result, one.seconds)
