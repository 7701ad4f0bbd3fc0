"""The faces of agents that talk: what a program holds, with and without asyncio. Each is made of the same parts.

A face opens the model and the conversation, performs acts one at a time, and closes what it opened. What an agent does
is told in `talking.py`.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from ..conversation import Conversation
from ..errors import BadInput
from ..open import grouped, open_async_conversation, open_conversation
from ..ports import Clock, Cost, Model
from .acts import Act, perform, perform_async
from .batches import later
from .calling import Approve
from .claims import WAITS
from .events import AgentEvent, Outcome, RunEnded
from .limits import Limits
from .making import BUSY, closed, made_of
from .talking import Talker
from .tools import Tool

if TYPE_CHECKING:
    from ..async_conversation import AsyncConversation

__all__ = ["AsyncFace", "Face"]


class Face:
    """An agent that talks, with all that its kinds have in common."""

    _name = "agent"
    _system: object = None

    def __init__(
        self,
        model: str | Model,
        *,
        conversation: str | Conversation = "",
        name: str = "",
        system: object = None,
        tools: Iterable[Tool | Callable[..., object]] = (),
        limits: Limits | None = None,
        approve: Approve | None = None,
        approves_all: bool = False,
        at_most: int = 8,
        result_type: Any = None,
        options: Mapping[str, Any] | None = None,
        waits: float = WAITS,
        cost: Cost | None = None,
        clock: Clock | None = None,
        new_id: Callable[[], str] | None = None,
        closes_model: bool = False,
        **opening: Any,
    ) -> None:
        """An agent with a model, in a conversation.

        `model`: a name such as `anthropic:claude-haiku-4-5`, or a Model. `conversation`: its name, by default the
        agent's, or one that is open, and then stays open. `name`: what the agent's runs are kept under. `system`: the
        system prompt. `tools`: functions and Tools that the model may call. `limits`: of each run (default: 50 calls of
        the model). `approve`: asked before a call of a tool that needs approval, and before each with `approves_all`;
        returns True, False, or a sentence why not. `at_most`: calls that go on at once. `result_type`: the type of the
        final answer, if not text (`Outcome.value`). `options`: said to the model with every request, such as
        `{"temperature": 0}`. `waits`: seconds that another agent at work in the same conversation is waited for, before
        ConversationBusy is raised. `cost`: dollars that tokens cost, where the price of the model is not known.
        `clock`:
        milliseconds since 1970. `new_id`: makes the ids of runs. `closes_model`: whether `close` closes a Model that
        was handed in; one that was named is closed. All other keywords are those of `open_conversation`; format and
        window follow from the model where they are not said, and the model has the tool `expand` unless `expand` is
        False. Raises BadSetting for values that are not allowed.
        """
        made = made_of(
            type(self),
            model,
            asynchronous=False,
            conversation=conversation,
            name=name,
            system=system,
            tools=tools,
            limits=limits,
            calling=(approve, approves_all, at_most),
            result_type=result_type,
            options=options,
            waits=waits,
            cost=cost,
            clock=clock,
            new_id=new_id,
            opening=opening,
        )
        self._owns = isinstance(made.conversation, str)
        self._chat: Conversation = (
            open_conversation(made.conversation, **grouped(made.opening)) if self._owns else made.conversation
        )
        self._model = made.talking.model if isinstance(model, str) or closes_model else None
        """The model, if this agent closes it."""
        self._busy = threading.Lock()
        try:
            self._talker = Talker(made.talking, self._chat)
        except BaseException:
            self.close()
            raise

    @property
    def conversation(self) -> Conversation:
        """The conversation it talks in."""
        return self._chat

    def resume(self) -> Outcome:
        """Go on where a run ended before the model had answered: broken off, failed, or stopped by a limit.

        What had been called and answered is not called again. A run that broke off goes on as the run it was; after a
        limit a new one begins. Where the model has answered nothing is done, and the last outcome returned. Raises
        BadInput where there is nothing to go on with, and what the model's SDK raises.
        """
        return self._outcome(self._talker.resume(streams=False))

    def close(self) -> None:
        """Close conversation and model, if this agent opened them. What was said and done is in the store already."""
        if self._owns:
            self._chat.close()
        closed(self._model)

    def _said(self, said: object) -> Outcome:
        return self._outcome(self._talker.send(said, streams=False))

    def _streamed(self, said: object) -> Generator[AgentEvent, None, Outcome]:
        talker = self._talker
        return self._events(talker.resume(streams=True) if said is None else talker.send(said, streams=True))

    def _outcome(self, act: Act[Outcome]) -> Outcome:
        events = self._events(act)
        while True:
            try:
                next(events)
            except StopIteration as ended:
                return ended.value  # type: ignore[no-any-return]

    def _events(self, act: Act[Outcome]) -> Generator[AgentEvent, None, Outcome]:
        if not self._busy.acquire(blocking=False):
            raise BadInput(BUSY)
        try:
            return (yield from perform(act))
        finally:
            self._busy.release()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class AsyncFace:
    """The same for asyncio. The conversation is opened when it is first needed."""

    _name = "agent"
    _system: object = None

    def __init__(
        self,
        model: str | Model,
        *,
        conversation: str | AsyncConversation = "",
        name: str = "",
        system: object = None,
        tools: Iterable[Tool | Callable[..., object]] = (),
        limits: Limits | None = None,
        approve: Approve | None = None,
        approves_all: bool = False,
        at_most: int = 8,
        result_type: Any = None,
        options: Mapping[str, Any] | None = None,
        waits: float = WAITS,
        cost: Cost | None = None,
        clock: Clock | None = None,
        new_id: Callable[[], str] | None = None,
        closes_model: bool = False,
        **opening: Any,
    ) -> None:
        """As for the agent without asyncio; tools, `approve` and the model may be awaited."""
        self._made = made_of(
            type(self),
            model,
            asynchronous=True,
            conversation=conversation,
            name=name,
            system=system,
            tools=tools,
            limits=limits,
            calling=(approve, approves_all, at_most),
            result_type=result_type,
            options=options,
            waits=waits,
            cost=cost,
            clock=clock,
            new_id=new_id,
            opening=opening,
        )
        self._model = self._made.talking.model if isinstance(model, str) or closes_model else None
        """The model, if this agent closes it."""
        self._talker: Talker | None = None
        self._chat: AsyncConversation | None = None
        self._is_busy = False

    @property
    def conversation(self) -> AsyncConversation:
        """The conversation it talks in. Raises BadInput before it was opened."""
        if self._chat is None:
            raise BadInput("The conversation is opened when it is first needed: await agent.open().")
        return self._chat

    async def open(self) -> AsyncConversation:
        """Open the conversation, if that was not done yet, and return it."""
        if self._chat is None:
            named = self._made.conversation
            chat = (
                await open_async_conversation(named, **grouped(self._made.opening)) if isinstance(named, str) else named
            )
            try:
                if self._chat is None:
                    self._talker = Talker(self._made.talking, chat)
                    self._chat = chat
            finally:
                if self._chat is not chat and isinstance(named, str):  # Two were opening it at once, or it is refused.
                    await chat.close()
        assert self._chat is not None, "It was opened here, or elsewhere meanwhile."
        return self._chat

    async def resume(self) -> Outcome:
        """As of the agent without asyncio: go on where a run ended before the model had answered."""
        return await self._outcome(lambda talker: talker.resume(streams=False))

    async def close(self) -> None:
        """Close conversation and model, if this agent opened them."""
        if self._chat is not None and isinstance(self._made.conversation, str):
            await self._chat.close()
        await later(closed(self._model))

    async def _said(self, said: object) -> Outcome:
        return await self._outcome(lambda talker: talker.send(said, streams=False))

    def _streamed(self, said: object) -> AsyncGenerator[AgentEvent, None]:
        if said is None:
            return self._events(lambda talker: talker.resume(streams=True))
        return self._events(lambda talker: talker.send(said, streams=True))

    async def _outcome(self, begin: Callable[[Talker], Act[Outcome]]) -> Outcome:
        outcome: Outcome | None = None
        async with aclosing(self._events(begin)) as events:
            async for event in events:
                if isinstance(event, RunEnded):
                    outcome = event.outcome
        assert outcome is not None, "What ends without an error tells its outcome."
        return outcome

    async def _events(self, begin: Callable[[Talker], Act[Outcome]]) -> AsyncGenerator[AgentEvent, None]:
        if self._is_busy:
            raise BadInput(BUSY)
        self._is_busy = True
        try:
            await self.open()
            assert self._talker is not None, "An open conversation has somebody who talks in it."
            async with aclosing(perform_async(begin(self._talker))) as events:
                async for event in events:
                    yield event
        finally:
            self._is_busy = False

    async def __aenter__(self) -> Any:
        await self.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
