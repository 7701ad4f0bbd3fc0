"""Anchors: the names by which later work refers to what was said. Paths, ids, hashes, versions, errors.

Found by their shape, so in any language. Knows one text at a time; which of them matter is decided in `history.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["anchors", "error_lines", "is_anchor"]

_RUN = re.compile(r"[A-Za-z0-9_./\-#@]{6,}")
_EDGES = "./-_#@"
_LONGEST = 120
_CLAIM = re.compile(
    r"\s*(?:E {3,}|[\w.]*(?:Error|Exception|Failure)\b(?:\s*:|$)"
    r"|(?:error|fatal|failed|panic|Error|Fatal|Failed|ERROR|FATAL|FAILED)\b"
    r"|\S+:\d+(?::\d+)?: (?:error|fatal)\b|\S+: .{0,80}(?:No such file or|command not found|[Pp]ermission denied)"
    r"|.{0,30}exit (?:code|status)[: ]+[1-9])"
)
"""How a line begins that tells of an error, in what compilers, shells, tests and tracebacks print."""


def anchors(text: str) -> Iterator[str]:
    """The names in a text, in their order, each as often as it stands there.

    Runs of letters, digits and `_./-#@`, 6 to 120 long, that are no plain words: with a digit, `_`, `/` or `.` inside,
    or in mixed case.
    """
    for found in _RUN.findall(text):
        name = found.strip(_EDGES)
        if is_anchor(name):
            yield name


def is_anchor(name: str) -> bool:
    """Whether this is a name rather than a word."""
    if not 6 <= len(name) <= _LONGEST:
        return False
    if any(letter in "_/." or letter.isdigit() for letter in name):
        return True
    inner = name[1:]
    return any(map(str.isupper, inner)) and any(map(str.islower, name))


def error_lines(text: str, most: int = 3) -> list[str]:
    """The first lines that tell of an error, without the space around them; at most so many."""
    lines = [line.strip() for line in text.splitlines()]
    told = [line for line in lines if len(line) < 400 and _CLAIM.match(line)]
    return told[:most]
