"""Break-even arithmetic for prefix caches: when an edit of the view pays."""

from __future__ import annotations

from math import inf

from .call_context import Prices
from .view import View

__all__ = ["REASONING_AGAIN", "break_even", "flush_cost", "is_cold", "reasoning_cost", "saving"]

REASONING_AGAIN = 0.5
"""Share of lost reasoning that the model is assumed to write again. Measured on recorded conversations with reasoning
added: with all of it, edits wait so long that the waiting costs more than the reasoning.
"""


def saving(tokens: int, prices: Prices) -> float:
    """Return how much cheaper one request is without this many cached tokens, in tokens at the input price."""
    return prices.read * tokens


def flush_cost(rewritten: int, prices: Prices) -> float:
    """Return the cost of writing this many tokens instead of reading them, in tokens at the input price."""
    return max(0.0, prices.write - prices.read) * max(0, rewritten)


def reasoning_cost(tokens: int, prices: Prices) -> float:
    """Return the cost of losing this much reasoning, in tokens at the input price: the model writes it again."""
    return prices.output * REASONING_AGAIN * tokens


def break_even(saved: int, rewritten: int, prices: Prices) -> float:
    """Return after how many further requests an edit pays that saves `saved` tokens and rewrites `rewritten` after it.

    Returns 0 if nothing is rewritten, infinity if nothing is saved.

    >>> round(break_even(10_000, 20_000, Prices()))
    23
    """
    cost = flush_cost(rewritten, prices)
    if not cost:
        return 0.0
    return cost / gain if (gain := saving(saved, prices)) > 0 else inf


def is_cold(view: View, prices: Prices) -> bool:
    """Return whether the provider's cache no longer holds this view, or never did."""
    idle = view.call.idle
    return idle is None or idle > prices.cache_seconds
