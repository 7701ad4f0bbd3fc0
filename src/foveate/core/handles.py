"""Handles: the short stable names in placeholders that `expand` takes.

`m12` is the twelfth message of a conversation, `m12.1` its first part, `m12.1.2` the second part of the tool result in
its first part, and `m3-m17` a range of messages. A message never changes its position, so a handle never changes its
meaning.
"""

from __future__ import annotations

import re

from msgspec import Struct

from ..errors import UnknownHandle
from .edits import Path

__all__ = ["Handle", "parse_handle", "quoted_positions"]

_SHAPE = re.compile(r"m(\d{1,12})((?:\.\d{1,6}){0,2})(?:-m(\d{1,12}))?")
_QUOTED = re.compile(r"^m([0-9]+)(?:\.[0-9]+)* \(turn ", re.MULTILINE)


class Handle(Struct, frozen=True):
    """The meaning of a handle: positions first to last and, for a single message, the path of a part.

    0 is the position of a stand-in between two messages, which has no handle.
    """

    first: int
    last: int
    path: Path = ()

    def __str__(self) -> str:
        """Return the handle as placeholders write it; "" for a stand-in between two messages."""
        if not self.first:
            return ""
        if self.last > self.first:
            return f"m{self.first}-m{self.last}"
        return ".".join([f"m{self.first}", *(str(index + 1) for index in self.path)])


def parse_handle(text: str) -> Handle:
    """Parse a handle. Raises UnknownHandle if the text is not a handle."""
    match = _SHAPE.fullmatch(text.strip()) if isinstance(text, str) else None
    if not match:
        raise UnknownHandle(str(text), "A handle looks like m12, m12.1 or m3-m17.")
    first, parts, last = int(match[1]), match[2], match[3]
    path = tuple(int(number) - 1 for number in parts.split(".")[1:])
    if first < 1 or any(index < 0 for index in path) or (last and (path or int(last) < first)):
        raise UnknownHandle(text, "A handle looks like m12, m12.1 or m3-m17, and counts from 1.")
    return Handle(first, int(last) if last else first, path)


def quoted_positions(text: str) -> set[int]:
    """Return the positions of messages that a search result quotes. It names each at the beginning of a line."""
    return {int(position) for position in _QUOTED.findall(text)}
