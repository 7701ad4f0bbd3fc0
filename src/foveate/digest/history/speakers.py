"""Speakers of messages: whether a user wrote them, and whether they are summaries."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from ...core.messages import Message, Part, Text, ToolCall, ToolResult
from ...core.scripts import beginning_of, whole_end

__all__ = ["is_from_user", "is_summary", "truncate_messages"]

_OTHERS = frozenset(("system", "assistant", "tool", "plugin", "summary", "derived"))
"""Origins of messages that no user typed."""
_BEGINNINGS = ("[Result for ", "Base directory for this skill:", "Here is a demonstration of")
"""Beginnings of texts that no user typed: a tool result that became a note, because it can no longer answer its call; a
skill that Claude Code sends when the model asks for it; an example that SWE-agent shows before the task.
"""


_LAUNCHES = re.compile(r"Launching skill: [\w.:/-]+\s*\Z")
"""The result after which Claude Code sends the text of a skill, or of a command, that the model asked for."""


def is_from_user(message: Message, before: Message | None) -> bool:
    """Return whether a user wrote this message. `before`: the message before it."""
    if message.role != "user" or message.name in _OTHERS or message.text.startswith(_BEGINNINGS):
        return False
    return before is None or before.role != "tool" or not _LAUNCHES.match(before.text)


def is_summary(message: Message) -> bool:
    """Return whether this message is a summary of several others."""
    return message.role == "user" and message.name == "summary"


def truncate_messages(messages: Sequence[Message], room: int) -> tuple[Message, ...]:
    """Return the messages unchanged if they fit into `room` characters; else each gets an equal part of it."""
    if sum(map(_length, messages)) <= room:
        return tuple(messages)
    each = room // len(messages)
    return tuple(_truncate(message, each) if _length(message) > each else message for message in messages)


def _length(message: Message) -> int:
    return len(message.text) + sum(len(call.arguments) for call in message.calls)


def _truncate(message: Message, room: int) -> Message:
    return replace(message, parts=tuple(_part(part, room // len(message.parts)) for part in message.parts))


def _part(part: Part, room: int) -> Part:
    match part:
        case ToolCall() if len(part.arguments) > room:
            return replace(part, arguments=_ends(part.arguments, room))
        case ToolResult():
            each = room // max(1, len(part.content))
            content = [Text(_ends(inner.text, each)) if isinstance(inner, Text) else inner for inner in part.content]
            return replace(part, content=tuple(content))
        case Text():
            return Text(_ends(part.text, room))
        case _:
            return part


def _ends(text: str, room: int) -> str:
    half = room // 2
    return text if len(text) <= room else f"{beginning_of(text, half)}\n{text[whole_end(text, len(text) - half) :]}"
