"""How much of what calls used could be read where it was used, and what it would have taken to fetch the rest.

Readable means: some entry of the view holds it. Reachable means: a handle in the view leads to it, and it really is in
what the conversation returns for that handle. What no handle leads to is fetched too, at the price of looking first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Literal, TypeVar

from msgspec import Struct

from ..core.handles import parse_handle
from ..core.messages import Message
from ..core.sizes import tokens_of
from ..core.view import Entry, Prices, View
from ..errors import UnknownHandle
from .measure import Bill, Mending, share
from .references import Positions, References, Used, call_lines, call_text, identifiers, whole_lines

__all__ = ["KINDS", "Counts", "Lookup", "Sort", "Visible", "sort_of"]

# MODULEDOC """What can be read in a view: identifiers, whole lines and handles, and its tokens by what they are.
#
# All of it is kept as counts while the view changes, so that looking at the next view costs what changed in it, not
# what it holds. It trusts that an unchanged entry is the same object from view to view; where that fails it is slower,
# not wrong.
# """
Sort = Literal["system", "user", "assistant", "results_full", "results_shrunk", "placeholders", "summaries"]
"""What an entry is, in the words of `CallFigures`."""

KINDS: tuple[Sort, ...] = (
    "system", "user", "assistant", "results_full", "results_shrunk", "placeholders", "summaries",
)  # fmt: skip

_PLACEHOLDER_TOKENS = 40
"""A shrunk result of no more than this is a placeholder: room for a sentence and a handle, hardly for content."""

_HANDLE = re.compile(r'expand\(\\?"(m[0-9.m-]{1,48})\\?"\)')

T = TypeVar("T")

_Named = tuple[str, int, int]
"""A handle as written, and the first and the last position it stands for."""


class _Held(Struct, frozen=True):
    """What one entry adds to the view."""

    entry: Entry
    sort: Sort
    identifiers: frozenset[str]
    lines: frozenset[str]
    handles: frozenset[_Named]


class Visible:
    """What can be read in the view that was looked at last."""

    def __init__(self) -> None:
        self._entries: Sequence[Entry] = ()
        self._held: dict[int, _Held] = {}  # by identity of the entry, which `_Held` keeps alive
        self._identifiers: Counter[str] = Counter()
        self._lines: Counter[str] = Counter()
        self._handles: dict[int, Counter[str]] = {}  # by position; those of one message
        self._spans: Counter[_Named] = Counter()  # those of several, which are few
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
        """Whether some entry holds this whole line; the assistant's prose does not count."""
        return self._lines[line] > 0

    def handles(self, positions: Sequence[int]) -> Iterator[tuple[str, int]]:
        """Handles that stand in place of messages at these positions, newest first, each with its position."""
        for position in reversed(positions):
            for handle in self._handles.get(position, ()):
                yield handle, position
            for handle, first, last in self._spans:
                if first <= position <= last:
                    yield handle, position

    @property
    def tokens(self) -> dict[Sort, int]:
        """Tokens of the view by what they are."""
        return dict(self._tokens)

    def _count(self, held: _Held, sign: Literal[1, -1]) -> None:
        self._tokens[held.sort] += sign * held.entry.tokens
        for counts, things in ((self._identifiers, held.identifiers), (self._lines, held.lines)):
            for thing in things:
                counts[thing] += sign
        for handle, first, last in held.handles:
            if first == last:
                _add(self._handles.setdefault(first, Counter()), handle, sign)
            else:
                _add(self._spans, (handle, first, last), sign)


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


def _add(counts: Counter[T], thing: T, sign: Literal[1, -1]) -> None:
    counts[thing] += sign
    if not counts[thing]:
        del counts[thing]


def _held(entry: Entry) -> _Held:
    message = entry.message
    text, calls = message.text, message.calls
    names = identifiers(text)
    # Prose of the assistant quotes loosely: as it is no source of a line (see `references.py`), it does not show one.
    lines: frozenset[str] = (
        frozenset() if message.role == "assistant" and entry.kind == "message" else whole_lines(text)
    )
    if calls:
        names, lines = names | identifiers(call_text(calls)), lines | call_lines(calls)
    handles: frozenset[_Named] = frozenset()
    if entry.shrunk or entry.span:
        handles = frozenset(_named(f"{text}\n{call_text(calls)}"))
    return _Held(entry, sort_of(entry), names, lines, handles)


def _named(text: str) -> Iterator[_Named]:
    for written in _HANDLE.findall(text):
        with suppress(UnknownHandle):
            handle = parse_handle(written)
            yield written, handle.first, handle.last


class Counts(Struct):
    """How many things were used, how many of them the view showed, and how many more a handle led to."""

    used: int = 0
    visible: int = 0
    reached: int = 0

    @property
    def visible_share(self) -> float | None:
        return share(self.visible, self.used)

    @property
    def reachable_share(self) -> float | None:
        return share(self.visible + self.reached, self.used)


class Lookup:
    """Follows a replay: reads each message, looks at each view, and compares what was used with what was shown."""

    def __init__(self, originals: Callable[[str], Iterable[Message]], prices: Prices) -> None:
        """`originals`: what a handle brings back."""
        self._fetch = originals
        self._references = References()
        self._sizes: list[int] = []
        self._behind: dict[str, tuple[frozenset[str], frozenset[str]]] = {}  # handle -> identifiers and lines behind it
        self._visible = Visible()
        self.mending = Mending(prices)
        self.recall, self.said, self.quoted = Counts(), Counts(), Counts()

    def read(self, message: Message) -> Used:
        """Take in the next message of the history, and tell what it used of the earlier ones."""
        self._sizes.append(tokens_of(message))
        return self._references.read(message)

    def look(self, view: View, bill: Bill, used: Used) -> int:
        """Look in the view of a request for what its answer used; return how many things are missing, which get mended.

        The answer has been read already, so the history is as long as it was before that.
        """
        self._visible.look(view.entries)
        self.mending.carry(bill)
        missing = 0
        wanted: dict[int, int] = {}  # position -> tokens of an original to be fetched
        requests = 1

        def reads(name: str) -> bool:
            visible = self._visible.identifier
            return visible(name) or (name in used.escaped and all(map(visible, identifiers(name[1:]))))

        for counts, things, shown, kind in (
            (self.recall, used.recall, reads, 0),
            (self.said, used.said, reads, 0),
            (self.quoted, used.quoted, self._visible.line, 1),
        ):
            for thing, positions in things.items():
                counts.used += 1
                if shown(thing):
                    counts.visible += 1
                    continue
                missing += 1
                found = self._reach(thing, kind, positions)
                counts.reached += found is not None
                if self.mending.lacks(positions):
                    position = positions[-1] if found is None else found
                    wanted[position] = self._sizes[position - 1]
                    requests = 2 if found is None else requests
        if wanted:
            self.mending.fetch(wanted, view_tokens=bill.tokens, length=len(self._sizes) - 1, requests=requests)
        return missing

    def tokens(self) -> dict[Sort, int]:
        """Tokens of the view that was looked at last, by what they are."""
        return self._visible.tokens

    def _reach(self, thing: str, kind: int, positions: Positions) -> int | None:
        """The position of a message that holds this and that a handle in the view brings back, if there is one."""
        for handle, position in self._visible.handles(positions):
            if handle not in self._behind:
                self._behind[handle] = _readable(self._fetch(handle))
            if thing in self._behind[handle][kind]:
                return position
        return None


def _readable(messages: Iterable[Message]) -> tuple[frozenset[str], frozenset[str]]:
    """The identifiers and the whole lines in messages."""
    names: set[str] = set()
    lines: set[str] = set()
    for message in messages:
        names |= identifiers(message.text) | identifiers(call_text(message.calls))
        lines |= whole_lines(message.text) | call_lines(message.calls)
    return frozenset(names), frozenset(lines)
