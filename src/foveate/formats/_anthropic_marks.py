"""Where Anthropic may cache a prompt: which blocks of a request carry a mark.

The API looks back 20 blocks from each mark for something it has cached before, and takes four marks at most. So the
last block is marked, and others behind it at distances it can bridge: then a turn that added many blocks still finds
the cache of the turn before. One mark stays at the end of what never changes, the tools and the system prompt.
"""

from __future__ import annotations

from typing import Any

__all__ = ["MOST", "STEP", "mark"]

MOST = 4
"""Marks in one request, the caller's own included."""
STEP = 15
"""Blocks between marks at most: less than the 20 that are looked back, as a block may be one that takes no mark."""

_MARKED = frozenset({"text", "image", "document", "tool_use", "tool_result"})


def mark(system: list[dict[str, Any]], tools: list[dict[str, Any]], messages: list[dict[str, Any]]) -> None:
    """Put marks into these containers. Marks that are there already stay, and count."""
    left = MOST - sum(block.get("cache_control") is not None for block in (*tools, *system))
    blocks = _newest(messages, STEP * MOST)
    places = _places(blocks)
    # The tail is worth most: it is what the next request can read. Then the fixed part, then the steps between.
    if left > 0 and places:
        _put(blocks[places[0]])
        left -= 1
    end = _end(system, tools)
    if left > 0 and end is not None and end.get("cache_control") is None:
        _put(end)
        left -= 1
    for place in places[1 : 1 + max(left, 0)]:
        _put(blocks[place])


def _newest(messages: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """The newest blocks of these messages, newest first; at least `count`, where there are so many."""
    blocks: list[dict[str, Any]] = []
    for message in reversed(messages):
        blocks.extend(reversed(message["content"]))
        if len(blocks) >= count:
            break
    return blocks


def _places(blocks: list[dict[str, Any]]) -> list[int]:
    """Where to mark, counted from the newest block back: the newest that takes a mark, then steps of STEP or a little
    less.
    """
    places: list[int] = []
    reached = 0
    for place, block in enumerate(blocks):
        if not _takes_mark(block):
            continue
        if not places:
            places.append(place)
        elif place - places[-1] > STEP:
            if reached > places[-1]:
                places.append(reached)
            if place - places[-1] > STEP:
                places.append(place)
        reached = place
    return places


def _end(system: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The last of what stands before the messages, if it takes a mark."""
    for block in reversed(system):
        return block if _takes_mark(block) else None
    # A tool whose definition is looked up later takes no mark.
    return next((tool for tool in reversed(tools) if not tool.get("defer_loading")), None)


def _takes_mark(block: dict[str, Any]) -> bool:
    return block.get("type") in _MARKED and block.get("text") != ""


def _put(block: dict[str, Any]) -> None:
    block["cache_control"] = {"type": "ephemeral"}
