"""Models that answer a rendered request, through the providers' own SDKs.

`foveate.open_model("anthropic:claude-haiku-4-5")` opens one by name. The SDK is imported when the model is created.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..core.lazy_names import lazy_names
from ..core.profiles import window_of
from ..errors import BadSetting
from .servers import SERVERS

if TYPE_CHECKING:
    from .anthropic import AnthropicModel
    from .demo import DemoModel
    from .openai import OpenAIModel
    from .prices import cost_of
    from .responses import ResponsesModel
else:
    __getattr__, __dir__ = lazy_names(__name__, {"cost_of": ".prices"})

__all__ = ["DEMO", "PROVIDERS", "cost_of", "window_of"]

DEMO = "demo"
"""The name of the demo program, which needs neither a key nor a network."""

PROVIDERS = ("anthropic", "openai", "openai-responses", *(name for name in SERVERS if name != "openai"))
"""The part before the colon in a model's name."""

_USUAL = {"claude-": "anthropic", "gpt-": "openai", "gemini-": "google", "grok-": "xai", "mistral-": "mistral"}
"""Beginnings of the names of models, with the provider that usually serves them."""


def is_model_name(name: str) -> bool:
    """Return whether this names a provider's model: a known provider, a colon, and the provider's name of the model."""
    provider, colon, model = name.partition(":")
    return bool(colon) and provider in PROVIDERS and bool(model.strip())


def suggest_model(name: str) -> str:
    """Return ` Did you mean openai:gpt-5-mini?` if a model's name lacks its usual provider, else nothing."""
    provider = next((provider for prefix, provider in _USUAL.items() if name.startswith(prefix)), "")
    return f" Did you mean {provider}:{name}?" if provider else ""


def get_model(
    name: str,
    *,
    asynchronous: bool = False,
    max_tokens: int | None = None,
    timeout: float | None = None,
    max_retries: int | None = None,
    options: Mapping[str, Any] | None = None,
    api_key: str | None = None,
) -> AnthropicModel | OpenAIModel | ResponsesModel | DemoModel:
    """Return the model of this name, such as `anthropic:claude-haiku-4-5` or `google:gemini-2.5-flash`.

    The model reads its key when it sends its first request, from the variable that the provider's users set
    (`ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `GEMINI_API_KEY`, ...: see `servers.py`), unless `api_key` gives it. With
    `asynchronous`, callers await its answers. `max_tokens` (of one answer), `timeout` (seconds) and `max_retries`
    default to those of the model class. `options` go with every request, such as `{"temperature": 0}`. Raises
    BadSetting for an unknown name, MissingExtra if the SDK is not installed.

    `demo` is a small program instead of a model, for a first look without a key.
    """
    if name == DEMO:
        from .demo import demo_model

        return demo_model(asynchronous=asynchronous)
    if not isinstance(name, str) or not is_model_name(name):
        raise BadSetting(
            f"Model {name!r:.80} is unknown.{suggest_model(str(name)[:80])} Write PROVIDER:MODEL, with one of these "
            f"providers: {', '.join(PROVIDERS)}."
        )
    provider, _, model = name.partition(":")
    values = {
        "max_tokens": max_tokens,
        "timeout": timeout,
        "max_retries": max_retries,
        "options": options,
        "api_key": api_key,
    }
    settings: dict[str, Any] = {key: value for key, value in values.items() if value is not None}
    if provider == "anthropic":
        from .anthropic import anthropic_model

        return anthropic_model(model.strip(), asynchronous=asynchronous, **settings)
    if provider == "openai-responses":
        from .responses import responses_model

        return responses_model(model.strip(), asynchronous=asynchronous, **settings)
    from .openai import openai_model

    return openai_model(model.strip(), server=provider, asynchronous=asynchronous, **settings)
