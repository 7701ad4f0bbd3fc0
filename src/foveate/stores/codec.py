"""Compression of bodies. The first stored byte says how the rest is packed.

Most bodies are small and compress badly alone, so they share a dictionary of typical text. The dictionaries are part of
the file format: they never change, and a better one gets another tag. There is no checksum, because readers compare
a body with its hash. Bodies are packed with zstd if Python has it, else with zlib.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import msgspec

from ..errors import MissingExtra
from .zstd import Zstd, find_zstd

__all__ = [
    "DamagedBody",
    "is_outline",
    "pack",
    "pack_outline",
    "pack_pieces",
    "pack_quickly",
    "pack_with_zlib",
    "unpack",
]

_RAW, _ZLIB, _SMALL = b"\x00", b"\x01", b"\x02"
_OUTLINE = b"\x04"
"""Before the stored form of an outline, which stands for a message with another hash."""
_FRAME, _ZSTD = b"\x03", b"\x05"
"""Before a whole frame of zstd, and before one with the dictionary, without its first four bytes."""

_ZSTD_MIN = 200
"""Bytes from which zstd is used: zlib packs shorter bodies better."""
_SMALL_MAX = 16_384
"""Bytes up to which zlib uses the dictionary: it saves nothing for longer bodies."""

_DICTIONARY = (
    b" for the that this with from have been will not are was is in on of and to a "
    b"Let me check the Now I'll look at run the tests see what There is no output Error: Exit code 1\\n "
    b"No such file or directory not found The file has been updated successfully. created File does not exist. "
    b"True False null true false None "
    b"import from def return class self function const let export default type string number int error "
    b"https://github.com/ http://localhost: /usr/local/lib/python3 /home/user/ src/ test tests/ "
    b".py .ts .js .go .md .json .rs git status git diff git log --oneline grep -rn | head -20 cd && ls -la cat "
    b"sed -n '1,200p' python -m pytest -q npm run 2>&1 | tail "
    b'{\\"command\\": \\"{\\"cmd\\":\\"\\",\\"workdir\\":\\"/\\",\\"timeout\\": \\", \\"description\\": \\"'
    b'{\\"file_path\\": \\"/\\", \\"old_string\\": \\"\\", \\"new_string\\": \\"'
    b'{\\"pattern\\": \\"\\", \\"path\\": \\"\\", \\"offset\\": , \\"limit\\": '
    b'{\\"query\\": \\"{\\"path\\":\\"\\",\\"content\\":\\"{\\"url\\": \\"https://'
    b'"},"encrypted":""signature":""mime":"image/png","source":"base64","data":""source":"url"'
    b'"extra":["anthropic","{\\"cache_control\\":{\\"type\\":\\"ephemeral\\"}}"]'
    b'"state":"interrupted""state":"error"}]},"name":"'
    b'{"role":"system","parts":[{"type":"text","text":"{"role":"user","parts":[{"type":"text","text":"'
    b'{"role":"assistant","parts":[{"type":"reasoning","text":"","signature":"","format":"anthropic"},'
    b'{"type":"text","text":""},{"type":"tool_call","call_id":"call_","name":"","arguments":"{\\"'
    b'\\"}"}]}{"role":"tool","parts":[{"type":"tool_result","call_id":"toolu_01","content":[{"type":"text","text":""}]}]}'
)


class DamagedBody(Exception):
    """Stored bytes that cannot be unpacked. Callers turn it into `Damaged`, with the position."""


def pack(body: bytes) -> bytes:
    """Return the stored form of a body, at most one byte longer than it; b"" (an erased body) stays b""."""
    zstd = None if len(body) < _ZSTD_MIN else find_zstd()
    if zstd is None:
        return pack_with_zlib(body)
    packed = _ZSTD + zstd.pack(body)
    return packed if len(packed) <= len(body) else _RAW + body


def pack_quickly(body: bytes) -> bytes:
    """Return a stored form for a body that another one soon replaces: a large one takes a third of the time and a tenth
    more bytes.
    """
    zstd = None if len(body) <= _SMALL_MAX else find_zstd()
    return pack(body) if zstd is None else _FRAME + zstd.compress(body)


def pack_with_zlib(body: bytes) -> bytes:
    """Return the stored form that every Python can read."""
    if not body:
        return b""
    if len(body) <= _SMALL_MAX:
        deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=_DICTIONARY)
        packed = _SMALL + deflate.compress(body) + deflate.flush()
    else:
        packed = _ZLIB + zlib.compress(body, 6)
    return packed if len(packed) <= len(body) else _RAW + body


def pack_pieces(pieces: Sequence[bytes]) -> bytes:
    """Return the stored form of the pieces of a saved view, each of which is packed alone.

    They are large, and saved between two turns, so zstd packs them at its usual level.
    """
    zstd = find_zstd()
    packed = [pack_with_zlib(piece) if zstd is None else _FRAME + zstd.compress(piece) for piece in pieces]
    return msgspec.msgpack.encode(packed)


def pack_outline(body: bytes) -> bytes:
    """Return the stored form of the outline of a released message."""
    return _OUTLINE + pack(body)


def is_outline(stored: object) -> bool:
    """Return whether this stored form is of an outline."""
    return isinstance(stored, bytes) and stored[:1] == _OUTLINE


def unpack(stored: bytes | memoryview) -> bytes:
    """Return the body with this stored form.

    Raises DamagedBody, and MissingExtra if it was packed with zstd and zstd is not installed.
    """
    tag, rest = bytes(stored[:1]), stored[1:]
    try:
        match tag:
            case b"":
                return b""
            case b"\x00":
                return bytes(rest)
            case b"\x01":
                return zlib.decompress(rest)
            case b"\x02":
                inflate = zlib.decompressobj(-zlib.MAX_WBITS, zdict=_DICTIONARY)
                body = inflate.decompress(rest)
                if not inflate.eof or inflate.unused_data:
                    raise DamagedBody("the compressed bytes are cut short or run on")
                return body
            case b"\x03" | b"\x05":
                zstd = _require_zstd()
                try:
                    return zstd.unpack(rest) if tag == _ZSTD else zstd.decompress(rest)
                except Exception as error:  # Modules have different error classes.
                    raise DamagedBody(f"it cannot be decompressed ({error})") from error
            case b"\x04" if rest[:1] != _OUTLINE:
                return unpack(rest)
            case _:
                raise DamagedBody(f"its first byte is unknown ({tag.hex()}), and a newer foveate may have packed it")
    except zlib.error as error:
        raise DamagedBody(f"it cannot be decompressed ({error})") from error


def _require_zstd() -> Zstd:
    """Return zstd. Raises MissingExtra if there is none."""
    zstd = find_zstd()
    if zstd is None:
        raise MissingExtra("A body compressed with zstd", "zstd")
    return zstd
