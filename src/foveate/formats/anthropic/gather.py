"""Gathering of a streamed answer of Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ...ports import Delta

__all__ = ["AnthropicGatherer"]

_READABLE = ("text", "thinking", "tool_use")
"""Kinds of blocks whose beginning can be read."""


class AnthropicGatherer:
    """Gathers the events of one streamed answer into its message.

    Blocks and deltas of newer kinds are kept: text is appended to the field of its name. If the answer reaches its
    maximal length within a call, the incomplete arguments stay a text, so that no tool runs with half of them.
    """

    def __init__(self) -> None:
        self._message: dict[str, Any] | None = None
        self._blocks: dict[int, dict[str, Any]] = {}
        self._call_arguments: dict[int, str] = {}
        self._ended_blocks: set[int] = set()
        self._ended = False

    def add(self, event: dict[str, Any]) -> list[Delta]:
        """Add an event, which this gatherer may keep and change, and return the pieces in it."""
        kind = event.get("type")
        if kind == "content_block_delta":  # As most events: reading a stream costs a part of each request.
            block, delta = self._blocks[event["index"]], event["delta"]
            if delta.get("type") == "text_delta" and isinstance(text := delta.get("text"), str):
                block["text"] = block.get("text", "") + text
                return [Delta("text", text)]
            return self._extend(event["index"], block, delta)
        match kind:
            case "message_start":
                self._message = dict(event["message"])
            case "content_block_start":
                block = self._blocks[event["index"]] = dict(event["content_block"])
                return _first_pieces(block)
            case "content_block_stop":
                self._ended_blocks.add(event["index"])
            case "message_delta" if self._message is not None:
                # Next to the delta are facts of the whole call, such as `context_management`.
                facts = {key: value for key, value in event.items() if key not in ("type", "delta", "usage")}
                self._message |= {**event["delta"], **facts}
                # The counts are totals. A count that the event omits keeps its first value.
                counts = {key: count for key, count in (event.get("usage") or {}).items() if count is not None}
                self._message["usage"] = {**(self._message.get("usage") or {}), **counts}
            case "message_stop":
                self._ended = True
        return []

    def whole(self) -> dict[str, Any] | None:
        """Return the message, or None while it is incomplete."""
        return self._response(self._blocks) if self._ended else None

    def partial(self) -> dict[str, Any] | None:
        """Return the message as far as it has arrived; None if nothing has.

        Blocks that have not ended are left out, unless their beginning has a meaning.
        """
        return self._response(
            [
                index
                for index, block in list(self._blocks.items())  # Another thread may add to it.
                if index in self._ended_blocks or block.get("type") in _READABLE
            ]
        )

    def _response(self, indices: Iterable[int]) -> dict[str, Any] | None:
        """Return the message with these blocks."""
        if self._message is None:
            return None
        blocks = [
            {**self._blocks[index], "input": _parse_arguments(text)}
            if (text := self._call_arguments.get(index))
            else self._blocks[index]
            for index in indices
        ]
        return {**self._message, "content": blocks}

    def _extend(self, index: int, block: dict[str, Any], delta: dict[str, Any]) -> list[Delta]:
        match delta:
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
