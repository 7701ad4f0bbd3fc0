"""A whole response taken apart again, into the pieces that a stream of it would bring.

Knows the response shapes of both providers. The pieces of each kind, joined, are what the response says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..ports import Delta

__all__ = ["deltas", "small"]

_WORD = re.compile(r"\s*\S+\s*|\s+")


def deltas(response: Mapping[str, Any]) -> Iterator[Delta]:
    """The pieces of a response of either provider, in the order in which it says them."""
    if "choices" in response:
        for choice in response["choices"][:1]:
            yield from _of_openai(choice["message"])
    else:
        for block in response.get("content", ()):
            yield from _of_anthropic(block)


def small(text: str) -> Sequence[str]:
    """A text in pieces of a word each."""
    return _WORD.findall(text)


def _of_anthropic(block: Mapping[str, Any]) -> Iterator[Delta]:
    match block:
        case {"type": "text", "text": text}:
            yield from (Delta("text", piece) for piece in small(text))
        case {"type": "thinking", "thinking": text}:
            yield from (Delta("reasoning", piece) for piece in small(text))
        case {"type": "tool_use", "name": name, "input": given}:
            yield from _call(name, json.dumps(given, ensure_ascii=False) if given else "")


def _of_openai(message: Mapping[str, Any]) -> Iterator[Delta]:
    yield from (Delta("reasoning", piece) for piece in small(message.get("reasoning_content") or ""))
    yield from (Delta("text", piece) for piece in small(message.get("content") or ""))
    for call in message.get("tool_calls") or ():
        if function := call.get("function"):
            yield from _call(function["name"], function["arguments"])


def _call(name: str, arguments: str) -> Iterator[Delta]:
    yield Delta("call", "", name)
    yield from (Delta("call", piece) for piece in small(arguments))
