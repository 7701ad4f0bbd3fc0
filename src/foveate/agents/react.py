"""A ReAct agent: it works on a task with tools, one step after another, until it has the answer.

The calls are the provider's own, several at once where the model asks for them. What tools answered is shortened by the
policies of its conversation, such as `filter_tool_results`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator

from .events import AgentEvent, Outcome
from .faces import AsyncFace, Face

__all__ = ["AsyncReActAgent", "ReActAgent"]

INSTRUCTION = (
    "You work on a task with the tools you have. Think about what is missing, call the tools that find it out, several "
    "at once where they do not depend on each other, look at what they answer, and go on until the task is done. An "
    "error tells what to do differently: do not repeat the same call. When you are done, answer without calling a tool."
)
"""The system prompt where none is said."""


class ReActAgent(Face):
    """An agent that works on tasks with tools.

    >>> from foveate.testing import ScriptedModel, call
    >>> def add(a: int, b: int) -> int:
    ...     \"\"\"Add two numbers.\"\"\"
    ...     return a + b
    >>> model = ScriptedModel([call("c1", "add", a=2, b=3), "It is 5."])
    >>> with ReActAgent(model, tools=[add], window=100_000) as agent:
    ...     print(agent.run("What is 2 + 3?"))
    It is 5.
    """

    _name = "react"
    _system = INSTRUCTION

    def run(self, task: object) -> Outcome:
        """Work on a task until it is done, or a limit is reached. Tasks follow each other in one conversation.

        `task`: text, or what `Conversation.append` takes. Raises BadInput where nothing is said or the agent is at
        work, and what the model's SDK raises: the task is kept then, and `resume` goes on with it.
        """
        return self._said(task)

    def stream(self, task: object = None) -> Generator[AgentEvent, None, Outcome]:
        """The same as events, while they happen; last `RunEnded`. Without a task: of `resume`.

        Nothing happens until it is iterated over. Whoever stops before the end stops the run: close the iterator.
        """
        return self._streamed(task)


class AsyncReActAgent(AsyncFace):
    """The same for asyncio."""

    _name = "react"
    _system = INSTRUCTION

    async def run(self, task: object) -> Outcome:
        """As of the agent without asyncio. Cancelling stops the run; `resume` goes on with it."""
        return await self._said(task)

    def stream(self, task: object = None) -> AsyncGenerator[AgentEvent, None]:
        """The same as events, while they happen; last `RunEnded`. Without a task: of `resume`.

        Whoever stops before the end closes it (`contextlib.aclosing`), so that the run is closed at once.
        """
        return self._streamed(task)
