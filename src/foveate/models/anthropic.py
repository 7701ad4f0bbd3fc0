"""Models of Anthropic's Messages API, through the official SDK.

The format `anthropic` renders the request, including cache marks and thinking, and it reaches the wire unchanged. The
client is responsible for retries, proxies and keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ..errors import BadSetting, MissingExtra
from ..ports import Delta
from .sdk import RETRIES, TIMEOUT, SdkModel, fields_of

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic

__all__ = ["AnthropicGatherer", "AnthropicModel", "anthropic_model"]


class AnthropicGatherer:
    """Gathers the events of one streamed answer into its message.

    Blocks and deltas of newer kinds are kept: text is appended to the field of its name. If the answer reaches its
    maximal length within a call, the incomplete arguments stay a text, so that no tool runs with half of them.
    """

    def __init__(self) -> None:
        self._message: dict[str, Any] | None = None
        self._blocks: dict[int, dict[str, Any]] = {}
        self._call_arguments: dict[int, str] = {}
        self._ended = False

    def add(self, event: object) -> list[Delta]:
        """Add an event, and return the pieces in it."""
        content = fields_of(event)
        match content.get("type"):
            case "message_start":
                self._message = dict(content["message"])
            case "content_block_start":
                block = self._blocks[content["index"]] = dict(content["content_block"])
                return _first_pieces(block)
            case "content_block_delta":
                return self._extend(content["index"], content["delta"])
            case "message_delta" if self._message is not None:
                self._message |= content["delta"]
                # The counts are totals. A count that the event omits keeps its first value.
                counts = {key: count for key, count in (content.get("usage") or {}).items() if count is not None}
                self._message["usage"] = {**(self._message.get("usage") or {}), **counts}
            case "message_stop":
                self._ended = True
        return []

    def whole(self) -> dict[str, Any] | None:
        """Return the message, or None while it is incomplete."""
        if not self._ended or self._message is None:
            return None
        for index, text in self._call_arguments.items():
            if text:
                self._blocks[index]["input"] = _parse_arguments(text)
        return {**self._message, "content": list(self._blocks.values())}

    def _extend(self, index: int, delta: dict[str, Any]) -> list[Delta]:
        block = self._blocks[index]
        match delta:
            case {"type": "text_delta", "text": str(text)}:
                block["text"] = block.get("text", "") + text
                return [Delta("text", text)]
            case {"type": "thinking_delta", "thinking": str(text)}:
                block["thinking"] = block.get("thinking", "") + text
                return [Delta("reasoning", text)]
            case {"type": "input_json_delta", "partial_json": str(text)}:
                self._call_arguments[index] = self._call_arguments.get(index, "") + text
                return [Delta("call", text)] if block.get("type") == "tool_use" and text else []
            case {"type": "signature_delta", "signature": signature}:
                block["signature"] = signature
            case {"type": "citations_delta", "citation": citation}:
                block["citations"] = [*(block.get("citations") or ()), citation]
            case _:
                for key, value in delta.items():
                    if key != "type":
                        is_text = isinstance(value, str) and isinstance(block.get(key), str)
                        block[key] = block[key] + value if is_text else value
        return []


def _first_pieces(block: dict[str, Any]) -> list[Delta]:
    match block:
        case {"type": "tool_use", "name": str(name)}:
            return [Delta("call", "", name)]
        case {"type": "text", "text": str(text)} if text:
            return [Delta("text", text)]
        case {"type": "thinking", "thinking": str(text)} if text:
            return [Delta("reasoning", text)]
    return []


def _parse_arguments(arguments: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(arguments)
    except (ValueError, RecursionError):
        value = None
    # The format writes and reads arguments that are not an object in this shape.
    return value if isinstance(value, dict) else {"_arguments": arguments}


MAX_TOKENS = 8_192
"""Default maximal length of an answer. The API refuses a request without one."""


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

    def _new_client(self) -> Any:
        kind = self._sdk.AsyncAnthropic if self.asynchronous else self._sdk.Anthropic
        client = kind(max_retries=self.max_retries, **self._with_key)
        if not (client.api_key or client.auth_token or getattr(client, "credentials", None)):
            raise BadSetting(
                f"{self.name} needs a key, and ANTHROPIC_API_KEY is not set. Set it in the environment, or pass "
                "api_key=, or client=Anthropic(api_key=...)."
            )
        return client

    def _sender(self, client: Any) -> Callable[..., Any]:
        send: Callable[..., Any] = client.messages.create
        return send

    def _arguments(self, client: Any, body: Mapping[str, Any], streams: bool) -> dict[str, Any]:
        return {"max_tokens": self.max_tokens, **self.options, **body}

    def _gatherer(self) -> AnthropicGatherer:
        return AnthropicGatherer()
