"""Loop agents: the model chooses a next step in each turn, until the task is done.

The faces of `looping.py` for programs without and with asyncio. An agent is made without opening anything; its store,
conversation and model are opened when it first runs. Handed to another agent, it is its sub-agent.
"""

from __future__ import annotations

import inspect
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from .. import given
from ..core.stamps import Lease
from ..errors import BadSetting
from ..policies.leases import check_lease
from ..policies.presets.said import nearest
from ..ports import Catalog, Clock, Cost, Model
from ..wiring import open_conversation
from .acts import Act, perform, perform_async
from .batches import later
from .calling import Approve, Calling
from .events import AgentEvent, Ended, Outcome
from .lifecycle import Lifecycle, MessageLifecycleEvent
from .limits import Limits
from .looping import Looper
from .opening import OWN, House, Looping, Opened
from .prompting import Helper, system_prompt
from .tools import Tool, tools_of

if TYPE_CHECKING:
    from ..async_conversation import AsyncConversation
    from ..conversation import Conversation

__all__ = ["AsyncLoopAgent", "LoopAgent"]

Action = Tool | Callable[..., object]


class _Agent:
    """What both faces hold."""

    _asynchronous: bool

    def __init__(
        self,
        model: Model | str | None = None,
        *,
        name: str = "agent",
        description: str = "",
        instructions: str = "",
        actions: Iterable[Action] = (),
        sub_agents: Sequence[LoopAgent | AsyncLoopAgent] = (),
        conversation: str | None = None,
        limits: Limits | None = None,
        message_expiration_override: Lease | None = None,
        result_lease: Lease | None = None,
        on_message_lifecycle: Callable[[MessageLifecycleEvent], object] | None = None,
        catalog: Catalog | bool = True,
        approve: Approve | None = None,
        at_most: int = 8,
        template: str | Path | None = None,
        tells_expansions: bool = False,
        one_message: bool = False,
        tries: int = 3,
        expansions: int = 5,
        verbose: bool = False,
        streams: bool = True,
        cost: Cost | None = None,
        options: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
        new_id: Callable[[], str] | None = None,
        **keywords: Any,
    ) -> None:
        """`model`: a Model, or a name such as `anthropic:claude-haiku-4-5`; None: that of the agent it is handed to.

        `name`: in records, and under which the catalog has its bindings. `description`: what it can do, told to the
        model of an agent around it. `instructions`: what it is to do, in its system prompt. `actions`: plain functions
        with types and docstrings, and Tools. `sub_agents`: other loop agents; each task they are handed has a
        conversation of its own in this agent's store. `conversation`: its name in the store (default: the agent's).
        `limits`: of one run; of its sub-agents together too.

        `message_expiration_override`: what is said in it counts for all results of a run, whatever is configured.
        `result_lease`: when what it comes to expires in the conversation of the agent around it (default: never).
        `on_message_lifecycle`: called with each MessageLifecycleEvent. `catalog`: has the agent's bindings and the
        prompts for summaries (True: the store; False: none is asked). `approve`: asked before calls of actions that
        need it. `at_most`: actions that go on at once. `template`: of the system prompt, instead of the shipped one.
        `tells_expansions`: whether a message says that one was expanded. `one_message`: all results of a step in one
        message, with the strictest of their leases. `tries`: answers in a row that cannot be carried out after which
        the run has failed, at the next one. `expansions`: in a row, with nothing else done; more are refused.
        `verbose`: tell the logger `foveate` each step at level INFO. `streams`: ask the model for its answers piece by
        piece. `cost`: of the model's tokens, if its price is not known. `options`: said to the model with every
        request. `clock`: milliseconds since 1970. `new_id`: makes ids of runs.

        The other keywords are those of `open_conversation`: `store`, `window`, `policy`, `settings`, `summarizer`,
        `plugins`, `on_event`, ... Policies by name, or by default, have `expire` switched on; name `expire_results()`
        among policies of your own. Raises BadSetting for values that are not allowed.
        """
        _check_known(type(self).__name__, keywords)
        if isinstance(actions, str | Mapping) or not isinstance(actions, Iterable):
            raise BadSetting(f"actions= is a list of functions and Tools, not {actions!r:.60}.")
        tools = tools_of(actions)
        inner = _listed(sub_agents, {tool.name for tool in tools}, asynchronous=self._asynchronous)
        for what, text in (("name=", name), ("description=", description), ("instructions=", instructions)):
            given.text(what, text)
        if not name.strip():
            raise BadSetting("name= is blank; an agent is known by its name in records and in the catalog.")
        for what, lease in (
            ("message_expiration_override", message_expiration_override),
            ("result_lease", result_lease),
        ):
            if lease is not None:
                check_lease(what, lease)
        for what, yes in (
            ("tells_expansions=", tells_expansions),
            ("one_message=", one_message),
            ("verbose=", verbose),
        ):
            given.instance(what, yes, bool, "True or False")
        if limits is not None:
            given.instance("limits=", limits, Limits, "Limits")
        if conversation is not None:
            given.text("conversation=", conversation)
        helpers = [Helper(one.name, one.description) for one in inner]
        by_name = {tool.name: tool for tool in tools}
        Calling(by_name, approve, at_most=at_most).check(asynchronous=self._asynchronous)
        if clock is not None:
            keywords["clock"] = clock
        self._looping = Looping(
            name=name,
            description=description,
            model=model,
            system=system_prompt(name, instructions, tools, helpers, template),
            actions=by_name,
            sub_agents={},
            limits=limits or Limits(),
            cost=cost,
            options=dict(options or {}),
            approve=approve,
            at_most=at_most,
            override=message_expiration_override,
            result_lease=result_lease,
            catalog=catalog,
            tries=given.whole("tries=", tries),
            expansions=given.whole("expansions=", expansions),
            tells_expansions=given.instance("tells_expansions=", tells_expansions, bool, "True or False"),
            one_message=given.instance("one_message=", one_message, bool, "True or False"),
            verbose=given.instance("verbose=", verbose, bool, "True or False"),
            clock=clock or _wall_clock,
            keywords=keywords,
        )
        self._looping = _around(self._looping, inner)
        self._name = conversation if conversation is not None else name
        self._streams = given.instance("streams=", streams, bool, "True or False")
        self._lifecycle: Lifecycle | None = None
        if on_message_lifecycle is not None:
            given.callable_("on_message_lifecycle=", on_message_lifecycle)
            self._lifecycle = Lifecycle(on_message_lifecycle, OWN)
        self._new_id = new_id or _new_id
        self._house = House(asynchronous=self._asynchronous)
        self._opened: Opened | None = None

    @property
    def name(self) -> str:
        """The agent's name."""
        return self._looping.name

    @property
    def system(self) -> str:
        """The system prompt: the same text at every call of the model."""
        return self._looping.system

    def _open(self) -> Any:
        return self._house.open(self._looping, self._name, None, self._lifecycle)

    def _looper(self, opened: Opened) -> Looper:
        if self._lifecycle is not None and self._opened is None:
            self._lifecycle.begin(lambda: opened.conversation.view.entries)
        self._opened = opened

        def opener(sub: Looping, name: str, around: Opened) -> object:
            return self._house.open(sub, name, around.model)

        return Looper(self._looping, opened, opener, self._new_id)

    def _act(self, opened: Opened, task: str | None) -> Act[Outcome]:
        """A run of a task, or, without one, of what was begun."""
        looper = self._looper(opened)
        if task is None:
            return looper.resume(streams=self._streams)
        return looper.begin(given.text("A task", task), streams=self._streams)


class LoopAgent(_Agent):
    """An agent whose model answers with next steps: actions, sub-agents, questions, and the end.

    One run at a time. May be used as a context manager, which closes it.
    """

    _asynchronous = False

    @property
    def conversation(self) -> Conversation:
        """The conversation that it lives on."""
        if self._opened is None:
            self._looper(self._open())
        assert self._opened is not None, "It was opened."
        return cast("Conversation", self._opened.conversation)

    def run(self, task: str) -> Outcome:
        """Carry out a task, or go on with what the user answered, to the end. Raises what the model's SDK raises."""
        return _outcome(self.stream(task))

    def stream(self, task: str) -> Iterator[AgentEvent]:
        """The same, one event at a time. Closing the iterator early stops the run; `resume` takes it up."""
        return self._events(task)

    def resume(self) -> Outcome:
        """Go on with the newest run where it ended before it was done: broken off, failed, or stopped by a limit.

        Actions that were carried out are not carried out again. Raises BadInput where there is no run.
        """
        return _outcome(self._events(None))

    def _events(self, task: str | None) -> Iterator[AgentEvent]:
        opened = self._opened or self._open()
        yield from perform(self._act(opened, task))

    def close(self) -> None:
        """Let go of the conversation and of the store. What was done is in it."""
        if self._opened is not None:
            cast("Conversation", self._opened.conversation).close()
        self._house.close()

    def __enter__(self) -> LoopAgent:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class AsyncLoopAgent(_Agent):
    """The same for asyncio. Actions may be functions of either kind."""

    _asynchronous = True

    @property
    def conversation(self) -> AsyncConversation:
        """The conversation that it lives on. Raises BadSetting before it was opened."""
        if self._opened is None:
            raise BadSetting("The agent has not run yet, so its conversation is not open. Call open() first.")
        return cast("AsyncConversation", self._opened.conversation)

    async def open(self) -> AsyncConversation:
        """Open the conversation, if it is not open yet, and return it."""
        if self._opened is None:
            self._looper(await self._open())
        return self.conversation

    async def run(self, task: str) -> Outcome:
        """See `LoopAgent.run`."""
        return await _outcome_of(self.stream(task))

    def stream(self, task: str) -> AsyncIterator[AgentEvent]:
        """See `LoopAgent.stream`."""
        return self._events(task)

    async def resume(self) -> Outcome:
        """See `LoopAgent.resume`."""
        return await _outcome_of(self._events(None))

    async def _events(self, task: str | None) -> AsyncIterator[AgentEvent]:
        opened = self._opened or await self._open()
        async with aclosing(perform_async(self._act(opened, task))) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        """See `LoopAgent.close`."""
        if self._opened is not None:
            await self.conversation.close()
        for waiting in self._house.close():
            await later(waiting)

    async def __aenter__(self) -> AsyncLoopAgent:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


# ------------------------------------------------------------------------------------------------------------- helpers

_OF_MODEL = ("window", "reserve", "model", "format", "prices", "profile", "counter")
"""Keywords that belong to a model: an agent with a model of its own does not take them from the one around it."""
_NOT_SHARED = ("store", "on_event", "tenant")
"""Keywords of a sub-agent that count for nothing: it lives in the store of the agent around it."""


def _check_known(who: str, keywords: Mapping[str, Any]) -> None:
    """Raises TypeError, as Python does, for a keyword that `open_conversation` does not have."""
    known = inspect.signature(open_conversation).parameters
    if unknown := [name for name in keywords if name not in known or name == "name"]:
        raise TypeError(f"{who}() got an unexpected keyword argument {unknown[0]!r}.{nearest(unknown[0], known)}")


def _listed(sub_agents: object, taken: set[str], *, asynchronous: bool) -> list[Looping]:
    """What sub-agents are made of. Raises BadSetting for what is no agent, for names taken twice, and for one that must
    be awaited where nothing can be.
    """
    if not isinstance(sub_agents, list | tuple) or not all(isinstance(one, _Agent) for one in sub_agents):
        raise BadSetting(f"sub_agents= is a list of loop agents, not {sub_agents!r:.80}.")
    found = [one._looping for one in sub_agents]
    for one in found:
        if one.name in taken:
            raise BadSetting(f"Two helpers are called {one.name!r}; the model could not tell them apart. Say name=.")
        taken.add(one.name)
        Calling(one.actions, one.approve).check(asynchronous=asynchronous)
    return found


def _around(looping: Looping, inner: Sequence[Looping]) -> Looping:
    """The agent with its sub-agents, which take from it what they do not say themselves."""
    subs: dict[str, Looping] = {}
    for sub in inner:
        mine = {name: value for name, value in looping.keywords.items() if name not in _NOT_SHARED}
        if sub.model is not None:
            mine = {name: value for name, value in mine.items() if name not in _OF_MODEL}
        own = {name: value for name, value in sub.keywords.items() if name not in _NOT_SHARED}
        shared = {name: looping.keywords[name] for name in ("store", "tenant") if name in looping.keywords}
        taken = replace(
            sub,
            keywords={**mine, **own, **shared},
            override=sub.override or looping.override,
            verbose=sub.verbose or looping.verbose,
            approve=sub.approve or looping.approve,
            catalog=looping.catalog,
            clock=looping.clock,
            cost=sub.cost or (looping.cost if sub.model is None else None),
        )
        subs[sub.name] = _around(taken, list(sub.sub_agents.values()))
    return replace(looping, sub_agents=subs)


def _outcome(events: Iterator[AgentEvent]) -> Outcome:
    outcome: Outcome | None = None
    for event in events:
        if isinstance(event, Ended):
            outcome = event.outcome
    assert outcome is not None, "A run ends with Ended, or raises."
    return outcome


async def _outcome_of(events: AsyncIterator[AgentEvent]) -> Outcome:
    outcome: Outcome | None = None
    async for event in events:
        if isinstance(event, Ended):
            outcome = event.outcome
    assert outcome is not None, "A run ends with Ended, or raises."
    return outcome


def _wall_clock() -> int:
    return time.time_ns() // 1_000_000


def _new_id() -> str:
    return secrets.token_hex(8)
