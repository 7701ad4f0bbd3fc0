"""Models of Anthropic's Messages API, through the official SDK.

The format `anthropic` renders the request, including cache marks and thinking, and it reaches the wire unchanged. The
client is responsible for retries, proxies and keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..core.needs import DROP_STALE_REASONING
from ..core.profiles import profile_for
from ..errors import BadSetting, MissingExtra, MissingKey
from .sdk import RETRIES, TIMEOUT, SdkModel

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic

__all__ = ["AnthropicModel", "anthropic_model"]


MAX_TOKENS = 8_192
"""Default maximal length of an answer. The API refuses a request without one."""
_THINKING = ("thinking", "redacted_thinking")


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
    """Return a model of the Messages API, such as `claude-haiku-4-5`.

    `client` is an SDK client, sync or async, with its own retries. If it is async, callers await `complete` and iterate
    over `stream` with `async for`. Without it, the model creates a client for its first request, async if
    `asynchronous`, with `api_key` or the key that the SDK finds (`ANTHROPIC_API_KEY`). `max_tokens` limits one answer,
    including its thinking. `timeout` is in seconds until the answer, or the next piece of a stream. `options` go with
    every request, such as `{"thinking": {"type": "enabled", "budget_tokens": 4096}}`; the request's own fields win over
    them. Raises MissingExtra if the SDK is not installed, BadSetting for an invalid argument.
    """
    try:
        import anthropic
    except ImportError:
        raise MissingExtra("A model from Anthropic", "anthropic") from None
    if client is not None and not hasattr(client, "messages"):
        raise BadSetting(f"client= must be an Anthropic or an AsyncAnthropic, not {type(client).__name__}.")
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
    """A model of the Messages API (see `anthropic_model`)."""

    format = "anthropic"
    """The format of its requests."""

    def _new_client(self) -> Any:
        kind = self._sdk.AsyncAnthropic if self.asynchronous else self._sdk.Anthropic
        client = kind(max_retries=self.max_retries, **self._with_key)
        if not (client.api_key or client.auth_token or getattr(client, "credentials", None)):
            raise MissingKey(self.name, ["ANTHROPIC_API_KEY"])
        return client

    def _sender(self, client: Any) -> Callable[..., Any]:
        send: Callable[..., Any] = client.messages.create
        return send

    def _arguments(self, client: Any, body: Mapping[str, Any], streams: bool) -> dict[str, Any]:
        arguments = {"max_tokens": self.max_tokens, **self.options, **body}
        is_own_server = type(client).__name__ in ("Anthropic", "AsyncAnthropic")  # Others may not know the beta.
        if is_own_server and profile_for("anthropic", self.model).binds_reasoning and _sends_reasoning(arguments):
            arguments = DROP_STALE_REASONING.added_to(arguments)
            headers = dict(arguments.get("extra_headers") or {})
            betas = [*filter(None, [headers.get("anthropic-beta")]), *arguments.pop("betas")]
            arguments["extra_headers"] = {**headers, "anthropic-beta": ",".join(betas)}
        return arguments


def _sends_reasoning(arguments: Mapping[str, Any]) -> bool:
    """Return whether a request with thinking holds thinking of earlier replies."""
    if (arguments.get("thinking") or {}).get("type") == "disabled":
        return False
    contents = [message.get("content") for message in arguments.get("messages", ()) if isinstance(message, Mapping)]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    return any(isinstance(block, Mapping) and block.get("type") in _THINKING for block in blocks)
