"""What can be seen of base64 data without decoding all of it: whether it is valid, and what image it begins like.

Knows no provider, only the file formats that both take.
"""

from __future__ import annotations

import binascii
from typing import Final

__all__ = ["IMAGE_TYPES", "data_fault", "image_size", "sniff_image"]

IMAGE_TYPES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})

_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def data_fault(data: object) -> str:
    """What is wrong with base64 text, or an empty string."""
    if not isinstance(data, str) or not data:
        return "base64 data must be a non-empty string"
    body = data.encode("ascii", "replace")
    if len(body) % 4 or body.rstrip(b"=").translate(None, _ALPHABET) or len(body) - len(body.rstrip(b"=")) > 2:
        return "invalid base64 data"
    return ""


def sniff_image(data: str) -> str:
    """The media type that base64 image data begins like, or an empty string for bytes of no known kind."""
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
    """Width and height in pixels that base64 image data declares; zeros where its first bytes do not tell."""
    head = _head(data, 40)
    match sniff_image(data):
        case "image/png" if len(head) >= 24:
            return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
        case "image/gif" if len(head) >= 10:
            return int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little")
        case "image/webp" if head[12:16] == b"VP8X" and len(head) >= 30:
            return 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")
        case "image/jpeg":
            return _jpeg_size(_head(data, 65_536))  # A JPEG's size stands behind its metadata.
    return 0, 0


def _jpeg_size(head: bytes) -> tuple[int, int]:
    place = 2
    while place + 9 <= len(head) and head[place] == 0xFF:
        marker, length = head[place + 1], int.from_bytes(head[place + 2 : place + 4], "big")
        if marker in range(0xC0, 0xD0) and marker not in (0xC4, 0xC8, 0xCC):  # A frame header, whatever its coding.
            high, wide = head[place + 5 : place + 7], head[place + 7 : place + 9]
            return int.from_bytes(wide, "big"), int.from_bytes(high, "big")
        place += 2 + length
    return 0, 0


def _head(data: str, characters: int) -> bytes:
    try:
        return binascii.a2b_base64(data[:characters])
    except (binascii.Error, ValueError):
        return b""
