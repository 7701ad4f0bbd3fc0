"""Models of Anthropic's Messages API, through its official SDK.

Knows how one request is sent. What is in it is rendered by the format `anthropic`, marks of the cache and thinking
included, and reaches the wire as it is; retries, proxies and keys are the client's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import BadSetting, MissingExtra
from ._anthropic_stream import AnthropicGatherer
from ._sdk import RETRIES, TIMEOUT, SdkModel

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic

__all__ = ["AnthropicModel", "anthropic_model"]

MAX_TOKENS = 8_192
"""Length of an answer at most. The API refuses a request that does not say one."""


def anthropic_model(
    model: str,
    client: Anthropic | AsyncAnthropic | None = None,
    *,
    asynchronous: bool = False,
    max_tokens: int = MAX_TOKENS,
    timeout: float = TIMEOUT,
    max_retries: int = RETRIES,
    options: Mapping[str, Any] | None = None,
    api_key: str | None = None,
) -> AnthropicModel:
    """A model of the Messages API, such as `claude-haiku-4-5`.

    `client`: the SDK's, sync or async, with its own retries; what `complete` returns is awaited, and `stream` is
    iterated over by `async for`, if it is async. By default one is made when the first request is sent, async if
    `asynchronous`, with `api_key`, or the key that the SDK finds (`ANTHROPIC_API_KEY`). `max_tokens`: of one answer,
    thoughts included. `timeout`: seconds until the answer, or the next piece of a stream. `options`: said with every
    request, such as `{"thinking": {"type": "enabled", "budget_tokens": 4096}}`; what a request says itself goes before
    them. Raises MissingExtra where the SDK is not installed, and BadSetting for what makes no sense.
    """
    try:
        import anthropic
    except ImportError:
        raise MissingExtra("A model of Anthropic's", "anthropic") from None
    if client is not None and not hasattr(client, "messages"):
        raise BadSetting(f"client= is an Anthropic or an AsyncAnthropic, not {type(client).__name__}.")
    return AnthropicModel(
        f"anthropic:{model}",
        client,
        anthropic,
        asynchronous=asynchronous,
        max_tokens=max_tokens,
        timeout=timeout,
        max_retries=max_retries,
        options=options,
        api_key=api_key,
    )


class AnthropicModel(SdkModel):
    """See `anthropic_model`."""

    format = "anthropic"

    def _made(self) -> Any:
        kind = self._sdk.AsyncAnthropic if self.asynchronous else self._sdk.Anthropic
        client = kind(max_retries=self.max_retries, **self._with_key)
        if not (client.api_key or client.auth_token or getattr(client, "credentials", None)):
            raise BadSetting(
                f"{self.name} needs a key, and ANTHROPIC_API_KEY is not set. Set it in the environment, or hand in "
                "api_key=, or client=Anthropic(api_key=...)."
            )
        return client

    def _sender(self, client: Any) -> Callable[..., Any]:
        send: Callable[..., Any] = client.messages.create
        return send

    def _asked(self, client: Any, body: Mapping[str, Any], streams: bool) -> dict[str, Any]:
        return {"max_tokens": self.max_tokens, **self.options, **body}

    def _gatherer(self) -> AnthropicGatherer:
        return AnthropicGatherer()
