"""A to-do list that the model keeps: it writes the whole list by calling a tool, and the newest stays as it wrote it.

The list is nowhere but in the history: in the arguments of the newest call. A pin holds that call, and its short
answer, against every mechanism, so the list survives compaction, a restart, a fork and `undo`, and nothing is sent
twice. Showing it anew with each message would change the end of the prompt at each call.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from ...core.messages import Part
from ...policies.pins import pin_newest_as
from ...shell import HistoryEntry
from ..tools import ToolFailed, tool

__all__ = ["Todo", "TodoList"]

_MOST_CHARACTERS = 4_000
"""Of a list: what is pinned takes its room whatever happens."""


class Todo(Struct, frozen=True):
    """One thing to do."""

    text: Annotated[str, Meta(description="What is to be done, in a few words.")]
    state: Literal["open", "doing", "done"] = "open"


class TodoList:
    """A plugin for agents: the tool `update_todos`, and a policy that keeps the newest list in sight.

    For agents that call tools as the provider has it (chat and ReAct agents); a loop agent's steps are no calls. It
    adds nothing to messages. `tool_name`: what models call the tool by.
    """

    name = "todos"

    def __init__(self, *, tool_name: str = "update_todos") -> None:
        self.tools = (tool(_update, name=tool_name, is_repeatable=True, together=False),)
        self.policies = (pin_newest_as(self.name, [tool_name], 1),)
        self._tool_name = tool_name

    def __call__(self, content: tuple[Part, ...], /) -> None:
        return None

    def newest(self, history: Iterable[HistoryEntry]) -> tuple[Todo, ...]:
        """The list that is in force: `todos.newest(agent.conversation.history())`. Empty while there is none."""
        answered: set[str] = set()
        for row in reversed(list(history)):
            result = row.message.result
            if result is not None and result.state == "ok":
                answered.add(result.call_id)
            for call in reversed(row.message.calls):
                if call.name == self._tool_name and call.call_id in answered:
                    return tuple(msgspec.json.decode(call.arguments, type=_Arguments, strict=False).todos)
        return ()


class _Arguments(Struct):
    todos: list[Todo]


def _update(todos: list[Todo]) -> str:
    """Write down what is to be done, when there are several steps: the whole list each time, what is done with it.

    Call this when you have a plan, and again whenever something is begun or done.

    Args:
        todos: All that is to be done, in order. One at a time is "doing".
    """
    size = sum(len(one.text) for one in todos)
    if size > _MOST_CHARACTERS:
        raise ToolFailed(
            f"The list was not taken: it has {size:,} characters, and {_MOST_CHARACTERS:,} is the most. Say it in "
            "fewer words, and leave out what has long been done."
        )
    if any(not one.text.strip() for one in todos):
        raise ToolFailed("The list was not taken: something in it has no text.")
    done = sum(one.state == "done" for one in todos)
    following = [one.text for one in todos if one.state == "doing"] or [
        one.text for one in todos if one.state == "open"
    ]
    if not todos:
        return "The list is empty."
    return f"{done} of {len(todos)} done." + (f" Now: {following[0]}" if following else "")
