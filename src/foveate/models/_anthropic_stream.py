"""Events of a stream of Anthropic's Messages API, gathered into the message they make.

Blocks and deltas of kinds that came later are kept too: text is added to the field of its name. Calls whose arguments
end in the middle, because the answer was as long as it may be, keep what there is as text, so that no tool is called
with half of what was meant.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..ports import Delta
from ._streams import fields

__all__ = ["AnthropicGatherer"]


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
