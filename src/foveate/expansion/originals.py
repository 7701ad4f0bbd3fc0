"""The text of what was said, in which lines and items are counted and patterns look: the same for the same message.

A single text, a single result and the arguments of a single call are themselves, to the byte. Of several parts the
texts are joined by line ends, and so are several messages, each behind a line that names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import wire
from ..core.messages import Content, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from ..errors import UnknownHandle
from ..ports import StoredMessage

__all__ = ["content_of", "decoded", "part_of", "text_of", "text_of_all", "who_said"]


def decoded(row: StoredMessage) -> Message:
    """What was appended; a message without parts where it was erased."""
    return wire.decode_message(row.body) if row.body else Message("user", ())


def who_said(row: StoredMessage) -> str:
    """The tool, or whatever else a message came from, or the role of who said it."""
    return row.stamp.source or decoded(row).role


def part_of(message: Message, path: tuple[int, ...], handle: str) -> Message:
    """The message, or a message that holds only the part at `path`. Raises UnknownHandle where there is none."""
    if not path:
        return message
    try:
        part: Any = message.parts[path[0]]
        if len(path) == 2:
            part = part.content[path[1]]
    except (IndexError, AttributeError):
        raise UnknownHandle(handle, f"That message has {len(message.parts)} parts.") from None
    return Message(message.role, (part,))


def text_of(message: Message) -> str:
    """What a message says. Reasoning is told only where there is nothing else."""
    if len(message.parts) == 1 and isinstance(call := message.parts[0], ToolCall):
        return call.arguments
    said = [_said(part) for part in message.parts if not isinstance(part, Reasoning)]
    return "\n".join(said or [part.text for part in message.parts if isinstance(part, Reasoning)])


def text_of_all(messages: Sequence[tuple[str, str, Message]]) -> str:
    """What several messages say: each with its handle, who says it, and itself."""
    if len(messages) == 1:
        return text_of(messages[0][2])
    return "\n".join(f"[{handle}, {who}]\n{text_of(message)}" for handle, who, message in messages)


def content_of(messages: Sequence[tuple[str, str, Message]]) -> tuple[Content, ...]:
    """All of it as the content of a result: of one result, its own; of anything else, its text and its media."""
    if len(messages) == 1 and (result := messages[0][2].result) is not None:
        return result.content
    text = text_of_all(messages)
    media = tuple(media for _, _, message in messages for media in message.media())
    return (*((Text(text),) if text else ()), *media)


def _said(part: Part) -> str:
    match part:
        case Text() | Reasoning():
            return part.text
        case ToolResult():
            return "\n".join(_said(nested) for nested in part.content)
        case ToolCall():
            return f"[calls {part.name}]\n{part.arguments}"
        case Media():
            return f"[{part.mime or 'image'}{f' {part.name}' if part.name else ''}]"
        case Opaque():
            return f"[{part.kind}]"
