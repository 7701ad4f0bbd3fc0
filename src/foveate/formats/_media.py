"""Which images, documents and sounds can be sent, and what to say of those that cannot.

One bad picture makes a provider refuse a whole conversation, for ever. So in a request, what would be refused is told
as text; an export keeps it.
"""

from __future__ import annotations

import binascii
from collections.abc import Container

from ..core.messages import Media

__all__ = ["IMAGES", "is_sendable", "kind_of", "untold"]

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Types of images that every provider takes."""


def is_sendable(media: Media, format: str, mimes: Container[str], largest: int) -> bool:
    """Whether a request of this format may hold this: of these types, with so many characters of base64 at most."""
    match media.source:
        case "url":
            return media.data.startswith(("https://", "http://"))
        case "file":  # Kept by a provider under an id that means nothing to another.
            return bool(media.data) and (media.extra is None or media.extra.format == format)
        case _:
            return media.mime in mimes and 0 < len(media.data) <= largest and _is_base64(media.data)


def kind_of(media: Media) -> str:
    """What a person would call it."""
    if media.is_image:
        return "Image"
    return "Sound" if media.mime.startswith("audio/") else "Document"


def untold(media: Media) -> str:
    """The text that stands for media which cannot be shown."""
    what = " ".join(filter(None, (media.name, media.data if media.source == "url" else media.mime)))
    return f"[{kind_of(media)}, not shown here: {what}]" if what else f"[{kind_of(media)}, not shown here]"


def _is_base64(data: str) -> bool:
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except ValueError:  # Which binascii.Error is, and what a text beyond ASCII raises.
        return False
    return True
