"""Views for tests of formats, made by hand: entries as a projection would give them."""

from __future__ import annotations

from foveate.core.messages import Media, Message, ToolCall, assistant, tool_result, user
from foveate.core.stamps import Origin, Stamp
from foveate.core.view import Budget, Entry, View

BUDGET = Budget(window=200_000, reserve=1_000, max_bytes=32_000_000, max_images=20)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = Media("image/png", "base64", PIXEL)


def entry(message: Message, turn: int = 0, position: int = 1) -> Entry:
    """One entry that shows what was appended."""
    origin: Origin = message.role
    return Entry(position, f"id{position}", message, message, Stamp(turn, 0, 0, origin))


def entries(*messages: Message) -> tuple[Entry, ...]:
    """Entries for messages in a row; each message of the assistant begins a turn."""
    made: list[Entry] = []
    turn = 0
    for position, message in enumerate(messages, 1):
        turn += message.role == "assistant"
        made.append(entry(message, turn, position))
    return tuple(made)


def view(*shown: Message | Entry) -> View:
    """A view of these messages, or of these entries."""
    if all(isinstance(each, Message) for each in shown):
        shown = entries(*(each for each in shown if isinstance(each, Message)))
    made = tuple(each for each in shown if isinstance(each, Entry))
    return View(made, turn=1 + max((each.stamp.turn for each in made), default=0), budget=BUDGET)


def loop(steps: int) -> list[Message]:
    """A user's request and a number of calls, each with its result: two blocks a step."""
    said = [user("u")]
    for step in range(steps):
        said += [assistant("", ToolCall(f"c{step}", "f")), tool_result(f"c{step}", "r")]
    return said
