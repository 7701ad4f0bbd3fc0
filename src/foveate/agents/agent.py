"""Agents that call tools, with and without asyncio: chat agents and ReAct agents.

An agent opens its model and its conversation, runs one routine of its `ToolLoop` at a time, and closes what it opened.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from ..conversation import Conversation
from ..core.stamps import Lease
from ..errors import BadInput, BadSetting
from ..open import grouped, open_async_conversation, open_conversation
from ..ports import Clock, Cost, HasCatalog, Model
from .concurrency import call_async, resolve
from .config import BUSY, AgentConfig, Resource, checked_resources
from .effects import Routine
from .events import AgentEvent, Outcome
from .limits import Limits
from .lock import LOCK_TIMEOUT
from .loop_factory import LoopFactory
from .performers import outcome_of, outcome_of_async, perform, perform_async
from .resources import Resources
from .sub_agents import SubAgent
from .tool_calls import Approver
from .tool_loop import ToolLoop
from .tools import Tool, ToolSource

if TYPE_CHECKING:
    from ..conversation import AsyncConversation

__all__ = ["Agent", "AsyncAgent", "AsyncChatAgent", "AsyncReActAgent", "ChatAgent", "ReActAgent"]

C = TypeVar("C")
"""The kind of conversation."""

INSTRUCTION = (
    "You work on a task with the tools you have. Think about what is missing, call the tools that find it out, several "
    "at once where they do not depend on each other, look at what they answer, and go on until the task is done. An "
    "error tells what to do differently: do not repeat the same call. When you are done, answer without calling a tool."
)
"""The default system prompt of a ReAct agent."""


class _AgentBase(Generic[C]):
    """The common part of agents with and without asyncio."""

    _asynchronous: bool

    default_name = "agent"
    """The name of the agent and of its conversation, if none is given."""
    default_system: object = None
    """The system prompt, if none is given."""

    def __init__(
        self,
        model: str | Model | None = None,
        *,
        conversation: str | C = "",
        name: str = "",
        description: str = "",
        system: object = None,
        tools: Iterable[Tool | ToolSource] = (),
        sub_agents: Sequence[SubAgent] = (),
        result_lease: Lease | None = None,
        limits: Limits | None = None,
        approve: Approver | None = None,
        approve_all: bool = False,
        max_parallel: int = 8,
        result_type: Any = None,
        options: Mapping[str, Any] | None = None,
        lock_timeout: float = LOCK_TIMEOUT,
        catalog: HasCatalog | bool = True,
        cost: Cost | None = None,
        clock: Clock | None = None,
        new_id: Callable[[], str] | None = None,
        close_model: bool = False,
        resources: Iterable[Resource] = (),
        **conversation_options: Any,
    ) -> None:
        """Open an agent.

        `model`: a name such as `anthropic:claude-haiku-4-5`, or a Model; None, for a sub-agent: the model of the agent
        around it. `conversation`: its name (default: the agent's), or an open conversation, which the agent does not
        close. `name`: the name under which runs are stored. `description`: for the model of an agent around it.
        `system`: the system prompt. `tools`: functions and Tools that the model may call. `sub_agents`: other agents,
        each behind a tool of its name; each of their tasks has its own conversation in the same store. `result_lease`:
        when the agent's result expires in the conversation of the agent around it (default: never). `limits`: of each
        run with its sub-agents (default: 50 model calls). `approve`: called before a call of a tool that needs
        approval, with `approve_all` before every call; returns True, False, or a sentence why not. `max_parallel`:
        calls of tools, or sub-agents, that run at once. `result_type`: the type of the final answer (`Outcome.value`),
        if not text. `options`: added to every request, such as `{"temperature": 0}`. `lock_timeout`: seconds to wait
        for another agent in the same conversation before ConversationBusy is raised. `catalog`: holds the leases of
        results by the agent's name, and descriptions of tools (True: the store; False: none), read at each run. `cost`:
        returns the dollars of a Usage, for a model whose price is unknown. `clock`: milliseconds since 1970. `new_id`:
        returns ids of runs. `close_model`: whether `close` also closes a Model that you passed; it always closes one
        that you named. `resources`: what `close` closes too, such as connections of MCP servers.

        All other keywords are those of `open_conversation`. Format and window default to the model's, and the model has
        the tool `expand` unless `expand` is False. Raises BadSetting for values that are not allowed.
        """
        self._config = AgentConfig.create(
            type(self),
            model,
            asynchronous=self._asynchronous,
            conversation=conversation,
            name=name,
            description=description,
            system=system,
            tools=tools,
            sub_agents=sub_agents,
            result_lease=result_lease,
            limits=limits,
            approve=approve,
            approve_all=approve_all,
            max_parallel=max_parallel,
            result_type=result_type,
            options=options,
            lock_timeout=lock_timeout,
            catalog=catalog,
            cost=cost,
            clock=clock,
            new_id=new_id,
            conversation_options=conversation_options,
        )
        self._owns_conversation = isinstance(self._config.conversation, str)
        self._closed_with_it = checked_resources(resources)
        self._resources = Resources(asynchronous=self._asynchronous)
        if self._config.model is not None and (isinstance(model, str) or close_model):
            self._resources.adopt(self._config.model)
        self._loops = LoopFactory(self._resources, self._config.new_id)
        self._begin()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._config.name!r}>"

    def _check_model(self) -> None:
        """Raise BadSetting for an agent that works only as a sub-agent."""
        if self._config.model is None:
            raise BadSetting(
                f"Agent {self._config.name} has no model. Pass model=, such as anthropic:claude-haiku-4-5."
            )

    def _new_loop(self, chat: Any) -> ToolLoop:
        self._resources.use_conversation(chat)
        return self._loops.tool_loop(self._config, chat)

    def _begin(self) -> None:
        """Open what an agent has open from the start."""
        raise NotImplementedError


class Agent(_AgentBase[Conversation]):
    """An agent that calls tools."""

    _asynchronous = False

    def _begin(self) -> None:
        config = self._config
        self._busy = threading.Lock()
        self._chat: Conversation | None = None
        self._loop: ToolLoop | None = None
        if config.model is None:  # It works only as a sub-agent.
            return
        self._chat = (
            open_conversation(config.conversation, **grouped(config.conversation_options))
            if self._owns_conversation
            else config.conversation
        )
        try:
            self._loop = self._new_loop(self._chat)
        except BaseException:
            self.close()
            raise

    @property
    def conversation(self) -> Conversation:
        """The agent's conversation. Raises BadSetting if the agent has no model."""
        self._check_model()
        assert self._chat is not None, "An agent with a model opens it."
        return self._chat

    def resume(self) -> Outcome:
        """Continue where a run ended before the model had answered: broken off, failed, or stopped by a limit.

        Calls that have results are not repeated. A run that broke off continues as the same run; after a limit a new
        run begins. If the model has answered, nothing is done, and the last outcome is returned. Raises BadInput if
        there is nothing to resume, and what the model's SDK raises.
        """
        return outcome_of(self._events(self._opened().resume(streams=False)))

    def _opened(self) -> ToolLoop:
        self._check_model()
        assert self._loop is not None, "An agent with a model opens it."
        return self._loop

    def close(self) -> None:
        """Close conversation and model, if this agent opened them. Everything is stored already."""
        if self._chat is not None and self._owns_conversation:
            self._chat.close()
        self._resources.close()
        for resource in self._closed_with_it:
            resource.close()

    def _send(self, content: object) -> Outcome:
        return outcome_of(self._events(self._opened().begin(content, streams=False)))

    def _stream(self, content: object) -> Generator[AgentEvent, None, Outcome]:
        loop = self._opened()
        return self._events(loop.resume(streams=True) if content is None else loop.begin(content, streams=True))

    def _events(self, routine: Routine[Outcome]) -> Generator[AgentEvent, None, Outcome]:
        if not self._busy.acquire(blocking=False):
            raise BadInput(BUSY)
        try:
            return (yield from perform(routine))
        finally:
            self._busy.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class AsyncAgent(_AgentBase["AsyncConversation"]):
    """An agent that calls tools, for asyncio. It opens its conversation when that is first needed.

    Tools, `approve` and the model may be async.
    """

    _asynchronous = True

    def _begin(self) -> None:
        self._loop: ToolLoop | None = None
        self._chat: AsyncConversation | None = None
        self._is_busy = False

    @property
    def conversation(self) -> AsyncConversation:
        """The agent's conversation. Raises BadInput before it is open."""
        if self._chat is None:
            raise BadInput("The conversation is not open yet. Call: await agent.open().")
        return self._chat

    async def open(self) -> AsyncConversation:
        """Open the conversation, if it is not open yet, and return it. Raises BadSetting if the agent has no model."""
        self._check_model()
        if self._chat is None:
            config = self._config
            chat = config.conversation
            if self._owns_conversation:
                chat = await open_async_conversation(chat, **grouped(config.conversation_options))
            try:
                if self._chat is None:
                    self._loop = self._new_loop(chat)
                    self._chat = chat
            finally:
                # Another task may have opened it first, or the loop refused it.
                if self._chat is not chat and self._owns_conversation:
                    await chat.close()
        assert self._chat is not None, "This task or another one opened it."
        return self._chat

    async def resume(self) -> Outcome:
        """Continue where a run ended before the model had answered. See `Agent.resume`."""
        return await outcome_of_async(self._events(lambda loop: loop.resume(streams=False)))

    async def close(self) -> None:
        """Close conversation and model, if this agent opened them."""
        if self._chat is not None and self._owns_conversation:
            await self._chat.close()
        for closing in self._resources.close():
            await resolve(closing)
        for resource in self._closed_with_it:
            await call_async(resource.close)

    async def _send(self, content: object) -> Outcome:
        return await outcome_of_async(self._events(lambda loop: loop.begin(content, streams=False)))

    def _stream(self, content: object) -> AsyncGenerator[AgentEvent, None]:
        if content is None:
            return self._events(lambda loop: loop.resume(streams=True))
        return self._events(lambda loop: loop.begin(content, streams=True))

    async def _events(self, begin: Callable[[ToolLoop], Routine[Outcome]]) -> AsyncGenerator[AgentEvent, None]:
        if self._is_busy:
            raise BadInput(BUSY)
        self._is_busy = True
        try:
            await self.open()
            assert self._loop is not None, "`open` creates it."
            async with aclosing(perform_async(begin(self._loop))) as events:
                async for event in events:
                    yield event
        finally:
            self._is_busy = False

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


class ChatAgent(Agent):
    """An agent to talk with. It calls tools, and continues a stored conversation of any length by its name.

    >>> from foveate.testing import ScriptedModel
    >>> with ChatAgent(ScriptedModel(["Hello, Ada."]), window=100_000) as agent:
    ...     print(agent.send("I am Ada."))
    Hello, Ada.
    """

    default_name = "chat"
    """The name of the conversation if none is given."""

    def send(self, content: object) -> Outcome:
        """Send an input, and wait for the answer. `content`: text, or what `Conversation.append` takes.

        The model is called until it answers without calling a tool, or a limit is reached: the outcome's state is
        `stopped` then, and the next `send` or `resume` continues. Calls that an earlier run left open are answered
        first. Raises BadInput if the input is blank or the agent is busy, and what the model's SDK raises: the input is
        stored then, and `resume` requests the answer again.
        """
        return self._send(content)

    def stream(self, content: object = None) -> Generator[AgentEvent, None, Outcome]:
        """Send an input, and yield events as they happen, `RunEnded` last. Without `content`: resume.

        Nothing happens before the first iteration. Closing the iterator stops the run.
        """
        return self._stream(content)


class AsyncChatAgent(AsyncAgent):
    """An agent to talk with, for asyncio."""

    default_name = "chat"
    """The name of the conversation if none is given."""

    async def send(self, content: object) -> Outcome:
        """Send an input, and wait for the answer. Cancelling stops the run; the next `send` continues."""
        return await self._send(content)

    def stream(self, content: object = None) -> AsyncGenerator[AgentEvent, None]:
        """Send an input, and yield events as they happen, `RunEnded` last. Without `content`: resume.

        To stop early, close the iterator (`contextlib.aclosing`), so that the run ends at once.
        """
        return self._stream(content)


class ReActAgent(Agent):
    """An agent that works on tasks with tools, step by step, until it has the answer.

    >>> from foveate.testing import ScriptedModel, call
    >>> def add(a: int, b: int) -> int:
    ...     \"\"\"Add two numbers.\"\"\"
    ...     return a + b
    >>> model = ScriptedModel([call("c1", "add", a=2, b=3), "It is 5."])
    >>> with ReActAgent(model, tools=[add], window=100_000) as agent:
    ...     print(agent.run("What is 2 + 3?"))
    It is 5.
    """

    default_name = "react"
    """The name of the conversation if none is given."""
    default_system = INSTRUCTION
    """The system prompt if none is given."""

    def run(self, task: object) -> Outcome:
        """Work on a task until it is done, or a limit is reached. Tasks follow each other in one conversation.

        `task`: text, or what `Conversation.append` takes. Raises BadInput if the task is blank or the agent is busy,
        and what the model's SDK raises: the task is stored then, and `resume` continues.
        """
        return self._send(task)

    def stream(self, task: object = None) -> Generator[AgentEvent, None, Outcome]:
        """Work on a task, and yield events as they happen, `RunEnded` last. Without a task: resume.

        Nothing happens before the first iteration. Closing the iterator stops the run.
        """
        return self._stream(task)


class AsyncReActAgent(AsyncAgent):
    """An agent that works on tasks with tools, for asyncio."""

    default_name = "react"
    """The name of the conversation if none is given."""
    default_system = INSTRUCTION
    """The system prompt if none is given."""

    async def run(self, task: object) -> Outcome:
        """Work on a task until it is done, or a limit is reached. Cancelling stops the run; `resume` continues."""
        return await self._send(task)

    def stream(self, task: object = None) -> AsyncGenerator[AgentEvent, None]:
        """Work on a task, and yield events as they happen, `RunEnded` last. Without a task: resume.

        To stop early, close the iterator (`contextlib.aclosing`), so that the run ends at once.
        """
        return self._stream(task)
