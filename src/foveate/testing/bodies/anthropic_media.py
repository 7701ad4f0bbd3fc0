"""Which images and documents Anthropic's Messages API takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from .media import IMAGE_TYPES, data_fault, image_size, sniff_image

__all__ = ["MANY_PIXELS", "is_large", "source_faults"]

PIXELS_MAX: Final = 8_000
"""The largest side of an image."""
MANY_PIXELS: Final = 2_000
"""The largest side of an image among many."""
IMAGE_MAX: Final = 10 * 1024 * 1024
"""Characters of base64 that one image may have."""


def source_faults(kind: str, source: object) -> Iterator[str]:
    """What is wrong with the `source` of an image or a document."""
    if not isinstance(source, dict):
        yield "Field required"
        return
    match source.get("type"):
        case "base64":
            yield from _base64(kind, source.get("data"), source.get("media_type"))
        case "url" if _is_url(source.get("url")):
            pass
        case "file" if _is_text(source.get("file_id")):
            pass
        case "text" if kind == "document" and source.get("media_type") == "text/plain" and _is_text(source.get("data")):
            pass
        case "content" if kind == "document" and source.get("content"):
            pass
        case other:
            yield f"not a usable source of type {other!r} for a block of type {kind!r}"


def is_large(data: str) -> bool:
    """Whether an image is too large to stand among many."""
    return max(image_size(data)) > MANY_PIXELS


def _base64(kind: str, data: object, mime: object) -> Iterator[str]:
    allowed = sorted(IMAGE_TYPES) if kind == "image" else ["application/pdf"]
    if mime not in allowed:
        yield f"media_type: Input should be {' or '.join(map(repr, allowed))}, got {mime!r}"
    if fault := data_fault(data):
        yield fault
    if kind != "image" or not isinstance(data, str):
        return
    # Bytes of no known kind are let through: nobody but the provider can say whether they are an image.
    if (seen := sniff_image(data)) and mime in allowed and seen != mime:
        yield f"Image does not match the provided media type {mime}"
    if len(data) > IMAGE_MAX:
        yield f"image exceeds 10 MB maximum: {len(data)} bytes > {IMAGE_MAX} bytes"
    if max(image_size(data)) > PIXELS_MAX:
        yield f"At least one of the image dimensions exceed max allowed size: {PIXELS_MAX} pixels"


def _is_url(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(("https://", "http://"))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)
