"""What can be read in a view: identifiers, whole lines and handles, and its tokens by what they are.

All of it is kept as counts while the view changes, so that looking at the next view costs what changed in it, not what it
holds. It trusts that an unchanged entry is the same object from view to view; where that fails it is slower, not wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from ..core.view import Entry
from .references import call_lines, call_text, identifiers, whole_lines

__all__ = ["KINDS", "Sort", "Visible", "sort_of"]

Sort = Literal["system", "user", "assistant", "results_full", "results_shrunk", "placeholders", "summaries"]
"""What an entry is, in the words of `CallFigures`."""

KINDS: tuple[Sort, ...] = (
    "system", "user", "assistant", "results_full", "results_shrunk", "placeholders", "summaries",
)  # fmt: skip

_PLACEHOLDER_TOKENS = 40
"""A shrunk result of no more than this is a placeholder: room for a sentence and a handle, hardly for content."""

_HANDLE = re.compile(r'expand\(\\?"m(\d+)(?:-m?(\d+))?\\?"\)')


class _Held(Struct, frozen=True):
    """What one entry adds to the view."""

    entry: Entry
    sort: Sort
    identifiers: frozenset[str]
    lines: frozenset[str]
    handles: frozenset[tuple[int, int]]


class Visible:
    """What can be read in the view that was looked at last."""

    def __init__(self) -> None:
        self._entries: Sequence[Entry] = ()
        self._held: dict[int, _Held] = {}  # by identity of the entry, which `_Held` keeps alive
        self._identifiers: Counter[str] = Counter()
        self._lines: Counter[str] = Counter()
        self._handles: Counter[tuple[int, int]] = Counter()
        self._tokens: dict[Sort, int] = dict.fromkeys(KINDS, 0)

    def look(self, entries: Sequence[Entry]) -> None:
        """Look at the next view."""
        same = 0
        for before, now in zip(self._entries, entries, strict=False):
            if before is not now:
                break
            same += 1
        gone = {id(entry) for entry in self._entries[same:]}
        came = []
        for entry in entries[same:]:
            if id(entry) in gone:
                gone.discard(id(entry))
            else:
                came.append(entry)
        for key in gone:
            self._count(self._held.pop(key), -1)
        for entry in came:
            self._held[id(entry)] = held = _held(entry)
            self._count(held, +1)
        self._entries = entries

    def identifier(self, identifier: str) -> bool:
        """Whether some entry holds this identifier."""
        return self._identifiers[identifier] > 0

    def line(self, line: str) -> bool:
        """Whether some entry holds this whole line."""
        return self._lines[line] > 0

    def handles(self, positions: Sequence[int]) -> Iterator[tuple[str, int]]:
        """Handles that stand in place of messages at these positions, newest first, each with its position."""
        if not self._handles:
            return
        for position in reversed(positions):
            for first, last in self._handles:
                if first <= position <= last:
                    yield (f"m{first}" if first == last else f"m{first}-m{last}"), position

    @property
    def tokens(self) -> dict[Sort, int]:
        """Tokens of the view by what they are."""
        return dict(self._tokens)

    def _count(self, held: _Held, sign: Literal[1, -1]) -> None:
        self._tokens[held.sort] += sign * held.entry.tokens
        for counts, things in ((self._identifiers, held.identifiers), (self._lines, held.lines)):
            for thing in things:
                counts[thing] += sign
        for handle in held.handles:
            self._handles[handle] += sign
            if not self._handles[handle]:
                del self._handles[handle]


def sort_of(entry: Entry) -> Sort:
    """What an entry is."""
    match entry.message.role:
        case _ if entry.kind == "summary":
            return "summaries"
        case "tool" if entry.kind == "stand-in":
            return "placeholders"
        case _ if entry.is_result:
            if not entry.shrunk:
                return "results_full"
            return "placeholders" if entry.tokens <= _PLACEHOLDER_TOKENS else "results_shrunk"
        case "system" | "user" | "assistant" as role:
            return role
        case _:
            return "results_full"


def _held(entry: Entry) -> _Held:
    message = entry.message
    text, calls = message.text, message.calls
    names, lines = identifiers(text), whole_lines(text)
    handles: frozenset[tuple[int, int]] = frozenset()
    if calls:
        names, lines = names | identifiers(call_text(calls)), lines | call_lines(calls)
    if entry.shrunk or entry.span:
        shown = f"{text}\n{call_text(calls)}"
        handles = frozenset((int(first), int(last or first)) for first, last in _HANDLE.findall(shown))
    return _Held(entry, sort_of(entry), names, lines, handles)
