"""Comparison of the references of calls with the content of their views.

Content is readable if an entry of the view holds it. It is reachable if a handle in the view leads to it, and the
conversation really returns it for that handle. Other content is fetched too, at the price of a search first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Literal, TypeVar

from msgspec import Struct

from ..core.call_context import Prices
from ..core.handles import parse_handle
from ..core.messages import Message
from ..core.sizes import tokens_of
from ..core.view import Entry, View
from ..errors import UnknownHandle
from .measure import Bill, FetchCosts, ViewChanges, share
from .references import Positions, References, UsedReferences, call_lines, call_text, identifiers, pick, whole_lines

__all__ = ["KINDS", "ContentKind", "Counts", "Lookup", "ViewIndex", "content_kind"]

ContentKind = Literal["system", "user", "assistant", "results_full", "results_shrunk", "placeholders", "summaries"]
"""The kind of content of an entry, as in `CallFigures`."""

KINDS: tuple[ContentKind, ...] = (
    "system", "user", "assistant", "results_full", "results_shrunk", "placeholders", "summaries",
)  # fmt: skip

_PLACEHOLDER_TOKENS = 40
"""A shrunk result of at most this many tokens is a placeholder: it has room for a sentence and a handle, not for
content.
"""

_HANDLE = re.compile(r'expand\(\\?"(m[0-9.m-]{1,48})\\?"\)')

T = TypeVar("T")

_HandleSpan = tuple[str, int, int]
"""A handle as written, with its first and its last position."""


class _Content(Struct, frozen=True):
    """Contributions of one entry to the view."""

    entry: Entry
    kind: ContentKind
    identifiers: frozenset[str]
    lines: frozenset[str]
    handles: frozenset[_HandleSpan]


class ViewIndex:
    """An index of the newest view: identifiers, whole lines, handles, and tokens by kind.

    It updates counts, so a new view costs only its changes. It expects that an unchanged entry is the same object in
    every view; otherwise it is slower, not wrong.
    """

    def __init__(self, wanted: frozenset[str] | None = None) -> None:
        """`wanted`: the only identifiers and lines to index; None for all."""
        self._wanted = wanted
        self._changes = ViewChanges()
        self._contents: dict[int, _Content] = {}  # by identity of the entry, which `_Content` keeps alive
        self._identifiers: Counter[str] = Counter()
        self._lines: Counter[str] = Counter()
        self._handles: dict[int, Counter[str]] = {}  # handles of one message, by position
        self._spans: Counter[_HandleSpan] = Counter()  # handles of several messages, which are few
        self._tokens: dict[ContentKind, int] = dict.fromkeys(KINDS, 0)

    def update(self, entries: Sequence[Entry]) -> None:
        """Update the index to the next view."""
        left, joined = self._changes.update(tuple(entries))
        for entry in left:
            self._count(self._contents.pop(id(entry)), -1)
        for entry in joined:
            self._contents[id(entry)] = content = _content(entry, self._wanted)
            self._count(content, +1)

    def has_identifier(self, identifier: str) -> bool:
        """Return whether some entry holds this identifier."""
        return self._identifiers[identifier] > 0

    def has_line(self, line: str) -> bool:
        """Return whether some entry holds this whole line. The assistant's prose does not count."""
        return self._lines[line] > 0

    def handles(self, positions: Sequence[int]) -> Iterator[tuple[str, int]]:
        """Yield the handles for messages at these positions, newest first, each with its position."""
        for position in reversed(positions):
            for handle in self._handles.get(position, ()):
                yield handle, position
            for handle, first, last in self._spans:
                if first <= position <= last:
                    yield handle, position

    @property
    def tokens(self) -> dict[ContentKind, int]:
        """Tokens of the view by kind of content."""
        return dict(self._tokens)

    def _count(self, content: _Content, sign: Literal[1, -1]) -> None:
        self._tokens[content.kind] += sign * content.entry.tokens
        for counts, things in ((self._identifiers, content.identifiers), (self._lines, content.lines)):
            for thing in things:
                _add(counts, thing, sign)
        for handle, first, last in content.handles:
            if first == last:
                _add(self._handles.setdefault(first, Counter()), handle, sign)
            else:
                _add(self._spans, (handle, first, last), sign)


def content_kind(entry: Entry) -> ContentKind:
    """Return the kind of content of an entry."""
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


def _content(entry: Entry, wanted: frozenset[str] | None) -> _Content:
    message = entry.message
    text, calls = message.text, message.calls
    names = identifiers(text)
    # Prose of the assistant quotes loosely. It is not a source of lines (see `references.py`), so it does not show any.
    lines: frozenset[str] = (
        frozenset() if message.role == "assistant" and entry.kind == "message" else whole_lines(text)
    )
    if calls:
        names, lines = names | identifiers(call_text(calls)), lines | call_lines(calls)
    handles: frozenset[_HandleSpan] = frozenset()
    if entry.shrunk or entry.span:
        handles = frozenset(_handles_in(f"{text}\n{call_text(calls)}"))
    return _Content(entry, content_kind(entry), pick(names, wanted), pick(lines, wanted), handles)


def _handles_in(text: str) -> Iterator[_HandleSpan]:
    for written in _HANDLE.findall(text):
        with suppress(UnknownHandle):
            handle = parse_handle(written)
            yield written, handle.first, handle.last


class Counts(Struct):
    """How many things calls used, how many of them the view showed, and how many more a handle reached."""

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
    """Compares what each message used with the view of its call, along a replay."""

    def __init__(
        self, originals: Callable[[str], Iterable[Message]], prices: Prices, wanted: frozenset[str] | None = None
    ) -> None:
        """Create a lookup. `originals` returns the messages behind a handle.

        `wanted`: all that the calls of the replay use (`things_in_calls`), so that the lookup holds nothing else.
        """
        self._fetch, self._wanted = originals, wanted
        self._references = References(wanted)
        self._sizes: list[int] = []
        self._behind: dict[str, tuple[frozenset[str], frozenset[str]]] = {}  # handle -> identifiers and lines behind it
        self._visible = ViewIndex(wanted)
        self.fetches = FetchCosts(prices)
        self.recall, self.said, self.quoted = Counts(), Counts(), Counts()

    def read(self, message: Message) -> UsedReferences:
        """Add the next message of the history, and return what it used of the earlier ones."""
        self._sizes.append(tokens_of(message))
        return self._references.read(message)

    def compare(self, view: View, bill: Bill, used: UsedReferences) -> int:
        """Compare the view of a request with what its answer used, and fetch what is missing.

        Returns how many things are missing.

        The answer was read before, so the history is one message longer than at the request.
        """
        self._visible.update(view.entries)
        self.fetches.carry(bill)
        missing = 0
        wanted: dict[int, int] = {}  # position -> tokens of an original to fetch
        requests = 1

        def reads(name: str) -> bool:
            visible = self._visible.has_identifier
            return visible(name) or (name in used.escaped and all(map(visible, identifiers(name[1:]))))

        for counts, things, shown, kind in (
            (self.recall, used.recall, reads, 0),
            (self.said, used.said, reads, 0),
            (self.quoted, used.quoted, self._visible.has_line, 1),
        ):
            for thing, positions in things.items():
                counts.used += 1
                if shown(thing):
                    counts.visible += 1
                    continue
                missing += 1
                reached_at = self._reach(thing, kind, positions)
                counts.reached += reached_at is not None
                if self.fetches.lacks(positions):
                    position = positions[-1] if reached_at is None else reached_at
                    wanted[position] = self._sizes[position - 1]
                    requests = 2 if reached_at is None else requests
        if wanted:
            self.fetches.fetch(wanted, view_tokens=bill.tokens, length=len(self._sizes) - 1, requests=requests)
        return missing

    def tokens(self) -> dict[ContentKind, int]:
        """Return the tokens of the newest view by kind of content."""
        return self._visible.tokens

    def _reach(self, thing: str, kind: int, positions: Positions) -> int | None:
        """Return the position of a message that holds this and that a handle in the view expands, or None."""
        for handle, position in self._visible.handles(positions):
            if handle not in self._behind:
                self._behind[handle] = _readable(self._fetch(handle), self._wanted)
            if thing in self._behind[handle][kind]:
                return position
        return None


def _readable(messages: Iterable[Message], wanted: frozenset[str] | None) -> tuple[frozenset[str], frozenset[str]]:
    """Return the wanted identifiers and whole lines in messages."""
    names: set[str] = set()
    lines: set[str] = set()
    for message in messages:
        names |= pick(identifiers(message.text) | identifiers(call_text(message.calls)), wanted)
        lines |= pick(whole_lines(message.text) | call_lines(message.calls), wanted)
    return frozenset(names), frozenset(lines)
