"""Sizes of messages: tokens and images.

A counter counts text. This module estimates other content the same way for every counter: an image as 1,600 tokens (the
maximum of Claude's formula at full size, and about two tiles more than GPT's), a document by its bytes.
"""

from __future__ import annotations

from collections.abc import Callable

from .messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

__all__ = ["IMAGE_TOKENS", "MESSAGE_TOKENS", "estimate", "images_of", "tokens_of"]

MESSAGE_TOKENS = 4
"""Tokens of every message in addition to its content."""

IMAGE_TOKENS = 1_600


def estimate(text: str) -> int:
    """Return the tokens of a text as a quarter of its characters, rounded up. This counter needs no package."""
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
            return count(part.text or part.encrypted or part.signature)
        case Media():
            return IMAGE_TOKENS if part.is_image else max(IMAGE_TOKENS, len(part.data) // 20)
        case Opaque():
            return count(part.body)
