"""Messages for benchmarks: real recordings if available, else the project's demo recording.

Every message has a number, so that no cache or compressor sees the same text twice.
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
    """Return chat-completions JSONL files, in a stable order."""
    folder = Path(os.environ.get("FOVEATE_TRANSCRIPTS", ROOT.parent / "shared" / "transcripts")) / "neutral"
    files = sorted(folder.glob("*/*.jsonl"))
    return files or sorted((ROOT / "examples" / "data").glob("*.jsonl"))


def messages() -> Iterator[Message]:
    """Yield messages without end; every call is answered, and no two messages are equal."""
    format = get_format("openai")
    conversations = [
        [message for line in path.open(encoding="utf-8") for message in format.parse(json.loads(line))]
        for path in recordings()
    ]
    number = 0
    while True:
        for conversation in conversations:
            for message in conversation:
                number += 1
                if message.role != "system":
                    yield _numbered(message, number)


def _numbered(message: Message, number: int) -> Message:
    """Return the message with its number at the beginning. It also makes the call ids of each round unique."""
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
    """Return the message with the first `characters` of each text, to build a long past quickly."""
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
    """Yield turns without end: an answer with one call, and its result."""
    before: Message | None = None
    for message in messages():
        if before is not None and message.role == "tool" and len(before.calls) == 1:
            yield before, message
        before = message if message.role == "assistant" else None
