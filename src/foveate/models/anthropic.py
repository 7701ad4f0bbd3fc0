"""Models of Anthropic's Messages API, through its official SDK.

Knows how one request is sent. What is in it is rendered by the format `anthropic`; retries, proxies and keys are the
client's. Answers are not streamed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import BadSetting, MissingExtra
from ._checked import checked

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic

__all__ = ["AnthropicModel", "anthropic_model"]

MAX_TOKENS = 8_192
"""Length of an answer at most. The API refuses a request that does not say one."""
TIMEOUT = 60.0
"""Seconds that the SDK waits for the server before it gives up, or tries again. Its own default is ten minutes."""


def anthropic_model(
    model: str,
    client: Anthropic | AsyncAnthropic | None = None,
    *,
    max_tokens: int = MAX_TOKENS,
    timeout: float = TIMEOUT,
) -> AnthropicModel:
    """A model of the Messages API, such as `claude-haiku-4-5`.

    `client`: the SDK's, sync or async; what `complete` returns is awaited if it is async. By default one is made when
    the first request is sent, which reads `ANTHROPIC_API_KEY`. `max_tokens`: of one answer; a request that says its own
    keeps it. `timeout`: seconds; `client`'s own retries come on top. Raises MissingExtra where the SDK is not
    installed, and BadSetting for numbers that make no sense.
    """
    try:
        import anthropic  # noqa: F401
    except ImportError:
        raise MissingExtra("A model of Anthropic's", "anthropic") from None
    if client is not None and not hasattr(client, "messages"):
        raise BadSetting(f"client= is an Anthropic or an AsyncAnthropic, not {type(client).__name__}.")
    checked(model, max_tokens, timeout)
    return AnthropicModel(model, client, max_tokens, timeout)


class AnthropicModel:
    """See `anthropic_model`. May be used from several threads."""

    format = "anthropic"

    def __init__(self, model: str, client: Anthropic | AsyncAnthropic | None, max_tokens: int, timeout: float) -> None:
        self.name = f"anthropic:{model}"
        self.model, self.max_tokens, self.timeout = model, max_tokens, timeout
        self._client = client

    def complete(self, body: Mapping[str, Any]) -> object | Awaitable[object]:
        """The SDK's response to this request. Raises what the SDK raises."""
        if self._client is None:
            from anthropic import Anthropic

            self._client = Anthropic(max_retries=1)
        asked: dict[str, Any] = {"max_tokens": self.max_tokens, "timeout": self.timeout, **body}
        return self._client.messages.create(model=self.model, **asked)
