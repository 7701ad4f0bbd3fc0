"""Transcripts: messages as text for a summarizer, small enough for its window.

Long results become digests before anything is left out; a history that is still too long becomes several parts.
Reasoning is left out: only its own conversation may show it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..core.messages import Content, Media, Message, Part, Text, ToolCall, ToolResult
from ..digest import digest

__all__ = ["MOST_PARTS", "bounded", "is_in_short", "is_users", "parts_of", "speaker_of"]

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


MOST_PARTS = 6
"""A history is told in at most so many parts: each is a call of the model."""

_WHOLE = 1 << 60
_AT_ONCE = tuple((keep, _WHOLE) for keep in (_WHOLE, 32_000, 16_000, 8_000, 4_000))
"""Characters kept of a result and of any other text, tried one after the other, to tell it all in one request."""
_IN_PARTS = ((4_000, _WHOLE), *((keep, 8 * keep) for keep in (2_000, 1_000, 500, 250, 120)))
"""The same for several requests: parts lose less than results that are cut further."""
_RULE = "--- "
"""What stands before each message."""
_LEFT_OUT = "[{count} earlier messages left out]"


def parts_of(messages: Sequence[Message], room: int) -> list[str]:
    """The messages as texts of at most `room` characters each, in order; one if that does, else as few as possible."""
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
    """Neighbours put together up to `room`; a block that alone is larger is cut."""
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
                lines += [_told(one, results) for one in part.content]
            case Text() | Media():
                lines.append(_told(part, texts))
            case _:
                pass
    said = "\n".join(line for line in lines if line.strip())
    return f"{_RULE}{speaker_of(message)}\n{said}" if said else ""


def _told(part: object, keep: int) -> str:
    match part:
        case Text(text=text):
            return _cut(text, keep)
        case Media(mime=mime, name=name):
            return f"[{mime or 'image'}{f': {name}' if name else ''}]"
        case _:
            return ""


def _cut(text: str, keep: int) -> str:
    return text if len(text) <= keep else digest(text, keep).text[:keep]
