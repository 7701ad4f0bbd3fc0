"""Duration of sounds and videos, read from a few places of their base64 text.

Formats with a length in their headers or frames are read: WAV, AIFF, MP3, FLAC, Ogg, MP4 and its relatives (M4A, MOV,
3GPP), WebM and Matroska. Sources: the specifications of these containers.
"""

from __future__ import annotations

import re
import struct
from base64 import b64decode
from binascii import Error

__all__ = ["duration"]

_HEAD = 65_536
"""Bytes that are searched at the beginning and at the end."""
_BOXES_MAX = 10_000
"""Boxes, and chunks, that are looked through; a longer chain of them is damaged."""
_MP3_KBITS = {
    1: (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),  # MPEG version 1
    2: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),  # versions 2 and 2.5
}
_MP3_RATES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}


class _Bytes:
    """The bytes of a base64 text, of which only the pieces that are read are decoded."""

    def __init__(self, data: str) -> None:
        self._data = data
        self.size = len(data) // 4 * 3 - data[-2:].count("=")

    def read(self, start: int, size: int) -> bytes:
        """Return up to `size` bytes from `start` on. Raises Error for text that is not base64."""
        if start < 0:
            return b""
        first = start // 3
        return b64decode(self._data[4 * first : 4 * (first + size // 3 + 2)])[start % 3 :][:size]


def duration(data: str) -> float | None:
    """Return the seconds that a sound or video takes; None if they cannot be read."""
    source = _Bytes(data)
    try:
        seconds = _read(source, source.read(0, 64))
    except (Error, ValueError, struct.error, ArithmeticError, LookupError):
        return None
    return seconds if seconds and 0 < seconds < 1e7 else None


def _read(source: _Bytes, head: bytes) -> float | None:
    match head[:4]:
        case b"RIFF" if head[8:12] == b"WAVE":
            return _wav(source)
        case b"FORM" if head[8:12] in (b"AIFF", b"AIFC"):
            return _aiff(source)
        case b"fLaC":
            bits = int.from_bytes(head[18:26], "big")  # 20 bits: rate; 3 and 5: channels and width; 36: samples
            return (bits & (1 << 36) - 1) / (bits >> 44)
        case b"OggS":
            return _ogg(source)
        case b"\x1a\x45\xdf\xa3":
            return _matroska(source)
    if head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"):
        return _mp4(source)
    return _mp3(source, head)


def _wav(source: _Bytes) -> float | None:
    rate = 0
    at = 12
    for _ in range(_BOXES_MAX):
        name, size = struct.unpack("<4sI", source.read(at, 8))
        if name == b"fmt ":
            rate = struct.unpack("<I", source.read(at + 16, 4))[0]
        elif name == b"data":  # A recorder that streams writes the largest size.
            return float(min(size, source.size - at - 8) / rate)
        at += 8 + size + size % 2
    return None


def _aiff(source: _Bytes) -> float | None:
    at = 12
    for _ in range(_BOXES_MAX):
        name, size = struct.unpack(">4sI", source.read(at, 8))
        if name == b"COMM":
            _, frames, _, exponent, mantissa = struct.unpack(">hIhHQ", source.read(at + 8, 18))
            return float(frames / (mantissa * 2.0 ** (exponent - 16_383 - 63)))
        at += 8 + size + size % 2
    return None


def _ogg(source: _Bytes) -> float | None:
    head = source.read(0, 512)
    opus, vorbis = head.find(b"OpusHead"), head.find(b"\x01vorbis")
    if opus < 0 and vorbis < 0:
        return None
    rate = 48_000 if opus >= 0 else struct.unpack("<I", head[vorbis + 12 : vorbis + 16])[0]
    start = max(0, source.size - _HEAD)
    tail = source.read(start, _HEAD)
    last = tail.rfind(b"OggS")
    return float(struct.unpack("<q", tail[last + 6 : last + 14])[0] / rate)


def _matroska(source: _Bytes) -> float | None:
    head = source.read(0, _HEAD)
    found = re.search(rb"\x44\x89(?:\x84(.{4})|\x88(.{8}))", head, re.DOTALL)
    if found is None:
        return None
    ticks = struct.unpack(">f", found[1])[0] if found[1] else struct.unpack(">d", found[2])[0]
    scale = re.search(rb"\x2a\xd7\xb1[\x81-\x84](.{3})", head, re.DOTALL)
    return float(ticks) * (int.from_bytes(scale[1], "big") if scale else 1_000_000) / 1e9


def _mp4(source: _Bytes) -> float | None:
    at, end = 0, source.size
    for _ in range(_BOXES_MAX):
        if at + 8 > end:
            return None
        size, name = struct.unpack(">I4s", source.read(at, 8))
        header = 8
        if size == 1:
            size, header = struct.unpack(">Q", source.read(at + 8, 8))[0], 16
        if name == b"moov":
            at += header
            continue
        if name == b"mvhd":
            body = source.read(at + header, 32)
            scale, length = struct.unpack(">IQ", body[20:32]) if body[0] else struct.unpack(">II", body[12:20])
            return float(length / scale)
        at += max(size, 8) if size else end
    return None


def _mp3(source: _Bytes, head: bytes) -> float | None:
    start = 0
    if head[:3] == b"ID3":  # Its size has 7 bits in each byte.
        start = 10 + sum(byte << 7 * place for place, byte in enumerate(reversed(head[6:10])))
    frame = source.read(start, 256)
    if len(frame) < 4 or frame[0] != 0xFF or frame[1] & 0xE6 != 0xE2:  # Layer III
        return None
    version = frame[1] >> 3 & 3
    rate = _MP3_RATES[version][frame[2] >> 2 & 3] if version in _MP3_RATES and frame[2] >> 2 & 3 < 3 else 0
    kbits = _MP3_KBITS[1 if version == 3 else 2]
    marker = max(frame.find(b"Xing"), frame.find(b"Info"))
    if marker > 0 and frame[marker + 7] & 1 and rate:
        frames = int.from_bytes(frame[marker + 8 : marker + 12], "big")
        return frames * (1_152 if version == 3 else 576) / rate
    index = frame[2] >> 4
    return (source.size - start) / (kbits[index] * 125) if rate and 0 < index < 15 else None
