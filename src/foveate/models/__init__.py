"""Models that answer one rendered request: thin leaves over the providers' own SDKs.

`model_named("anthropic:claude-haiku-4-5")` gives one by name. An SDK is imported when its model is made, never before:
naming one costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import BadSetting
from .servers import SERVERS

if TYPE_CHECKING:
    from .anthropic import AnthropicModel
    from .demo import DemoModel
    from .openai import OpenAIModel

__all__ = ["DEMO", "PROVIDERS", "is_model_name", "model_named"]

DEMO = "demo"
"""The name of the model that needs neither key nor network, and is none."""

PROVIDERS = ("anthropic", *SERVERS)
"""What stands before the colon in a model's name."""


def is_model_name(name: str) -> bool:
    """Whether this names a model of a provider: a known one, a colon, and the model's own name."""
    provider, colon, model = name.partition(":")
    return bool(colon) and provider in PROVIDERS and bool(model.strip())


def model_named(
    name: str,
    *,
    asynchronous: bool = False,
    max_tokens: int | None = None,
    timeout: float | None = None,
    max_retries: int | None = None,
    options: Mapping[str, Any] | None = None,
    api_key: str | None = None,
) -> AnthropicModel | OpenAIModel | DemoModel:
    """The model of this name, such as `anthropic:claude-haiku-4-5`, `openai:gpt-4.1-mini` or `google:gemini-2.5-flash`.

    Its key is where the provider's users keep it (`ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `GEMINI_API_KEY`, ...: see
    `servers.py`), and is looked for when the first request is sent, unless `api_key` says it. `asynchronous`: its
    answers are awaited. `max_tokens` of one answer, `timeout` (seconds), `max_retries`: the leaf's own if None.
    `options`: said with every request, such as `{"temperature": 0}`. Raises BadSetting for another name, and
    MissingExtra where the SDK is not installed.

    `demo` is a small program that takes a model's place, for a first look without a key (`demo.py`).
    """
    if name == DEMO:
        from .demo import demo_model

        return demo_model()
    if not isinstance(name, str) or not is_model_name(name):
        raise BadSetting(
            f"There is no model {name!r:.80}. A model is named PROVIDER:MODEL; providers: {', '.join(PROVIDERS)}."
        )
    provider, _, model = name.partition(":")
    said = {
        "max_tokens": max_tokens,
        "timeout": timeout,
        "max_retries": max_retries,
        "options": options,
        "api_key": api_key,
    }
    settings: dict[str, Any] = {key: value for key, value in said.items() if value is not None}
    if provider == "anthropic":
        from .anthropic import anthropic_model

        return anthropic_model(model.strip(), asynchronous=asynchronous, **settings)
    from .openai import openai_model

    return openai_model(model.strip(), server=provider, asynchronous=asynchronous, **settings)
