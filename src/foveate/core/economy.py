"""When an edit of the view pays: break-even arithmetic for prefix caches."""

from __future__ import annotations

from math import inf

from .view import Prices, View

__all__ = ["break_even", "flush_cost", "is_cold", "saving"]


def saving(tokens: int, prices: Prices) -> float:
    """What one request costs less if so many cached tokens are gone, in tokens of base input price."""
    return prices.read * tokens


def flush_cost(rewritten: int, prices: Prices) -> float:
    """What it costs to write so many tokens that could have been read, in tokens of base input price."""
    return max(0.0, prices.write - prices.read) * max(0, rewritten)


def break_even(saved: int, rewritten: int, prices: Prices) -> float:
    """After how many further requests an edit has paid that saves `saved` tokens and rewrites `rewritten` behind it.

    0 where nothing is rewritten, infinity where nothing is saved.

    >>> round(break_even(10_000, 20_000, Prices()))
    23
    """
    cost = flush_cost(rewritten, prices)
    if not cost:
        return 0.0
    return cost / gain if (gain := saving(saved, prices)) > 0 else inf


def is_cold(view: View, prices: Prices) -> bool:
    """Whether the provider's cache holds nothing of this view any more, or never did."""
    idle = view.call.idle
    return idle is None or idle > prices.cache_seconds
