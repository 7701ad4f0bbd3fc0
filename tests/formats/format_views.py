"""Views for tests of formats, built by hand as a projection builds them."""

from __future__ import annotations

from foveate.core.call_context import Budget
from foveate.core.messages import Media, Message, ToolCall, assistant, tool_result, user
from foveate.core.stamps import Origin, Stamp
from foveate.core.view import Entry, View

BUDGET = Budget(window=200_000, reserve=1_000, max_bytes=32_000_000, max_images=20)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = Media("image/png", "base64", PIXEL)


def entry(message: Message, turn: int = 0, position: int = 1) -> Entry:
    """Return one entry that shows an appended message."""
    origin: Origin = message.role
    return Entry(position, f"id{position}", message, message, Stamp(turn, 0, 0, origin))


def entries(*messages: Message) -> tuple[Entry, ...]:
    """Return entries for messages in order; each assistant message begins a turn."""
    result: list[Entry] = []
    turn = 0
    for position, message in enumerate(messages, 1):
        turn += message.role == "assistant"
        result.append(entry(message, turn, position))
    return tuple(result)


def view(*shown: Message | Entry) -> View:
    """Return a view of these messages or entries."""
    if all(isinstance(each, Message) for each in shown):
        shown = entries(*(each for each in shown if isinstance(each, Message)))
    shown_entries = tuple(each for each in shown if isinstance(each, Entry))
    return View(shown_entries, turn=1 + max((each.stamp.turn for each in shown_entries), default=0), budget=BUDGET)


def loop(steps: int) -> list[Message]:
    """Return a user's request and `steps` calls, each with its result: two blocks a step."""
    messages = [user("u")]
    for step in range(steps):
        messages += [assistant("", ToolCall(f"c{step}", "f")), tool_result(f"c{step}", "r")]
    return messages
