"""All-in: what it would have cost to fetch back, by expansions, everything that a view lacked when it was needed.

No policy shall look good by forgetting. Where a recorded call used what its view did not show, the agent would have
had to ask: one more request, which reads the view again, and the whole originals written at its tail. They stay
there: the next request writes them with what is new, those after it read them, until a rewritten prefix takes them
along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.view import Prices
from .measure import Bill

__all__ = ["Mending"]


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
