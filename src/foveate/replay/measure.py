"""All-in: what it would have cost to fetch back, by expansions, everything that a view lacked when it was needed.

No policy shall look good by forgetting. Where a recorded call used what its view did not show, the agent would have
had to ask: one more request, which reads the view again, and the whole originals written at its tail. They stay
there: the next request writes them with what is new, those after it read them, until a rewritten prefix takes them
along.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from ..core.messages import Message
from ..core.sizes import tokens_of
from ..core.view import Prices
from ..ports import Rendered

__all__ = ["DEFAULT_PRICES", "Bill", "Everything", "Mending", "Meter", "percentile", "share"]

# MODULEDOC """What requests cost: the meter that bills one rendered view after another, and the plain arithmetic
# around it.
#
# A provider bills the longest unchanged leading run of rendered messages at its read price and the rest at its write
# price. Everything here is a pure sum over tokens; nothing knows how a view came to look as it does, nor what it was
# for.
# """
DEFAULT_PRICES = Prices()


class Bill(Struct, frozen=True):
    """What one request cost."""

    tokens: int
    cached: int
    """Of the leading messages that are the same, byte by byte, as in the request before."""
    cost: float
    """In tokens of base input price."""
    rewritten: bool
    """Whether the unchanged run ended before the previous request's end."""
    unchanged: int
    """How many messages of the history stand before the first change, or before the end of the previous request."""


class Meter:
    """Bills requests in their order. Comparing costs a glance at each message; only changed ones are summed anew."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._bodies: list[bytes] = []  # of the messages of the last request
        self._tokens: list[int] = []  # of the same
        self._length = 0  # of the history at the last request

    def bill(self, request: Sequence[Rendered], length: int) -> Bill:
        """The bill of this request, made when the history had `length` messages."""
        bodies = [now.body for now in request]
        run = _same(self._bodies, bodies)
        rewritten = run < len(self._bodies)
        unchanged = self._length
        if rewritten:
            changed = (entry.position for now in request[run:] for entry in now.entries if entry.position)
            unchanged = next(changed, length + 1) - 1
        del self._tokens[run:]
        cached = sum(self._tokens)
        self._tokens += [sum([entry.tokens for entry in now.entries]) for now in request[run:]]
        written = sum(self._tokens[run:])
        self._bodies, self._length = bodies, length
        cost = self._prices.read * cached + self._prices.write * written
        return Bill(cached + written, cached, cost, rewritten, unchanged)


def _same(before: Sequence[bytes], now: Sequence[bytes]) -> int:
    """How many leading messages are the same."""
    if before == now[: len(before)]:
        return len(before)
    return next(i for i, (old, new) in enumerate(zip(before, [*now, None], strict=False)) if old != new)


class Everything:
    """The requests of a recording as they would be if everything were sent each time."""

    def __init__(self) -> None:
        self._tokens = self._sent = 0
        self.requests: list[tuple[int, int]] = []
        """Tokens and cached tokens of each."""

    def add(self, message: Message) -> None:
        """Take in the next message."""
        self._tokens += tokens_of(message)

    def request(self) -> None:
        """Send everything that was taken in: what was sent before is cached."""
        self.requests.append((self._tokens, self._sent))
        self._sent = self._tokens

    def costs(self, prices: Prices) -> list[float]:
        """What each request costs, in tokens of base input price."""
        return [prices.read * cached + prices.write * (tokens - cached) for tokens, cached in self.requests]


def share(part: float, whole: float) -> float | None:
    """`part / whole`, or None where there is nothing to have a share of."""
    return part / whole if whole else None


def percentile(values: Sequence[float], percent: float) -> float:
    """The least of the values that `percent` of 100 of them do not exceed; 0 where there are none."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)] if values else 0.0


class Mending:
    """The expansions of one replay so far, and what they have cost."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._carried: list[tuple[int, int]] = []  # (length of the history when it was fetched, tokens)
        self._fetched: set[int] = set()
        self.cost = 0.0
        """In tokens of base input price, beside what the recording's own requests cost."""
        self.expansions = 0

    def carry(self, bill: Bill) -> None:
        """Bill what was fetched so far as part of the request with this bill."""
        for length, tokens in self._carried:
            self.cost += tokens * (self._prices.read if length < bill.unchanged else self._prices.write)

    def lacks(self, positions: Sequence[int]) -> bool:
        """Whether none of the messages at these positions was fetched already."""
        return self._fetched.isdisjoint(positions)

    def fetch(self, originals: Mapping[int, int], *, view_tokens: int, length: int, requests: int) -> None:
        """Fetch these originals (position to tokens) in one expansion before the request at hand.

        `requests`: how many it takes, 1 where handles say what to call, 2 where the agent has to look first.
        """
        size = sum(originals.values())
        reread = view_tokens + sum([tokens for _, tokens in self._carried])
        self.cost += requests * self._prices.read * reread + self._prices.write * size
        self.expansions += 1
        self._fetched.update(originals)
        self._carried.append((length, size))
