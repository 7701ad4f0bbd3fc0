"""Duplicates: replace a result that a newer one repeats by a pointer to the newer one.

The tools do not matter: a file shown by two commands, a page fetched twice, a test run again with one line changed. A
similar result also counts, if the pointer can hold everything that only the older one contains.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from zlib import crc32

from ..core.caches import cached_on_entry
from ..core.edits import Edit
from ..core.messages import Message
from ..core.planner import Policy
from ..core.results import native_message
from ..core.view import Entry, View
from ..errors import BadSetting
from .kinds import check_kinds
from .placeholders import is_longer, is_whole, replacement
from .placeholders import placeholder as fill

__all__ = ["COMPARED_MAX", "LEAST", "MOST_TOLD", "SAME", "dedupe", "missing_pieces", "similarity_marks"]

LEAST = 400
"""Characters of the shortest result that is compared."""
MOST_TOLD = 300
"""Characters of the differences that a pointer may hold."""
SAME = '[Same as {by}{differs}: {about}expand("{handle}")]'
"""Template for the older result. `{by}` is the handle of the newer one, `{differs}` the content that only this one has.
"""

COMPARED_MAX = 400_000
"""Characters. A longer text is similar to no other, only equal."""

_NAME = "dedupe"
_DIFFERENCE_SHARE = 0.1
"""Share of the older result that the differences may take."""
_SEEDS = (0, 0x9E3779B9, 0x85EBCA6B)
_LINE_MAX = 300
"""Characters. A longer line is split into pieces after commas and the like."""
_SPLIT = re.compile(r"(?<=[,;.}\])])")
_PIECES_MIN = 4
"""A text of fewer pieces is similar to no other."""


@check_kinds
def dedupe(*, least: int = LEAST, most_told: int = MOST_TOLD, placeholder: str = SAME) -> Policy:
    """Return a policy that replaces results which a newer result repeats.

    `least`: characters of the shortest result that is compared. `most_told`: maximum number of characters, and at most
    a tenth of the result, of the lines that only the older one has (0: only equal results count). `placeholder`:
    template with `{by}`, `{differs}` and the fields of other placeholders.

    Both results must be finished and the newer one shown whole. Results that another policy shrank, pinned results and
    results that were expanded for the coming call stay. Raises BadSetting for negative numbers.
    """
    for name, value in (("least", least), ("most_told", most_told)):
        if value < 0:
            raise BadSetting(f"{name} of dedupe is {value}. Set it to 0 or more.")

    def policy(view: View) -> Iterator[Edit]:
        newest: dict[int, Entry] = {}
        edits: list[Edit] = []
        for entry in reversed(view.entries):
            if not _is_compared(entry, least):
                continue
            marks = _marks(entry)
            newer = next((newest[mark] for mark in marks if mark in newest), None)
            if newer is not None and not entry.is_pinned() and entry.renewed < view.turn:
                difference = _difference(entry, newer, most_told)
                if difference is not None:
                    text = fill(placeholder.replace("{by}", newer.handle), entry).replace("{differs}", difference)
                    if is_longer(entry, text):
                        reason = "said again" if not difference else "nearly the same was said again"
                        edits.append(replacement(entry, text, _NAME, reason))
                        continue
            for mark in marks:
                newest.setdefault(mark, entry)
        yield from reversed(edits)

    return policy


def _is_compared(entry: Entry, least: int) -> bool:
    result = entry.outlined_result
    if not entry.is_result or result is None or result.state == "interrupted" or entry.tokens * 4 < least:
        return False
    return is_whole(entry) and entry.kind == "message" and not any(entry.message.media()) and len(result.text) >= least


def _difference(older: Entry, newer: Entry, most: int) -> str | None:
    """Return the content that only the older result has, for its pointer; None if the pointer cannot hold it."""
    old, new = native_message(older), native_message(newer)
    if old is None or new is None:
        return None
    if old.text == new.text:
        return ""
    if max(len(old.text), len(new.text)) > COMPARED_MAX:
        return None
    pieces = missing_pieces(old, new)
    shown = " / ".join(piece.replace("[", "(").replace("]", ")").replace('"', "'") for piece in pieces)
    if not pieces:
        return " but for order and repetitions"
    return f" but for: {shown}" if len(shown) <= min(most, len(old.text) * _DIFFERENCE_SHARE) else None


# ---------------------------------------------------------------------------------------------------------- similarity


@cached_on_entry
def _marks(entry: Entry) -> tuple[int, ...]:
    message = native_message(entry)
    return () if message is None else similarity_marks(message)


def similarity_marks(message: Message) -> tuple[int, ...]:
    """Return numbers for the text of a message: similar texts share at least one, and equal texts share all.

    The first number stands for the whole text, the others are minimum hashes of its pieces (lines, or parts of long
    lines). Two texts that share nine tenths of their pieces almost always share a minimum. The caller then compares the
    pieces. Takes time proportional to the length.
    """
    text = message.text
    whole = crc32(text.encode("utf-8", "surrogatepass")) << 32 | len(text)
    pieces = frozenset(_pieces(text)) if len(text) <= COMPARED_MAX else frozenset[str]()
    if len(pieces) < _PIECES_MIN:
        return (whole,)
    hashes = [crc32(piece.encode("utf-8", "surrogatepass")) for piece in pieces]
    minimums = [min([(value ^ seed) * 0x9E3779B1 & 0xFFFFFFFF for value in hashes]) for seed in _SEEDS]
    return (whole, *(-(number << 2 | index) - 1 for index, number in enumerate(minimums)))


def missing_pieces(message: Message, other: Message) -> tuple[str, ...]:
    """Return the pieces of a message's text that the other text does not have, in order, each once."""
    pieces = _pieces(message.text)
    missing = frozenset(pieces) - frozenset(_pieces(other.text))
    return tuple(piece for piece in pieces if piece in missing) if missing else ()


def _pieces(text: str) -> list[str]:
    pieces: dict[str, None] = {}
    for line in text.split("\n"):
        for piece in _SPLIT.split(line) if len(line) > _LINE_MAX else (line,):
            if stripped := piece.strip():
                pieces[stripped] = None
    return list(pieces)
