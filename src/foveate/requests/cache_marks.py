"""Marks for Anthropic's prompt cache in a request whose messages changed.

A client marks blocks up to which the provider caches the request. If the marked message is not sent as it was, the mark
moves to the end of the message that stands in its place, or of the one before. So a request has no more marks than the
client gave it, and they keep their order: longer lifetimes come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ..conversation.request_items import RequestItem
from ..core.view import View
from ..formats.anthropic.write import STEP, mark

__all__ = ["MARK_KEY", "add_marks", "keep_marks", "marks_pay"]

MARK_KEY: Final = b'"cache_control"'
_MARKED: Final = 2 * STEP
"""Blocks at the end of a request among which some are marked. So the cache is found again behind 34 new blocks."""
_TAKES = frozenset({"text", "image", "document", "tool_use", "tool_result"})
"""Kinds of blocks that take a mark."""


def marks_pay(view: View, has_tools: bool) -> bool:
    """Return whether a request with this view pays for marks. `has_tools`: whether it offers tools.

    Writing to the cache costs a quarter more than plain input, so it pays only if a later request reads it. The first
    request of a conversation may be its only one. Behind a reply of a model with tools, another soon follows.
    """
    return has_tools and any(entry.message.role == "assistant" for entry in view.entries)


def keep_marks(items: Sequence[RequestItem], bodies: list[bytes], own: Sequence[bytes], marked: Sequence[int]) -> None:
    """Put the marks of items that are not sent as they are into the messages in their place, in `bodies`.

    `items` and `bodies`: the messages of the request, one body for each item. `own`: the client's own items. `marked`:
    the places of those that have a mark.
    """
    if not marked:
        return
    sent = {place for item in items for place in item.places}
    for place in marked:
        if place in sent:
            continue
        value = next(iter(_marks(msgspec.json.decode(own[place]))), None)
        target = max((at for at, item in enumerate(items) if -1 < item.last <= place), default=-1)
        if value is None or target < 0:
            continue
        message = msgspec.json.decode(bodies[target])
        if _put(message, value):
            bodies[target] = msgspec.json.encode(message)


def add_marks(system: list[Any], bodies: list[bytes]) -> None:
    """Mark the end of a request of a client that marks nothing, and of its system prompt."""
    newest: list[dict[str, Any]] = []  # Older messages get no mark, so they are not read.
    blocks = 0
    while len(newest) < len(bodies) and blocks < _MARKED:
        message = msgspec.json.decode(bodies[-1 - len(newest)])
        if isinstance(message.get("content"), str):
            message["content"] = [{"type": "text", "text": message["content"]}]
        blocks += len(message["content"]) if message.get("clear_at") is None else 0
        newest.insert(0, message)
    mark(system, [], newest)
    for place, message in enumerate(newest, len(bodies) - len(newest)):
        if any("cache_control" in block for block in message["content"]):
            bodies[place] = msgspec.json.encode(message)


def _marks(value: Any) -> list[Any]:
    """Return the marks in a message, the last one first."""
    content = value.get("content") if isinstance(value, dict) else None
    blocks: list[Any] = content if isinstance(content, list) else []
    found: list[Any] = []
    for block in reversed(blocks):
        if isinstance(block, dict):
            found += [block["cache_control"]] if block.get("cache_control") else _marks(block)
    return found


def _put(message: dict[str, Any], value: Any) -> bool:
    """Mark the end of a message. Return False if it has a mark, or no block that takes one."""
    content = message.get("content")
    if isinstance(content, str) and content:
        content = message["content"] = [{"type": "text", "text": content}]
    if not isinstance(content, list) or _marks(message):
        return False
    for block in reversed(content):
        if isinstance(block, dict) and block.get("type") in _TAKES and block.get("text") != "":
            block["cache_control"] = value
            return True
    return False
