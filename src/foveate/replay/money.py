"""US dollars, where the recording names a model whose prices are known.

The relative cost of `measure.py` compares policies; money tells a person what it means. Only input is priced: what the
model answered is the same under every policy.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..core.stamps import Usage
from ..wiring import cost_of

__all__ = ["dollars"]


def dollars(model: str, requests: Iterable[tuple[int, int]]) -> float | None:
    """What requests of so many (tokens, cached tokens) cost at this model's prices of today.

    None where the model is not named or not known, or `genai-prices` is not installed (`pip install
    "foveate[prices]"`). A model without a price for writing its cache writes it at the price of input.
    """
    cost = cost_of(model) if model else None
    if cost is None:
        return None
    return sum([cost(Usage(0, cached, tokens - cached, 0)) or 0.0 for tokens, cached in requests], 0.0)
