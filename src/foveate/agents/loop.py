"""Loop agents: the model chooses a next step in each turn, until the task is done.

The faces of `looping.py` for programs without and with asyncio. An agent is made without opening anything; its store,
conversation and model are opened when it first runs. Handed to another agent, it is its sub-agent.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .. import given
from ..core.stamps import Lease
from ..errors import BadInput, BadSetting
from ..ports import Clock, Cost, HasCatalog, Model
from .acts import Act, perform, perform_async
from .batches import later
from .calling import Approve
from .claims import WAITS
from .events import AgentEvent, Outcome, RunEnded
from .forming import formed
from .lifecycle import Lifecycle, MessageLifecycleEvent
from .limits import Limits
from .looping import Looper
from .making import BUSY, fresh_id
from .opening import OWN, House, Looping, Opened
from .tools import Tool

if TYPE_CHECKING:
    from ..async_conversation import AsyncConversation
    from ..conversation import Conversation

__all__ = ["AsyncLoopAgent", "LoopAgent"]


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
        actions: Iterable[Tool | Callable[..., object]] = (),
        sub_agents: Sequence[LoopAgent | AsyncLoopAgent] = (),
        conversation: str = "",
        limits: Limits | None = None,
        message_expiration_override: Lease | None = None,
        result_lease: Lease | None = None,
        on_message_lifecycle: Callable[[MessageLifecycleEvent], object] | None = None,
        catalog: HasCatalog | bool = True,
        approve: Approve | None = None,
        at_most: int = 8,
        template: str | Path | None = None,
        tells_expansions: bool = False,
        one_message: bool = False,
        tries: int = 3,
        expansions: int = 5,
        verbose: bool = False,
        waits: float = WAITS,
        cost: Cost | None = None,
        options: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
        new_id: Callable[[], str] | None = None,
        closes_model: bool = False,
        **keywords: Any,
    ) -> None:
        """`model`: a Model, or a name such as `anthropic:claude-haiku-4-5`; None: that of the agent it is handed to.

        `name`: in records, and under which the catalog has its bindings. `description`: what it can do, told to the
        model of an agent around it. `instructions`: what it is to do, in its system prompt. `actions`: functions and
        Tools. `sub_agents`: other loop agents; each task they are handed has a conversation of its own in this agent's
        store. `conversation`: its name in the store (default: the agent's). `limits`: of one run, and of its sub-agents
        together with it (default: 50 calls of the model).

        `message_expiration_override`: what is said in it counts for all results of a run, whatever is configured.
        `result_lease`: when what it comes to expires in the conversation of the agent around it (default: never).
        `on_message_lifecycle`: called with each MessageLifecycleEvent. `catalog`: has the agent's bindings and the
        prompts for summaries (True: the store; False: none is asked). `approve`: asked before calls of actions that
        need it. `at_most`: actions that go on at once. `template`: of the system prompt, a text or a Path, instead of
        the shipped one.

        `tells_expansions`: whether a message says that one was expanded. `one_message`: all results of a step in one
        message, with the strictest of their leases. `tries`: so many answers in a row that cannot be carried out are
        told to the model; at the next one the run has failed. `expansions`: that are carried out in a row with nothing
        else done. `verbose`: tell the logger `foveate` each step at level INFO. `waits`: seconds that another agent at
        work in the same conversation is waited for, before ConversationBusy is raised. `options`: said to the model
        with every request, such as `{"temperature": 0}`. `cost`: dollars that tokens cost, where the price of the model
        is not known. `clock`: milliseconds since 1970. `new_id`: makes ids of runs. `closes_model`: whether `close`
        closes a Model that was handed in; those that were named are closed.

        The other keywords are those of `open_conversation`: `store`, `window`, `policy`, `settings`, `summarizer`,
        `plugins`, `on_event`, ... Policies by name, or by default, have `expire` switched on; name `expire_results()`
        among policies of your own. Raises BadSetting for values that are not allowed.
        """
        if not isinstance(sub_agents, list | tuple) or not all(isinstance(one, _Agent) for one in sub_agents):
            raise BadSetting(f"sub_agents= is a list of loop agents, not {sub_agents!r:.80}.")
        self._looping = formed(
            type(self).__name__,
            model,
            asynchronous=self._asynchronous,
            name=name,
            description=description,
            instructions=instructions,
            actions=actions,
            sub_agents=[one._looping for one in sub_agents],
            limits=limits,
            override=message_expiration_override,
            result_lease=result_lease,
            catalog=catalog,
            approve=approve,
            at_most=at_most,
            template=template,
            tells_expansions=tells_expansions,
            one_message=one_message,
            tries=tries,
            expansions=expansions,
            verbose=verbose,
            waits=waits,
            cost=cost,
            options=options,
            clock=clock,
            keywords=keywords,
        )
        self._lifecycle: Lifecycle | None = None
        if on_message_lifecycle is not None:
            given.callable_("on_message_lifecycle=", on_message_lifecycle)
            self._lifecycle = Lifecycle(on_message_lifecycle, OWN)
        if new_id is not None:
            given.callable_("new_id=", new_id)
        self._name = given.text("conversation=", conversation) or name
        self._new_id = new_id or fresh_id
        self._house = House(asynchronous=self._asynchronous)
        if closes_model and model is not None and not isinstance(model, str):
            self._house.adopt(model)
        self._opened: Opened | None = None
        self._looper: Looper | None = None
        self._busy = threading.Lock()

    @property
    def name(self) -> str:
        """The agent's name."""
        return self._looping.name

    @property
    def system(self) -> str:
        """The system prompt: the same text at every call of the model."""
        return self._looping.system

    def _open(self) -> Any:
        """An Opened, or an awaitable of one."""
        return self._house.open(self._looping, self._name, None, self._lifecycle)

    def _is_open(self, opened: Opened) -> Opened:
        """Keep what was opened."""
        self._opened = opened
        if self._lifecycle is not None:
            self._lifecycle.begin(lambda: opened.conversation.view.entries)
        return opened

    def _act(self, opened: Opened, task: str | None, streams: bool) -> Act[Outcome]:
        """A run of a task, or, without one, of what was begun."""

        def opener(sub: Looping, name: str, around: Opened) -> object:
            return self._house.open(sub, name, around.model)

        if self._looper is None:  # One for all runs: it knows whether the newest has come to its end.
            self._looper = Looper(self._looping, opened, opener, self._new_id)
        looper = self._looper
        if task is None:
            return looper.resume(streams=streams)
        if not given.text("A task", task).strip():
            raise BadInput("A task says what is to be done; this one is blank.")
        return looper.begin(task, streams=streams)


class LoopAgent(_Agent):
    """An agent whose model answers with next steps: actions, sub-agents, questions, and the end.

    It does one thing at a time. May be used as a context manager, which closes it.
    """

    _asynchronous = False

    @property
    def conversation(self) -> Conversation:
        """The conversation that it lives on, which is opened if it is not open yet."""
        return cast("Conversation", (self._opened or self._is_open(self._open())).conversation)

    def run(self, task: str) -> Outcome:
        """Carry out a task, or go on with what the user answers, to the end.

        Raises BadInput where the agent is at work, and what the model's SDK raises: `resume` goes on then.
        """
        return _outcome(self._events(task, streams=False))

    def stream(self, task: str | None = None) -> Generator[AgentEvent, None, None]:
        """The same as events, while they happen; last `RunEnded`. Without a task: of `resume`.

        Nothing happens until it is iterated over. Whoever stops before the end stops the run: close the iterator.
        """
        return self._events(task, streams=True)

    def resume(self) -> Outcome:
        """Go on with the newest run where it ended before it was done: broken off, failed, or stopped by a limit.

        Actions that were carried out are not carried out again. After a limit a new run begins. Of a run that is done,
        or waits for the user, the outcome is returned. Raises BadInput where there is no run.
        """
        return _outcome(self._events(None, streams=False))

    def _events(self, task: str | None, *, streams: bool) -> Generator[AgentEvent, None, None]:
        if not self._busy.acquire(blocking=False):
            raise BadInput(BUSY)
        try:
            yield from perform(self._act(self._opened or self._is_open(self._open()), task, streams))
        finally:
            self._busy.release()

    def close(self) -> None:
        """Let go of conversation, store and model, as far as it opened them. What was done is in the store already."""
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
        """The conversation that it lives on. Raises BadInput before it was opened."""
        if self._opened is None:
            raise BadInput("The conversation is opened when it is first needed: await agent.open().")
        return cast("AsyncConversation", self._opened.conversation)

    async def open(self) -> AsyncConversation:
        """Open the conversation, if it is not open yet, and return it."""
        if self._opened is None:
            opened = await self._open()
            if self._opened is None:
                self._is_open(opened)
            else:  # Two were opening it at once.
                await opened.conversation.close()
        return self.conversation

    async def run(self, task: str) -> Outcome:
        """As of the agent without asyncio. Cancelling stops the run; `resume` goes on."""
        return await _outcome_of(self._events(task, streams=False))

    def stream(self, task: str | None = None) -> AsyncGenerator[AgentEvent, None]:
        """The same as events, while they happen; last `RunEnded`. Without a task: of `resume`.

        Whoever stops before the end closes it (`contextlib.aclosing`), so that the run is closed at once.
        """
        return self._events(task, streams=True)

    async def resume(self) -> Outcome:
        """As of the agent without asyncio."""
        return await _outcome_of(self._events(None, streams=False))

    async def _events(self, task: str | None, *, streams: bool) -> AsyncGenerator[AgentEvent, None]:
        if not self._busy.acquire(blocking=False):
            raise BadInput(BUSY)
        try:
            await self.open()
            assert self._opened is not None, "It was opened."
            async with aclosing(perform_async(self._act(self._opened, task, streams))) as events:
                async for event in events:
                    yield event
        finally:
            self._busy.release()

    async def close(self) -> None:
        """Let go of the conversation, the store and the model, as far as it opened them."""
        if self._opened is not None:
            await self.conversation.close()
        for waiting in self._house.close():
            await later(waiting)

    async def __aenter__(self) -> AsyncLoopAgent:
        await self.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


def _outcome(events: Iterable[AgentEvent]) -> Outcome:
    last: AgentEvent | None = None
    for event in events:
        last = event
    assert isinstance(last, RunEnded), "A run ends with Ended, or raises."
    return last.outcome


async def _outcome_of(events: AsyncGenerator[AgentEvent, None]) -> Outcome:
    last: AgentEvent | None = None
    async with aclosing(events):
        async for event in events:
            last = event
    assert isinstance(last, RunEnded), "A run ends with Ended, or raises."
    return last.outcome
