"""`TodoList`: a to-do list that the model writes by calling a tool. The newest list stays in the view.

The list exists only in the history, as the arguments of the newest call. A pin protects that call and its short result
from every mechanism, so the list survives compaction, a restart, a fork and `undo`, and is sent once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from ...conversation import HistoryEntry
from ...core.messages import Message, Part, ToolCall, ToolResult
from ...core.results import action_result, is_action_result, read_actions
from ...policies.pins import pin_newest_as
from ..tools import ToolFailed, tool

__all__ = ["Todo", "TodoList"]

_CHARACTERS_MAX = 4_000
"""Of a list, because a pinned message is never shortened."""


class Todo(Struct, frozen=True):
    """One thing to do."""

    text: Annotated[str, Meta(description="The task, in a few words.")]
    """The task."""
    state: Literal["open", "doing", "done"] = "open"
    """Whether the task waits, is in progress, or is done."""


class TodoList:
    """A plugin with the tool `update_todos`, and a policy that keeps the newest list in the view.

    In a loop agent the tool is an action. The plugin adds nothing to messages. `tool_name`: the tool's name for models.
    """

    name = "todos"
    """The name of the plugin."""

    def __init__(self, *, tool_name: str = "update_todos") -> None:
        self.tools = (tool(_update, name=tool_name, is_repeatable=True, is_parallel=False),)
        """The tools with which the model reads and changes the list."""
        self.policies = (pin_newest_as(self.name, [tool_name], 1),)
        """How long the list stays in a message."""
        self._tool_name = tool_name

    def __call__(self, content: tuple[Part, ...], /) -> None:
        return None

    def newest(self, history: Iterable[HistoryEntry]) -> tuple[Todo, ...]:
        """Return the current list: `todos.newest(agent.conversation.history())`. Empty if there is none."""
        answered: set[str] = set()
        for row in reversed(list(history)):
            message, stamp = row.message, row.stamp
            if is_action_result(message, stamp) and stamp.tool == self._tool_name:
                result: ToolResult | None = action_result(message, stamp.tool)
            else:
                result = message.result
            if result is not None and result.state == "ok":
                answered.add(result.call_id)
            for call in reversed(_calls_of(message)):
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
    size = sum(len(todo.text) for todo in todos)
    if size > _CHARACTERS_MAX:
        raise ToolFailed(
            f"The list was not taken: it has {size:,} characters, and {_CHARACTERS_MAX:,} is the most. Say it in "
            "fewer words, and leave out what has long been done."
        )
    if any(not todo.text.strip() for todo in todos):
        raise ToolFailed("The list was not taken: something in it has no text.")
    done = sum(todo.state == "done" for todo in todos)
    following = [todo.text for todo in todos if todo.state == "doing"] or [
        todo.text for todo in todos if todo.state == "open"
    ]
    if not todos:
        return "The list is empty."
    return f"{done} of {len(todos)} done." + (f" Now: {following[0]}" if following else "")


def _calls_of(message: Message) -> tuple[ToolCall, ...]:
    """Return the calls of a message, or those of the actions in its text."""
    if message.calls or message.role != "assistant":
        return message.calls
    step = read_actions(message.text)
    return step.calls if step else ()
