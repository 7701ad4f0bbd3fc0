"""Conversations to measure with: real recordings where they are at hand, otherwise the project's own demo recording.

Messages are never repeated word for word: each one is numbered, so that neither a cache nor a compressor sees the same
text twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from foveate import Message, Text, ToolResult
from foveate.formats import get_format

ROOT = Path(__file__).resolve().parent.parent


def recordings() -> list[Path]:
    """Chat-completions JSONL files, the same order everywhere."""
    folder = Path(os.environ.get("FOVEATE_TRANSCRIPTS", ROOT.parent / "shared" / "transcripts")) / "neutral"
    files = sorted(folder.glob("*/*.jsonl"))
    return files or sorted((ROOT / "examples" / "data").glob("*.jsonl"))


def messages() -> Iterator[Message]:
    """Messages without end, every call answered, no two alike."""
    format = get_format("openai")
    read = [
        [message for line in path.open(encoding="utf-8") for message in format.parse(json.loads(line))]
        for path in recordings()
    ]
    number = 0
    while True:
        for conversation in read:
            for message in conversation:
                number += 1
                if message.role != "system":
                    yield _numbered(message, number)


def _numbered(message: Message, number: int) -> Message:
    """The same message, saying its number first; calls keep their ids apart from other rounds by it."""
    parts = []
    for part in message.parts:
        match part:
            case Text():
                parts.append(replace(part, text=f"{number}. {part.text}"))
            case ToolResult():
                first = part.content[0] if part.content else Text("")
                text = first.text if isinstance(first, Text) else ""
                parts.append(replace(part, content=(Text(f"{number}. {text}"), *part.content[1:])))
            case _:
                parts.append(part)
    return replace(message, parts=tuple(parts))


def cut(message: Message, characters: int) -> Message:
    """The same message with so much of each text: a past that is quickly made."""
    parts = []
    for part in message.parts:
        match part:
            case Text(text=text):
                parts.append(replace(part, text=text[:characters]))
            case ToolResult(text=text):
                parts.append(replace(part, content=(Text(text[:characters]),)))
            case _:
                parts.append(part)
    return replace(message, parts=tuple(parts))


def turns() -> Iterator[tuple[Message, Message]]:
    """Turns without end: an answer with one call, and its result."""
    before: Message | None = None
    for message in messages():
        if before is not None and message.role == "tool" and len(before.calls) == 1:
            yield before, message
        before = message if message.role == "assistant" else None
