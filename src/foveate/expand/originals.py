"""The text of a message, in which lines and items are counted and patterns search: always the same for a message.

A single text, a single result and the arguments of a single call are themselves, to the byte. The texts of several
parts are joined by line ends, and so are several messages, each after a line that names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import wire
from ..core.labels import without_labels
from ..core.messages import Content, Message, Opaque, Part, Reasoning, Text, ToolCall
from ..core.plurals import plural
from ..core.readable import block_content, content_text, in_message, media_in
from ..errors import UnknownHandle
from ..ports import StoredMessage

__all__ = ["author_of", "content_of", "decoded", "part_of", "text_of", "text_of_all"]

_LABEL = r"\[m\d+(?:\.\d+)*, "
"""The beginning of the line before a message."""


def decoded(row: StoredMessage) -> Message:
    """Return the appended message; one without parts if it was erased."""
    return wire.decode_message(row.body) if row.body else Message("user", ())


def author_of(row: StoredMessage) -> str:
    """Return the tool, or another source of a message, in one line, or its role."""
    return " ".join(row.stamp.source.split()) or decoded(row).role


def part_of(message: Message, path: tuple[int, ...], handle: str) -> Message:
    """Return the message, or one that holds only the part at `path`. Raises UnknownHandle without such a part."""
    if not path:
        return message
    try:
        part: Any = message.parts[path[0]]
        if len(path) == 2:
            part = part.content[path[1]]
    except (IndexError, AttributeError):
        raise UnknownHandle(handle, f"That message has {plural(len(message.parts), 'part')}.") from None
    return Message(message.role, (part,))


def text_of(message: Message) -> str:
    """Return the text of a message; its reasoning only if there is nothing else."""
    if len(message.parts) == 1 and isinstance(call := message.parts[0], ToolCall):
        return call.arguments
    texts = [_text_of_part(part) for part in message.parts if not isinstance(part, Reasoning)]
    return "\n".join(texts or [part.text for part in message.parts if isinstance(part, Reasoning)])


def text_of_all(messages: Sequence[tuple[str, str, Message]]) -> str:
    """Return the text of several messages: each with its handle and its author.

    A line in a message that begins with such a label has a mark before it.
    """
    if len(messages) == 1:
        return text_of(messages[0][2])
    texts = [(handle, author, without_labels(text_of(message), _LABEL)) for handle, author, message in messages]
    return "\n".join(f"[{handle}, {author}]\n{text}" for handle, author, text in texts)


def content_of(messages: Sequence[tuple[str, str, Message]]) -> tuple[Content, ...]:
    """Return the content of a single result, as another result may have it; of anything else its text and its media."""
    if len(messages) == 1 and (result := messages[0][2].result) is not None:
        return tuple([each for part in result.content for each in in_message(part)])
    text = text_of_all(messages)
    media = tuple(media for _, _, message in messages for media in media_in(message))
    return (*((Text(text),) if text else ()), *media)


def _text_of_part(part: Part) -> str:
    match part:
        case Text() | Reasoning():
            return part.text
        case ToolCall():
            return f"[calls {part.name}]\n{part.arguments}"
        case Opaque():
            return "\n".join(filter(None, (f"[{part.kind}]", content_text(block_content(part)))))
        case _:
            return content_text((part,))
