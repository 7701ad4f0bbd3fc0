"""How large a message is: tokens by a counter of text, bytes of its canonical form, images.

A counter counts text. What is not text is estimated here, the same for every counter: an image as 1,600 tokens (the
cap of Claude's formula at full size, and about two tiles more than GPT's), a document by its bytes.
"""

from __future__ import annotations

from collections.abc import Callable

from .messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

__all__ = ["IMAGE_TOKENS", "MESSAGE_TOKENS", "estimate", "images_of", "tokens_of"]

MESSAGE_TOKENS = 4
"""What every message costs besides its content."""

IMAGE_TOKENS = 1_600


def estimate(text: str) -> int:
    """Tokens of a text as a quarter of its characters, rounded up: the counter that needs nothing."""
    return (len(text) + 3) // 4


def tokens_of(message: Message, count: Callable[[str], int] = estimate) -> int:
    """Tokens of a whole message by this counter of text."""
    return MESSAGE_TOKENS + sum([_part_tokens(part, count) for part in message.parts])


def images_of(message: Message) -> int:
    """How many images a message holds, nested ones too."""
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
            # Where the text is withheld, the cipher or the signature carries it back, and is billed as thought.
            return count(part.text or part.encrypted or part.signature)
        case Media():
            return IMAGE_TOKENS if part.is_image else max(IMAGE_TOKENS, len(part.data) // 20)
        case Opaque():
            return count(part.body)
