"""A check of thinking that is bound to everything before it, over the requests of one conversation.

Every Claude since 5.1 refuses a thinking block if system prompt, tools or messages before it differ from the request
that the block answered. A single body cannot show that, so this check follows the exchange.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["BoundThinking"]

_Prefix = tuple[str, ...]


class BoundThinking:
    """The thinking of one conversation, with the requests that it answered."""

    def __init__(self) -> None:
        self._newest: _Prefix = ()
        self._bound: dict[str, _Prefix] = {}
        """The request that each thinking block answered, by the signature of the block."""

    def send(self, body: Mapping[str, Any]) -> list[str]:
        """Return the problems of this request, and expect its reply."""
        flat = _flat(body)
        problems = [
            f"thinking {signature!r} is bound to another prefix"
            for signature in _signatures(body)
            if (prefix := self._bound.get(signature)) is not None and flat[: len(prefix)] != prefix
        ]
        self._newest = flat
        return problems

    def reply(self, message: Mapping[str, Any]) -> None:
        """Take the reply to the newest request: its thinking is bound to that request."""
        for signature in _signatures({"messages": [message]}):
            self._bound[signature] = self._newest


def _flat(body: Mapping[str, Any]) -> _Prefix:
    """Return system prompt, tools and blocks in order, without cache marks."""
    blocks = [(message["role"], block) for message in body["messages"] for block in _blocks(message)]
    return tuple(_text(item) for item in (body.get("system"), body.get("tools"), *blocks))


def _signatures(body: Mapping[str, Any]) -> list[str]:
    blocks = [block for message in body["messages"] for block in _blocks(message)]
    thinking = [block for block in blocks if block["type"].endswith("thinking")]
    return [str(block.get("signature") or block.get("data")) for block in thinking]


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text(value: object) -> str:
    return json.dumps(_without_marks(value), sort_keys=True)


def _without_marks(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_marks(inner) for key, inner in value.items() if key != "cache_control"}
    return [_without_marks(inner) for inner in value] if isinstance(value, list | tuple) else value
