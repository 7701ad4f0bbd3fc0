"""Writing of Anthropic's wire messages, and the marks for its prompt cache.

The writer leaves out what Anthropic cannot carry: names of speakers and tools, reasoning of other providers, foreign
blocks and fields. A request must not hold everything that the format can express (an image type that the API does not
read, a system message in the middle): a view shows a text in its place, and an export keeps it.

The API looks back 20 blocks from each cache mark for content that it cached before, and takes at most four marks. So
the last block gets a mark, and earlier blocks get marks at distances that the API can bridge: a turn that adds many
blocks still finds the cache of the turn before. One mark stays at the end of the tools and the system prompt.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from typing import Any

from ...core.media_tokens import image_size
from ...core.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from ...core.profiles import Profile
from ...core.system_messages import OPENING, sent_role
from ...core.view import Entry
from ..blocks import IMAGES, Place, add_extra, extra_fields, hidden_media_text, is_sendable, sent_fields, sent_type
from ..json import parse_object
from .read import NAME

__all__ = [
    "MESSAGE_KEYS",
    "MOST",
    "NO_OUTPUT",
    "STEP",
    "cut",
    "first_marked",
    "mark",
    "user_note",
    "write",
    "write_view",
]

MESSAGE_KEYS = {
    "user": frozenset({"output_config"}),
    "assistant": frozenset[str](),
    "system": frozenset({"output_config", "clear_at"}),
}
"""Keys of a message, role and content aside, that the API takes. It refuses others: "Extra inputs are not permitted".

Source: the types of the SDK 2.12 (`BetaSystemMessageParam`). `output_config` of a user's message is what Claude Code
2.1.330 sends under the beta `per-turn-control-2026-07-01`.
"""

NO_OUTPUT = "[It failed and said nothing.]"
"""The content of a failed call that has no output."""

_READ = IMAGES | {"application/pdf", "text/plain"}
"""Media types that the API reads if a request carries the data."""
_LARGEST = 10 * 1024 * 1024
"""Characters of base64 that the API accepts."""
_PIXELS_MAX = 8_000
"""Pixels of a side of an image that the API accepts."""


def write(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return wire messages for these messages.

    Consecutive tool results and the user message right after them share one.
    """
    wires: list[dict[str, Any]] = []
    results: list[dict[str, Any]] | None = None  # The content of the wire message that can take more blocks.
    for message in messages:
        blocks = _blocks(message.parts)
        extra = extra_fields(message.extra, NAME)
        if results is not None and blocks and not extra and message.role in ("tool", "user"):
            results.extend(blocks)
        else:
            role = "user" if message.role == "tool" else message.role
            wires.append(add_extra({"role": role, "content": blocks}, extra))
            results = blocks
        if message.role != "tool":
            results = None
    return wires


def cut(entries: Sequence[Entry], start: int, profile: Profile) -> int:
    """Return the end of the group that begins at `start`: the entries that are written together.

    System messages at the beginning form one group, and later ones one each. Entries of the user's side that were
    appended in one turn are written together. A later turn begins a new wire message, so that the messages sent before
    stay unchanged; the API joins them.
    """
    end, size = start + 1, len(entries)
    if _is_system(entries[start]):
        while start == 0 and end < size and _is_system(entries[end]):
            end += 1
    elif entries[start].message.role != "assistant":
        turn = entries[start].stamp.turn
        while end < size and entries[end].stamp.turn == turn and _is_users(entries[end]):
            end += 1
    return end


def _is_system(entry: Entry) -> bool:
    """Return whether an entry is written as a system message."""
    return sent_role(entry) == "system"


def _is_users(entry: Entry) -> bool:
    """Return whether an entry is written as a user's message."""
    return entry.message.role != "assistant" and not _is_system(entry)


def write_view(
    entries: tuple[Entry, ...], start: int, profile: Profile
) -> list[tuple[dict[str, Any], tuple[Entry, ...]]]:
    """Return the wire messages of one group, each with the entries it shows."""
    strict = profile.strict
    if _is_system(entries[0]):
        systems = [(_system(entry.message, profile, is_prompt=start == 0), (entry,)) for entry in entries]
        shown = [each for each in systems if each[0]["content"] or "output_config" in each[0]]
        return sorted(shown, key=lambda each: not each[0]["content"])  # Those at the beginning move to `system`.
    role = "assistant" if entries[0].message.role == "assistant" else "user"
    blocks: list[dict[str, Any]] = []
    extra: dict[str, Any] = {}
    for entry in entries:
        message = entry.message
        place: Place = "system" if message.role == "system" else "assistant" if role == "assistant" else "user"
        blocks += _blocks(message.parts, strict, place)
        if message.extra is not None and message.role != "system":
            extra = {**sent_fields(message.extra, NAME, MESSAGE_KEYS[role], profile), **extra}
    if not blocks:
        return []  # The provider can show none of this, and it refuses an empty message.
    # Results come first in their message; otherwise the API does not find them.
    blocks.sort(key=lambda block: block.get("type") != "tool_result")
    return [(add_extra({"role": role, "content": blocks}, extra), entries)]


def user_note() -> dict[str, Any]:
    """Return a user's message that ends a request, for models that refuse one that ends with the assistant."""
    return {"role": "user", "content": [{"type": "text", "text": OPENING}]}


def _system(message: Message, profile: Profile, *, is_prompt: bool) -> dict[str, Any]:
    """Write a system message: at the beginning only its text, later also changes of tools and its settings."""
    parts = [part for part in message.parts if isinstance(part, Text | Media) or (_is_change(part) and not is_prompt)]
    blocks = [block for block in _blocks(parts, profile.strict, "system") if block.get("text", "-").strip()]
    wire = {"role": "system", "content": blocks}
    if is_prompt and blocks:
        return wire
    return add_extra(wire, sent_fields(message.extra, NAME, MESSAGE_KEYS["system"], profile))


def _is_change(part: Part) -> bool:
    """Return whether this is one of the blocks, text aside, that a system message may have."""
    return isinstance(part, Opaque) and part.kind in ("tool_addition", "tool_removal")


def _blocks(parts: Iterable[Part], strict: bool = False, place: Place = "export") -> list[dict[str, Any]]:
    """Return the blocks of these parts.

    An export keeps everything that the format can express, a request only what the API takes.
    """
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
                return None  # From another provider, or of unknown origin.
            if part.encrypted:
                block = {"type": "redacted_thinking", "data": part.encrypted}
            else:
                block = {"type": "thinking", "thinking": part.text, "signature": part.signature}
        case Opaque():  # Strict gateways know only the common blocks.
            return parse_object(part.body) if part.format == NAME and not strict else None
    return block if strict or part.extra is None else add_extra(block, extra_fields(part.extra, NAME))


def _call(part: ToolCall) -> dict[str, Any]:
    arguments = parse_object(part.arguments)
    if arguments is None:
        arguments = {"_arguments": part.arguments}  # An input must be an object, so other arguments are wrapped.
    return {"type": "tool_use", "id": part.call_id, "name": part.name, "input": arguments}


def _result(part: ToolResult, strict: bool, place: Place) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": part.call_id}
    failed = part.state != "ok"  # The format has no state for an interrupted call but failure.
    blocks = _blocks(part.content, strict, "failure" if failed and place != "export" else place)
    if place != "export":
        blocks = [inner for inner in blocks if inner.get("type") != "text" or inner["text"].strip()]
        if failed:  # The API refuses a failure without text, or with anything but text.
            blocks = [inner for inner in blocks if inner.get("type") == "text"] or [{"type": "text", "text": NO_OUTPUT}]
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        block["content"] = blocks[0]["text"]
    elif blocks:
        block["content"] = blocks
    if failed:
        block["is_error"] = True
    return block


def _media(part: Media, strict: bool, place: Place) -> dict[str, Any]:
    extra = extra_fields(part.extra, NAME)
    block_type = extra.pop("type", None)
    if strict:
        extra, block_type = {}, None
    if place != "export" and (place != "user" or not is_sendable(part, NAME, _READ, _LARGEST) or _is_too_wide(part)):
        return {"type": "text", "text": hidden_media_text(part)}
    kind = block_type if block_type in ("image", "document") else ("image" if part.is_image else "document")
    source: dict[str, Any]
    match part.source:
        case "url":
            source = {"type": "url", "url": part.data}
        case "file":
            source = {"type": "file", "file_id": part.data}
        case _:
            source = _data_source(part, part.mime if place == "export" else sent_type(part))
    block = {"type": kind, "source": source}
    if kind == "document" and part.name:
        block["title"] = part.name
    return add_extra(block, extra)


def _is_too_wide(part: Media) -> bool:
    """Return whether a side of an image has more pixels than the API takes."""
    size = image_size(part.data) if part.is_image and part.source == "base64" else None
    return size is not None and max(size) > _PIXELS_MAX


def _data_source(part: Media, mime: str) -> dict[str, Any]:
    """Return the source of media sent as data. Plain text travels as text if its base64 decodes to exactly that."""
    if part.mime == "text/plain":
        try:
            raw = b64decode(part.data, validate=True)
            if b64encode(raw).decode() == part.data:
                return {"type": "text", "media_type": part.mime, "data": raw.decode()}
        except (binascii.Error, ValueError):
            pass
    return {"type": "base64", "media_type": mime, "data": part.data}


MOST = 4
"""Cache marks in one request, including the caller's."""
STEP = 15
"""The largest distance between marks, in blocks. It is below the 20 that the API looks back, because a block may take
no mark.
"""

_MARKED = frozenset({"text", "image", "document", "tool_use", "tool_result"})


def mark(system: list[dict[str, Any]], tools: list[dict[str, Any]], messages: list[dict[str, Any]]) -> None:
    """Put cache marks into these containers. Existing marks stay and count."""
    left = MOST - sum(block.get("cache_control") is not None for block in (*tools, *system))
    blocks = _newest(messages, STEP * MOST)
    places = _places(blocks)
    # The tail is worth most, because the next request reads it. The fixed part comes next, then the steps between.
    if left > 0 and places:
        _put(blocks[places[0]])
        left -= 1
    end = _end(system, tools)
    if left > 0 and end is not None and end.get("cache_control") is None:
        _put(end)
        left -= 1
    for place in places[1 : 1 + max(left, 0)]:
        _put(blocks[place])


def first_marked(messages: Sequence[dict[str, Any]], start: int) -> int:
    """Return the index of the first message, from `start` on, that `mark` may change."""
    blocks = 0
    for index in range(len(messages) - 1, start - 1, -1):
        if messages[index].get("clear_at") != "next_user_message":
            blocks += len(messages[index]["content"])
        if blocks >= STEP * MOST:
            return index
    return start


def _newest(messages: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Return the newest blocks of these messages, newest first; at least `count` if there are so many."""
    blocks: list[dict[str, Any]] = []
    for message in reversed(messages):
        if message.get("clear_at") == "next_user_message":
            continue  # The API refuses marks here: the message leaves the prompt after one turn.
        blocks.extend(reversed(message["content"]))
        if len(blocks) >= count:
            break
    return blocks


def _places(blocks: list[dict[str, Any]]) -> list[int]:
    """Return the positions to mark, counted from the newest block.

    The first is the newest block that takes a mark; then steps of at most STEP follow.
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
    """Return the last block or tool before the messages, if it takes a mark."""
    for block in reversed(system):
        return block if _takes_mark(block) else None
    # A tool with a deferred definition takes no mark.
    return next((tool for tool in reversed(tools) if not tool.get("defer_loading")), None)


def _takes_mark(block: dict[str, Any]) -> bool:
    return block.get("type") in _MARKED and block.get("text") != ""


def _put(block: dict[str, Any]) -> None:
    block["cache_control"] = {"type": "ephemeral"}
