"""Loop agents: the model chooses a next step in each turn, until the task is done.

Creating an agent opens nothing: store, conversation and model are opened when it first runs. A loop agent can be a
sub-agent of another one.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from ..conversation import validate
from ..core.stamps import Lease
from ..errors import BadInput
from ..ports import Clock, Cost, HasCatalog, Model, wall_clock
from .concurrency import call_async, resolve
from .config import BUSY, Resource, checked_resources
from .effects import Routine
from .events import AgentEvent, LifecycleListener, Outcome
from .limits import Limits
from .lock import LOCK_TIMEOUT
from .loop_config import LoopConfig, actions_of
from .loop_factory import LoopFactory
from .performers import outcome_of, outcome_of_async, perform, perform_async
from .resources import Resources, Session
from .step_loop import StepLoop
from .sub_agents import SubAgent, by_name
from .tool_calls import Approver
from .tools import Tool, ToolSource

if TYPE_CHECKING:
    from ..conversation import AsyncConversation, Conversation

__all__ = ["AsyncLoopAgent", "LoopAgent"]


class _LoopAgentBase:
    """The common part of loop agents with and without asyncio."""

    _asynchronous: bool

    def __init__(
        self,
        model: Model | str | None = None,
        *,
        name: str = "agent",
        description: str = "",
        instructions: str = "",
        actions: Iterable[Tool | ToolSource] = (),
        sub_agents: Sequence[SubAgent] = (),
        conversation: str = "",
        limits: Limits | None = None,
        message_expiration_override: Lease | None = None,
        result_lease: Lease | None = None,
        on_message_lifecycle: LifecycleListener | None = None,
        catalog: HasCatalog | bool = True,
        approve: Approver | None = None,
        max_parallel: int = 8,
        template: str | Path | None = None,
        announce_expansions: bool = False,
        merge_results: bool = False,
        max_invalid_steps: int = 3,
        max_expansions: int = 5,
        verbose: bool = False,
        lock_timeout: float = LOCK_TIMEOUT,
        cost: Cost | None = None,
        options: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
        new_id: Callable[[], str] | None = None,
        close_model: bool = False,
        resources: Iterable[Resource] = (),
        **conversation_options: Any,
    ) -> None:
        """Create an agent. Raises BadSetting for values that are not allowed.

        The agent: `model` is a Model, or a name such as `anthropic:claude-haiku-4-5`; None: the model of the agent
        around it. `name`: in records, and in the bindings of the catalog. `description`: for the model of an agent
        around it. `instructions`: the task in the system prompt. `template`: of the system prompt, a text or a Path,
        instead of the shipped one. `options`: added to every request, such as `{"temperature": 0}`.

        Its work: `actions` are functions and Tools. `sub_agents`: other agents; each of their tasks has its own
        conversation in this agent's store. `max_parallel`: actions or sub-agents that run at once. `approve`: called
        before a call of an action that needs approval; returns True, False, or a sentence why not. `limits`: of one run
        with its sub-agents (default: 50 model calls). `max_invalid_steps`: answers in a row that cannot be carried out
        and are returned to the model; the next one fails the run. `max_expansions`: expansions in a row without another
        step.

        Its results: `message_expiration_override` is a lease for all results of a run, which overrides every other.
        `result_lease`: when the agent's result expires in the conversation of the agent around it (default: never).
        `catalog`: holds the agent's bindings and descriptions of actions, read at each run, and the prompts for
        summaries, read when it is opened (True: the store; False: none). `merge_results`: one message for all results
        of a step, with the strictest of their leases. `announce_expansions`: append a note when a message was expanded.

        Its surroundings: `conversation` is its name in the store (default: the agent's). `lock_timeout`: seconds to
        wait for another agent in the same conversation before ConversationBusy is raised. `on_message_lifecycle`:
        called with each MessageLifecycleEvent, also of sub-agents. `verbose`: log each step at level INFO to the logger
        `foveate`. `cost`: returns the dollars of a Usage, for a model whose price is unknown. `clock`: milliseconds
        since 1970. `new_id`: returns ids of runs. `close_model`: whether `close` also closes a Model that you passed;
        it always closes one that you named. `resources`: what `close` closes too, such as connections of MCP servers.

        All other keywords are those of `open_conversation`: `store`, `window`, `policy`, `settings`, `summarizer`,
        `plugins`, `on_event`, ... Leases are followed under every policy but `off`.
        """
        config = LoopConfig(
            name=name,
            description=description,
            model=model,
            instructions=instructions,
            template=template,
            actions=actions_of(actions, conversation_options.get("plugins", ())),
            sub_agents=by_name(sub_agents),
            limits=limits or Limits(),
            cost=cost,
            options=options or {},
            approve=approve,
            max_parallel=max_parallel,
            override=message_expiration_override,
            result_lease=result_lease,
            catalog=catalog,
            max_invalid_steps=max_invalid_steps,
            max_expansions=max_expansions,
            announce_expansions=announce_expansions,
            merge_results=merge_results,
            verbose=verbose,
            listeners=() if on_message_lifecycle is None else (on_message_lifecycle,),
            lock_timeout=lock_timeout,
            clock=clock or wall_clock,
            conversation_options=conversation_options if clock is None else {**conversation_options, "clock": clock},
        )
        self._config = config.checked(type(self).__name__, asynchronous=self._asynchronous)
        self._conversation_name = validate.text("conversation=", conversation) or name
        self._closed_with_it = checked_resources(resources)
        self._resources = Resources(asynchronous=self._asynchronous)
        if close_model and model is not None and not isinstance(model, str):
            self._resources.adopt(model)
        self._loops = LoopFactory(self._resources, new_id)
        self._session: Session | None = None
        self._loop: StepLoop | None = None
        self._busy = threading.Lock()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    @property
    def name(self) -> str:
        """The agent's name."""
        return self._config.name

    @property
    def system(self) -> str:
        """The system prompt, the same at every call of a run. A run puts the catalog's descriptions of actions in."""
        return self._config.system

    def _open(self) -> Any:
        """Return a Session, or an awaitable of one."""
        return self._resources.open(self._config, self._conversation_name, None)

    def _routine(self, session: Session, task: object, streams: bool) -> Routine[Outcome]:
        """Return the routine of a run: of a task, or, without one, of the newest run."""

        if self._loop is None:  # One loop for all runs: it knows whether the newest has ended.
            self._loop = self._loops.step_loop(self._config, session)
        if task is None:
            return self._loop.resume(streams=streams)
        return self._loop.begin(task, streams=streams)


class LoopAgent(_LoopAgentBase):
    """An agent whose model answers with next steps: actions, sub-agents, questions, and the end.

    It does one thing at a time. As a context manager it closes itself.
    """

    _asynchronous = False

    @property
    def conversation(self) -> Conversation:
        """The agent's conversation. It is opened if it is not open yet."""
        if self._session is None:
            self._session = self._open()
        return cast("Conversation", self._session.conversation)

    def run(self, task: object) -> Outcome:
        """Work on a task, or continue with the user's answer, until the end.

        `task`: text, or what `Conversation.append` takes: images, messages, earlier turns with the task at their end.
        Raises BadInput if the task is blank or the agent is busy, and what the model's SDK raises: `resume` continues
        then.
        """
        return outcome_of(self._events(task, streams=False))

    def stream(self, task: object = None) -> Generator[AgentEvent, None, None]:
        """Work on a task, and yield events as they happen, `RunEnded` last. Without a task: resume.

        Nothing happens before the first iteration. Closing the iterator stops the run.
        """
        return self._events(task, streams=True)

    def resume(self) -> Outcome:
        """Continue the newest run where it ended before it was done: broken off, failed, or stopped by a limit.

        Actions that were carried out are not repeated. After a limit a new run begins. Of a run that is done, or waits
        for the user, the outcome is returned. Raises BadInput if there is no run.
        """
        return outcome_of(self._events(None, streams=False))

    def _events(self, task: object, *, streams: bool) -> Generator[AgentEvent, None, None]:
        if not self._busy.acquire(blocking=False):
            raise BadInput(BUSY)
        try:
            if self._session is None:
                self._session = self._open()
            yield from perform(self._routine(self._session, task, streams))
        finally:
            self._busy.release()

    def close(self) -> None:
        """Close conversation, store and model, if this agent opened them. Everything is stored already."""
        if self._session is not None:
            cast("Conversation", self._session.conversation).close()
        self._resources.close()
        for resource in self._closed_with_it:
            resource.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class AsyncLoopAgent(_LoopAgentBase):
    """An agent whose model answers with next steps, for asyncio. Actions may be sync or async functions."""

    _asynchronous = True

    @property
    def conversation(self) -> AsyncConversation:
        """The agent's conversation. Raises BadInput before it is open."""
        if self._session is None:
            raise BadInput("The conversation is not open yet. Call: await agent.open().")
        return cast("AsyncConversation", self._session.conversation)

    async def open(self) -> AsyncConversation:
        """Open the conversation, if it is not open yet, and return it."""
        if self._session is None:
            session = await self._open()
            if self._session is None:
                self._session = session
            else:  # Another task opened it first.
                await session.conversation.close()
        return self.conversation

    async def run(self, task: object) -> Outcome:
        """Work on a task, or continue with the user's answer, until the end. Cancelling stops the run."""
        return await outcome_of_async(self._events(task, streams=False))

    def stream(self, task: object = None) -> AsyncGenerator[AgentEvent, None]:
        """Work on a task, and yield events as they happen, `RunEnded` last. Without a task: resume.

        To stop early, close the iterator (`contextlib.aclosing`), so that the run ends at once.
        """
        return self._events(task, streams=True)

    async def resume(self) -> Outcome:
        """Continue the newest run where it ended before it was done. See `LoopAgent.resume`."""
        return await outcome_of_async(self._events(None, streams=False))

    async def _events(self, task: object, *, streams: bool) -> AsyncGenerator[AgentEvent, None]:
        if not self._busy.acquire(blocking=False):
            raise BadInput(BUSY)
        try:
            await self.open()
            assert self._session is not None, "`open` keeps it."
            async with aclosing(perform_async(self._routine(self._session, task, streams))) as events:
                async for event in events:
                    yield event
        finally:
            self._busy.release()

    async def close(self) -> None:
        """Close conversation, store and model, if this agent opened them."""
        if self._session is not None:
            await self.conversation.close()
        for closing in self._resources.close():
            await resolve(closing)
        for resource in self._closed_with_it:
            await call_async(resource.close)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
