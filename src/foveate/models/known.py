"""Facts that a model's name implies: wire format, window and relative prices.

The tables are small on purpose; keywords override them. Sources: the providers' model and price pages, November 2026.
"""

from __future__ import annotations

from msgspec.structs import replace

from ..core.call_context import Prices
from ..core.profiles import bare_model_name, is_window_documented, window_of
from ..errors import BadSetting
from .servers import SERVERS

__all__ = ["check_model", "format_of_model", "prices_of_model"]

_FORMATS = {"claude-": "anthropic", "gpt-": "openai", "chatgpt-": "openai", "o1": "openai", "o3": "openai"}
_FORMATS |= {"o4-": "openai", "gemini-": "openai", "grok-": "openai"}
"""Prefix of a model's name -> the format of its provider's interface."""

_OWN = ("anthropic", "openai", "openai_responses", "gemini")
"""Formats of this package. A format of a program may speak to any model."""

_PRICES = {
    "claude-fable-5-1": Prices(read=0.025),
    "claude-fable-5-2": Prices(read=0.025),
    "claude-mythos-5-2": Prices(read=0.025),
    "claude-opus-5-5": Prices(read=0.05),
    "claude-sonnet-5-5": Prices(read=0.05),
    "gpt-": Prices(read=0.5, write=1.0, output=4.0),
    "gpt-4.1": Prices(read=0.25, write=1.0, output=4.0),
    "gpt-5": Prices(read=0.1, write=1.0, output=8.0),
    "gpt-5.6": Prices(read=0.1, write=1.25, output=5.0, cache_seconds=1800),
    "gpt-6": Prices(read=0.1, write=1.25, output=5.0, cache_seconds=1800),
    "gpt-6.1": Prices(read=0.05, write=1.25, output=5.0, cache_seconds=1800),
    "o1": Prices(read=0.5, write=1.0, output=4.0),
    "o3": Prices(read=0.25, write=1.0, output=4.0),
    "o4-": Prices(read=0.25, write=1.0, output=4.0),
    "gemini-": Prices(read=0.1, write=1.0, output=8.0),
    "gemini-4": Prices(read=0.05, write=1.0, output=5.0),
    "grok-": Prices(read=0.25, write=1.0, output=5.0),
    "grok-4.20": Prices(read=0.16, write=1.0, output=2.0),
    "grok-4.3": Prices(read=0.16, write=1.0, output=2.0),
    "grok-4.5": Prices(read=0.15, write=1.0, output=3.0),
    "grok-code": Prices(read=0.1, write=1.0, output=7.5),
    "deepseek-": Prices(read=0.25, write=1.0, output=4.0, cache_seconds=3600),
    "deepseek-v4": Prices(read=0.033, write=1.0, output=3.0, cache_seconds=3600),
    "deepseek-v4-flash": Prices(read=0.02, write=1.0, output=4.0, cache_seconds=3600),
    "deepseek-v4.1-flash": Prices(read=0.02, write=1.0, output=4.0, cache_seconds=3600),
    "glm-": Prices(read=0.19, write=1.0, output=3.2),
    "kimi-": Prices(read=0.2, write=1.0, output=4.2),
    "kimi-k3": Prices(read=0.1, write=1.0, output=5.0),
    "minimax-": Prices(read=0.2, write=1.0, output=4.0),
    "mistral-": Prices(read=0.1, write=1.0, output=3.0),
    "devstral": Prices(read=0.1, write=1.0, output=5.0),
    "codestral": Prices(read=0.1, write=1.0, output=3.0),
    "muse-": Prices(read=0.12, write=1.0, output=3.4),
    "muse-wonder": Prices(read=0.05, write=1.0, output=5.0),
    "qwen": Prices(read=0.2, write=1.0, output=4.0),
}
"""Prefix of a model's name -> prices as multiples of its input price, as its maker charges them; the longest prefix
counts. DeepSeek keeps its cache for hours ("Context caching").
"""

_LONG = {
    "claude-haiku-5-5": (100_000, 5.0),
    "gemini-2.5-pro": (200_000, 2.0),
    "gemini-3-pro": (200_000, 2.0),
    "gemini-3.1-pro": (200_000, 2.0),
    "gpt-5.4": (272_000, 2.0),
    "gpt-5.5": (272_000, 2.0),
    "gpt-5.6": (272_000, 2.0),
    "gpt-6": (272_000, 2.0),
    "grok-4.": (200_000, 2.0),
    "grok-build": (200_000, 2.0),
    "minimax-m3": (512_000, 2.0),
}
"""Prefix of a model's name -> the tokens of a prompt above which a request costs more, and how many times as much."""


def format_of_model(model: str) -> str | None:
    """Return the format that a model is spoken to with; None if the name does not say it."""
    provider, colon, _ = model.partition(":")
    if colon and provider == "anthropic":
        return "anthropic"
    if colon and provider == "openai-responses":
        return "openai_responses"
    if colon and provider in SERVERS:
        return "openai"
    if "/" in model:  # A gateway's name for it; gateways choose their own format.
        return None
    return next((format for prefix, format in _FORMATS.items() if model.startswith(prefix)), None)


def prices_of_model(model: str) -> Prices:
    """Return the relative prices of a model; those of Anthropic if the model is not known."""
    name = bare_model_name(model).lower()
    known = [prefix for prefix in _PRICES if name.startswith(prefix)]
    prices = _PRICES[max(known, key=len)] if known else Prices()
    long = next((facts for prefix, facts in _LONG.items() if name.startswith(prefix)), None)
    return replace(prices, long_from=long[0], long_factor=long[1]) if long else prices


def check_model(model: str, format: str, window: int | None) -> None:
    """Raise BadSetting if the format or the window cannot be the model's."""
    spoken = format_of_model(model)
    name = "openai" if format == "openai_chat" else format
    accepted = {spoken, "openai_responses"} if spoken == "openai" else {spoken}
    if model.startswith("gemini-"):
        accepted.add("gemini")
    if spoken is not None and name in _OWN and name not in accepted:
        raise BadSetting(
            f"Model {model!r} uses the format {spoken!r}, not {format!r}. Leave format= out, or name the model as your "
            f"gateway does, such as openrouter:anthropic/claude-haiku-4-5."
        )
    known = window_of(model)
    if window is not None and known is not None and window > known and is_window_documented(model):
        raise BadSetting(
            f"Window of {window:,} tokens is larger than that of model {model!r}, which is {known:,}. Leave out "
            "window=, or leave out model= if this table is out of date."
        )
