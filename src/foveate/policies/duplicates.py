"""The older of two results with the same content becomes a pointer to the newer, and says in what it differs.

Whatever the tools were: a file shown by two commands, a page fetched twice, a test run again with one line changed.
What is nearly the same counts as long as all that only the older one holds can be told in the pointer itself, so that
nothing is lost from the view. `likeness.py` tells what is like what.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from zlib import crc32

from ..core.caches import cached
from ..core.edits import Edit
from ..core.messages import Message
from ..core.planner import Policy
from ..core.view import Entry, View
from ..errors import BadSetting
from .placeholders import is_whole, outgrows, replacement
from .placeholders import placeholder as fill

__all__ = ["LEAST", "LONGEST", "MOST_TOLD", "SAME", "dedupe", "likeness", "only_in"]

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


LEAST = 400
"""Characters of the shortest result that is compared."""
MOST_TOLD = 300
"""Characters up to which what differs is told."""
SAME = '[Same as {by}{differs}: {about}expand("{handle}")]'
"""For the older one. `{by}` is the handle of the newer, `{differs}` tells what only the older one holds."""

_NAME = "dedupe"
_SHARE = 0.1
"""What differs may be no more than this share of the older one."""


def dedupe(*, least: int = LEAST, most_told: int = MOST_TOLD, placeholder: str = SAME) -> Policy:
    """A policy that replaces results which a newer one repeats.

    `least`: characters of the shortest result that is looked at. `most_told`: characters, and a tenth of the result,
    that the lines which only the older one holds may come to (0: only what is the same counts). `placeholder`: what
    stands for it; `{by}`, `{differs}` and what the placeholders of others may name. Only what a tool finished counts,
    on both sides, and the newer one must be shown whole. What others have shrunk, what is pinned and what was expanded
    for the coming call is left alone. Raises BadSetting for negative numbers.
    """
    if min(least, most_told) < 0:
        raise BadSetting(f"dedupe needs least and most_told of 0 or more, not {least} and {most_told}.")

    def policy(view: View) -> Iterator[Edit]:
        newest: dict[int, Entry] = {}
        made: list[Edit] = []
        for entry in reversed(view.entries):
            if not _counts(entry, least):
                continue
            assert entry.source is not None, "what counts was appended"
            marks = likeness(entry.source)
            by = next((newest[mark] for mark in marks if mark in newest), None)
            if by is not None and not entry.is_pinned() and entry.renewed < view.turn:
                told = _differs(entry, by, most_told)
                if told is not None:
                    text = fill(placeholder.replace("{by}", by.handle), entry).replace("{differs}", told)
                    if outgrows(entry, text):
                        why = "said again" if not told else "nearly the same was said again"
                        made.append(replacement(entry, text, _NAME, why))
                        continue
            for mark in marks:
                newest.setdefault(mark, entry)
        yield from reversed(made)

    return policy


def _counts(entry: Entry, least: int) -> bool:
    result = entry.result
    if not entry.is_result or result is None or result.state == "interrupted" or entry.tokens * 4 < least:
        return False
    return is_whole(entry) and entry.kind == "message" and not any(entry.message.media()) and len(result.text) >= least


def _differs(older: Entry, newer: Entry, most: int) -> str | None:
    """What only the older one holds, as the placeholder tells it; None where that is too much, or not all of it."""
    one, other = older.source, newer.source
    if one is None or other is None:
        return None
    if one.text == other.text:
        return ""
    if max(len(one.text), len(other.text)) > LONGEST:
        return None
    lines = only_in(one, other)
    told = " / ".join(line.replace("[", "(").replace("]", ")").replace('"', "'") for line in lines)
    if not lines:
        return " but for order and repetitions"
    return f" but for: {told}" if len(told) <= min(most, len(one.text) * _SHARE) else None
