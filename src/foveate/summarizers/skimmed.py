"""Messages that are too much to be read, skimmed: of each long text the beginning and the end."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..core.messages import Content, Message, Part, Text, ToolCall, ToolResult

__all__ = ["bounded"]


def bounded(messages: Sequence[Message], room: int) -> tuple[Message, ...]:
    """The messages, unchanged if they hold no more than `room` characters; else each gets an equal part of it."""
    if sum(map(_length, messages)) <= room:
        return tuple(messages)
    each = room // len(messages)
    return tuple(_skimmed(message, each) if _length(message) > each else message for message in messages)


def _length(message: Message) -> int:
    return len(message.text) + sum(len(call.arguments) for call in message.calls)


def _skimmed(message: Message, room: int) -> Message:
    return replace(message, parts=tuple(_part(part, room // len(message.parts)) for part in message.parts))


def _part(part: Part, room: int) -> Part:
    match part:
        case ToolCall() if len(part.arguments) > room:
            return replace(part, arguments=_ends(part.arguments, room))
        case ToolResult():
            each = room // max(1, len(part.content))
            return replace(part, content=tuple(_content(one, each) for one in part.content))
        case Text():
            return Text(_ends(part.text, room))
        case _:
            return part


def _content(part: Content, room: int) -> Content:
    return Text(_ends(part.text, room)) if isinstance(part, Text) else part


def _ends(text: str, room: int) -> str:
    half = room // 2
    return text if len(text) <= room else f"{text[:half]}\n{text[len(text) - half :]}"
