"""Tokens of images and documents by the formulas of their providers."""

from __future__ import annotations

import base64
import struct
import zlib

import pytest

from foveate.core.media_tokens import IMAGE_TOKENS, image_size, page_count, rates_for
from foveate.core.messages import Extra, Media, Message
from foveate.core.sizes import MESSAGE_TOKENS, tokens_of
from foveate.counters import counter_for


def png(width: int, height: int) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + b"IHDR" + header + struct.pack(">I", zlib.crc32(b"IHDR" + header))
    return b"\x89PNG\r\n\x1a\n" + chunk + bytes(1000)


def jpeg(width: int, height: int) -> bytes:
    preview = b"\xff\xe1" + struct.pack(">H", 5_002) + bytes(5_000)
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes(9)
    return b"\xff\xd8" + preview + b"\xff\xff" + frame[1:] + bytes(500)


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(100)


def webp(width: int, height: int, kind: bytes) -> bytes:
    if kind == b"VP8X":
        body = bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    elif kind == b"VP8L":
        body = b"\x2f" + (width - 1 | (height - 1) << 14).to_bytes(4, "little") + bytes(8)
    else:
        body = b"\x00\x00\x00\x9d\x01\x2a" + struct.pack("<HH", width, height)
    return b"RIFF" + bytes(4) + b"WEBP" + kind + bytes(4) + body + bytes(60)


IMAGES = {
    "png": png(1024, 768),
    "jpeg": jpeg(1024, 768),
    "gif": gif(1024, 768),
    "webp lossy": webp(1024, 768, b"VP8 "),
    "webp lossless": webp(1024, 768, b"VP8L"),
    "webp extended": webp(1024, 768, b"VP8X"),
}


def image(data: bytes, extra: Extra | None = None) -> Media:
    return Media("image/png", "base64", base64.b64encode(data).decode(), extra=extra)


@pytest.mark.parametrize("kind", IMAGES)
def test_the_size_of_an_image_is_read_from_its_first_bytes(kind):
    assert image_size(base64.b64encode(IMAGES[kind]).decode()) == (1024, 768)


@pytest.mark.parametrize("data", ["", "AAAA", "not base64!", "iVBORw0KGgo=", "/9j/4AAQ", "R0lGODlh"])
def test_an_unreadable_image_has_no_size(data):
    assert image_size(data) is None
    assert tokens_of(Message("user", (Media("image/png", "base64", data),))) == IMAGE_TOKENS + MESSAGE_TOKENS


@pytest.mark.parametrize(
    ("family", "model", "size", "tokens"),
    [
        # Measured counts of the table `image-token-cost`, without its prompt of about 13 tokens.
        ("claude", "claude-haiku-4-5", (512, 512), 438),
        ("claude", "claude-haiku-4-5", (1024, 1024), 1_446),
        ("claude", "claude-haiku-4-5", (4032, 3024), 1_637),
        ("claude-4.7", "claude-opus-5-5", (1920, 1080), 2_768),
        ("o200k", "gpt-5.5", (1024, 1024), 1_229),
        ("o200k", "gpt-6", (1280, 720), 1_104),
        # Examples of the vision guides of OpenAI and Google.
        ("o200k", "gpt-4o", (1024, 1024), 765),
        ("o200k", "gpt-4o", (2048, 4096), 1_105),
        ("o200k", "gpt-4.1-mini", (1024, 1024), 1_659),
        ("gemini", "gemini-2.5-flash", (300, 300), 258),
        ("gemini", "gemini-2.5-flash", (960, 540), 1_548),
        ("gemini", "gemini-3-pro", (4032, 3024), 1_120),
    ],
)
def test_images_count_by_the_formula_of_their_model(family, model, size, tokens):
    assert rates_for(family, model).image(*size, "") == tokens


def test_low_detail_costs_only_the_base():
    low = image(png(2048, 2048), Extra("openai", '{"detail": "low"}'))
    assert counter_for("gpt-4o").media(low) == 85
    assert counter_for("gpt-4o").media(image(png(2048, 2048))) == 765


def test_only_the_head_of_a_large_image_is_decoded(monkeypatch):
    import foveate.core.media_tokens as module

    sizes = []
    monkeypatch.setattr(module, "_decoded", lambda data: sizes.append(len(data)) or b"")
    image_size(base64.b64encode(png(10, 10) + bytes(5_000_000)).decode())
    assert max(sizes) <= 65_536


def test_pages_of_a_pdf_are_counted():
    pages = b"".join(b"%d 0 obj << /Type /Page /Parent 2 0 R >> endobj\n" % number for number in range(3, 10))
    body = b"%PDF-1.4\n2 0 obj << /Type /Pages /Kids [3 0 R] /Count 7 >> endobj\n" + pages
    data = base64.b64encode(body).decode()
    assert page_count(data) == 7
    document = Media("application/pdf", "base64", data)
    assert counter_for("claude-opus-5").media(document) == 7 * 2_500
    assert counter_for("gemini-3-pro").media(document) == 7 * 560


def test_compressed_pages_of_a_pdf_are_counted():
    """Most PDFs since version 1.5 keep the list of pages in a compressed stream."""
    pages = b"<< /Type /Pages /Kids [3 0 R] /Count 36 >>\n" + b"<< /Type /Page >>\n" * 2
    packed = zlib.compress(pages)
    stream = b"9 0 obj\n<< /Type /ObjStm /N 3 /Filter /FlateDecode /Length %d >>\nstream\r\n" % len(packed)
    body = b"%PDF-1.7\n" + stream + packed + b"\nendstream endobj\n"
    assert page_count(base64.b64encode(body).decode()) == 36
    broken = b"%PDF-1.7\n" + stream + b"not zlib" + b"\nendstream endobj\n"
    assert page_count(base64.b64encode(broken).decode()) == 0


def test_no_byte_of_a_pdf_is_decompressed_twice(monkeypatch):
    """A file may have a mark of a stream every few bytes, and reading on to the end at each took minutes."""
    sizes: list[int] = []

    class Counting:
        def decompress(self, data: bytes, room: int) -> bytes:
            sizes.append(len(data))
            return b""

    monkeypatch.setattr("foveate.core.media_tokens.zlib.decompressobj", Counting)
    body = b"%PDF-1.7\n" + b"/Type/ObjStm stream\n" * 2_000
    assert page_count(base64.b64encode(body).decode()) == 0
    assert len(sizes) == 2_000
    assert sum(sizes) < len(body)


def test_a_text_document_counts_as_its_text():
    text = "夜班火车又晚点了。" * 500
    data = base64.b64encode(text.encode()).decode()
    counter = counter_for("gemini-3-pro")
    assert counter.media(Media("text/plain", "base64", data)) == counter(text)


@pytest.mark.parametrize(
    ("level", "mime", "tokens"),
    [("LOW", "image/png", 280), ("ULTRA_HIGH", "image/png", 2_240), ("HIGH", "application/pdf", 1_120)],
)
def test_the_media_resolution_of_a_part_counts(level, mime, tokens):
    extra = Extra("gemini", f'{{"mediaResolution":{{"level":"MEDIA_RESOLUTION_{level}"}}}}')
    data = png(2048, 2048) if mime == "image/png" else b"%PDF-1.4 << /Type /Page >>"
    assert (
        counter_for("gemini-3.1-pro").media(Media(mime, "base64", base64.b64encode(data).decode(), "", extra)) == tokens
    )


def test_a_pdf_without_a_list_of_pages_counts_by_its_bytes():
    data = base64.b64encode(b"%PDF-1.7\n" + bytes(120_000)).decode()
    assert page_count(data) == 0
    assert counter_for("claude-opus-5").media(Media("application/pdf", "base64", data)) == len(data) // 20


@pytest.mark.parametrize("source", ["url", "file"])
def test_an_image_by_reference_counts_as_before(source):
    assert counter_for("gpt-4o").media(Media("image/png", source, "https://example.org/a.png")) == IMAGE_TOKENS
