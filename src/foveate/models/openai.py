"""Models of OpenAI's chat completions, and of the many servers that speak the same, through the official SDK.

Knows how one request is sent. What is in it is rendered by the format `openai`; retries, proxies and keys are the
client's. Answers are not streamed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import BadSetting, MissingExtra
from ._checked import checked

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

__all__ = ["OpenAIModel", "openai_model"]

MAX_TOKENS = 8_192
"""Length of an answer at most, thoughts included."""
_OWN = "api.openai.com"
TIMEOUT = 60.0
"""Seconds that the SDK waits for the server before it gives up, or tries again. Its own default is ten minutes."""


def openai_model(
    model: str,
    client: OpenAI | AsyncOpenAI | None = None,
    *,
    base_url: str | None = None,
    max_tokens: int = MAX_TOKENS,
    timeout: float = TIMEOUT,
) -> OpenAIModel:
    """A model of the chat completions, such as `gpt-4.1-mini`.

    `client`: the SDK's, sync or async; what `complete` returns is awaited if it is async. By default one is made when
    the first request is sent, which reads `OPENAI_API_KEY`. `base_url`: of a compatible server, such as
    `http://localhost:11434/v1`; not beside `client`, which has its own. There the length of an answer is said as
    `max_tokens`, which such servers know, at OpenAI's as `max_completion_tokens`. `max_tokens`: of one answer; a
    request that says its own keeps it. `timeout`: seconds; `client`'s own retries come on top. Raises MissingExtra
    where the SDK is not installed, and BadSetting for what makes no sense.
    """
    try:
        import openai  # noqa: F401
    except ImportError:
        raise MissingExtra("A model of OpenAI's, or of a server that is compatible with it,", "openai") from None
    if client is not None and not hasattr(client, "chat"):
        raise BadSetting(f"client= is an OpenAI or an AsyncOpenAI, not {type(client).__name__}.")
    if client is not None and base_url is not None:
        raise BadSetting("Say base_url= where client= is made, or leave client= out.")
    checked(model, max_tokens, timeout)
    return OpenAIModel(model, client, base_url, max_tokens, timeout)


class OpenAIModel:
    """See `openai_model`. May be used from several threads."""

    format = "openai"

    def __init__(
        self, model: str, client: OpenAI | AsyncOpenAI | None, base_url: str | None, max_tokens: int, timeout: float
    ) -> None:
        self.name = f"openai:{model}"
        self.model, self.max_tokens, self.timeout = model, max_tokens, timeout
        self._client, self._base_url = client, base_url

    def complete(self, body: Mapping[str, Any]) -> object | Awaitable[object]:
        """The SDK's response to this request. Raises what the SDK raises."""
        if self._client is None:
            from openai import OpenAI

            self._client = OpenAI(base_url=self._base_url, max_retries=1)
        asked: dict[str, Any] = {"timeout": self.timeout, **body}
        if not {"max_tokens", "max_completion_tokens"} & asked.keys():
            is_own = getattr(getattr(self._client, "base_url", None), "host", _OWN) == _OWN
            asked["max_completion_tokens" if is_own else "max_tokens"] = self.max_tokens
        return self._client.chat.completions.create(model=self.model, **asked)
