"""From messages to OpenAI's chat completions.

What this format cannot carry is left out here: error states, signatures, reasoning of other providers, foreign blocks
and fields. Tool messages hold text alone, so what a result shows beside it follows in a user message after the last
tool message in a row: between the calls of an assistant and their answers no other role may speak.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..core.messages import Content, Media, Message, Opaque, Part, Reasoning, Text, ToolCall
from ..core.profiles import Profile
from ..core.view import Entry
from ._blocks import fields_of
from ._json import object_of
from ._openai_read import NAME, TOOL_CALL

__all__ = ["SHOWN", "cut", "write", "write_view"]

SHOWN = "[From the tool results above]"
"""What a user message begins with that shows the media of tool results."""


def write(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Wire messages that carry these messages."""
    wires: list[dict[str, Any]] = []
    shown: list[Media] = []
    for message in messages:
        if shown and message.role != "tool":
            wires.append(_showing(shown, False))
            shown = []
        wires.append(_wire(message, False, shown, True))
    return [*wires, _showing(shown, False)] if shown else wires


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
        wire = _wire(entry.message, profile.strict, shown, False)
        # An assistant of whom this format can say nothing, a user's list without a part: such messages would be
        # refused.
        if wire["role"] == "tool" or wire["content"] or wire.keys() - {"role", "content", "name"}:
            wires.append((wire, (entry,)))
    if shown:
        wires.append((_showing(shown, profile.strict), ()))
    return wires


def _wire(message: Message, strict: bool, shown: list[Media] | None, export: bool) -> dict[str, Any]:
    """One message. Media of a tool result are put aside into `shown`, unless that is None: then they stay.

    Other roles than a user's show media in an `export` alone, as no request may hold them.
    """
    wire: dict[str, Any]
    match message.role:
        case "tool":
            wire = _tool(message, strict, shown)
        case "assistant":
            wire = _assistant(message, strict, export)
        case _:
            wire = {"role": message.role, "content": _content(message.parts, strict, export or message.role == "user")}
    if message.name:
        wire["name"] = message.name
    extra = {} if strict else fields_of(message.extra, NAME)
    if extra.get("role") == "developer" and message.role == "system":
        wire["role"] = "developer"
    return _with(wire, extra)


def _tool(message: Message, strict: bool, shown: list[Media] | None) -> dict[str, Any]:
    result = message.result
    if result is None:  # Not a message that any format reads, but one that can be built.
        return {"role": "tool", "tool_call_id": "", "content": _content(message.parts, strict) or ""}
    wire: dict[str, Any] = {"role": "tool", "tool_call_id": result.call_id}
    aside = [part for part in result.content if isinstance(part, Media)]
    if shown is not None and aside:
        shown += aside
        wire["content"] = "\n".join([text for part in result.content if (text := _told(part))])
    else:
        wire["content"] = _content(result.content, strict) or ""
    if result.name and not strict:
        wire["name"] = result.name
    return wire if strict else _with(wire, fields_of(result.extra, NAME))


def _told(part: Content) -> str:
    """One line for a part of a tool result whose media are shown elsewhere."""
    match part:
        case Text():
            return part.text
        case Media():
            return f"[{_kind(part)}: shown in the next user message]"
        case _:
            return ""


def _assistant(message: Message, strict: bool, export: bool) -> dict[str, Any]:
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
                if part.format == NAME and (call := object_of(part.body)) is not None:
                    calls.append(call)
            case _:
                said.append(part)
    content = _content(said, strict, export)
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
        _with(inside, nested)
    return _with({"id": part.call_id, "type": kind, kind: inside}, extra)


def _free_text(arguments: str) -> str:
    """The text a custom tool was called with."""
    match object_of(arguments):
        case {"input": str(text), **rest} if not rest:
            return text
        case _:
            return arguments


def _content(parts: Iterable[Part], strict: bool, media: bool = True) -> str | list[dict[str, Any]]:
    """The content of a message: a string where it is one plain text, otherwise a list of parts."""
    content = [wire for part in parts if (wire := _part(part, strict, media)) is not None]
    if len(content) == 1 and content[0].get("type") == "text" and content[0].keys() == {"type", "text"}:
        text: str = content[0]["text"]
        return text
    return content


def _part(part: Part, strict: bool, media: bool) -> dict[str, Any] | None:
    match part:
        case Text():
            extra = {} if strict else fields_of(part.extra, NAME)
            kind = "refusal" if extra.pop("type", None) == "refusal" else "text"
            return _with({"type": kind, kind: part.text}, extra)
        case Media():
            return _media(part, strict) if media else _untold(part)
        case Opaque():
            return object_of(part.body) if part.format == NAME and not part.kind.startswith(TOOL_CALL) else None
        case _:
            return None  # Calls, results and reasoning have places of their own.


def _media(part: Media, strict: bool) -> dict[str, Any]:
    extra = {} if strict else fields_of(part.extra, NAME)
    asked = extra.pop("type", None)
    data = f"data:{part.mime};base64,{part.data}"
    inside: dict[str, Any]
    if part.source == "file":
        if part.extra is not None and part.extra.format != NAME:
            return _untold(part)  # A file kept by another provider.
        kind, inside = "file", {"file_id": part.data}
    elif part.source == "url":
        if not part.is_image:
            return _untold(part)
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
        _with(inside, nested)
    return _with({"type": kind, kind: inside}, extra)


def _untold(part: Media) -> dict[str, Any]:
    """Words for media that this provider has no place for."""
    what = " ".join(filter(None, (_kind(part).lower(), part.name, part.data if part.source == "url" else part.mime)))
    return {"type": "text", "text": f"[Not shown here: {what}]"}


def _kind(part: Media) -> str:
    if part.is_image:
        return "Image"
    return "Sound" if part.mime.startswith("audio/") else "Document"


def _showing(shown: Sequence[Media], strict: bool) -> dict[str, Any]:
    """The user message that shows what tool results could not."""
    parts = [{"type": "text", "text": SHOWN}, *[_media(part, strict) for part in shown]]
    return {"role": "user", "content": parts}


def _with(wire: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """The fields kept for this format, behind the ones that say what the message says now."""
    for key, value in extra.items():
        wire.setdefault(key, value)
    return wire
