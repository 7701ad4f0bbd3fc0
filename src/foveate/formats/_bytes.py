"""One line's bytes, or a document's, as a JSON value, and what is wrong with bytes that are none.

Decoding is msgspec's; where it fails, the standard library looks again, because it says where and takes what writers
get away with (NaN, huge numbers). Before that, files that could never hold JSON are told by how they begin. Nothing
here knows about recordings.
"""

from __future__ import annotations

import json
import os
import re
import stat
from typing import Any, BinaryIO

import msgspec

from ..errors import BadTranscript

__all__ = [
    "BLANK",
    "NOTHING",
    "SURROGATES",
    "UTF8_MARK",
    "Unreadable",
    "check_kind",
    "decode",
    "decoded_or_nothing",
    "pass_line",
]

BLANK = b" \t\r\n"
UTF8_MARK = b"\xef\xbb\xbf"
NOTHING = object()
_json = msgspec.json.Decoder()

SURROGATES = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole pair
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"  # half of one
    rb"|\\."  # any other escape, an escaped backslash among them
)


class Unreadable(ValueError):
    """Bytes that are not one sound JSON value. `line`: where among them that shows, from 1; 0 if nobody can tell."""

    def __init__(self, problem: str, line: int = 0, *, torn: bool = False, surrogate: bool = False) -> None:
        super().__init__(problem)
        self.line, self.torn, self.surrogate = line, torn, surrogate


def decoded_or_nothing(body: bytes | None) -> Any:
    try:
        return NOTHING if body is None else decode(body)
    except Unreadable:
        return NOTHING


def decode(body: bytes) -> Any:
    try:
        return _json.decode(body)
    except RecursionError:
        raise Unreadable("it is nested too deeply to be read.") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _decode_slowly(body)


def _decode_slowly(body: bytes) -> Any:
    """The value by the standard library, which takes NaN and huge numbers too, or the reason why there is none."""
    nul = body.find(b"\0")
    if nul >= 0:
        raise Unreadable("it holds a NUL byte: part of it was never written, or it is no text.", _line_of(body, nul))
    try:
        value = json.loads(body.rstrip(BLANK).decode("utf-8"))
    except UnicodeDecodeError as error:
        column = error.start - body.rfind(b"\n", 0, error.start)
        problem = f"byte 0x{body[error.start]:02x} at column {column} is not UTF-8."
        torn = error.reason == "unexpected end of data"
        raise Unreadable(problem, _line_of(body, error.start), torn=torn) from error
    except json.JSONDecodeError as error:
        # What is cut off lacks its closing bracket, or breaks at its very end.
        torn = body.rstrip(BLANK)[-1:] not in (b"}", b"]") or not error.doc[error.pos : error.pos + 99].strip()
        reason = error.msg[:1].lower() + error.msg[1:].removesuffix(" at")
        raise Unreadable(f"it is not JSON: {reason} at column {error.colno}.", error.lineno, torn=torn) from error
    except RecursionError:
        raise Unreadable("it is nested too deeply to be read.") from None
    except ValueError as error:  # An integer of more digits than Python converts.
        raise Unreadable(f"it cannot be read: {error}.") from error
    half = next((found for found in SURROGATES.finditer(body) if found[1]), None)
    if half is not None:
        problem = f"a text holds {half[1].decode()}, half of a surrogate pair, which cannot be stored or sent."
        raise Unreadable(problem, _line_of(body, half.start()), surrogate=True)
    return value


def _line_of(body: bytes, at: int) -> int:
    return body.count(b"\n", 0, at) + 1


def pass_line(file: BinaryIO) -> None:
    """Go to the next line, a piece at a time: the line may be longer than memory."""
    while piece := file.readline(2**20):
        if piece.endswith(b"\n"):
            return


_MAGIC = (
    (b"\x1f\x8b", "it is compressed with gzip.", "Unpack it first (gunzip)."),
    (b"\x28\xb5\x2f\xfd", "it is compressed with Zstandard.", "Unpack it first (unzstd)."),
    (b"BZh", "it is compressed with bzip2.", "Unpack it first (bunzip2)."),
    (b"\xfd7zXZ", "it is compressed with xz.", "Unpack it first (unxz)."),
    (b"PK\x03\x04", "it is a ZIP archive.", "Unpack it first (unzip)."),
    (b"SQLite format 3\0", "it is an SQLite database.", "A recording is a JSON or JSON Lines file."),
    (b"\xff\xfe\0\0", "it is UTF-32, not UTF-8.", "Convert it first (iconv -f UTF-32 -t UTF-8)."),
    (b"\0\0\xfe\xff", "it is UTF-32, not UTF-8.", "Convert it first (iconv -f UTF-32 -t UTF-8)."),
    (b"\xff\xfe", "it is UTF-16, not UTF-8.", "Convert it first (iconv -f UTF-16 -t UTF-8)."),
    (b"\xfe\xff", "it is UTF-16, not UTF-8.", "Convert it first (iconv -f UTF-16 -t UTF-8)."),
)


def check_kind(path: str) -> None:
    """Raise BadTranscript where the path names nothing that could hold JSON."""

    def refuse(problem: str, remedy: str = "") -> BadTranscript:
        return BadTranscript(path, 0, problem, remedy)

    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise refuse("it is a folder, not a file.", "Name the recording in it.")
        if not stat.S_ISREG(mode):
            raise refuse("it is not a regular file.", "Save the recording to a file first: it is read more than once.")
        with open(path, "rb") as file:
            head = file.read(4096)
    except FileNotFoundError as error:
        raise refuse("there is no such file.") from error
    except OSError as error:
        raise refuse(f"it cannot be read: {error.strerror or error}.") from error
    except ValueError as error:  # A NUL in the path, or half of a surrogate pair.
        raise refuse("no file can have this name.") from error
    if not head:
        raise refuse("the file is empty.", "There is no recording in it.")
    for magic, problem, remedy in _MAGIC:
        if head.startswith(magic):
            raise refuse(problem, remedy)
    if (head[:1] in (b"{", b"[") and head[1:2] == b"\0") or (head[:1] == b"\0" and head[1:2] in (b"{", b"[")):
        raise refuse("it is UTF-16 without a byte order mark, not UTF-8.", "Convert it first (iconv).")
    if b"\0" in head and head.removeprefix(UTF8_MARK).lstrip(BLANK)[:1] not in (b"{", b"["):
        raise refuse("it is a binary file.", "A recording is a JSON or JSON Lines file.")
