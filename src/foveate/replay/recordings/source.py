"""A recorded file as JSON values, with every damage named by its line.

It knows encodings, torn writes, size limits and what JSON libraries stumble over, and nothing of any recording's
format. Two kinds of file come in: JSON Lines (a value a line) and JSON documents (one value). A damaged line stops the
reading with BadTranscript, or, where the caller is lenient, is skipped and counted; a damaged document cannot be read
in part.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, BinaryIO, TypeVar

import msgspec

from ...errors import BadMessage, BadTranscript, UnknownFormat

__all__ = [
    "BLANK",
    "LINE_LIMIT",
    "NOTHING",
    "SURROGATES",
    "UTF8_MARK",
    "Sample",
    "Source",
    "Unreadable",
    "check_kind",
    "decode",
    "decoded_or_nothing",
    "pass_line",
]

# MODULEDOC """One line's bytes, or a document's, as a JSON value, and what is wrong with bytes that are none.
#
# Decoding is msgspec's; where it fails, the standard library looks again, because it says where and takes what writers
# get away with (NaN, huge numbers). Before that, files that could never hold JSON are told by how they begin. Nothing
# here knows about recordings.
# """
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


LINE_LIMIT = 64 * 2**20
"""Bytes of the longest line that is read. A document may be four times as long."""

_SAMPLE_BYTES = 4 * 2**20
"""A sample of this many bytes is enough to tell a format by."""

SKIPS = "--lenient skips such lines and counts them."

T = TypeVar("T")


class Sample(msgspec.Struct, frozen=True):
    """The beginning of a file, to tell its format by."""

    lines: tuple[Any, ...] = ()
    """The first values of JSON Lines, damaged lines left out. Of a file with a single line, its value."""
    document: Any = None
    """The value, if the whole file is one JSON value."""


class Source:
    """One file being read. `damaged` counts what a lenient reading skipped."""

    def __init__(self, path: str | os.PathLike[str], *, lenient: bool = False, line_limit: int = LINE_LIMIT) -> None:
        self.path = os.fspath(path)
        self.lenient = lenient
        self.line_limit = line_limit
        self.damaged = 0
        self.whole = False
        """Whether the file is one JSON document of several lines. Known once `sample` has looked."""
        self._document: Any = None
        check_kind(self.path)

    def sample(self, size: int = 40) -> Sample:
        """What the file begins with. Raises BadTranscript or UnknownFormat where nothing at all can be read as JSON."""
        heads: list[Any] = []  # The values of the first lines; NOTHING for a line that is none.
        first = b""
        seen = 0
        for _, body in self._raw():
            first = first or (body or b"?")[:200].lstrip(BLANK)
            heads.append(decoded_or_nothing(body))
            seen += len(body or b"")
            if len(heads) > size or seen > _SAMPLE_BYTES:
                break
        if not heads:
            raise BadTranscript(self.path, 0, "it holds nothing but white space.", "There is no recording in it.")
        values = [value for value in heads if value is not NOTHING]
        if heads[0] is not NOTHING:
            alone = len(heads) == 1 and next(self._raw(skip=1), None) is None
            return Sample(tuple(values), values[0] if alone else None)
        # The first line alone is no JSON value: a document of several lines, or JSON Lines with a damaged beginning.
        if first[:1] in (b"{", b"["):
            try:
                self.document()
            except BadTranscript:
                if not any(isinstance(value, dict) for value in values):
                    raise
            else:
                self.whole = True
                return Sample((), self._document)
        if not values and first[:1] not in (b"{", b"[", b"?"):
            shown = first[:40].decode("utf-8", "replace").strip()
            raise UnknownFormat(self.path, f"text that is not JSON; it begins with {shown!r}", ["JSON", "JSON Lines"])
        if not values:
            for _ in self.lines():  # Names the first damaged line, unless lenient.
                pass
            raise BadTranscript(self.path, 0, f"none of its first {len(heads)} lines can be read.")
        return Sample(tuple(values))

    def values(self) -> Iterator[tuple[int, Any]]:
        """Each value with its line; a document of several lines as one value, with line 0."""
        return iter([(0, self.document())]) if self.whole else self.lines()

    def lines(self) -> Iterator[tuple[int, Any]]:
        """Each line's number, from 1, and value. Blank lines are left out."""
        for number, body in self._raw():
            if body is None:
                limit = f"{self.line_limit:,} bytes (line_limit of read_recording)"
                self.damage(number, f"the line is longer than the limit of {limit}.", SKIPS)
                continue
            try:
                yield number, decode(body)
            except Unreadable as unreadable:
                problem = str(unreadable)
                if unreadable.torn and not body.endswith(b"\n") and body.lstrip(BLANK)[:1] in (b"{", b"["):
                    problem = "the last line is cut off in the middle: its writer was stopped, or is still writing."
                self.damage(number, problem, SKIPS)

    def document(self) -> Any:
        """The one value of the file. Raises BadTranscript naming the line where it is damaged, lenient or not."""
        if self._document is None:
            limit = 4 * self.line_limit
            with open(self.path, "rb") as file:
                body = file.read(limit + 1)
            if len(body) > limit:
                whose = f"{limit:,} bytes (four times line_limit of read_recording)"
                raise BadTranscript(self.path, 0, f"the document is longer than the limit of {whose}.")
            self._document = self._whole(body.removeprefix(UTF8_MARK))
        return self._document

    def object(self) -> dict[str, Any]:
        """The one JSON object of the file. Raises BadTranscript if it is, or holds, anything else."""
        values = list(islice(self.values(), 2))
        if len(values) == 1 and isinstance(values[0][1], dict):
            return values[0][1]
        raise BadTranscript(self.path, 0, "it is no single JSON object, as a recording in this format would be.")

    def damage(self, line: int, problem: str, remedy: str = SKIPS) -> None:
        """Something cannot be read: raises BadTranscript, or counts it where the caller is lenient."""
        if not self.lenient:
            raise BadTranscript(self.path, line, problem, remedy)
        self.damaged += 1

    def shaped(self, line: int, value: Any, shape: type[T]) -> T | None:
        """The value as a `shape`, or None if it is damaged: a field that the reader needs is of another kind."""
        with self.guard(line):
            return msgspec.convert(value, shape)
        return None

    @contextmanager
    def guard(self, line: int, what: str = "") -> Iterator[None]:
        """Turns what a malformed message raises into damage of this line. `what` names the message in a document."""
        where = f"{what}: " if what else ""
        try:
            yield
        except BadMessage as error:
            self.damage(line, f"{where}{error}")
        except msgspec.ValidationError as error:
            self.damage(line, f"{where}this is not how the format writes it: {error}.")
        except RecursionError:
            self.damage(line, f"{where}it is nested too deeply to be read.")

    def _raw(self, skip: int = 0) -> Iterator[tuple[int, bytes | None]]:
        """Each line that is not blank, after the first `skip`, with its number; None for a line beyond the limit."""
        with open(self.path, "rb", buffering=2**18) as file:
            number = 0
            while line := file.readline(self.line_limit + 1):
                number += 1
                if number == 1:
                    line = line.removeprefix(UTF8_MARK)
                if len(line) > self.line_limit and not line.endswith(b"\n"):
                    del line
                    pass_line(file)
                    found = None
                elif not line or line.isspace():
                    continue
                else:
                    found = line
                if skip:
                    skip -= 1
                else:
                    yield number, found

    def _whole(self, body: bytes) -> Any:
        try:
            return decode(body)
        except Unreadable as unreadable:
            if self.lenient and unreadable.surrogate:
                # The rest of the document is sound: each half pair becomes the replacement character, and counts.
                mended, count = SURROGATES.subn(lambda found: rb"\ufffd" if found[1] else found[0], body)
                self.damaged += sum(1 for found in SURROGATES.finditer(body) if found[1])
                return decode(mended) if count else None
            problem = "the document ends too early: it was cut off." if unreadable.torn else str(unreadable)
            remedy = (
                "--lenient replaces it." if unreadable.surrogate else "A JSON document cannot be read in part: mend it."
            )
            raise BadTranscript(self.path, unreadable.line, problem, remedy) from unreadable
