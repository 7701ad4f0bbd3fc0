"""A recording in a provider's wire form, and which message of the recording each piece of it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..core.messages import Message
from ..formats import get_format

__all__ = ["body_of", "positions"]

_PLACE = re.compile(r"messages\[(\d+)\](?:\.content\[(\d+)\])?")


def body_of(provider: str, messages: Sequence[Message]) -> dict[str, Any]:
    """The request that says these messages just as they were recorded, legal or not."""
    wires = get_format(provider).render(messages)
    if provider != "anthropic":
        return {"messages": wires}
    leading = next((at for at, wire in enumerate(wires) if wire["role"] != "system"), len(wires))
    system = [block for wire in wires[:leading] for block in wire["content"]]
    return {**({"system": system} if system else {}), "messages": wires[leading:]}


def positions(provider: str, messages: Sequence[Message], body: dict[str, Any], where: Sequence[str]) -> list[int]:
    """For places in the body such as `messages[3].content[1]`, the recording's message, from 1; 0 where it is none."""
    starts = _starts(provider, messages, body)
    found = []
    for place in where:
        match = _PLACE.match(place)
        at = int(match[1]) if match else -1
        owners = starts[at] if 0 <= at < len(starts) else []
        block = int(match[2]) if match and match[2] else 0
        found.append(owners[min(block, len(owners) - 1)] if owners else 0)
    return found


def _starts(provider: str, messages: Sequence[Message], body: dict[str, Any]) -> list[list[int]]:
    """For each wire message, the positions of the recorded messages that its blocks come from, a block each."""
    alone = get_format(provider)
    blocks = [
        (position, wire["content"])
        for position, message in enumerate(messages, 1)
        for wire in alone.render([message])
        if provider != "anthropic" or wire["role"] != "system" or position > _leading(messages)
    ]
    owners: list[list[int]] = []
    waiting = iter(blocks)
    for wire in body["messages"]:
        content = wire.get("content")
        mine: list[int] = []
        while not mine or (isinstance(content, list) and len(mine) < len(content)):
            position, part = next(waiting, (0, None))
            if not position:
                break
            mine += [position] * max(1, len(part) if isinstance(part, list) else 1)
            if not isinstance(content, list) or provider != "anthropic":
                break
        owners.append(mine)
    return owners


def _leading(messages: Sequence[Message]) -> int:
    return next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
