"""A recorded file as JSON values; errors name the damaged line.

It handles encodings, torn writes, size limits and input that JSON libraries reject, for JSON Lines (a value a line) and
JSON documents (one value). A damaged line raises BadTranscript, or is skipped and counted if the caller is lenient. A
damaged document cannot be read in part. A file that gzip or zstd compressed is read as its content.

msgspec decodes. If it fails, the standard library decodes again, because it accepts more (NaN, huge numbers) and names
the position of an error.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, BinaryIO, TypeVar

import msgspec

from ...errors import BadMessage, BadTranscript, UnknownFormat
from ...stores import zstd as stored_zstd

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
    "decode_or_nothing",
    "open_unpacked",
    "readable_path",
    "skip_line",
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


def readable_path(path: str) -> str:
    """Return a path as text that can be stored: bytes that the locale did not decode are read as UTF-8."""
    return path.encode("utf-8", sys.getfilesystemencodeerrors()).decode("utf-8", "replace")


class Unreadable(ValueError):
    """Bytes that are not one valid JSON value. `line` is the position among them, from 1; 0 if unknown."""

    def __init__(self, problem: str, line: int = 0, *, torn: bool = False, surrogate: bool = False) -> None:
        super().__init__(problem)
        self.line, self.torn, self.surrogate = line, torn, surrogate


def decode_or_nothing(body: bytes | None) -> Any:
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
    """Decode with the standard library, which accepts NaN and huge numbers too. Raises Unreadable with the reason."""
    nul = body.find(b"\0")
    if nul >= 0:
        raise Unreadable("it holds a NUL byte: part of it was never written, or it is not text.", _line_of(body, nul))
    try:
        value = json.loads(body.rstrip(BLANK).decode("utf-8"))
    except UnicodeDecodeError as error:
        column = error.start - body.rfind(b"\n", 0, error.start)
        problem = f"byte 0x{body[error.start]:02x} at column {column} is not UTF-8."
        torn = error.reason == "unexpected end of data"
        raise Unreadable(problem, _line_of(body, error.start), torn=torn) from error
    except json.JSONDecodeError as error:
        # A value that was cut off lacks its closing bracket, or breaks at its very end.
        torn = body.rstrip(BLANK)[-1:] not in (b"}", b"]") or not error.doc[error.pos : error.pos + 99].strip()
        reason = error.msg[:1].lower() + error.msg[1:].removesuffix(" at")
        raise Unreadable(f"it is not JSON: {reason} at column {error.colno}.", error.lineno, torn=torn) from error
    except RecursionError:
        raise Unreadable("it is nested too deeply to be read.") from None
    except ValueError as error:  # An integer with more digits than Python converts.
        raise Unreadable(f"it cannot be read: {error}.") from error
    half = next((match for match in SURROGATES.finditer(body) if match[1]), None)
    if half is not None:
        problem = f"a text holds {half[1].decode()}, half of a surrogate pair, which cannot be stored or sent."
        raise Unreadable(problem, _line_of(body, half.start()), surrogate=True)
    return value


def _line_of(body: bytes, at: int) -> int:
    return body.count(b"\n", 0, at) + 1


def skip_line(file: BinaryIO) -> None:
    """Skip to the next line, piece by piece, because the line may be larger than memory."""
    while piece := file.readline(2**20):
        if piece.endswith(b"\n"):
            return


_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


@contextmanager
def open_unpacked(path: str | os.PathLike[str], size: int = -1) -> Iterator[BinaryIO]:
    """Open a file to read its bytes, unpacked if gzip or zstd compressed it.

    `size`: bytes of the buffer (default: the usual). Raises BadTranscript if the compressed bytes are damaged.
    """
    with open(path, "rb", buffering=size) as file:
        packing = _packing(file.read(len(_ZSTD)))
        file.seek(0)
        if packing is None:
            yield file
            return
        name, open_packed, errors = packing
        try:
            with open_packed(file) as unpacked:
                yield unpacked
        except errors as error:
            problem = f"its {name} data is damaged or cut off."
            raise BadTranscript(os.fspath(path), 0, problem, "Copy or export it again.") from error


def _packing(head: bytes) -> tuple[str, Any, tuple[type[Exception], ...]] | None:
    """Return the name of a file's compression, its `open` and its errors, by the first bytes; None if it has none."""
    if head.startswith(_GZIP):
        return "gzip", gzip.open, (EOFError, zlib.error, gzip.BadGzipFile)
    zstd = stored_zstd.find_module() if head == _ZSTD else None
    return None if zstd is None else ("zstd", zstd.open, (EOFError, zstd.ZstdError))


_MAGIC = (
    (_ZSTD, "it is compressed with Zstandard.", "Unpack it first (unzstd)."),
    (b"BZh", "it is compressed with bzip2.", "Unpack it first (bunzip2)."),
    (b"\xfd7zXZ", "it is compressed with xz.", "Unpack it first (unxz)."),
    (b"PK\x03\x04", "it is a ZIP archive.", "Unpack it first (unzip)."),
    (b"SQLite format 3\0", "it is a SQLite database.", "foveate show reads it."),
    (b"\xff\xfe\0\0", "it is UTF-32, not UTF-8.", "Convert it first (iconv -f UTF-32 -t UTF-8)."),
    (b"\0\0\xfe\xff", "it is UTF-32, not UTF-8.", "Convert it first (iconv -f UTF-32 -t UTF-8)."),
    (b"\xff\xfe", "it is UTF-16, not UTF-8.", "Convert it first (iconv -f UTF-16 -t UTF-8)."),
    (b"\xfe\xff", "it is UTF-16, not UTF-8.", "Convert it first (iconv -f UTF-16 -t UTF-8)."),
)


def check_kind(path: str) -> None:
    """Raise BadTranscript if the path names a file that cannot hold JSON."""

    def refuse(problem: str, remedy: str = "") -> BadTranscript:
        return BadTranscript(path, 0, problem, remedy)

    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise refuse("it is a folder, not a file.", "Name the recording in it.")
        if not stat.S_ISREG(mode):
            raise refuse("it is not a regular file.", "Save the recording to a file first: it is read more than once.")
        with open_unpacked(path) as file:
            head = file.read(4096)
    except FileNotFoundError as error:
        raise refuse("there is no such file.") from error
    except OSError as error:
        raise refuse(f"it cannot be read: {error.strerror or error}.") from error
    except ValueError as error:  # A NUL in the path, or half of a surrogate pair.
        raise refuse("no file can have this name.") from error
    if not head:
        raise refuse("the file is empty.", "Name a file that holds a recording.")
    for magic, problem, remedy in _MAGIC:
        if head.startswith(magic):
            raise refuse(problem, remedy)
    if (head[:1] in (b"{", b"[") and head[1:2] == b"\0") or (head[:1] == b"\0" and head[1:2] in (b"{", b"[")):
        raise refuse("it is UTF-16 without a byte order mark, not UTF-8.", "Convert it first (iconv).")
    if b"\0" in head and head.removeprefix(UTF8_MARK).lstrip(BLANK)[:1] not in (b"{", b"["):
        raise refuse("it is a binary file.", "A recording is a JSON or JSON Lines file.")


LINE_LIMIT = 64 * 2**20
"""The longest line that is read, in bytes. A document may be four times as long."""

_SAMPLE_BYTES = 4 * 2**20
"""Bytes of a sample; enough to recognise a format."""

SKIPS = "--lenient skips such lines and counts them."

T = TypeVar("T")


class Sample(msgspec.Struct, frozen=True):
    """The beginning of a file, from which a reader recognises its format."""

    lines: tuple[Any, ...] = ()
    """The first values of JSON Lines, without damaged lines. For a file with a single line, its value."""
    document: Any = None
    """The value, if the whole file is one JSON value."""


class Source:
    """An open recording. `damaged` counts the values that a lenient reading skipped."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        lenient: bool = False,
        line_limit: int = LINE_LIMIT,
        document: Any = None,
    ) -> None:
        """`document`: the content, for a recording that is no JSON file. Raises BadTranscript for no such file."""
        self.path = os.fspath(path)
        self.lenient = lenient
        self.line_limit = line_limit
        self.damaged = 0
        self.whole = document is not None
        """Whether the file is one JSON document of several lines. Known after `sample`."""
        self._document: Any = document
        if document is None:
            check_kind(self.path)

    def sample(self, size: int = 40) -> Sample:
        """Return the beginning of the file.

        Raises BadTranscript or UnknownFormat if no part of it is JSON.
        """
        heads: list[Any] = []  # The values of the first lines; NOTHING for a damaged line.
        first = b""
        seen = 0
        for _, body in self._raw_lines():
            first = first or (body or b"?")[:200].lstrip(BLANK)
            heads.append(decode_or_nothing(body))
            seen += len(body or b"")
            if len(heads) > size or seen > _SAMPLE_BYTES:
                break
        if not heads:
            raise BadTranscript(self.path, 0, "it holds only white space.", "Name a file that holds a recording.")
        values = [value for value in heads if value is not NOTHING]
        if heads[0] is not NOTHING:
            alone = len(heads) == 1 and next(self._raw_lines(skip=1), None) is None
            return Sample(tuple(values), values[0] if alone else None)
        # The first line alone is not JSON: the file is a document of several lines, or JSON Lines with a damaged
        # beginning.
        if first[:1] in (b"{", b"["):
            try:
                self.document()
            except BadTranscript:
                is_lines = len(heads) > 1 and self._begins_with_a_value()
                if not is_lines and not any(isinstance(value, dict) for value in values):
                    raise
            else:
                self.whole = True
                return Sample((), self._document)
        if not values and first[:1] not in (b"{", b"[", b"?"):
            shown = first[:40].decode("utf-8", "replace").strip()
            raise UnknownFormat(self.path, f"text that is not JSON; it begins with {shown!r}", ["JSON", "JSON Lines"])
        if not values:
            for _ in self.lines():  # Raises for the first damaged line, unless lenient.
                pass
            raise BadTranscript(self.path, 0, f"none of its first {len(heads)} lines can be read.")
        return Sample(tuple(values))

    def _begins_with_a_value(self) -> bool:
        """Return whether the first line is a whole value, but for halves of surrogate pairs in its texts."""
        _, body = next(self._raw_lines())
        try:
            decode(body or b"")
        except Unreadable as unreadable:
            return unreadable.surrogate
        return True

    def values(self) -> Iterator[tuple[int, Any]]:
        """Yield each value with its line; a document of several lines as one value, with line 0."""
        return iter([(0, self.document())]) if self.whole else self.lines()

    def lines(self) -> Iterator[tuple[int, Any]]:
        """Yield each line's number, from 1, and its value, without blank lines."""
        for number, body in self._raw_lines():
            if body is None:
                limit = f"{self.line_limit:,} bytes (line_limit of read_recording)"
                self.report_damage(number, f"the line is longer than the limit of {limit}.", SKIPS)
                continue
            try:
                yield number, decode(body)
            except Unreadable as unreadable:
                problem = str(unreadable)
                if unreadable.torn and not body.endswith(b"\n") and body.lstrip(BLANK)[:1] in (b"{", b"["):
                    problem = "the last line is cut off in the middle: its writer was stopped, or is still writing."
                self.report_damage(number, problem, SKIPS)

    def document(self) -> Any:
        """Return the one value of the file. Raises BadTranscript with the damaged line, lenient or not."""
        if self._document is None:
            limit = 4 * self.line_limit
            with open_unpacked(self.path) as file:
                body = file.read(limit + 1)
            if len(body) > limit:
                text = f"{limit:,} bytes (four times line_limit of read_recording)"
                raise BadTranscript(self.path, 0, f"the document is longer than the limit of {text}.")
            self._document = self._decode_document(body.removeprefix(UTF8_MARK))
        return self._document

    def object(self) -> dict[str, Any]:
        """Return the one JSON object of the file. Raises BadTranscript if the file holds anything else."""
        values = list(islice(self.values(), 2))
        if len(values) == 1 and isinstance(values[0][1], dict):
            return values[0][1]
        raise BadTranscript(self.path, 0, "it is not a single JSON object, which this format requires.")

    def report_damage(self, line: int, problem: str, remedy: str = SKIPS) -> None:
        """Raise BadTranscript for a damaged line, or count it if the caller is lenient."""
        if not self.lenient:
            raise BadTranscript(self.path, line, problem, remedy)
        self.damaged += 1

    def convert(self, line: int, value: Any, shape: type[T]) -> T | None:
        """Convert a value to `shape`. Returns None if it is damaged, that is, if a required field has another type."""
        with self.guard(line):
            return msgspec.convert(value, shape)
        return None

    @contextmanager
    def guard(self, line: int, what: str = "") -> Iterator[None]:
        """Turn the errors of a malformed message into damage of this line.

        `what` names the message within a document.
        """
        where = f"{what}: " if what else ""
        try:
            yield
        except BadMessage as error:
            self.report_damage(line, f"{where}{error}")
        except msgspec.ValidationError as error:
            self.report_damage(line, f"{where}this does not follow the format: {error}.")
        except RecursionError:
            self.report_damage(line, f"{where}it is nested too deeply to be read.")

    def _raw_lines(self, skip: int = 0) -> Iterator[tuple[int, bytes | None]]:
        """Yield each non-blank line after the first `skip`, with its number; None for a line above the limit."""
        with open_unpacked(self.path, 2**18) as file:
            number = 0
            while line := file.readline(self.line_limit + 1):
                number += 1
                if number == 1:
                    line = line.removeprefix(UTF8_MARK)
                if len(line) > self.line_limit and not line.endswith(b"\n"):
                    del line
                    skip_line(file)
                    text = None
                elif not line or line.isspace():
                    continue
                else:
                    text = line
                if skip:
                    skip -= 1
                else:
                    yield number, text

    def _decode_document(self, body: bytes) -> Any:
        try:
            return decode(body)
        except Unreadable as unreadable:
            if self.lenient and unreadable.surrogate:
                # The rest of the document is valid: each half pair becomes the replacement character and counts as
                # damage.
                repaired, count = SURROGATES.subn(lambda match: rb"\ufffd" if match[1] else match[0], body)
                self.damaged += sum(1 for match in SURROGATES.finditer(body) if match[1])
                return decode(repaired) if count else None
            problem = "the document ends too early: it was cut off." if unreadable.torn else str(unreadable)
            remedy = "A JSON document cannot be read in part: repair it."
            if unreadable.surrogate:
                remedy = "--lenient replaces it."
            raise BadTranscript(self.path, unreadable.line, problem, remedy) from unreadable
