"""A chat agent: it answers what is said to it, calls tools where it needs them, and never forgets a conversation.

Its conversation is taken up by its name, in this process or another; checkpoints, summaries and filters are policies of
that conversation.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator

from .events import AgentEvent, Outcome
from .faces import AsyncFace, Face

__all__ = ["AsyncChatAgent", "ChatAgent"]


class ChatAgent(Face):
    """An agent to talk with, in a conversation of any length.

    >>> from foveate.testing import ScriptedModel
    >>> with ChatAgent(ScriptedModel(["Hello, Ada."]), window=100_000) as agent:
    ...     print(agent.send("I am Ada."))
    Hello, Ada.
    """

    _name = "chat"

    def send(self, said: object) -> Outcome:
        """Say something, and wait for the answer. `said`: text, or what `Conversation.append` takes.

        The model is called until it answers without calling a tool, or a limit is reached: then the outcome's state is
        `stopped`, and the next `send`, or `resume`, goes on. Calls that an earlier run left open are answered first.
        Raises BadInput where nothing is said or the agent is at work, and what the model's SDK raises: what was said
        is kept then, and `resume` asks for the answer again.
        """
        return self._said(said)

    def stream(self, said: object = None) -> Generator[AgentEvent, None, Outcome]:
        """The same as events, while they happen; last `RunEnded`. Without `said`: of `resume`.

        Nothing happens until it is iterated over. Whoever stops before the end stops the run: close the iterator.
        """
        return self._streamed(said)


class AsyncChatAgent(AsyncFace):
    """The same for asyncio."""

    _name = "chat"

    async def send(self, said: object) -> Outcome:
        """As of the agent without asyncio. Cancelling stops the run; the conversation goes on with the next `send`."""
        return await self._said(said)

    def stream(self, said: object = None) -> AsyncGenerator[AgentEvent, None]:
        """The same as events, while they happen; last `RunEnded`. Without `said`: of `resume`.

        Whoever stops before the end closes it (`contextlib.aclosing`), so that the run is closed at once.
        """
        return self._streamed(said)
