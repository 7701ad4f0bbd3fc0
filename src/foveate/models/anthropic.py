"""Models of Anthropic's Messages API, through its official SDK.

Knows how one request is sent. What is in it is rendered by the format `anthropic`, marks of the cache and thinking
included, and reaches the wire as it is; retries, proxies and keys are the client's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ..errors import BadSetting, MissingExtra
from ..ports import Delta
from .sdk import RETRIES, TIMEOUT, SdkModel, fields

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic

__all__ = ["AnthropicGatherer", "AnthropicModel", "anthropic_model"]


# MODULEDOC """Events of a stream of Anthropic's Messages API, gathered into the message they make.
#
# Blocks and deltas of kinds that came later are kept too: text is added to the field of its name. Calls whose arguments
# end in the middle, because the answer was as long as it may be, keep what there is as text, so that no tool is called
# with half of what was meant.
# """
class AnthropicGatherer:
    """One answer. See `Gatherer`."""

    def __init__(self) -> None:
        self._message: dict[str, Any] | None = None
        self._blocks: dict[int, dict[str, Any]] = {}
        self._arguments: dict[int, str] = {}
        self._ended = False

    def add(self, event: object) -> list[Delta]:
        """The pieces that this event brings."""
        said = fields(event)
        match said.get("type"):
            case "message_start":
                self._message = dict(said["message"])
            case "content_block_start":
                block = self._blocks[said["index"]] = dict(said["content_block"])
                return _begun(block)
            case "content_block_delta":
                return self._grown(said["index"], said["delta"])
            case "message_delta" if self._message is not None:
                self._message |= said["delta"]
                # The counts are totals; those that it does not name are as the beginning said.
                told = {key: count for key, count in (said.get("usage") or {}).items() if count is not None}
                self._message["usage"] = {**(self._message.get("usage") or {}), **told}
            case "message_stop":
                self._ended = True
        return []

    def whole(self) -> dict[str, Any] | None:
        """The message; None while it is not whole."""
        if not self._ended or self._message is None:
            return None
        for index, text in self._arguments.items():
            if text:
                self._blocks[index]["input"] = _opened(text)
        return {**self._message, "content": list(self._blocks.values())}

    def _grown(self, index: int, delta: dict[str, Any]) -> list[Delta]:
        block = self._blocks[index]
        match delta:
            case {"type": "text_delta", "text": str(text)}:
                block["text"] = block.get("text", "") + text
                return [Delta("text", text)]
            case {"type": "thinking_delta", "thinking": str(text)}:
                block["thinking"] = block.get("thinking", "") + text
                return [Delta("reasoning", text)]
            case {"type": "input_json_delta", "partial_json": str(text)}:
                self._arguments[index] = self._arguments.get(index, "") + text
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


def _begun(block: dict[str, Any]) -> list[Delta]:
    match block:
        case {"type": "tool_use", "name": str(name)}:
            return [Delta("call", "", name)]
        case {"type": "text", "text": str(text)} if text:
            return [Delta("text", text)]
        case {"type": "thinking", "thinking": str(text)} if text:
            return [Delta("reasoning", text)]
    return []


def _opened(arguments: str) -> dict[str, Any]:
    try:
        given = msgspec.json.decode(arguments)
    except (ValueError, RecursionError):
        given = None
    # As the format writes arguments that are no object, and reads them again.
    return given if isinstance(given, dict) else {"_arguments": arguments}


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
