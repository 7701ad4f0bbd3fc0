"""Sources: a text as lines, without its wrapping and the numbers of its lines; of a very long text only stretches."""

from __future__ import annotations

import re

from msgspec import Struct

from ..core.scripts import whole_end
from .wrappings import unwrap

__all__ = ["Source", "plain_line", "read_source", "remove_numbers"]

MOST_READ = 400_000
"""Characters that are read. Of a longer text: the beginning, the end and stretches in between."""
_STRETCH = 8_000
_LONG_LINE = 400

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]{0,200}\x07")
_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_UNSEEN_BYTES = bytes(byte for byte in range(128) if _UNSEEN.match(chr(byte)))
_VIEWED = re.compile(r"[ ]*(\d+)(?:→|\t|: |:|-|\| ?)")
_NUMBER = re.compile(r"\A\s*\d+(?:→|\t|: (?= ))")
"""A number before one line. Behind a colon, only an indented line shows that it is one."""
_BREAK = re.compile(r"[,;{}\[\]()>|&\s]")


class Source(Struct):
    """A text to read."""

    rows: list[tuple[int, str]]
    """Lines with the numbers that a file viewer printed, else with those in the text, from 1. A long line becomes
    pieces with the same number; a line of a text that is in other fields has the number 0."""
    text: str
    """The text without its wrapping."""
    note: str = ""
    """A fact from its wrapping."""
    viewed: str = ""
    """The line numbers that a file viewer printed, as `194-242`; "" if they are those of the text."""
    sampled: bool = False
    """Whether only stretches were read."""
    escaped: bool = False
    """Whether its line breaks were written as `\\n`."""


def read_source(text: str) -> Source:
    """Return the text as lines."""
    own = unwrap(text)
    is_below = text.endswith(own.text)  # Else it was decoded, and has no lines of its own in the text.
    above = text.count("\n", 0, len(text) - len(own.text)) if is_below else 0
    text = own.text
    stretches = _stretches(text)
    rows: list[tuple[int, str]] = []
    number, at = 1 + above, 0
    escaped = False
    for start, end in stretches:
        number += text.count("\n", at, start)
        at = start
        piece = text[start:end]
        if "\x1b" in piece:
            piece = _ANSI.sub("", piece)
        if not piece.isascii() or len(piece.encode().translate(None, _UNSEEN_BYTES)) < len(piece):
            piece = _UNSEEN.sub(" ", piece)
        here = number
        if piece.count("\\n") > 4 * piece.count("\n") + 4:
            escaped = True
            for line in piece.split("\n"):
                for part in re.split(r"\\+n", line):
                    _add(rows, here, part.rstrip())
                here += 1
        else:
            numbered = list(enumerate([line.rstrip() for line in piece.split("\n")], here))
            if max([len(line) for _, line in numbered]) <= _LONG_LINE:
                rows += numbered
            else:
                for here, line in numbered:
                    _add(rows, here, line)
    if not is_below:
        rows, escaped = [(0, row) for _, row in rows], True
    source = Source(rows, text, own.note, sampled=len(stretches) > 1, escaped=escaped)
    remove_numbers(source)
    return source


def _stretches(text: str) -> list[tuple[int, int]]:
    if len(text) <= MOST_READ:
        return [(0, len(text))]
    head, tail = MOST_READ * 5 // 10, MOST_READ * 2 // 10
    count = (MOST_READ - head - tail) // _STRETCH
    step = (len(text) - head - tail - _STRETCH) // count
    places = [(0, head)]
    for index in range(count):
        start = max(head + index * step, places[-1][1])
        # A stretch begins after a line break if one is near, so that no line begins in its middle.
        newline = text.find("\n", start, start + _STRETCH // 2)
        places.append((newline + 1 if newline >= 0 else start, start + _STRETCH))
    places.append((len(text) - tail, len(text)))
    return places


def _add(rows: list[tuple[int, str]], number: int, line: str) -> None:
    if len(line) <= _LONG_LINE:
        rows.append((number, line))
        return
    at = 0
    while at < len(line):
        end = min(len(line), at + 160)
        if end < len(line):
            space = _BREAK.search(line, end, end + 120)
            end = space.end() if space else whole_end(line, min(len(line), end + 120))
        rows.append((number, line[at:end]))
        at = end


def plain_line(line: str) -> str:
    """Return a line with single spaces, without the number that a file viewer printed before it."""
    return " ".join(_NUMBER.sub("", line).split())


def remove_numbers(source: Source) -> None:
    """Replace the numbers of the rows by those that a file viewer printed before the lines, and remove these."""
    rows = source.rows
    begin = [_VIEWED.match(line) for _, line in rows[:40] if line]
    if len(begin) < 3 or len(list(filter(None, begin))) < 0.6 * len(begin):
        return
    matches = [_VIEWED.match(line) for _, line in rows]
    numbers = [int(match[1][:12]) if match else -1 for match in matches]
    first = last = 0
    expected = -1
    steady = 0
    for index, shown in enumerate(numbers):
        if shown < 0:
            continue
        if shown == expected:
            steady += 1
        elif index < 60 and steady < index // 2 - 6:
            return
        expected = shown + 1
        first, last = first or shown, shown
    if steady < 2:
        return
    begins = rows[0][0]
    shown = first
    for index, (match, number, (_, line)) in enumerate(zip(matches, numbers, rows, strict=True)):
        if match:
            shown = number
            line = line[match.end() :]
        elif line.strip() == str(shown + 1):
            shown, line = shown + 1, ""  # An empty line, whose mark was cut off with the spaces at its end.
        rows[index] = (shown, line)
    if first > 1 and first != begins:
        source.viewed = f"{first}-{last}"
