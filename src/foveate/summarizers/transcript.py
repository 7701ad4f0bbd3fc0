"""Transcripts: messages as text for a summarizer, small enough for its window.

Long results become digests before anything is left out; a history that is still too long becomes several parts, and if
these are too many, the oldest messages become one digest.
Reasoning is left out: only its own conversation may show it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.labels import without_labels
from ..core.messages import Media, Message, Text, ToolCall, ToolResult
from ..core.readable import describe_media, readable_messages
from ..digest import digest
from ..digest.history import digest_messages, note_left_out
from ..digest.history.speakers import is_from_user, is_summary

__all__ = ["MOST_PARTS", "label_of", "split_messages"]


def label_of(message: Message, before: Message | None = None) -> str:
    """Return the label of a message in a transcript. `before`: the message before it."""
    if (result := message.result) is not None:
        state = "" if result.state == "ok" else f", {result.state}"
        return f"result{f' of {_on_one_line(result.name)}' if result.name else ''}{state}"
    if is_summary(message):
        return "steps, told in short"
    if message.role == "user" and not is_from_user(message, before):
        return f"{_on_one_line(message.name) or 'tool'}, not the user"
    return message.role


def _on_one_line(name: str) -> str:
    """Return a name without line ends: a model may have given it, and it must not add a label."""
    return " ".join(name.split())


MOST_PARTS = 6
"""The parts of a history at most; each is a request."""

_WHOLE = 1 << 60
_AT_ONCE = tuple((keep, _WHOLE) for keep in (_WHOLE, 32_000, 16_000, 8_000, 4_000))
"""Characters kept of a result and of any other text, tried in order, for one request."""
_IN_PARTS = ((4_000, _WHOLE), *((keep, 8 * keep) for keep in (2_000, 1_000, 500, 250, 120)))
"""The same for several requests: parts lose less than shorter results do."""
_RULE = "--- "
"""Text before each message."""


def split_messages(messages: Sequence[Message], room: int) -> list[str]:
    """Return the messages as texts of at most `room` characters, in order: one if possible, else as few as possible."""
    messages = readable_messages(messages)
    written: list[tuple[Message, str]] = []
    labels = [label_of(message, messages[i - 1] if i else None) for i, message in enumerate(messages)]
    for limits, most in ((_AT_ONCE, 1), (_IN_PARTS, MOST_PARTS)):
        for results, texts in limits:
            blocks = [_block(message, label, results, texts) for message, label in zip(messages, labels, strict=True)]
            written = [(message, block) for message, block in zip(messages, blocks, strict=True) if block]
            packed = _packed([block for _, block in written], room)
            if len(packed) <= most:
                return packed
    kept: list[str] = []
    digest_room = room // 2
    left = MOST_PARTS * room // 2 - digest_room  # Parts are not filled to the last character.
    for _, block in reversed(written):
        left -= len(block) + 2
        if left < 0:
            break
        kept.append(block)
    oldest = [message for message, _ in written[: len(written) - len(kept)]]
    digest = digest_messages(oldest, max(0, digest_room - len(note_left_out(len(oldest))) - 1))
    note = note_left_out(len(oldest), digest)
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


def _block(message: Message, label: str, results: int, texts: int) -> str:
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
    text = without_labels("\n".join(line for line in lines if line.strip()), _RULE)
    return f"{_RULE}{label}\n{text}" if text else ""


def _text_of(part: object, keep: int) -> str:
    match part:
        case Text(text=text):
            return _cut(text, keep)
        case Media():
            return f"[{describe_media(part)}]"
        case _:
            return ""


def _cut(text: str, keep: int) -> str:
    return text if len(text) <= keep else digest(text, keep).text[:keep]
