"""Models that answer one rendered request: thin leaves over the providers' own SDKs.

`model_named("anthropic:claude-haiku-4-5")` gives one by name. An SDK is imported when its model is made, never before:
naming one costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import BadSetting

if TYPE_CHECKING:
    from ..ports import Model

__all__ = ["PROVIDERS", "is_model_name", "model_named"]

PROVIDERS = ("anthropic", "openai")
"""What stands before the colon in a model's name."""


def is_model_name(name: str) -> bool:
    """Whether this is a name that `model_named` takes: a known provider, a colon, and the model's own name."""
    provider, colon, model = name.partition(":")
    return bool(colon) and provider in PROVIDERS and bool(model.strip())


def model_named(name: str, *, max_tokens: int | None = None, timeout: float | None = None) -> Model:
    """The model of this name, such as `anthropic:claude-haiku-4-5` or `openai:gpt-4.1-mini`.

    The SDK finds its key as it always does (`ANTHROPIC_API_KEY`, `OPENAI_API_KEY`), and so the address of the server
    (`OPENAI_BASE_URL`). `max_tokens` and `timeout` (seconds): the leaf's own if None. Raises BadSetting for another
    name, and MissingExtra where the SDK is not installed.
    """
    if not is_model_name(name):
        raise BadSetting(
            f"There is no model {name!r}. A model is named PROVIDER:MODEL; providers: {', '.join(PROVIDERS)}."
        )
    provider, _, model = name.partition(":")
    options: dict[str, Any] = {"max_tokens": max_tokens, "timeout": timeout}
    options = {key: value for key, value in options.items() if value is not None}
    if provider == "anthropic":
        from .anthropic import anthropic_model

        return anthropic_model(model.strip(), **options)
    from .openai import openai_model

    return openai_model(model.strip(), **options)
