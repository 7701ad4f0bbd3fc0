"""The money that managed requests cost and saved, by the prices of their models.

The bill is the usage that providers reported. The savings are those of the context meter (`core/context.py`). They
assume a warm cache, so a token that was not sent is worth no more than reading it from the cache. Only if a model has
never reported a cached token in a conversation, it is worth a token of input.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple
from weakref import WeakKeyDictionary

from ..conversation import Conversation
from ..core.context import Rates, dollars_of, rates_of
from ..core.totals import ModelTotals, tokens_rebilled
from ..core.view import Entry
from ..open import cost_of
from ..requests import AnsweredCall

__all__ = ["NOTHING", "Amounts", "Savings"]


class Amounts(NamedTuple):
    """Money in US dollars."""

    spent: float
    """The bill of the requests."""
    whole: float
    """Their bill if each had its whole history, by estimate."""


NOTHING = Amounts(0.0, 0.0)


class _Last(NamedTuple):
    """The last counted call of a conversation."""

    entries: tuple[Entry, ...] = ()
    """The entries that the model saw."""
    caching: frozenset[str] = frozenset()
    """The models that have reported cached tokens in this conversation."""


class Savings:
    """Counts what each conversation costs and saves, call by call. Several threads may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: WeakKeyDictionary[Conversation, _Last] = WeakKeyDictionary()

    def load(self) -> None:
        """Load the list of prices, which takes a second, so that no answer waits for it."""
        cost_of("claude-haiku-4-5")

    def count(self, chat: Conversation, model: str, calls: Sequence[AnsweredCall]) -> Amounts | None:
        """Return what these new calls of a conversation cost; None if no price is known, or no usage was reported.

        OpenAI's chat completions report the usage of a stream only if the client asks for it.
        """
        rates = _rates(model)
        billed = [call for call in calls if call.usage.prompt_tokens is not None]
        if rates is None or not billed:
            return None
        amounts = [_amounts(call, self._note(chat, model, call), model, rates) for call in billed]
        return Amounts(sum(each.spent for each in amounts), sum(each.whole for each in amounts))

    def _note(self, chat: Conversation, model: str, call: AnsweredCall) -> _Last:
        """Note a call, and return the one before it, with all models that use a cache by now."""
        is_cached = bool(call.usage.cache_read or call.usage.cache_write)
        with self._lock:
            before = self._last.get(chat, _Last())
            caching = before.caching | {model} if is_cached else before.caching
            self._last[chat] = _Last(call.view.entries, caching)
        return before._replace(caching=caching)


def _amounts(call: AnsweredCall, before: _Last, model: str, rates: Rates) -> Amounts:
    base, *_, output = rates
    if model not in before.caching:
        rates = base, base, base, output
    view = call.view
    again = tokens_rebilled(before.entries, view.entries)
    sums = ModelTotals(1, call.usage, call.tokens_history - view.tokens, again)
    bill, saved = dollars_of(sums, view.budget.scale, rates)
    return Amounts(bill, max(0.0, bill + saved))


@lru_cache(256)
def _rates(model: str) -> Rates | None:
    cost = cost_of(model.removeprefix("gateway:"))
    return rates_of(cost) if cost is not None else None
