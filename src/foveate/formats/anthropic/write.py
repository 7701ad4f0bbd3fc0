"""Where Anthropic may cache a prompt: which blocks of a request carry a mark.

The API looks back 20 blocks from each mark for something it has cached before, and takes four marks at most. So the
last block is marked, and others behind it at distances it can bridge: then a turn that added many blocks still finds
the cache of the turn before. One mark stays at the end of what never changes, the tools and the system prompt.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from typing import Any

from ...core.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from ...core.profiles import Profile
from ...core.view import Entry
from ..blocks import IMAGES, Place, fields_of, is_sendable, untold, with_extra
from ..json import object_of
from .read import NAME

__all__ = ["MOST", "NOTE", "NO_OUTPUT", "STEP", "cut", "mark", "write", "write_view"]

# MODULEDOC """From messages to Anthropic's wire.
#
# What Anthropic cannot carry is left out here: names of speakers and tools, reasoning of other providers, foreign
# blocks and fields. What a request may not hold although the format has words for it (an image of a kind the API does
# not read, a system message in the middle) is told as text, but only where a view is written: an export says what was
# said.
# """
NOTE = "[System note]\n"
"""Before a system message in the middle of a conversation, which the API takes as a user's."""

NO_OUTPUT = "[It failed and said nothing.]"
"""What a failed call says that said nothing."""

_READ = IMAGES | {"application/pdf", "text/plain"}
"""What the API reads when it is sent along."""
_LARGEST = 10 * 1024 * 1024
"""Characters of base64 that it takes."""


def write(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Wire messages that carry these messages. Tool results in a row, and what the user said right after, share one."""
    wires: list[dict[str, Any]] = []
    results: list[dict[str, Any]] | None = None  # The content of the wire message that more may be packed into.
    for message in messages:
        blocks = _blocks(message.parts)
        extra = fields_of(message.extra, NAME)
        if results is not None and blocks and not extra and message.role in ("tool", "user"):
            results.extend(blocks)
        else:
            role = "user" if message.role == "tool" else message.role
            wires.append(with_extra({"role": role, "content": blocks}, extra))
            results = blocks
        if message.role != "tool":
            results = None
    return wires


def cut(entries: Sequence[Entry], start: int, profile: Profile) -> int:
    """Where the group that begins at `start` ends: the entries that are written together.

    The system messages at the very start are one group, and so are entries of the user's side that were appended in
    one turn. A later turn begins another wire message, so that what was already sent stays as it is; the API joins
    them itself.
    """
    end, size = start + 1, len(entries)
    role = entries[start].message.role
    if start == 0 and role == "system":
        while end < size and entries[end].message.role == "system":
            end += 1
    elif role != "assistant":
        turn = entries[start].stamp.turn
        while end < size and entries[end].message.role != "assistant" and entries[end].stamp.turn == turn:
            end += 1
    return end


def write_view(
    entries: tuple[Entry, ...], start: int, profile: Profile
) -> list[tuple[dict[str, Any], tuple[Entry, ...]]]:
    """The wire messages of one group, each with the entries it shows."""
    strict = profile.strict
    if start == 0 and entries[0].message.role == "system":
        leading = [({"role": "system", "content": _system_blocks(e.message, strict)}, (e,)) for e in entries]
        return [each for each in leading if each[0]["content"]]
    role = "assistant" if entries[0].message.role == "assistant" else "user"
    blocks: list[dict[str, Any]] = []
    extra: dict[str, Any] = {}
    for entry in entries:
        message = entry.message
        if message.role == "system":
            blocks += _note(_system_blocks(message, strict))
        else:
            blocks += _blocks(message.parts, strict, "assistant" if role == "assistant" else "user")
        if message.extra is not None and not strict:
            extra = {**fields_of(message.extra, NAME), **extra}
    if not blocks:
        return []  # Nothing this provider could be shown; an empty message would be refused.
    # Results come first in their message, or the API does not find them.
    blocks.sort(key=lambda block: block.get("type") != "tool_result")
    return [(with_extra({"role": role, "content": blocks}, extra), entries)]


def _system_blocks(message: Message, strict: bool) -> list[dict[str, Any]]:
    """The blocks of a system prompt: text alone."""
    blocks = _blocks([part for part in message.parts if isinstance(part, Text | Media)], strict, "system")
    return [block for block in blocks if block["text"].strip()]


def _note(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A system message told to the model by the user's mouth."""
    if blocks:
        blocks[0]["text"] = NOTE + blocks[0]["text"]
    return blocks


def _blocks(parts: Iterable[Part], strict: bool = False, place: Place = "export") -> list[dict[str, Any]]:
    """The blocks of these parts. An export may hold whatever there are words for; a request only what the API takes."""
    return [block for part in parts if (block := _block(part, strict, place)) is not None]


def _block(part: Part, strict: bool, place: Place) -> dict[str, Any] | None:
    block: dict[str, Any]
    match part:
        case Text():
            block = {"type": "text", "text": part.text}
        case Media():
            return _media(part, strict, place)
        case ToolCall():
            block = _call(part)
        case ToolResult():
            block = _result(part, strict, place)
        case Reasoning():
            if part.format != NAME:
                return None  # Of another provider, or of nobody who could vouch for it.
            if part.encrypted:
                block = {"type": "redacted_thinking", "data": part.encrypted}
            else:
                block = {"type": "thinking", "thinking": part.text, "signature": part.signature}
        case Opaque():  # Strict gateways know no blocks but the common ones.
            return object_of(part.body) if part.format == NAME and not strict else None
    return block if strict or part.extra is None else with_extra(block, fields_of(part.extra, NAME))


def _call(part: ToolCall) -> dict[str, Any]:
    given = object_of(part.arguments)
    if given is None:
        given = {"_arguments": part.arguments}  # No object cannot be an input; wrapped, it is still there to read.
    return {"type": "tool_use", "id": part.call_id, "name": part.name, "input": given}


def _result(part: ToolResult, strict: bool, place: Place) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": part.call_id}
    failed = part.state != "ok"  # There is no word for an interrupted call but that it failed.
    blocks = _blocks(part.content, strict, "failure" if failed and place != "export" else place)
    if place != "export":
        blocks = [inner for inner in blocks if inner.get("type") != "text" or inner["text"].strip()]
        if failed:  # A failure is told in text, and is told: the API refuses any other.
            blocks = [inner for inner in blocks if inner.get("type") == "text"] or [{"type": "text", "text": NO_OUTPUT}]
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        block["content"] = blocks[0]["text"]
    elif blocks:
        block["content"] = blocks
    if failed:
        block["is_error"] = True
    return block


def _media(part: Media, strict: bool, place: Place) -> dict[str, Any]:
    extra = fields_of(part.extra, NAME)
    named = extra.pop("type", None)
    if strict:
        extra, named = {}, None
    if place != "export" and (place != "user" or not is_sendable(part, NAME, _READ, _LARGEST)):
        return {"type": "text", "text": untold(part)}
    kind = named if named in ("image", "document") else ("image" if part.is_image else "document")
    source: dict[str, Any]
    match part.source:
        case "url":
            source = {"type": "url", "url": part.data}
        case "file":
            source = {"type": "file", "file_id": part.data}
        case _:
            source = _held(part)
    block = {"type": kind, "source": source}
    if kind == "document" and part.name:
        block["title"] = part.name
    return with_extra(block, extra)


def _held(part: Media) -> dict[str, Any]:
    """The source of media sent along. Plain text travels as text, where its base64 says nothing but the text."""
    if part.mime == "text/plain":
        try:
            raw = b64decode(part.data, validate=True)
            if b64encode(raw).decode() == part.data:
                return {"type": "text", "media_type": part.mime, "data": raw.decode()}
        except (binascii.Error, ValueError):
            pass
    return {"type": "base64", "media_type": part.mime, "data": part.data}


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
