"""US dollars, where the recording names a model whose prices the package `genai-prices` knows.

The relative cost of `measure.py` compares policies; money tells a person what it means. Only input is priced: what the
model answered is the same under every policy.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["dollars"]


def dollars(model: str, requests: Iterable[tuple[int, int]]) -> float | None:
    """What requests of so many (tokens, cached tokens) cost at this model's prices of today.

    None where the model is not named or not known, or `genai-prices` is not installed (`pip install
    "foveate[prices]"`). A model without a price for writing its cache writes it at the price of input.
    """
    if not model:
        return None
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    try:
        total = float(calc_price(Usage(input_tokens=0), model_ref=model).total_price)
        for tokens, cached in requests:
            usage = Usage(input_tokens=tokens, cache_read_tokens=cached, cache_write_tokens=tokens - cached)
            total += float(calc_price(usage, model_ref=model).total_price)
    except LookupError:
        return None
    return total
