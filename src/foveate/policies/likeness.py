"""Whether two texts are the same, or nearly: in what pieces they differ.

A piece is a line, or a part of a very long one. Likeness is found by the least of a few hashes over all pieces, which
two texts that share nine tenths of their pieces share almost always; then the pieces themselves are compared. Time
grows with the length of a text, and texts above a limit are compared as a whole only.
"""

from __future__ import annotations

import re
from zlib import crc32

from ..core.caches import cached
from ..core.messages import Message

__all__ = ["LONGEST", "likeness", "only_in"]

LONGEST = 400_000
"""Characters above which a text is nearly like no other."""

_SEEDS = (0, 0x9E3779B9, 0x85EBCA6B)
_WIDE = 300
"""A longer line is cut into pieces behind commas and the like."""
_CUTS = re.compile(r"(?<=[,;.}\])])")
_FEWEST = 4
"""A text of fewer pieces is nearly like no other: too little is left to tell by."""


@cached(4_096)
def likeness(message: Message) -> tuple[int, ...]:
    """Numbers that stand for the text of a message: the same text has the same ones, nearly the same text shares some.

    The first one stands for the text as a whole.
    """
    text = message.text
    exact = crc32(text.encode("utf-8", "surrogatepass")) << 32 | len(text)
    pieces = _pieces(text) if len(text) <= LONGEST else frozenset[str]()
    if len(pieces) < _FEWEST:
        return (exact,)
    hashes = [crc32(piece.encode("utf-8", "surrogatepass")) for piece in pieces]
    least = [min([(one ^ seed) * 0x9E3779B1 & 0xFFFFFFFF for one in hashes]) for seed in _SEEDS]
    return (exact, *(-(number << 2 | index) - 1 for index, number in enumerate(least)))


@cached(512)
def only_in(message: Message, other: Message) -> tuple[str, ...]:
    """The pieces of one message's text that the other's has not, in their order, each once."""
    missing = _pieces(message.text) - _pieces(other.text)
    return tuple(piece for piece in _in_order(message.text) if piece in missing) if missing else ()


def _pieces(text: str) -> frozenset[str]:
    return frozenset(_in_order(text))


def _in_order(text: str) -> list[str]:
    found: dict[str, None] = {}
    for line in text.split("\n"):
        for piece in _CUTS.split(line) if len(line) > _WIDE else (line,):
            if shown := piece.strip():
                found[shown] = None
    return list(found)
