"""What requests cost: the meter that bills one rendered view after another, and the plain arithmetic around it.

A provider bills the longest unchanged leading run of rendered messages at its read price and the rest at its write
price. Everything here is a pure sum over tokens; nothing knows how a view came to look as it does, nor what it was
for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from msgspec import Struct

from ..core.counting import tokens_of
from ..core.messages import Message
from ..core.view import Prices
from ..ports import Rendered

__all__ = ["DEFAULT_PRICES", "Bill", "Meter", "percentile", "share", "unmanaged"]


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
        self._sent: list[tuple[bytes, int]] = []  # the last request: body and tokens of each of its messages
        self._length = 0  # of the history at the last request

    def bill(self, request: Sequence[Rendered], length: int) -> Bill:
        """The bill of this request, made when the history had `length` messages."""
        run = 0
        for (body, _), now in zip(self._sent, request, strict=False):
            if body is not now.body and body != now.body:
                break
            run += 1
        rewritten = run < len(self._sent)
        unchanged = self._length
        if rewritten:
            changed = (entry.position for now in request[run:] for entry in now.entries if entry.position)
            unchanged = next(changed, length + 1) - 1
        del self._sent[run:]
        cached = sum([tokens for _, tokens in self._sent])
        fresh = [(now.body, sum([entry.tokens for entry in now.entries])) for now in request[run:]]
        written = sum([tokens for _, tokens in fresh])
        self._sent += fresh
        self._length = length
        cost = self._prices.read * cached + self._prices.write * written
        return Bill(cached + written, cached, cost, rewritten, unchanged)


def unmanaged(messages: Iterable[Message]) -> list[tuple[int, int]]:
    """Tokens and cached tokens of every request of a recording, if everything were sent each time.

    A request stands before each message of the assistant; not before one that opens the recording: nobody asked
    for it.
    """
    requests = []
    tokens = cached = 0
    for message in messages:
        if message.role == "assistant" and tokens:
            requests.append((tokens, cached))
            cached = tokens
        tokens += tokens_of(message)
    return requests


def share(part: float, whole: float) -> float | None:
    """`part / whole`, or None where there is nothing to have a share of."""
    return part / whole if whole else None


def percentile(values: Sequence[float], percent: float) -> float:
    """The least of the values that `percent` of 100 of them do not exceed; 0 where there are none."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)] if values else 0.0
