"""Costs of requests: the bills of rendered views, and of fetching what a view lacks.

A provider bills the longest unchanged beginning of the rendered messages at its read price, and the rest at its write
price. After a pause longer than the lifetime of its cache it bills all of them at the write price.

Hiding content must not make a policy look cheap. If a recorded call used content that its view did not show, an agent
would have needed an expansion: one more request, which reads the view again, with the whole originals written at its
end. They stay there: the next request writes them together with the new messages, later requests read them from the
cache, until a rewritten prefix removes them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from ..conversation.past import PastCall
from ..core.call_context import Prices
from ..core.messages import Message
from ..core.sizes import tokens_of
from ..core.snapshots import Row
from ..core.view import Entry
from ..ports import Rendered

__all__ = [
    "DEFAULT_PRICES",
    "Bill",
    "CacheClock",
    "FetchCosts",
    "Meter",
    "RecordedRequests",
    "UnmanagedRequests",
    "ViewChanges",
    "asked_at",
    "percentile",
    "share",
]

DEFAULT_PRICES = Prices()


class Bill(Struct, frozen=True):
    """The cost of one request."""

    tokens: int
    cached: int
    """Tokens of the leading messages that are byte for byte the same as in the last request; 0 from a cold cache."""
    cost: float
    """In tokens of base input price."""
    rewritten: bool
    """Whether the unchanged beginning is shorter than the previous request."""
    unchanged: int
    """The number of messages of the history before the first change, or before the end of the previous request.
    0 with a cold cache.
    """


class Meter:
    """Bills requests in order. It compares each message by its bytes, and sums only the changed ones."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._request: Sequence[Rendered] = ()  # the last request
        self._tokens: list[int] = []  # of its messages
        self._length = 0  # of the history at the last request
        self.kept = 0
        """The number of leading messages of the last request that the cache held."""

    def bill(self, request: Sequence[Rendered], length: int, *, is_cold: bool = False) -> Bill:
        """Return the bill of a request that was made when the history had `length` messages.

        `is_cold`: whether the cache no longer holds the request before.
        """
        run = _same(self._request, request)
        rewritten = run < len(self._request)
        unchanged = self._length
        if rewritten:
            changed = (entry.position for now in request[run:] for entry in now.entries if not entry.is_between)
            unchanged = next(changed, length + 1) - 1
        del self._tokens[run:]
        self._tokens += [_tokens_of(request, place) for place in range(run, len(request))]
        self._request, self._length, self.kept = request, length, 0 if is_cold else run
        cached, written = sum(self._tokens[: self.kept]), sum(self._tokens[self.kept :])
        cost = self._prices.read * cached + self._prices.write * written
        return Bill(cached + written, cached, cost, rewritten, 0 if is_cold else unchanged)


def _tokens_of(request: Sequence[Rendered], place: int) -> int:
    """Return the tokens of a rendered message. An entry that became several of them counts with the first."""
    before = request[place - 1].entries[-1:] if place else ()
    return sum([entry.tokens for entry in request[place].entries if not (before and entry is before[0])])


def _same(before: Sequence[Rendered], now: Sequence[Rendered]) -> int:
    """Return how many leading messages have the same bytes."""
    if before == now[: len(before)]:  # Compares identities first: unchanged messages are the same objects.
        return len(before)
    pairs = zip(before, [*now, None], strict=False)
    return next(
        (i for i, (old, new) in enumerate(pairs) if old is not new and (new is None or old.body != new.body)),
        len(before),
    )


class ViewChanges:
    """The entries that left and joined the view since the last one. An unchanged entry is the same object."""

    def __init__(self) -> None:
        self._entries: tuple[Entry, ...] = ()

    def update(self, entries: tuple[Entry, ...]) -> tuple[list[Entry], list[Entry]]:
        """Return the entries that left and those that joined, for the next view."""
        before, self._entries = self._entries, entries
        same = len(before)
        if before != entries[:same]:  # Compares identities; a hundred times faster than the loop.
            pairs = zip(before, entries, strict=False)
            same = next((i for i, (old, new) in enumerate(pairs) if old is not new), min(same, len(entries)))
        left = {id(entry): entry for entry in before[same:]}
        joined = [entry for entry in entries[same:] if left.pop(id(entry), None) is None]
        return list(left.values()), joined


class CacheClock:
    """Knows whether a provider's cache still holds the last request."""

    def __init__(self, prices: Prices) -> None:
        self._milliseconds = prices.cache_seconds * 1000
        self._last: int | None = None

    def is_cold(self, time: int) -> bool:
        """Return whether the cache is cold for a request at this time, in milliseconds since 1970."""
        last, self._last = self._last, time
        return last is None or time - last > self._milliseconds


def asked_at(call: PastCall) -> int:
    """Return the time of a call's request in milliseconds since 1970: that of the newest message before it."""
    return max([item.stamp.time for item in call.items if isinstance(item, Row)], default=call.reply.stamp.time)


class UnmanagedRequests:
    """The requests of a recording without management, each with the whole history."""

    def __init__(self) -> None:
        self._tokens = self._sent = 0
        self.requests: list[tuple[int, int]] = []
        """Tokens and cached tokens of each request."""

    def add(self, message: Message) -> None:
        """Add the next message."""
        self._tokens += tokens_of(message)

    def request(self, *, is_cold: bool = False) -> None:
        """Send all messages so far; those of earlier requests are cached, unless the cache is cold."""
        self.requests.append((self._tokens, 0 if is_cold else self._sent))
        self._sent = self._tokens

    def costs(self, prices: Prices) -> list[float]:
        """Return the cost of each request, in tokens of base input price."""
        return [prices.read * cached + prices.write * (tokens - cached) for tokens, cached in self.requests]


class RecordedRequests:
    """The requests that the recorded client made, with its own compactions.

    After a compaction a request has the system prompt, the summary and what follows it. The compaction itself is one
    more request with everything before it, and its summary is output. A client may keep some newest messages next to
    the summary; a recording does not say which, so they are left out, and the figure is rather too low.
    """

    def __init__(self) -> None:
        self._tokens = self._sent = self._prompt = 0
        self.written = 0
        """Tokens of all summaries."""
        self._in_summary = False
        self.requests: list[tuple[int, int]] = []
        """Tokens and cached tokens of each request."""
        self.compactions = 0
        self.peak = 0
        """Tokens of the largest request."""

    def add(self, message: Message, *, is_summary: bool) -> None:
        """Add the next message. `is_summary`: the summary of a compaction, or a further message of it."""
        size = tokens_of(message)
        if is_summary:
            self.written += size
        if is_summary and not self._in_summary:
            self.compactions += 1
            if message.role != "assistant":  # A summary of the assistant answers a recorded request.
                self.request()
            self._tokens = self._sent = self._prompt
        self._in_summary = is_summary
        if message.role == "system" and self._tokens == self._prompt:
            self._prompt += size
        self._tokens += size

    def request(self, *, is_cold: bool = False) -> None:
        """Send everything since the last compaction."""
        self.requests.append((self._tokens, 0 if is_cold else self._sent))
        self.peak = max(self.peak, self._tokens)
        self._sent = self._tokens

    def cost(self, prices: Prices) -> float:
        """Return the cost of all requests and summaries, in tokens of base input price."""
        input_cost = sum([prices.read * cached + prices.write * (tokens - cached) for tokens, cached in self.requests])
        return input_cost + prices.output * self.written


def share(part: float, whole: float) -> float | None:
    """Return `part / whole`, or None if `whole` is 0."""
    return part / whole if whole else None


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that `percent` of 100 values do not exceed; 0 without values."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)] if values else 0.0


class FetchCosts:
    """The expansions of one replay, and their cost."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._carried: list[tuple[int, int]] = []  # (length of the history at the expansion, tokens)
        self._fetched: set[int] = set()
        self.cost = 0.0
        """In tokens of base input price, in addition to the recording's own requests."""
        self.expansions = 0

    def carry(self, bill: Bill) -> None:
        """Add the content fetched so far to the request with this bill."""
        for length, tokens in self._carried:
            self.cost += tokens * (self._prices.read if length < bill.unchanged else self._prices.write)

    def lacks(self, positions: Sequence[int]) -> bool:
        """Return whether none of the messages at these positions was fetched before."""
        return self._fetched.isdisjoint(positions)

    def fetch(self, originals: Mapping[int, int], *, view_tokens: int, length: int, requests: int) -> None:
        """Fetch these originals (position to tokens) with one expansion before the current request.

        `requests` is the number of requests: 1 if handles show what to expand, 2 if the agent must search first.
        """
        size = sum(originals.values())
        reread = view_tokens + sum([tokens for _, tokens in self._carried])
        self.cost += requests * self._prices.read * reread + self._prices.write * size
        self.expansions += 1
        self._fetched.update(originals)
        self._carried.append((length, size))
