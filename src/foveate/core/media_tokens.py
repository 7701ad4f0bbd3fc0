"""Tokens of images, documents, sounds and videos, by the formulas of their providers.

The size of an image, the pages of a PDF and the duration of a sound or video are read from the base64 text. Media by
URL or file id, and those in an unknown format, count as `IMAGE_TOKENS` or by their size.

Sources, as of November 2026: the vision pages of Anthropic, OpenAI and Google, Google's pages "Understand and count
tokens" and "Media resolution", OpenAI's page "Managing costs" of the Realtime API, and the measured counts of the
public tables `image-token-cost` and `pdf-token-cost`.
"""

from __future__ import annotations

import re
import struct
import zlib
from base64 import b64decode
from binascii import Error
from collections.abc import Callable
from itertools import pairwise
from math import ceil
from typing import NamedTuple

from .media_duration import duration
from .messages import Media

__all__ = [
    "IMAGE_TOKENS",
    "MediaFormula",
    "MediaRates",
    "image_size",
    "media_tokens",
    "media_type",
    "page_count",
    "rates_for",
]

MediaFormula = Callable[[int, int, str], int]
"""Tokens of an image by its width and height in pixels, and by the detail that the caller asked for ("" for none)."""

IMAGE_TOKENS = 1_600
"""Tokens of an image of unknown size: the maximum of Claude's models before 4.7 at full size."""

_UNREADABLE = 40
"""Tokens of the text that stands for media that the provider does not read."""


class MediaRates(NamedTuple):
    """Tokens of media in the requests of one model."""

    image: MediaFormula
    """The formula for images."""
    page: Callable[[str], int]
    """Tokens of a page of a PDF, by the detail that the caller asked for."""
    sound: int | None
    """Tokens of a second of sound; None if the model reads neither sounds nor videos."""
    frame: Callable[[str], int] | None
    """Tokens of a frame of a video, by the detail, without its sound; None if they are not known."""


_HEAD = 65_536
"""Characters of base64 in which the size of a JPEG is looked for; its header may hold a preview."""
_BEGINS = {
    "iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp",
    "JVBERi": "application/pdf",
}  # fmt: skip
"""The base64 text of the first bytes of each type."""
_WEBP = "RUJQ"
"""The base64 text of the tenth byte of a WebP and of the next two. A WAV begins with the same bytes as a WebP."""
_PDF_MAX = 12_000_000
"""Longer base64 texts of PDFs are not searched for pages."""
_INFLATED_MAX = 8_000_000
"""Bytes of decompressed objects that are searched for pages."""
_DETAIL = re.compile(r'"(?:detail|level)":\s*"(?:MEDIA_RESOLUTION_|media_resolution_)?(\w+)"')
"""The detail of an image (OpenAI), or the media resolution of a part (Gemini 3)."""
_FRAMES = re.compile(r'"fps":\s*(\d+(?:\.\d+)?)')
"""Frames of a video in a second, if the caller asks for a number (Gemini)."""
_GEMINI_3_IMAGE = {"low": 280, "medium": 560, "high": 1_120, "ultra_high": 2_240}
"""Tokens of an image, or a page of a PDF, by its media resolution (Google, "Media resolution")."""


def rates_for(family: str, model: str = "") -> MediaRates:
    """Return the rates of this model. `family`: the name of its vocabulary (`core/tokens.py`).

    A page of a PDF: Claude reads its text and its image (measured: 1,600 to 2,480), Gemini an image of 258 tokens
    (version 2) or 560 (version 3). OpenAI documents text and image of each page, without a number. A second of sound:
    32 (Gemini) or 10 (OpenAI). Gemini reads one frame of a video in a second, of 258 tokens (version 2) or 70.
    """
    match family:
        case "claude":
            return MediaRates(_claude(1_568, 1_560), lambda detail: 2_500, None, None)
        case "claude-4.7":
            return MediaRates(_claude(2_576, 4_784), lambda detail: 2_500, None, None)
        case "gemini" if re.search(r"gemini-(?:1|2)", model):
            return MediaRates(_gemini_2, lambda detail: 258, 32, lambda detail: 258)
        case "gemini":
            return MediaRates(
                lambda width, height, detail: _GEMINI_3_IMAGE.get(detail, 1_120),
                lambda detail: _GEMINI_3_IMAGE.get(detail, 560),
                32,
                lambda detail: 280 if "high" in detail else 70,
            )
        case _:
            return MediaRates(_openai(model), lambda detail: 1_500, 10, None)


def image_size(data: str) -> tuple[int, int] | None:
    """Return width and height in pixels of a base64 PNG, JPEG, GIF or WebP; None if they cannot be read."""
    head = _decoded(data[:64])
    if head[:8] == b"\x89PNG\r\n\x1a\n" and len(head) >= 24:
        width, height = struct.unpack(">II", head[16:24])
    elif head[:4] == b"GIF8" and len(head) >= 10:
        width, height = struct.unpack("<HH", head[6:10])
    elif head[:4] == b"RIFF" and head[8:12] == b"WEBP" and len(head) >= 30:
        width, height = _webp_size(head)
    elif head[:2] == b"\xff\xd8":
        width, height = _jpeg_size(_decoded(data[:_HEAD]))
    else:
        return None
    return (width, height) if width and height else None


def media_type(data: str) -> str:
    """Return the media type of a base64 PNG, JPEG, GIF, WebP or PDF by its first bytes; "" for others."""
    found = next((mime for begin, mime in _BEGINS.items() if data.startswith(begin)), "")
    return "" if found == "image/webp" and data[12:16] != _WEBP else found


def page_count(data: str) -> int:
    """Return the pages of a base64 PDF; 0 if its list of pages cannot be read or the file is larger than 9 MB."""
    if len(data) > _PDF_MAX or not data.startswith("JVBERi"):
        return 0
    body = _decoded(data)
    return _pages_in(body) or _pages_in(_inflated(body))


def _pages_in(body: bytes) -> int:
    counts = [int(number) for number in re.findall(rb"/Type\s*/Pages\b[^>]{0,400}?/Count\s+(\d{1,6})", body)]
    counts += [int(number) for number in re.findall(rb"/Count\s+(\d{1,6})[^>]{0,400}?/Type\s*/Pages\b", body)]
    return max([len(re.findall(rb"/Type\s*/Page\b", body)), *counts])


def _inflated(body: bytes) -> bytes:
    """Return the objects that a PDF keeps in compressed streams, as most have done since version 1.5."""
    texts: list[bytes] = []
    room = _INFLATED_MAX
    places = [found.span() for found in re.finditer(rb"/Type\s*/ObjStm\b[^\0]{0,400}?\bstream\r?\n", body)]
    for (_, begin), (end, _) in pairwise((*places, (len(body), 0))):  # No byte is in two of them.
        try:
            texts.append(zlib.decompressobj().decompress(body[begin:end], max(1, room)))
        except zlib.error:
            continue
        room -= len(texts[-1])
        if room <= 0:
            break
    return b"\n".join(texts)


def media_tokens(media: Media, rates: MediaRates, count: Callable[[str], int]) -> int:
    """Return the tokens of an image, a document, a sound or a video. `count`: the counter of text."""
    data, kind = media.data, media.mime.partition("/")[0]
    if kind in ("audio", "video") and rates.sound is None:
        return _UNREADABLE
    if media.source == "base64":
        fields = media.extra.fields if media.extra else ""
        found = _DETAIL.search(fields)
        detail = found[1].lower() if found else ""
        if media.is_image:
            if size := image_size(data):
                return max(1, rates.image(*size, detail))
        elif media.mime == "application/pdf" and (pages := page_count(data)):
            return pages * rates.page(detail)
        elif kind == "text":
            return count(_decoded(data).decode("utf-8", "replace"))
        elif kind == "audio" and (seconds := duration(data)):
            return ceil(seconds * (rates.sound or 0))
        elif kind == "video" and rates.frame and (seconds := duration(data)):
            rate = _FRAMES.search(fields)
            return ceil(seconds * ((rates.sound or 0) + rates.frame(detail) * (float(rate[1]) if rate else 1.0)))
    return IMAGE_TOKENS if media.is_image else max(IMAGE_TOKENS, len(data) // 20)


# ------------------------------------------------------------------------------------------------------------ formulas


def _claude(longest: int, most: int) -> MediaFormula:
    """Claude: patches of 28 x 28 pixels, after scaling to a longest edge and a number of patches, and a frame.

    Before 4.7: 1,568 pixels and about 1,560 patches; since then 2,576 and 4,784. The older rule of width x height / 750
    gives the same within 5 %.
    """

    def tokens(width: int, height: int, detail: str) -> int:
        width, height = _within(width, height, longest)
        return min(most, ceil(width / 28) * ceil(height / 28)) + 77

    return tokens


def _openai(model: str) -> MediaFormula:
    """OpenAI: patches of 32 x 32 pixels times a factor, or tiles of 512 x 512 in addition to a base."""
    name = re.split("[/:]", model)[-1]
    if re.match(r"gpt-(?:5\.[4-9]|[6-9])", name):
        return _patches(1.2, 12_000)
    for pattern, factor in ((r"gpt-(?:4\.1|5)\S*-mini", 1.62), (r"gpt-(?:4\.1|5)\S*-nano", 2.46), (r"o4-mini", 1.72)):
        if re.match(pattern, name):
            return _patches(factor, 1_536)
    if name.startswith("gpt-4o-mini"):
        return _tiles(2_833, 5_667)
    if re.match(r"o[13]", name):
        return _tiles(75, 150)
    return _tiles(70, 140) if name.startswith("gpt-5") else _tiles(85, 170)


def _patches(factor: float, most: int) -> MediaFormula:
    def tokens(width: int, height: int, detail: str) -> int:
        patches = ceil(width / 32) * ceil(height / 32)
        return ceil(min(most, 256 if detail == "low" else patches, patches) * factor)

    return tokens


def _tiles(base: int, tile: int) -> MediaFormula:
    def tokens(width: int, height: int, detail: str) -> int:
        if detail == "low":
            return base
        width, height = _within(width, height, 2_048)
        scale = min(1.0, 768 / min(width, height))
        return base + tile * ceil(round(width * scale) / 512) * ceil(round(height * scale) / 512)

    return tokens


def _gemini_2(width: int, height: int, detail: str) -> int:
    """Gemini to version 2.5: 258 tokens up to 384 x 384 pixels, otherwise 258 for each tile of at most 768 x 768."""
    if max(width, height) <= 384:
        return 258
    edge = max(256, min(768, int(min(width, height) / 1.5)))
    return 258 * ceil(width / edge) * ceil(height / edge)


def _within(width: int, height: int, longest: int) -> tuple[int, int]:
    """Return the size after scaling the longer edge down to `longest` pixels."""
    scale = min(1.0, longest / max(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))


# ------------------------------------------------------------------------------------------------------------- headers


def _decoded(data: str) -> bytes:
    """Return the bytes of a base64 text as far as it is whole; b"" if it is none."""
    try:
        return b64decode(data[: len(data) // 4 * 4])
    except (Error, ValueError):
        return b""


def _webp_size(head: bytes) -> tuple[int, int]:
    match head[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")
        case b"VP8L":
            bits = int.from_bytes(head[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case _:
            width, height = struct.unpack("<HH", head[26:30])
            return width & 0x3FFF, height & 0x3FFF


def _jpeg_size(head: bytes) -> tuple[int, int]:
    """Return the size in the first frame header, (0, 0) if there is none in these bytes."""
    at = 2
    while at + 9 < len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if marker == 0xFF:  # A filling byte.
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", head[at + 5 : at + 9])
            return width, height
        elif marker in (0x01, *range(0xD0, 0xD8)):
            at += 2
        else:
            at += 2 + int.from_bytes(head[at + 2 : at + 4], "big")
    return 0, 0
