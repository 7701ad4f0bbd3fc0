"""What a provider would bill for a request: tokens by rule of thumb, and the part of them it had cached.

A token is four characters here, rounded up for each message, and each message costs four more; an image counts as a
fixed number. What is cached is the longest run of leading parts of the request that stood in the last one too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

__all__ = ["Billed", "Meter", "tokens_of", "unmarked"]

IMAGE_TOKENS: Final = 1_500
MESSAGE_TOKENS: Final = 4
SILENT: Final = frozenset(
    {"type", "role", "id", "tool_call_id", "tool_use_id", "cache_control", "signature", "media_type"}
)
"""Fields that are not counted: they are there for the program, not for the model."""


def tokens_of(message: object) -> int:
    """Tokens of one message, or of whatever else stands in a request."""
    characters, images = _weigh(message)
    return -(-characters // 4) + images * IMAGE_TOKENS + MESSAGE_TOKENS


def unmarked(value: object) -> object:
    """The same wire value without its cache marks: they do not change what is cached or signed."""
    if isinstance(value, Mapping):
        return {key: unmarked(inner) for key, inner in value.items() if key != "cache_control"}
    return [unmarked(inner) for inner in value] if isinstance(value, list | tuple) else value


class Billed(NamedTuple):
    """The input tokens of one request, by what they cost."""

    read: int
    """Found in the cache."""
    written: int
    """Put into the cache."""
    plain: int

    @property
    def total(self) -> int:
        return self.read + self.written + self.plain


class Meter:
    """Counts requests one after another, and remembers what the last one left in the cache.

    With `marks` a request is cached up to its last cache mark, as Anthropic does it; without, all of it is cached and
    writing costs nothing apart, as OpenAI does it.
    """

    def __init__(self, *, marks: bool) -> None:
        self._marks = marks
        self._cached: list[str] = []

    def count(self, body: Mapping[str, Any]) -> Billed:
        """What this request bills, were it sent now. Nothing is remembered."""
        return self._bill(*self._parts(body))

    def take(self, body: Mapping[str, Any]) -> Billed:
        """What this request bills; from now on it is the last one."""
        parts, cached_to = self._parts(body)
        billed = self._bill(parts, cached_to)
        self._cached = [text for text, _ in parts[:cached_to]]
        return billed

    def _parts(self, body: Mapping[str, Any]) -> tuple[list[tuple[str, int]], int]:
        """The parts of a request as text and tokens, in the order they are cached, and how many of them are."""
        beside = [part for part in (body.get("tools"), body.get("system")) if part]
        messages: Sequence[object] = body["messages"]
        parts = [(json.dumps(unmarked(part)), tokens_of(part) - MESSAGE_TOKENS) for part in beside]
        parts += [(json.dumps(unmarked(message)), tokens_of(message)) for message in messages]
        if not self._marks or body.get("cache_control"):
            return parts, len(parts)
        marked = [place for place, part in enumerate([*beside, *messages], 1) if _is_marked(part)]
        return parts, marked[-1] if marked else 0

    def _bill(self, parts: Sequence[tuple[str, int]], cached_to: int) -> Billed:
        same = 0
        for (text, _), before in zip(parts[:cached_to], self._cached, strict=False):
            if text != before:
                break
            same += 1
        read = sum(tokens for _, tokens in parts[:same])
        written = sum(tokens for _, tokens in parts[same:cached_to])
        return Billed(read, written, sum(tokens for _, tokens in parts[cached_to:]))


def _weigh(value: object) -> tuple[int, int]:
    """Characters and images in a wire value."""
    match value:
        case str():
            return (0, 1) if value.startswith("data:") else (len(value), 0)
        case {"type": "base64"}:
            return 0, 1
        case {"type": "tool_use", "name": name, "input": arguments}:
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
