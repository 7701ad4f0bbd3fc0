"""Who speaks in a message that has the role of the user: the user, or somebody in the user's name.

Policies name the others (`summary_input` sets `name` to where a message came from); a late tool result says so itself.
"""

from __future__ import annotations

from ..core.messages import Message

__all__ = ["is_in_short", "is_users", "speaker_of"]

_OTHERS = frozenset(("system", "assistant", "tool", "plugin", "summary", "derived"))
"""Origins of messages that no user typed."""
_NOTE = "[Result for "
"""How a tool result begins that is told as a note, because it can no longer answer its call."""


def is_users(message: Message) -> bool:
    """Whether a user said this."""
    return message.role == "user" and message.name not in _OTHERS and not message.text.startswith(_NOTE)


def is_in_short(message: Message) -> bool:
    """Whether this stands for several messages, told in short."""
    return message.role == "user" and message.name == "summary"


def speaker_of(message: Message) -> str:
    """What stands before a message in a transcript."""
    if (result := message.result) is not None:
        state = "" if result.state == "ok" else f", {result.state}"
        return f"result{f' of {result.name}' if result.name else ''}{state}"
    if is_in_short(message):
        return "steps, told in short"
    if message.role == "user" and not is_users(message):
        return f"{message.name or 'tool'}, not the user"
    return message.role
