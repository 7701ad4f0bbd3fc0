"""A tool call in words: what it says, and what it was done to. Knows nothing of results."""

from __future__ import annotations

import json
from typing import Any

from ..core.messages import ToolCall

__all__ = ["prompt_texts", "target_of"]

_TELLING = (
    *("path", "file_path", "filepath", "file", "filename", "command", "cmd", "url", "query", "pattern", "name", "id"),
)
"""Arguments that say what a call is done to, the likeliest first."""
_LONGEST = 120


def prompt_texts(call: ToolCall) -> str:
    """The values of the arguments as they were meant: without the marks that JSON puts in."""
    given = _given(call)
    return call.arguments if given is None else "\n".join(map(str, given.values()))


def target_of(call: ToolCall) -> str:
    """What a call was done to, in one line of at most 120 characters."""
    given = _given(call)
    if given is None:
        return _line(call.arguments)
    texts = {key: value for key, value in given.items() if isinstance(value, str) and value.strip()}
    key = next((key for key in _TELLING if key in texts), next(iter(texts), ""))
    return _line(texts.get(key) or json.dumps(given, ensure_ascii=False))


def _given(call: ToolCall) -> dict[str, Any] | None:
    try:
        given = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST]
