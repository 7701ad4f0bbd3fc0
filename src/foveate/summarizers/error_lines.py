"""The lines of a text that tell of an error, found by what compilers, shells, tests and tracebacks print.

Knows one text at a time; what becomes of them is decided in `history.py`.
"""

from __future__ import annotations

import re

__all__ = ["error_lines"]

_CLAIM = re.compile(
    r"\s*(?:E {3,}|[\w.]*(?:Error|Exception|Failure)\b(?:\s*:|$)"
    r"|(?:error|fatal|failed|panic|Error|Fatal|Failed|ERROR|FATAL|FAILED)\b"
    r"|\S+:\d+(?::\d+)?: (?:error|fatal)\b|\S+: .{0,80}(?:No such file or|command not found|[Pp]ermission denied)"
    r"|.{0,30}exit (?:code|status)[: ]+[1-9])"
)
"""How a line begins that tells of an error, in what compilers, shells, tests and tracebacks print."""


def error_lines(text: str, most: int = 3) -> list[str]:
    """The first lines that tell of an error, without the space around them; at most so many."""
    lines = [line.strip() for line in text.splitlines()]
    told = [line for line in lines if len(line) < 400 and _CLAIM.match(line)]
    return told[:most]
