"""Estimates of a provider's bill for a request, including its cache.

A token is four characters, rounded up for each message, plus four tokens per message; an image is a fixed number of
tokens. Cached is the longest sequence of leading parts that the last request also had.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

__all__ = ["BilledTokens", "Meter", "tokens_of", "unmarked"]

IMAGE_TOKENS: Final = 1_500
MESSAGE_TOKENS: Final = 4
SILENT: Final = frozenset(
    {"type", "role", "id", "tool_call_id", "tool_use_id", "cache_control", "signature", "media_type"}
    | {"thoughtSignature", "mimeType"}
)
"""Fields that are not counted: the program needs them, not the model."""


def tokens_of(message: object) -> int:
    """Return the tokens of one message or another part of a request."""
    characters, images = _weigh(message)
    return -(-characters // 4) + images * IMAGE_TOKENS + MESSAGE_TOKENS


def unmarked(value: object) -> object:
    """Return the same value without its cache marks: they change neither cache nor signature."""
    if isinstance(value, Mapping):
        return {key: unmarked(inner) for key, inner in value.items() if key != "cache_control"}
    return [unmarked(inner) for inner in value] if isinstance(value, list | tuple) else value


class BilledTokens(NamedTuple):
    """The input tokens of one request, by price."""

    read: int
    """Read from the cache."""
    written: int
    """Written to the cache."""
    plain: int
    """Neither read nor written."""

    @property
    def total(self) -> int:
        """Return all input tokens."""
        return self.read + self.written + self.plain


class Meter:
    """Counts requests in order and remembers the cache of the last one.

    With `marks`, a request is cached up to its last cache mark, as at Anthropic. Without, all of it is cached at no
    extra cost, as at OpenAI.
    """

    def __init__(self, *, marks: bool) -> None:
        self._marks = marks
        self._cached: list[str] = []

    def count(self, body: Mapping[str, Any]) -> BilledTokens:
        """Return the bill of this request without remembering it."""
        return self._bill(*self._parts(body))

    def take(self, body: Mapping[str, Any]) -> BilledTokens:
        """Return the bill of this request and remember it as the last one."""
        parts, cached_to = self._parts(body)
        billed = self._bill(parts, cached_to)
        self._cached = [text for text, _ in parts[:cached_to]]
        return billed

    def _parts(self, body: Mapping[str, Any]) -> tuple[list[tuple[str, int]], int]:
        """Return the parts of a request as text and tokens, in cache order, and the number of cached parts."""
        tools, system, messages = _fields(body)
        extras = [part for part in (tools, system) if part]
        parts = [(json.dumps(unmarked(part)), tokens_of(part) - MESSAGE_TOKENS) for part in extras]
        parts += [(json.dumps(unmarked(message)), tokens_of(message)) for message in messages]
        if not self._marks or body.get("cache_control"):
            return parts, len(parts)
        marked = [place for place, part in enumerate([*extras, *messages], 1) if _is_marked(part)]
        return parts, marked[-1] if marked else 0

    def _bill(self, parts: Sequence[tuple[str, int]], cached_to: int) -> BilledTokens:
        same = 0
        for (text, _), before in zip(parts[:cached_to], self._cached, strict=False):
            if text != before:
                break
            same += 1
        read = sum(tokens for _, tokens in parts[:same])
        written = sum(tokens for _, tokens in parts[same:cached_to])
        return BilledTokens(read, written, sum(tokens for _, tokens in parts[cached_to:]))


def _fields(body: Mapping[str, Any]) -> tuple[object, object, Sequence[object]]:
    """Return the tools, the system prompt and the messages of a request."""
    if "contents" not in body:
        system = body.get("system") or body.get("instructions")
        return body.get("tools"), system, body["messages"] if "messages" in body else body["input"]
    config = body.get("config", body)  # The SDK of Gemini takes them in `config`.
    return config.get("tools"), config.get("system_instruction", config.get("systemInstruction")), body["contents"]


def _weigh(value: object) -> tuple[int, int]:
    """Return the characters and images of a value."""
    match value:
        case str():
            return (0, 1) if value.startswith("data:") else (len(value), 0)
        case {"type": "base64"} | {"inlineData": _}:
            return 0, 1
        case {"type": "tool_use", "name": name, "input": arguments} | {"name": name, "args": arguments}:
            written = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
            return len(str(name)) + len(written), 0
        case Mapping():
            weights = [_weigh(inner) for key, inner in value.items() if key not in SILENT]
        case list() | tuple():
            weights = [_weigh(inner) for inner in value]
        case _:
            return 0, 0
    return sum(characters for characters, _ in weights), sum(images for _, images in weights)


def _is_marked(value: object) -> bool:
    if isinstance(value, Mapping):
        return value.get("cache_control") is not None or any(map(_is_marked, value.values()))
    return isinstance(value, list | tuple) and any(map(_is_marked, value))
