"""Read an archive line by line, and detect one that is cut, changed, or no archive at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ...errors import BadTranscript
from . import lines
from .files import UNREADABLE, is_compressed, reading
from .lines import Ending, Line, Opening, Tally

__all__ = ["CRAFTED", "each_line", "opening_of"]

CRAFTED = (OverflowError, RecursionError)
"""Errors of reading a crafted line: numbers too large, brackets too deep."""

_LINE_MAX = 1 << 30
"""Bytes of a line in an uncompressed file. A longer line is no archive."""
_UNPACKED_MAX = 1 << 28
"""Bytes of a line in a compressed file: a small file must not be able to fill the memory."""
_PIECE = 1 << 20
"""Bytes of a line read at a time."""


def opening_of(path: Path) -> Opening:
    """Return the first line of an archive. Raises BadTranscript if the file is none, or of a later version."""
    for _, line in each_line(path):
        if isinstance(line, Opening):
            return line
    raise BadTranscript(str(path), 0, "it is empty, so it is no archive of foveate.")


def each_line(path: Path) -> Iterator[tuple[int, Line]]:
    """Yield every line but the last, numbered from 1. Raises BadTranscript with the line if one cannot be read.

    The file is known to be whole only when all lines were read.
    """
    tally, number, ended = Tally(), 0, False
    longest = _UNPACKED_MAX if is_compressed(path) else _LINE_MAX
    with reading(path) as file:
        while raw := _next(file, path, number + 1, longest):
            number += 1
            if ended:
                raise BadTranscript(str(path), number, "there are lines after the end of the archive.")
            line = _line(raw, path, number)
            if isinstance(line, Ending):
                if line != tally.ending():
                    raise BadTranscript(
                        str(path),
                        number,
                        f"the file was changed: the lines above are not the {line.count.lines:,} that its last line "
                        f"names.",
                        "Export again, or find an intact copy.",
                    )
                ended = True
            else:
                tally.add(line, raw)
                yield number, line
    if not number:
        raise BadTranscript(str(path), 0, "it is empty, so it is no archive of foveate.")
    if not ended:
        raise _cut(path, number)


def _next(file: BinaryIO, path: Path, number: int, longest: int) -> bytes | bytearray:
    try:
        raw: bytes | bytearray = file.readline(_PIECE)
        if len(raw) == _PIECE and not raw.endswith(b"\n"):
            raw = bytearray(raw)
            while len(raw) <= longest and (piece := file.readline(_PIECE)):
                raw += piece
                if piece.endswith(b"\n"):
                    break
    except UNREADABLE as error:
        raise BadTranscript(
            str(path), number, f"it cannot be unpacked from here on ({error}).", "It was cut off or damaged."
        ) from error
    if len(raw) > longest:
        raise BadTranscript(
            str(path),
            number,
            f"the line is longer than {longest >> 20:,} MiB.",
            "If you trust the file, unpack it and import the unpacked file." if longest < _LINE_MAX else "",
        )
    if raw and not raw.endswith(b"\n"):
        raise _cut(path, number)
    return raw


def _line(raw: bytes | bytearray, path: Path, number: int) -> Line:
    try:
        line = lines.decode(raw)
    except (ValueError, *CRAFTED) as error:
        advice = "so it is no archive of foveate." if number == 1 else "The file was damaged."
        raise BadTranscript(str(path), number, f"it is no line of an archive ({error}),", advice) from error
    if isinstance(line, Opening) != (number == 1):
        problem = "an archive begins in the middle of another one." if number > 1 else "no archive begins here."
        raise BadTranscript(str(path), number, problem)
    if isinstance(line, Opening) and line.format != lines.FORMAT:
        raise BadTranscript(str(path), number, f"it is a {line.format!r}, not a {lines.FORMAT!r}.")
    if isinstance(line, Opening) and line.version != lines.VERSION:
        raise BadTranscript(
            str(path),
            number,
            f"the archive has version {line.version}; this foveate reads version {lines.VERSION}.",
            "Upgrade foveate.",
        )
    return line


def _cut(path: Path, number: int) -> BadTranscript:
    return BadTranscript(str(path), number, "the file ends here, before the end of the archive.", "It was cut off.")
