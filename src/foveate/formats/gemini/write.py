"""Writing of Gemini's contents.

The rules of the API shape a request: the responses to all calls of one content stand together, in the order of the
calls and with nothing else, in the next content; a content with calls follows the user's side; no part is empty. So a
group of entries is a run of the model's messages with the results behind it, and it decides about names, order and ids.
Media that a function response cannot hold follow in a content of the user's own.

Gemini 3 refuses a call of the current turn without its thought signature. A call that came without one (from another
provider or model, or from the program) gets the value that Google documents for this case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...core.messages import Extra, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from ...core.profiles import Profile
from ...core.server_tools import ServerBlock, follow_uses
from ...core.system_messages import OPENING
from ...core.view import Entry
from ..blocks import Place, add_extra, extra_fields, hidden_media_text, is_sendable, media_label, sent_fields, sent_type
from ..json import parse_object
from .read import CALL, NAME, PLACEHOLDERS, RESPONSE, SIGNATURE

__all__ = ["NOTE", "NO_SIGNATURE", "SHOWN", "cut", "user_note", "write", "write_view"]

NOTE = "[System note]\n"
"""Starts a system message in the middle of a conversation; the API takes it as a user's."""

SHOWN = "[From the function responses above]"
"""The first text of a user's content that shows the media of function responses."""

NO_SIGNATURE = PLACEHOLDERS[0]
"""The signature for a call that has none."""

_IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
_SOUNDS = frozenset(f"audio/{kind}" for kind in ("wav", "mp3", "mpeg", "aiff", "aac", "ogg", "flac", "mp4", "m4a"))
_VIDEOS = frozenset(f"video/{kind}" for kind in ("mp4", "mpeg", "quicktime", "mov", "avi", "x-flv", "mpg", "webm"))
_VIDEOS |= {"video/wmv", "video/3gpp"}
_TEXTS = frozenset(f"text/{kind}" for kind in ("plain", "html", "css", "csv", "xml", "rtf", "md", "markdown"))
_READ = _IMAGES | _SOUNDS | _VIDEOS | _TEXTS | {"application/pdf", "text/javascript", "text/x-python"}
"""Media types that the API reads if a request carries the data."""
_READ_IN_RESULTS = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
"""Media types that a function response may hold."""
_LARGEST = 20_000_000
"""The most characters of base64 that a request can hold."""
_ENDINGS = {"png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "webp": "image/webp"}
_ENDINGS |= {"heic": "image/heic", "pdf": "application/pdf", "mp4": "video/mp4", "mp3": "audio/mp3"}


def write(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return contents for these messages. Consecutive function responses share one."""
    wires: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    results: list[dict[str, Any]] | None = None  # The parts of the content that can take more responses.
    for message in messages:
        extra = extra_fields(message.extra, NAME)
        if message.role != "tool":
            names.update((call.call_id, call.name) for call in message.calls)
            own = extra.pop("role", "") if message.role == "user" else ""
            role = {"assistant": "model"}.get(message.role, own or message.role)
            wires.append(add_extra({"role": role, "parts": _parts(message.parts, False, "export")}, extra))
            results = None
            continue
        parts = [_result(part, names, True, None) for part in message.parts if isinstance(part, ToolResult)]
        if results is not None and not extra:
            results.extend(parts)
        else:
            wire = {"role": "function" if extra.pop("role", "") == "function" else "user", "parts": parts}
            wires.append(add_extra(wire, extra))
            results = parts
    return wires


def cut(entries: Sequence[Entry], start: int, profile: Profile) -> int:
    """Return the end of the group that begins at `start`: the entries that are written together.

    Leading system messages form one group. So do the model's messages and the results behind them, and so do entries of
    the user's side that were appended in one turn: a later turn begins a new content, and what was sent stays.
    """
    end, size = start + 1, len(entries)
    role = entries[start].message.role
    if start == 0 and role == "system":
        while end < size and entries[end].message.role == "system":
            end += 1
    elif role in ("assistant", "tool"):
        while end < size and role == "assistant" and entries[end].message.role == "assistant":
            end += 1
        while end < size and entries[end].message.role == "tool":
            end += 1
    else:
        turn = entries[start].stamp.turn
        while end < size and entries[end].message.role in ("user", "system") and entries[end].stamp.turn == turn:
            end += 1
    return end


def write_view(
    entries: tuple[Entry, ...], start: int, profile: Profile
) -> list[tuple[dict[str, Any], tuple[Entry, ...]]]:
    """Return the contents of one group, each with the entries it shows.

    Leading system messages have the role system. A content that the API requires between others has no entries.
    """
    strict = profile.strict
    if start == 0 and entries[0].message.role == "system":
        leading = [({"role": "system", "parts": _parts(e.message.parts, strict, "system")}, (e,)) for e in entries]
        return [each for each in leading if each[0]["parts"]]
    if entries[0].message.role in ("assistant", "tool"):
        return list(_turn(entries, profile))
    parts: list[dict[str, Any]] = []
    extra: dict[str, Any] = {}
    for entry in entries:
        message = entry.message
        if message.role == "system":
            parts += _note(_parts(message.parts, strict, "system"))
        else:
            parts += _parts(message.parts, strict, "user")
        extra = {**_kept_of_content(message.extra, profile), **extra}
    return [(add_extra({"role": "user", "parts": parts}, extra), entries)] if parts else []


def user_note(text: str = OPENING) -> dict[str, Any]:
    """Return a user's content that stands where the API requires the user's side."""
    return {"role": "user", "parts": [{"text": text}]}


def _turn(entries: tuple[Entry, ...], profile: Profile) -> Iterator[tuple[dict[str, Any], tuple[Entry, ...]]]:
    """Yield the contents of the model's messages, and then the content with the results of their calls."""
    calls: tuple[ToolCall, ...] = ()
    open_uses: dict[str, ServerBlock] = {}
    content: dict[str, Any] | None = None
    shown_by: tuple[Entry, ...] = ()
    results = [entry for entry in entries if entry.message.role == "tool"]
    for entry in entries[: len(entries) - len(results)]:
        message = entry.message
        parts = _parts(message.parts, profile.strict, "assistant")
        if not parts:
            continue
        calls = message.calls
        if profile.signed_calls:
            _sign(parts)
        fields = _kept_of_content(message.extra, profile)
        if content is not None and calls and open_uses:  # Nothing may come between a server tool's use and its result.
            content["parts"] += parts
            content, shown_by = add_extra(content, fields), (*shown_by, entry)
        else:
            if content is not None:
                yield content, shown_by
                if calls:  # A function call must follow the user's side.
                    yield user_note(), ()
            content, shown_by = add_extra({"role": "model", "parts": parts}, fields), (entry,)
        follow_uses(message, str(entry.position), open_uses)
    if content is not None:
        yield content, shown_by
    if not results:
        return
    order = {call.call_id: place for place, call in enumerate(calls)}
    results.sort(key=lambda entry: order.get(_call_id(entry), len(order)))
    names = {call.call_id: call.name for call in calls}
    nameless = {call.call_id for call in calls if not _has_id(call.extra, CALL)}
    shown: list[Media] = []
    wires: list[dict[str, Any]] = []
    for entry in results:
        for part in entry.message.parts:
            if isinstance(part, ToolResult):
                has_id = part.call_id not in nameless
                wires.append(
                    _result(part, names, has_id, shown, strict=profile.strict, inside=profile.media_in_results)
                )
    yield {"role": "user", "parts": wires}, tuple(results)
    if shown:
        content = {"role": "user", "parts": _parts([Text(SHOWN), *shown], profile.strict, "user")}
        yield content, ()


def _call_id(entry: Entry) -> str:
    result = entry.message.result
    return result.call_id if result is not None else ""


def _sign(parts: Sequence[dict[str, Any]]) -> None:
    """Give the first call of a content a signature, if it has none. The API requires no other call to have one."""
    first = next((part for part in parts if CALL in part), None)
    if first is not None and not first.get(SIGNATURE):
        first[SIGNATURE] = NO_SIGNATURE


def _has_id(extra: Extra | None, kind: str) -> bool:
    """Return whether a call or a response of this format came with an id."""
    nested = extra_fields(extra, NAME).get(kind)
    return not (isinstance(nested, dict) and "id" in nested)


def _kept_of_content(extra: Extra | None, profile: Profile) -> dict[str, Any]:
    """Return the kept fields of a content that a request may hold: the API knows `role` and `parts` alone, and refuses
    others (`Unknown name "id" at 'contents[0]': Cannot find field`).
    """
    fields = sent_fields(extra, NAME, (), profile)
    fields.pop("role", None)
    return fields


def _kept(extra: Extra | None, strict: bool) -> dict[str, Any]:
    """Return the kept fields of a part; for a strict server, only those that the API documents."""
    fields = extra_fields(extra, NAME)
    documented = (SIGNATURE, "thought", CALL, RESPONSE, "inlineData", "fileData")
    return {key: fields[key] for key in documented if key in fields} if strict else fields


def _note(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mark a system message that travels as the user's."""
    if parts:
        parts[0]["text"] = NOTE + parts[0]["text"]
    return parts


def _parts(parts: Iterable[Part], strict: bool, place: Place) -> list[dict[str, Any]]:
    """Return the parts of a content. An export keeps everything that the format can express."""
    return [wire for part in parts if (wire := _part(part, strict, place)) is not None]


def _part(part: Part, strict: bool, place: Place) -> dict[str, Any] | None:
    match part:
        case Text():
            if place != "export" and not part.text.strip():
                return None
            return add_extra({"text": part.text}, _kept(part.extra, strict))
        case Media():
            return _media(part, strict, place)
        case ToolCall():
            return _call(part, strict)
        case ToolResult():
            return _result(part, {}, True, None)
        case Reasoning():
            if part.format != NAME:
                return None  # From another provider, or of unknown origin.
            return _thought(part, strict)
        case Opaque():  # Strict gateways know only the common parts, and a system prompt is text.
            return parse_object(part.body) if part.format == NAME and not strict and place != "system" else None


def _thought(part: Reasoning, strict: bool) -> dict[str, Any]:
    extra = _kept(part.extra, strict)
    wire: dict[str, Any] = {"text": part.text}
    if extra.pop("thought", bool(part.text) or not part.signature):
        wire["thought"] = True
    if part.signature:
        wire[SIGNATURE] = part.signature
    return add_extra(wire, extra)


def _call(part: ToolCall, strict: bool) -> dict[str, Any]:
    arguments = parse_object(part.arguments)
    if arguments is None:
        arguments = {"_arguments": part.arguments}  # Arguments must be an object, so others are wrapped.
    extra = _kept(part.extra, strict)
    nested = extra.pop(CALL, {})
    inner = {"name": part.name, "args": arguments}
    if "id" not in nested:
        inner = {"id": part.call_id, **inner}
    return add_extra({CALL: _inside(inner, nested, strict)}, extra)


def _inside(inner: dict[str, Any], nested: dict[str, Any], strict: bool) -> dict[str, Any]:
    """Add the kept fields of the object inside a part; `id` and `response` are marks of this format."""
    if not strict:
        add_extra(inner, {key: value for key, value in nested.items() if key not in ("id", "response")})
    return inner


def _result(
    part: ToolResult,
    names: dict[str, str],
    has_id: bool,
    shown: list[Media] | None,
    *,
    strict: bool = False,
    inside: bool = True,
) -> dict[str, Any]:
    """Write a function response. Media that it cannot hold go to `shown`; None means an export, which holds all.

    `has_id`: the call has an id. `inside`: the model takes media in a response.
    """
    extra = _kept(part.extra, strict)
    nested = extra.pop(RESPONSE, {})
    texts: list[str] = []
    media: list[dict[str, Any]] = []
    for item in part.content:
        if isinstance(item, Text):
            texts.append(item.text)
        elif isinstance(item, Opaque):
            media += _parts([item], strict, "user")
        elif shown is None or (
            inside and item.source == "base64" and is_sendable(item, NAME, _READ_IN_RESULTS, _LARGEST)
        ):
            media.append(_media(item, strict, "export" if shown is None else "user"))
        elif _is_shown(item):
            shown.append(item)
            texts.append(f"[{media_label(item)}: shown in the next message of the user]")
        else:
            texts.append(hidden_media_text(item))
    known = names.get(part.call_id, "")
    name = (part.name or known if shown is None else known or part.name) or part.call_id or "unnamed_tool"
    inner: dict[str, Any] = {"name": name, "response": _response(part, texts, nested, shown is None)}
    if has_id and "id" not in nested:
        inner = {"id": part.call_id, **inner}
    if media:
        inner["parts"] = media
    return add_extra({RESPONSE: _inside(inner, nested, strict)}, extra)


def _response(part: ToolResult, texts: list[str], nested: dict[str, Any], is_export: bool) -> dict[str, Any]:
    """Return the object with the text of a response, under the field that it came from."""
    field = "output" if part.state == "ok" else "error"
    if not texts:
        return {} if is_export else {field: "" if part.state == "ok" else "It failed and said nothing."}
    text = "\n".join(texts)
    key = nested.get("response", field)
    if key is None and (whole := parse_object(text)) is not None:
        return whole
    return {key or field: text}


def _is_shown(part: Media) -> bool:
    return is_sendable(part, NAME, _READ, _LARGEST)


def _media(part: Media, strict: bool, place: Place) -> dict[str, Any]:
    if place != "export" and (place == "system" or not _is_shown(part)):
        return {"text": hidden_media_text(part)}
    kind = "inlineData" if part.source == "base64" else "fileData"
    mime = part.mime if place == "export" else sent_type(part)
    if not mime and place != "export":
        mime = _ENDINGS.get(part.data.partition("?")[0].rpartition(".")[2].lower(), "")
    inner: dict[str, Any] = {"mimeType": mime} if mime else {}
    inner["data" if kind == "inlineData" else "fileUri"] = part.data
    if part.name:
        inner["displayName"] = part.name
    extra = _kept(part.extra, strict)
    nested = extra.pop(kind, {})
    return add_extra({kind: _inside(inner, nested if isinstance(nested, dict) else {}, strict)}, extra)
