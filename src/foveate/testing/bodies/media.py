"""Checks of images and documents in base64, without decoding all of it."""

from __future__ import annotations

import binascii
from collections.abc import Iterator
from typing import Any, Final

__all__ = ["IMAGE_TYPES", "MANY_PIXELS", "data_fault", "image_size", "is_large", "sniff_image", "source_faults"]

IMAGE_TYPES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})

_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def data_fault(data: object) -> str:
    """Return the problem of a base64 text, or ""."""
    if not isinstance(data, str) or not data:
        return "base64 data must be a non-empty string"
    body = data.encode("ascii", "replace")
    if len(body) % 4 or body.rstrip(b"=").translate(None, _ALPHABET) or len(body) - len(body.rstrip(b"=")) > 2:
        return "invalid base64 data"
    return ""


def sniff_image(data: str) -> str:
    """Return the media type of base64 image data by its first bytes, or "" if unknown."""
    head = _head(data, 24)
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return ""


def image_size(data: str) -> tuple[int, int]:
    """Return width and height in pixels of base64 image data, or zeros if its first bytes do not contain them."""
    head = _head(data, 40)
    match sniff_image(data):
        case "image/png" if len(head) >= 24:
            return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
        case "image/gif" if len(head) >= 10:
            return int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little")
        case "image/webp" if head[12:16] == b"VP8X" and len(head) >= 30:
            return 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")
        case "image/jpeg":
            return _jpeg_size(_head(data, 65_536))  # A JPEG's size follows its metadata.
    return 0, 0


def _jpeg_size(head: bytes) -> tuple[int, int]:
    place = 2
    while place + 9 <= len(head) and head[place] == 0xFF:
        marker, length = head[place + 1], int.from_bytes(head[place + 2 : place + 4], "big")
        if marker in range(0xC0, 0xD0) and marker not in (0xC4, 0xC8, 0xCC):  # A frame header of any coding.
            high, wide = head[place + 5 : place + 7], head[place + 7 : place + 9]
            return int.from_bytes(wide, "big"), int.from_bytes(high, "big")
        place += 2 + length
    return 0, 0


def _head(data: str, characters: int) -> bytes:
    try:
        return binascii.a2b_base64(data[:characters])
    except (binascii.Error, ValueError):
        return b""


PIXELS_MAX: Final = 8_000
"""The largest side of an image."""
MANY_PIXELS: Final = 2_000
"""The largest side of an image among many."""
IMAGE_MAX: Final = 10 * 1024 * 1024
"""Characters of base64 that one image may have."""


def source_faults(kind: str, source: object) -> Iterator[str]:
    """Yield the problems of the `source` of an image or a document, for Anthropic."""
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
    """Return whether an image is too large among many."""
    return max(image_size(data)) > MANY_PIXELS


def _base64(kind: str, data: object, mime: object) -> Iterator[str]:
    allowed = sorted(IMAGE_TYPES) if kind == "image" else ["application/pdf"]
    if mime not in allowed:
        yield f"media_type: Input should be {' or '.join(map(repr, allowed))}, got {mime!r}"
    if fault := data_fault(data):
        yield fault
    if kind != "image" or not isinstance(data, str):
        return
    # Bytes of an unknown kind are accepted: only the provider can judge them.
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
