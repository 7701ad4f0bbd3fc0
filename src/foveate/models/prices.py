"""Prices of model calls in US dollars, from the package `genai-prices`.

Prices are today's; reading and writing the cache have prices of their own.
"""

from __future__ import annotations

from importlib.util import find_spec

from ..core.stamps import Usage
from ..errors import BadSetting, FoveateError, MissingExtra
from ..ports import Cost
from .servers import SERVERS

__all__ = ["cost_of", "unknown_price"]


def cost_of(name: str) -> Cost | None:
    """Return a function that prices a `Usage` of this model.

    `name` is `anthropic:claude-haiku-4-5`, or the same without provider.

    Returns None if there is no price: the model is unknown or runs locally, or `genai-prices` is not installed (`pip
    install "foveate[prices]"`). The function returns None for a usage without token counts. Tokens written to a cache
    without a price for it are charged as input.
    """
    provider, colon, model = name.partition(":")
    known = _providers()
    if not colon or provider not in known:
        if colon and not model.isdigit():  # A tag, such as `:8b` of Ollama or `:free` of OpenRouter: another model.
            return None
        provider, model = "", name
    elif not known[provider]:
        return None
    try:
        from genai_prices import Usage as Tokens
        from genai_prices import calc_price
    except ImportError:
        return None

    def cost(usage: Usage) -> float | None:
        total = usage.prompt_tokens
        if total is None or usage.output is None:
            return None
        tokens = Tokens(
            input_tokens=total,
            cache_read_tokens=usage.cache_read or 0,
            cache_write_tokens=usage.cache_write or 0,
            output_tokens=usage.output,
        )
        return float(calc_price(tokens, model, provider_id=known.get(provider)).total_price)

    try:
        price = calc_price(Tokens(input_tokens=0), model, provider_id=known.get(provider)).model_price
    except LookupError:
        return None
    return None if price.input_mtok is None and price.output_mtok is None else cost


def unknown_price(need: str, name: str, advice: str) -> FoveateError:
    """Return the error for a model without a price: a MissingExtra without `genai-prices`, else a BadSetting.

    `need`: the option that needs the price. `advice`: a sentence that says what to do if the model has no price.
    """
    provider, colon, _ = name.partition(":")
    if colon and _providers().get(provider) and find_spec("genai_prices") is None:
        return MissingExtra(f"{need}, which compares the price of {name},", "prices")
    return BadSetting(f"{need} needs the price of {name}, which is unknown. {advice}")


def _providers() -> dict[str, str]:
    """Return the providers' names in `genai-prices`, by their names here; "" for a provider without prices."""
    known = {"anthropic": "anthropic", "bedrock": "aws", "openai-responses": "openai"}
    return known | {key: server.prices for key, server in SERVERS.items()}
