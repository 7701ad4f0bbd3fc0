"""Writing of messages of OpenAI's chat completions.

The writer leaves out what this format cannot carry: error states, signatures, reasoning of other providers, foreign
blocks and fields. Tool messages hold only text, so the media of a result follow in a user message after the last
consecutive tool message: no other role may speak between an assistant's calls and their results.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from ...core.messages import Content, Media, Message, Opaque, Part, Reasoning, Text, ToolCall
from ...core.profiles import Profile
from ...core.system_messages import NO_REPLY, sent_role
from ...core.view import Entry
from ..blocks import (
    IMAGES,
    Place,
    add_extra,
    extra_fields,
    file_name,
    free_text,
    hidden_media_text,
    is_sendable,
    media_label,
    sent_fields,
    sent_type,
    sound_format,
)
from ..json import parse_object
from .read import MESSAGE_KEYS, NAME, TOOL_CALL

__all__ = ["SHOWN", "content_of", "cut", "has_place", "write", "write_view"]

_LARGEST = 50_000_000
"""The most characters of base64 that a request can hold."""


def content_of(parts: Iterable[Part], strict: bool, place: Place) -> str | list[dict[str, Any]]:
    """Return the content of a message: a string if it is one plain text, otherwise a list of parts."""
    content = [wire for part in parts if (wire := _part(part, strict, place)) is not None]
    if len(content) == 1 and content[0].get("type") == "text" and content[0].keys() == {"type", "text"}:
        text: str = content[0]["text"]
        return text
    return content


def _part(part: Part, strict: bool, place: Place) -> dict[str, Any] | None:
    match part:
        case Text():
            extra = {} if strict else extra_fields(part.extra, NAME)
            refused = extra.pop("type", None) == "refusal" and place in ("export", "assistant")
            kind = "refusal" if refused else "text"
            return add_extra({"type": kind, kind: part.text}, extra)
        case Media():
            if has_place(part, place):
                return _media(part, strict, place)
            return {"type": "text", "text": hidden_media_text(part)}
        case Opaque() if part.format == NAME and not part.kind.startswith(TOOL_CALL):
            # A system prompt is text, and strict servers know only the common parts.
            return None if strict or place == "system" else parse_object(part.body)
        case _:
            return None  # From another format, or in a field of its own: calls, results, reasoning.


def _media(part: Media, strict: bool, place: Place) -> dict[str, Any]:
    extra = {} if strict else extra_fields(part.extra, NAME)
    wire_type = extra.pop("type", None)
    data = f"data:{part.mime if place == 'export' else sent_type(part)};base64,{part.data}"
    inside: dict[str, Any]
    if part.source == "file":
        kind, inside = "file", {"file_id": part.data}
    elif part.source == "url":
        kind, inside = "image_url", {"url": part.data}
    elif wire_type == "image_url" or (part.is_image and wire_type != "file"):
        kind, inside = "image_url", {"url": data}
    elif part.mime.startswith("audio/") and wire_type != "file":
        kind, inside = "input_audio", {"data": part.data, "format": sound_format(part)}
    else:
        kind, inside = "file", {"file_data": data}
    if kind == "file" and place != "export" and part.source == "base64":
        inside["filename"] = file_name(part)
    elif kind == "file" and part.name:
        inside["filename"] = part.name
    nested = extra.pop(kind, None)
    if isinstance(nested, dict):
        add_extra(inside, nested)
    return add_extra({"type": kind, kind: inside}, extra)


def has_place(part: Media, place: Place) -> bool:
    """Return whether these media can be shown there.

    Only images can have a URL. In a request only the user's side shows media: images, sounds, PDF files, and files that
    came in this format. OpenAI itself reads no others (its page "File inputs").
    """
    if part.source == "url" and not part.is_image:
        return False
    if place == "export":
        return part.source != "file" or part.extra is None or part.extra.format == NAME
    if part.is_image or part.source != "base64":
        mimes: Collection[str] = IMAGES
    else:
        is_read = part.mime == "application/pdf" or part.mime.startswith("audio/")
        mimes = (part.mime,) if is_read or extra_fields(part.extra, NAME).get("type") else ()
    return place == "user" and is_sendable(part, NAME, mimes, _LARGEST)


SHOWN = "[From the tool results above]"
"""The first text of a user message that shows the media of tool results."""

_UNNAMABLE = re.compile(r"[\s<|\\/>]")
"""Characters that a speaker's name must not have."""


def write(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return wire messages for these messages."""
    wires: list[dict[str, Any]] = []
    shown: list[Media] = []
    for message in messages:
        if shown and message.role != "tool":
            wires.append(_media_message(shown, False, "export"))
            shown = []
        wires.append(_wire(message, None, shown))
    return [*wires, _media_message(shown, False, "export")] if shown else wires


def cut(entries: Sequence[Entry], start: int, profile: Profile) -> int:
    """Return the end of the group that begins at `start`.

    Consecutive tool results form a group if their media must wait for the last.
    """
    end = start + 1
    if entries[start].message.role == "tool" and not profile.media_in_results:
        while end < len(entries) and entries[end].message.role == "tool":
            end += 1
    return end


def write_view(
    entries: tuple[Entry, ...], start: int, profile: Profile
) -> list[tuple[dict[str, Any], tuple[Entry, ...]]]:
    """Return the wire messages of one group, each with the entry it shows.

    The message with the media of tool results has no entry.
    """
    shown: list[Media] | None = None if profile.media_in_results else []
    wires: list[tuple[dict[str, Any], tuple[Entry, ...]]] = []
    for entry in entries:
        message = entry.message
        if (role := sent_role(entry)) != message.role:
            message = Message(role, message.parts, message.name)
        wire = _wire(message, profile, shown)
        # Leave out a message without content that this format can express: the API refuses empty messages.
        if wire["role"] == "tool" or wire["content"] or wire.keys() - {"role", "content", "name"}:
            if profile.plain_contents:
                _make_plain(wire)
            wires.append((wire, (entry,)))
    if shown and profile.alternates:  # The last side that spoke before the calls is the user's.
        wires.append(({"role": "assistant", "content": NO_REPLY}, ()))
    if shown:
        wires.append((_media_message(shown, profile.strict, "user"), ()))
    return wires


def _make_plain(wire: dict[str, Any]) -> None:
    """Make the content of a message a text if it is null or a list of texts. Texts are joined as vLLM joins them."""
    content = wire["content"]
    if content is None:
        wire["content"] = wire.pop("refusal", None) or ""
    elif isinstance(content, list) and all(part.get("type") in ("text", "refusal") for part in content):
        wire["content"] = "\n".join([part[part["type"]] for part in content])


def _wire(message: Message, profile: Profile | None, shown: list[Media] | None) -> dict[str, Any]:
    """Write one message; without a profile for an export. Media of a tool result go to `shown`; if that is None, they
    stay.
    """
    export, strict = profile is None, profile is not None and profile.strict
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
    extra = sent_fields(message.extra, NAME, MESSAGE_KEYS, profile) if profile else extra_fields(message.extra, NAME)
    if extra.get("role") == "developer" and message.role == "system":
        wire["role"] = "developer"
    return add_extra(wire, extra)


def _tool(message: Message, strict: bool, shown: list[Media] | None, export: bool) -> dict[str, Any]:
    seen: Place = "export" if export else "user"  # The user's side shows the media of a result.
    here: Place = seen if export or shown is None else "system"
    result = message.result
    if result is None:  # No format reads such a message, but a caller can build it.
        return {"role": "tool", "tool_call_id": "", "content": content_of(message.parts, strict, here) or ""}
    wire: dict[str, Any] = {"role": "tool", "tool_call_id": result.call_id}
    if shown is not None and any(isinstance(part, Media) for part in result.content):
        aside = [part for part in result.content if isinstance(part, Media) and has_place(part, seen)]
        shown += aside
        wire["content"] = "\n".join([text for part in result.content if (text := _result_text(part, aside))])
    else:
        wire["content"] = content_of(result.content, strict, here) or ""
    if result.name and not strict:
        wire["name"] = result.name
    return wire if strict else add_extra(wire, extra_fields(result.extra, NAME))


def _result_text(part: Content, aside: Sequence[Media]) -> str:
    """Return the text for a part of a tool result. `aside` are the media shown in the next user message."""
    match part:
        case Text():
            return part.text
        case Media():
            return (
                f"[{media_label(part)}: shown in the next user message]" if part in aside else hidden_media_text(part)
            )
        case _:
            return ""


def _assistant(message: Message, strict: bool, place: Place) -> dict[str, Any]:
    others: list[Part] = []
    calls: list[dict[str, Any]] = []
    reasoning: dict[str, str] = {}
    spoken: object = None
    for part in message.parts:
        match part:
            case Text() if (audio := _audio(part)) is not None:
                if place == "export" and spoken is None and not strict:
                    spoken = audio
                else:
                    others.append(Text(part.text))
            case ToolCall():
                calls.append(_call(part, strict))
            case Reasoning():
                # Strict servers know no reasoning in a message; signatures and encrypted reasoning have no field at
                # all.
                if part.format == NAME and not strict and not part.encrypted:
                    other = extra_fields(part.extra, NAME).get("type") == "reasoning"
                    field = "reasoning" if other else "reasoning_content"
                    reasoning[field] = f"{reasoning[field]}\n{part.text}" if field in reasoning else part.text
            case Opaque() if part.kind.startswith(TOOL_CALL):
                if part.format == NAME and not strict and (call := parse_object(part.body)) is not None:
                    calls.append(call)
            case _:
                others.append(part)
    content = content_of(others, strict, place)
    wire: dict[str, Any] = {"role": "assistant", "content": content}
    match content:
        case "":
            wire["content"] = [{"type": "text", "text": ""}]  # Readers take "" alone as empty.
        case []:
            wire["content"] = None if calls or spoken else ""
        case [{"type": "refusal", "refusal": str(refusal), **rest}] if refusal and not rest:
            wire["content"], wire["refusal"] = None, refusal
    wire.update(reasoning)
    if spoken is not None:
        wire["audio"] = spoken
    if calls:
        wire["tool_calls"] = calls
    return wire


def _audio(part: Text) -> dict[str, Any] | None:
    """Return the spoken reply that a text is the transcript of; None if it is none.

    A request has the transcript: OpenAI deletes the audio at its `expires_at`, and then refuses its id.
    """
    extra = extra_fields(part.extra, NAME) if part.extra is not None else {}
    audio = extra.get("audio") if extra.get("type") == "audio" else None
    return audio if isinstance(audio, dict) else None


def _call(part: ToolCall, strict: bool) -> dict[str, Any]:
    extra = {} if strict else extra_fields(part.extra, NAME)
    kind = extra.pop("type", None)
    if kind == "custom":
        inside = {"name": part.name, "input": free_text(part.arguments)}
    else:
        kind, inside = "function", {"name": part.name, "arguments": part.arguments}
    nested = extra.pop(kind, None)
    if isinstance(nested, dict):
        add_extra(inside, nested)
    return add_extra({"id": part.call_id, "type": kind, kind: inside}, extra)


def _media_message(shown: Sequence[Media], strict: bool, place: Place) -> dict[str, Any]:
    """Return the user message that shows the media of tool results."""
    content = content_of([Text(SHOWN), *shown], strict, place)
    return {"role": "user", "content": content}
