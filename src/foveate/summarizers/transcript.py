"""Messages as a text for a summarizer to read, small enough for its window.

Long results become digests before anything is left out; what is still too much is told in several parts. Thoughts are
left out: only the conversation they belong to may show them. Knows nothing of prompts or models.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.messages import Media, Message, Text, ToolCall, ToolResult
from ..digest import digest
from .speakers import speaker_of

__all__ = ["MOST_PARTS", "parts_of"]

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
