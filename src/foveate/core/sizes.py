"""Sizes of messages: tokens and images.

A counter counts text, and media if it has a method for them (`foveate.counters`). Other counters count media as GPT-4o
does. Encrypted content counts as a quarter of its characters: it is billed by what it holds, not by its own size.
Images and documents within a block that is kept whole, such as a fetched PDF or a generated image, count like others.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .media_tokens import IMAGE_TOKENS, image_size, media_tokens, rates_for
from .messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

__all__ = ["IMAGE_TOKENS", "MESSAGE_TOKENS", "estimate", "images_of", "tokens_of"]

MESSAGE_TOKENS = 4
"""Tokens of every message in addition to its content."""


_RATES = rates_for("o200k", "gpt-4o")

_PAYLOAD = re.compile(r'"(?:data:[^;,"]{0,100};base64,)?([A-Za-z0-9+/_-]{256,}={0,2})"')
"""A string of base64 in a block that is kept whole: media, or content that only the provider can read."""


def estimate(text: str) -> int:
    """Return a quarter of the characters, rounded up: the rule by which policies compare texts of one conversation.

    Budgets use the counter of the conversation instead (`foveate.counters`).
    """
    return (len(text) + 3) // 4


def tokens_of(message: Message, count: Callable[[str], int] = estimate) -> int:
    """Return the tokens of a whole message by this counter of text."""
    return MESSAGE_TOKENS + sum([_part_tokens(part, count) for part in message.parts])


def images_of(message: Message) -> int:
    """Return the number of images in a message, including those in a tool result."""
    return sum(media.is_image for media in message.media())


def _part_tokens(part: Part, count: Callable[[str], int]) -> int:
    match part:
        case Text():
            return count(part.text)
        case ToolResult():
            return sum([_part_tokens(nested, count) for nested in part.content])
        case ToolCall():
            return count(f"{part.name} {part.arguments}")
        case Reasoning():
            # Without text, the encrypted payload or the signature carries the reasoning, and is billed like it.
            return count(part.text) if part.text else (len(part.encrypted or part.signature) + 3) // 4
        case Media():
            measure = getattr(count, "media", None)
            return measure(part) if measure else media_tokens(part, _RATES, count)
        case Opaque():
            payloads = _PAYLOAD.findall(part.body)
            rest = _PAYLOAD.sub('""', part.body) if payloads else part.body
            return count(rest) + sum([_payload_tokens(payload, count) for payload in payloads])


def _payload_tokens(payload: str, count: Callable[[str], int]) -> int:
    """Return the tokens of a string of base64 by the media that it holds, or as encrypted content."""
    if image_size(payload):
        return _part_tokens(Media("image/png", "base64", payload), count)
    if payload.startswith("JVBERi"):
        return _part_tokens(Media("application/pdf", "base64", payload), count)
    return (len(payload) + 3) // 4
