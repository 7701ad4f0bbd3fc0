"""Compression of bodies. The first stored byte says how the rest is packed.

Most bodies are small and compress badly alone, so they share a dictionary of typical text. The dictionary is part of
the file format: it never changes, and a better one would get another tag. There is no checksum, because readers compare
a body with its hash.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any, Literal

import msgspec

from ..errors import MissingExtra

__all__ = ["Codec", "DamagedBody", "is_outline", "pack", "pack_outline", "pack_pieces", "require_codec", "unpack"]

Codec = Literal["zlib", "zstd"]

_RAW, _ZLIB, _SMALL, _ZSTD = b"\x00", b"\x01", b"\x02", b"\x03"
_OUTLINE = b"\x04"
"""Before the stored form of an outline, which stands for a message with another hash."""

_SMALL_MAX = 16_384
"""Bytes up to which the dictionary is used: it saves nothing for longer bodies."""

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


def pack(body: bytes, codec: Codec = "zlib", *, level: int = 6) -> bytes:
    """Return the stored form of a body, at most one byte longer than it; b"" (an erased body) stays b"".

    `level`: that of zlib. 1 takes a third of the time of 6 for a fifth more bytes.
    """
    if not body:
        return b""
    if len(body) <= _SMALL_MAX:
        deflate = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS, zdict=_DICTIONARY)
        packed = _SMALL + deflate.compress(body) + deflate.flush()
    elif codec == "zstd":
        packed = _ZSTD + _zstd().compress(body)
    else:
        packed = _ZLIB + zlib.compress(body, level)
    return packed if len(packed) <= len(body) else _RAW + body


def pack_pieces(pieces: Sequence[bytes], codec: Codec = "zlib") -> bytes:
    """Return the stored form of the pieces of a saved view, each of which is packed alone.

    They are packed with zstd if it is installed, which unpacks four times as fast.
    """
    best: Codec = "zstd" if _find_zstd() else codec
    return msgspec.msgpack.encode([pack(piece, best) for piece in pieces])


def pack_outline(body: bytes, codec: Codec = "zlib") -> bytes:
    """Return the stored form of the outline of a released message."""
    return _OUTLINE + pack(body, codec)


def is_outline(stored: object) -> bool:
    """Whether this stored form is of an outline."""
    return isinstance(stored, bytes) and stored[:1] == _OUTLINE


def unpack(stored: bytes) -> bytes:
    """Return the body with this stored form.

    Raises DamagedBody, and MissingExtra if it was packed with zstd and zstd is not installed.
    """
    tag, rest = stored[:1], stored[1:]
    try:
        match tag:
            case b"":
                return b""
            case b"\x00":
                return rest
            case b"\x01":
                return zlib.decompress(rest)
            case b"\x02":
                inflate = zlib.decompressobj(-zlib.MAX_WBITS, zdict=_DICTIONARY)
                body = inflate.decompress(rest)
                if not inflate.eof or inflate.unused_data:
                    raise DamagedBody("the compressed bytes are cut short or run on")
                return body
            case b"\x03":
                zstd = _zstd()
                try:
                    return bytes(zstd.decompress(rest))
                except Exception as error:  # Two modules with different error classes.
                    raise DamagedBody(f"it cannot be decompressed ({error})") from error
            case b"\x04" if not is_outline(rest):
                return unpack(rest)
            case _:
                raise DamagedBody(f"it is packed in a way this foveate does not know (tag {tag.hex()})")
    except zlib.error as error:
        raise DamagedBody(f"it cannot be decompressed ({error})") from error


def require_codec(codec: Codec) -> None:
    """Check that this codec can be used. Raises MissingExtra."""
    if codec == "zstd":
        _zstd()


def _zstd() -> Any:
    """Return a zstd module. Raises MissingExtra if there is none."""
    module = _find_zstd()
    if module is None:
        raise MissingExtra("A body compressed with zstd", "zstd")
    return module


@cache
def _find_zstd() -> Any:
    """Return the zstd module of Python 3.14 or newer, the same module for older versions, or `zstandard`."""
    for name in ("compression.zstd", "backports.zstd", "zstandard"):
        with suppress(ImportError):
            return import_module(name)
    return None
