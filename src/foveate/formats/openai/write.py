"""From messages to OpenAI's chat completions.

What this format cannot carry is left out here: error states, signatures, reasoning of other providers, foreign blocks
and fields. Tool messages hold text alone, so what a result shows beside it follows in a user message after the last
tool message in a row: between the calls of an assistant and their answers no other role may speak.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ...core.messages import Content, Media, Message, Opaque, Part, Reasoning, Text, ToolCall
from ...core.profiles import Profile
from ...core.view import Entry
from ..blocks import IMAGES, Place, fields_of, is_sendable, kind_of, untold, with_extra
from ..json import object_of
from .read import NAME, TOOL_CALL

__all__ = ["SHOWN", "content_of", "cut", "has_place", "write", "write_view"]

# MODULEDOC """The parts of a content of OpenAI's chat completions, written: text, images, sounds, files, refusals.
#
# It does not know messages, only the place in one that a part is written for.
# """
_LARGEST = 50_000_000
"""Characters of base64 that a request could hold at all."""


def content_of(parts: Iterable[Part], strict: bool, place: Place) -> str | list[dict[str, Any]]:
    """The content of a message: a string where it is one plain text, otherwise a list of parts."""
    content = [wire for part in parts if (wire := _part(part, strict, place)) is not None]
    if len(content) == 1 and content[0].get("type") == "text" and content[0].keys() == {"type", "text"}:
        text: str = content[0]["text"]
        return text
    return content


def _part(part: Part, strict: bool, place: Place) -> dict[str, Any] | None:
    match part:
        case Text():
            extra = {} if strict else fields_of(part.extra, NAME)
            refused = extra.pop("type", None) == "refusal" and place in ("export", "assistant")
            kind = "refusal" if refused else "text"
            return with_extra({"type": kind, kind: part.text}, extra)
        case Media():
            return _media(part, strict) if has_place(part, place) else {"type": "text", "text": untold(part)}
        case Opaque() if part.format == NAME and not part.kind.startswith(TOOL_CALL):
            # A system prompt is text, and strict servers know no parts but the common ones.
            return None if strict or place == "system" else object_of(part.body)
        case _:
            return None  # Foreign, or with a place of its own: calls, results, reasoning.


def _media(part: Media, strict: bool) -> dict[str, Any]:
    extra = {} if strict else fields_of(part.extra, NAME)
    asked = extra.pop("type", None)
    data = f"data:{part.mime};base64,{part.data}"
    inside: dict[str, Any]
    if part.source == "file":
        kind, inside = "file", {"file_id": part.data}
    elif part.source == "url":
        kind, inside = "image_url", {"url": part.data}
    elif asked == "image_url" or (part.is_image and asked != "file"):
        kind, inside = "image_url", {"url": data}
    elif part.mime.startswith("audio/") and asked != "file":
        kind, inside = "input_audio", {"data": part.data, "format": part.mime.removeprefix("audio/")}
    else:
        kind, inside = "file", {"file_data": data}
    if kind == "file" and part.name:
        inside["filename"] = part.name
    nested = extra.pop(kind, None)
    if isinstance(nested, dict):
        with_extra(inside, nested)
    return with_extra({"type": kind, kind: inside}, extra)


def has_place(part: Media, place: Place) -> bool:
    """Whether this can be shown there: no URL but an image's ever, and in a request only what the user's side shows."""
    if part.source == "url" and not part.is_image:
        return False
    if place == "export":
        return part.source != "file" or part.extra is None or part.extra.format == NAME
    return place == "user" and is_sendable(part, NAME, IMAGES if part.is_image else (part.mime,), _LARGEST)


SHOWN = "[From the tool results above]"
"""What a user message begins with that shows the media of tool results."""

_UNNAMABLE = re.compile(r"[\s<|\\/>]")
"""Characters that a speaker's name may not have."""


def write(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Wire messages that carry these messages."""
    wires: list[dict[str, Any]] = []
    shown: list[Media] = []
    for message in messages:
        if shown and message.role != "tool":
            wires.append(_showing(shown, False, "export"))
            shown = []
        wires.append(_wire(message, False, shown, export=True))
    return [*wires, _showing(shown, False, "export")] if shown else wires


def cut(entries: Sequence[Entry], start: int, profile: Profile) -> int:
    """Where the group that begins at `start` ends: a run of tool results, where its media have to wait for its end."""
    end = start + 1
    if entries[start].message.role == "tool" and not profile.media_in_results:
        while end < len(entries) and entries[end].message.role == "tool":
            end += 1
    return end


def write_view(
    entries: tuple[Entry, ...], start: int, profile: Profile
) -> list[tuple[dict[str, Any], tuple[Entry, ...]]]:
    """The wire messages of one group, each with the entry it shows; the media of tool results follow as no one's."""
    shown: list[Media] | None = None if profile.media_in_results else []
    wires: list[tuple[dict[str, Any], tuple[Entry, ...]]] = []
    for entry in entries:
        wire = _wire(entry.message, profile.strict, shown, export=False)
        # What this format can say nothing of has no message: an empty one would be refused.
        if wire["role"] == "tool" or wire["content"] or wire.keys() - {"role", "content", "name"}:
            wires.append((wire, (entry,)))
    if shown:
        wires.append((_showing(shown, profile.strict, "user"), ()))
    return wires


def _wire(message: Message, strict: bool, shown: list[Media] | None, *, export: bool) -> dict[str, Any]:
    """One message. Media of a tool result are put aside into `shown`, unless that is None: then they stay."""
    wire: dict[str, Any]
    match message.role:
        case "tool":
            wire = _tool(message, strict, shown, export)
        case "assistant":
            wire = _assistant(message, strict, "export" if export else "assistant")
        case role:
            wire = {"role": role, "content": content_of(message.parts, strict, "export" if export else role)}
    if message.name:
        wire["name"] = message.name if export else _UNNAMABLE.sub("_", message.name)[:64]
    extra = {} if strict else fields_of(message.extra, NAME)
    if extra.get("role") == "developer" and message.role == "system":
        wire["role"] = "developer"
    return with_extra(wire, extra)


def _tool(message: Message, strict: bool, shown: list[Media] | None, export: bool) -> dict[str, Any]:
    seen: Place = (
        "export" if export else "user"
    )  # Wherever the media of a result are shown, the user's side shows them.
    here: Place = seen if export or shown is None else "system"
    result = message.result
    if result is None:  # Not a message that any format reads, but one that can be built.
        return {"role": "tool", "tool_call_id": "", "content": content_of(message.parts, strict, here) or ""}
    wire: dict[str, Any] = {"role": "tool", "tool_call_id": result.call_id}
    if shown is not None and any(isinstance(part, Media) for part in result.content):
        aside = [part for part in result.content if isinstance(part, Media) and has_place(part, seen)]
        shown += aside
        wire["content"] = "\n".join([text for part in result.content if (text := _told(part, aside))])
    else:
        wire["content"] = content_of(result.content, strict, here) or ""
    if result.name and not strict:
        wire["name"] = result.name
    return wire if strict else with_extra(wire, fields_of(result.extra, NAME))


def _told(part: Content, aside: Sequence[Media]) -> str:
    """The text for a part of a tool result whose media are shown elsewhere, those of them that are."""
    match part:
        case Text():
            return part.text
        case Media():
            return f"[{kind_of(part)}: shown in the next user message]" if part in aside else untold(part)
        case _:
            return ""


def _assistant(message: Message, strict: bool, place: Place) -> dict[str, Any]:
    said: list[Part] = []
    calls: list[dict[str, Any]] = []
    thought: dict[str, str] = {}
    for part in message.parts:
        match part:
            case ToolCall():
                calls.append(_call(part, strict))
            case Reasoning():
                # Strict servers know no reasoning in a message, and a signature or a cipher has no place in any.
                if part.format == NAME and not strict and not part.encrypted:
                    other = fields_of(part.extra, NAME).get("type") == "reasoning"
                    field = "reasoning" if other else "reasoning_content"
                    thought[field] = f"{thought[field]}\n{part.text}" if field in thought else part.text
            case Opaque() if part.kind.startswith(TOOL_CALL):
                if part.format == NAME and not strict and (call := object_of(part.body)) is not None:
                    calls.append(call)
            case _:
                said.append(part)
    content = content_of(said, strict, place)
    wire: dict[str, Any] = {"role": "assistant", "content": content}
    match content:
        case "":
            wire["content"] = [{"type": "text", "text": ""}]  # As "" alone it would be read as nothing said.
        case []:
            wire["content"] = None if calls else ""
        case [{"type": "refusal", "refusal": str(refusal), **rest}] if refusal and not rest:
            wire["content"], wire["refusal"] = None, refusal
    wire.update(thought)
    if calls:
        wire["tool_calls"] = calls
    return wire


def _call(part: ToolCall, strict: bool) -> dict[str, Any]:
    extra = {} if strict else fields_of(part.extra, NAME)
    kind = extra.pop("type", None)
    if kind == "custom":
        inside = {"name": part.name, "input": _free_text(part.arguments)}
    else:
        kind, inside = "function", {"name": part.name, "arguments": part.arguments}
    nested = extra.pop(kind, None)
    if isinstance(nested, dict):
        with_extra(inside, nested)
    return with_extra({"id": part.call_id, "type": kind, kind: inside}, extra)


def _free_text(arguments: str) -> str:
    """The text a custom tool was called with."""
    match object_of(arguments):
        case {"input": str(text), **rest} if not rest:
            return text
        case _:
            return arguments


def _showing(shown: Sequence[Media], strict: bool, place: Place) -> dict[str, Any]:
    """The user message that shows what tool results could not."""
    content = content_of([Text(SHOWN), *shown], strict, place)
    return {"role": "user", "content": content}
