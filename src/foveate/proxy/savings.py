"""The money that managed requests cost and saved, by the prices of their models.

The bill is the usage that providers reported. The savings are those of the context meter (`core/context.py`). They
assume a warm cache, so a token that was not sent is worth no more than reading it from the cache. Only if a model has
never reported a cached token in a conversation, it is worth a token of input.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import NamedTuple
from weakref import WeakKeyDictionary

from ..conversation import Conversation
from ..core.context import Rates, dollars_of, rates_of
from ..core.totals import ModelTotals, Totals
from ..open import cost_of

__all__ = ["NOTHING", "Amounts", "Savings"]


class Amounts(NamedTuple):
    """Money in US dollars."""

    spent: float
    """The bill of the requests."""
    whole: float
    """Their bill if each had its whole history, by estimate."""


NOTHING = Amounts(0.0, 0.0)
NO_TOTALS = Totals()


class Savings:
    """Counts what each conversation costs and saves, call by call. Several threads may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counted: WeakKeyDictionary[Conversation, Totals] = WeakKeyDictionary()

    def load(self) -> None:
        """Load the list of prices, which takes a second, so that no answer waits for it."""
        cost_of("claude-haiku-4-5")

    def begin(self, chat: Conversation) -> None:
        """Count a new conversation from its first call on. Call it before each request."""
        if not len(chat):
            with self._lock:
                self._counted.setdefault(chat, NO_TOTALS)

    def count(self, chat: Conversation, model: str) -> Amounts | None:
        """Return the amounts since the last count; None if there is no reply since, or no price is known.

        Of a conversation that another process began, the first call is not counted, and the whole history is read once.
        """
        if _rates(model) is None:
            return None
        totals = chat.totals()
        with self._lock:
            before = self._counted.get(chat, totals)
            if totals.calls < before.calls:  # Another thread has counted more.
                return None
            self._counted[chat] = totals
        scale = chat.budget.scale
        priced = [
            (before.by_model.get(name, ModelTotals()), now, rates)
            for name, now in totals.by_model.items()
            if (rates := _rates(name)) is not None
        ]
        amounts = [_between(was, now, rates, scale) for was, now, rates in priced if was != now]
        if not amounts:
            return None
        spent = max(0.0, sum(bill for bill, _ in amounts))
        return Amounts(spent, max(0.0, spent + sum(saved for _, saved in amounts)))


def _between(before: ModelTotals, now: ModelTotals, rates: Rates, scale: float) -> tuple[float, float]:
    """Return the bill and the savings between two sums over the calls of a model."""
    base, *_, output = rates
    if not (now.usage.cache_read or now.usage.cache_write):
        rates = base, base, base, output
    (bill, saved), (bill_before, saved_before) = dollars_of(now, scale, rates), dollars_of(before, scale, rates)
    return bill - bill_before, saved - saved_before


@lru_cache(256)
def _rates(model: str) -> Rates | None:
    cost = cost_of(model.removeprefix("gateway:"))
    return rates_of(cost) if cost is not None else None
