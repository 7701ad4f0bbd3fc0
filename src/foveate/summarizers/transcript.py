"""Transcripts: messages as text for a summarizer, small enough for its window.

Long results become digests before anything is left out; a history that is still too long becomes several parts.
Reasoning is left out: only its own conversation may show it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..core.messages import Content, Media, Message, Part, Text, ToolCall, ToolResult
from ..digest import digest

__all__ = ["MOST_PARTS", "is_from_user", "is_summary", "label_of", "split_messages", "truncate_messages"]

_OTHERS = frozenset(("system", "assistant", "tool", "plugin", "summary", "derived"))
"""Origins of messages that no user typed."""
_NOTE = "[Result for "
"""Beginning of a tool result that became a note, because it can no longer answer its call."""


def is_from_user(message: Message) -> bool:
    """Whether a user wrote this message."""
    return message.role == "user" and message.name not in _OTHERS and not message.text.startswith(_NOTE)


def is_summary(message: Message) -> bool:
    """Whether this message is a summary of several others."""
    return message.role == "user" and message.name == "summary"


def label_of(message: Message) -> str:
    """Return the label of a message in a transcript."""
    if (result := message.result) is not None:
        state = "" if result.state == "ok" else f", {result.state}"
        return f"result{f' of {result.name}' if result.name else ''}{state}"
    if is_summary(message):
        return "steps, told in short"
    if message.role == "user" and not is_from_user(message):
        return f"{message.name or 'tool'}, not the user"
    return message.role


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
            return replace(part, content=tuple(_content(content, each) for content in part.content))
        case Text():
            return Text(_ends(part.text, room))
        case _:
            return part


def _content(part: Content, room: int) -> Content:
    return Text(_ends(part.text, room)) if isinstance(part, Text) else part


def _ends(text: str, room: int) -> str:
    half = room // 2
    return text if len(text) <= room else f"{text[:half]}\n{text[len(text) - half :]}"


MOST_PARTS = 6
"""The parts of a history at most; each is a request."""

_WHOLE = 1 << 60
_AT_ONCE = tuple((keep, _WHOLE) for keep in (_WHOLE, 32_000, 16_000, 8_000, 4_000))
"""Characters kept of a result and of any other text, tried in order, for one request."""
_IN_PARTS = ((4_000, _WHOLE), *((keep, 8 * keep) for keep in (2_000, 1_000, 500, 250, 120)))
"""The same for several requests: parts lose less than shorter results do."""
_RULE = "--- "
"""Text before each message."""
_LEFT_OUT = "[{count} earlier messages left out]"


def split_messages(messages: Sequence[Message], room: int) -> list[str]:
    """Return the messages as texts of at most `room` characters, in order: one if possible, else as few as possible."""
    blocks: list[str] = []
    for limits, most in ((_AT_ONCE, 1), (_IN_PARTS, MOST_PARTS)):
        for results, texts in limits:
            blocks = [block for message in messages if (block := _block(message, results, texts))]
            packed = _packed(blocks, room)
            if len(packed) <= most:
                return packed
    kept: list[str] = []
    left = MOST_PARTS * room // 2  # Parts are not filled to the last character.
    for block in reversed(blocks):
        left -= len(block) + 2
        if left < 0:
            break
        kept.append(block)
    note = _LEFT_OUT.format(count=len(blocks) - len(kept))
    return _packed([note, *reversed(kept)], room)


def _packed(blocks: Sequence[str], room: int) -> list[str]:
    """Join neighbours up to `room` characters; a larger block is cut."""
    parts: list[str] = []
    for block in blocks:
        block = block[:room]
        if parts and len(parts[-1]) + 2 + len(block) <= room:
            parts[-1] += f"\n\n{block}"
        else:
            parts.append(block)
    return parts


def _block(message: Message, results: int, texts: int) -> str:
    lines = []
    for part in message.parts:
        match part:
            case ToolCall():
                lines.append(f"(called {part.name} with {_cut(part.arguments, texts)})")
            case ToolResult():
                lines += [_text_of(content, results) for content in part.content]
            case Text() | Media():
                lines.append(_text_of(part, texts))
            case _:
                pass
    text = "\n".join(line for line in lines if line.strip())
    return f"{_RULE}{label_of(message)}\n{text}" if text else ""


def _text_of(part: object, keep: int) -> str:
    match part:
        case Text(text=text):
            return _cut(text, keep)
        case Media(mime=mime, name=name):
            return f"[{mime or 'image'}{f': {name}' if name else ''}]"
        case _:
            return ""


def _cut(text: str, keep: int) -> str:
    return text if len(text) <= keep else digest(text, keep).text[:keep]
