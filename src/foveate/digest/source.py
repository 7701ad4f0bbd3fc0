"""Sources: a text as lines, without the wrapping of its tool, and of a very long text only stretches.

Tools of agents wrap their results: in the exit code and times of a command, a file's path and line numbers, or the
fields of a protocol. The content is read as it is; the wrapping becomes a note.
"""

from __future__ import annotations

import re

from msgspec import Struct

from .values import has_one

__all__ = ["Source", "path_of_whole_output", "read_source", "remove_numbers", "wrapper_end"]

MOST_READ = 400_000
"""Characters that are read. Of a longer text: the beginning, the end and stretches in between."""
_STRETCH = 8_000
_LONG_LINE = 400

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]{0,200}\x07")
_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_UNSEEN_BYTES = bytes(byte for byte in range(128) if _UNSEEN.match(chr(byte)))
_VIEWED = re.compile(r"[ ]*(\d+)(?:→|\t|: |:|-|\| ?)")
_CODEX = re.compile(
    r"(?:Command: [^\n]*\n)?(?:Script (?:completed|running)[^\n]*\n)?(?:Chunk ID: [^\n]*\n)?(?:Wall time:? [^\n]*\n)?"
    r"(?:Process (?:exited with code (\d+)|running with session ID (\d+))[^\n]*\n)?"
    r"(?:Original token count: [^\n]*\n)?Output:\n"
)
_OPENCODE = re.compile(r"<path>[^\n]{1,500}\n(?:<type>[^\n]{1,40}\n)?<content>")
_SAVED = re.compile(
    r"\b(?:full|complete|whole) (?:tool )?output(?: (?:is|was|has been))?(?: (?:saved|written|stored) (?:to|in|at))?:? "
    r"((?:[A-Za-z]:[\\/]|[~.]{0,2}/)[^\s\"'`<>\]]{4,300})",
    re.IGNORECASE,
)
"""The file with the whole output, as Claude Code, OpenCode and Pi name it in a result that they cut."""
_SAVED_SIGNS = ("full", "complete", "whole")
"""A text in which `_SAVED` finds a file has one of these, and `output`."""
_SAVED_NEAR = 600
"""Characters at the beginning and at the end of a result that are searched for this file."""
_BREAK = re.compile(r"[,;{}\[\]()>|&\s]")


class Source(Struct):
    """A text to read."""

    rows: list[tuple[int, str]]
    """Lines with the numbers that a file viewer printed, else with those in the text, from 1. A long line becomes
    pieces with the same number."""
    lines: int
    """The number of lines of the text."""
    note: str = ""
    """Facts from the wrapping."""
    viewed: str = ""
    """The line numbers that a file viewer printed, as `194-242`; "" if they are those of the text."""
    sampled: bool = False
    """Whether only stretches were read."""
    escaped: bool = False
    """Whether its line breaks were written as `\\n`."""


def read_source(text: str) -> Source:
    """Return the text as lines."""
    stretches = _stretches(text)
    lines = text.count("\n") + (not text.endswith("\n") if text else 0)
    rows: list[tuple[int, str]] = []
    number, at = 1, 0
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
    source = Source(rows, lines, sampled=len(stretches) > 1, escaped=escaped)
    _unwrap(source, text)
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
            end = space.end() if space else min(len(line), end + 120)
        rows.append((number, line[at:end]))
        at = end


def wrapper_end(text: str) -> int:
    """Return the index after the facts that a tool writes before its output or before a file; 0 if there are none.

    Codex writes an exit code and times, OpenCode the path of a file.
    """
    wrapped = _CODEX.match(text) or _OPENCODE.match(text)
    return wrapped.end() if wrapped else 0


def path_of_whole_output(text: str) -> str:
    """Return the file in which a tool stored the whole output of a result that it cut; "" if it names none."""
    tail = max(0, len(text) - _SAVED_NEAR)
    for start, end in ((0, _SAVED_NEAR), (tail, len(text))):
        near = text[start:end].lower()
        if "output" in near and has_one(near, _SAVED_SIGNS) and (saved := _SAVED.search(text, start, end)):
            return saved[1].rstrip(".,;:)")
    return ""


def _unwrap(source: Source, text: str) -> None:
    rows = source.rows
    wrapped = _CODEX.match(text)
    if wrapped and wrapped.end():
        if wrapped[1] and wrapped[1] != "0":
            source.note = f"exit code {wrapped[1]}"
        elif wrapped[2]:
            source.note = f"still running, session {wrapped[2]}"
        skip = text.count("\n", 0, wrapped.end())
        del rows[: next((i for i, row in enumerate(rows) if row[0] > skip), len(rows))]
    if text.startswith("<path>"):
        for index, (number, line) in enumerate(rows[:8]):
            if line.startswith("<content>"):
                rows[index] = (number, line[9:])
                source.note = rows[0][1][6:].removesuffix("</path>").rpartition("/")[2][:60]
                del rows[:index]
                break
    remove_numbers(source)


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
        rows[index] = (shown, line)
    if first > 1 and first != begins:
        source.viewed = f"{first}-{last}"
