"""Writing of the items of OpenAI's Responses API.

The writer leaves out what the format cannot carry: names of speakers, reasoning of other providers, error states (but
those of patches), foreign items and fields.

The provider checks some items by their ids: reasoning needs the item that followed it, and a call the reasoning before
it. So the items of a response keep their ids only as long as the response is shown unchanged. Without ids, and with its
encrypted content, reasoning is accepted before any item.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...core.messages import Content, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from ...core.profiles import Profile
from ...core.stamps import is_interrupted
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
    sent_type,
    sound_format,
)
from ..json import parse_object
from .items import APPROVAL, id_key
from .read import APPROVED, CALLS, CONTENT, NAME, STDERR, output_type

__all__ = ["BLANK", "SHOWN", "cut", "without_id", "write", "write_view"]

BLANK = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
"""One pixel. The answer of a computer call must be a screenshot, even if the screenshot is not shown."""

SHOWN = "[In place of the output above]\n"
"""Begins the user message with the text that stands for a screenshot, or for the tools that a search found."""

_LARGEST = 50_000_000
"""The most characters of base64 that a request can hold."""

_NEEDS_ID = frozenset(
    {"item_reference", "image_generation_call", "code_interpreter_call", "program", "program_output"}
    | {"mcp_list_tools", APPROVAL, "mcp_call", "local_shell_call", "local_shell_call_output"}
)
"""Items that the API does not accept without their id."""

_MESSAGE_KEYS = frozenset(
    {"type", "role", "content", "id", "status", "phase", "agent"}  # OpenAI's own
    | {"internal_chat_message_metadata_passthrough"}  # Codex, in requests to the backend of ChatGPT
)
"""Keys of a message that are sent. The API refuses others: `Unknown parameter: 'input[0].timestamp'`.

Sources: the types of OpenAI's SDK 3.57; recorded requests of Codex.
"""

Wire = tuple[dict[str, Any], tuple[Entry, ...]]


def write(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return items for these messages."""
    items: list[dict[str, Any]] = []
    calls: dict[str, ToolCall] = {}
    for message in messages:
        calls.update({call.call_id: call for call in message.calls})
        items += _items(message, calls, strict=False, place="export", keeps_ids=True)
    return items


def cut(entries: Sequence[Entry], start: int, profile: Profile) -> int:
    """Return the end of the group that begins at `start`: a message with calls forms one with their results."""
    end = start + 1
    if entries[start].message.calls:
        while end < len(entries) and entries[end].message.role == "tool":
            end += 1
    return end


def write_view(entries: tuple[Entry, ...], start: int, profile: Profile) -> list[Wire]:
    """Return the items of one group, each with the entry it shows."""
    calls = {call.call_id: call for call in entries[0].message.calls}
    wires: list[Wire] = []
    notes: list[Wire] = []
    for entry in entries:
        message = entry.message
        # A message that an edit or a rule changed is another object than its source.
        keeps_ids = (entry.outline is None or message is entry.outline) and not is_interrupted(entry.stamp.stop)
        items = _items(message, calls, strict=profile.strict, place=message.role, keeps_ids=keeps_ids)
        if not profile.unknown_keys:
            items = [_documented(item) if _is_message(item) else item for item in items]
        own = [
            item for item in items if item.get("content") != [] or not _is_message(item)
        ]  # Empty messages are refused.
        if message.role == "tool" and len(own) > 1:  # No message may stand between a call and its result.
            notes += [(item, ()) for item in own[1:]]
            del own[1:]
        wires += [(item, (entry,)) for item in own]
    return wires + notes


def _is_message(item: Mapping[str, Any]) -> bool:
    """Return whether this is a message. Other items of the developer, such as `additional_tools`, have a role too."""
    return "role" in item and item.get("type", "message") == "message"


def _documented(item: dict[str, Any]) -> dict[str, Any]:
    """Return a message without the keys that the API does not know, and without an id that it did not assign."""
    if item.keys() <= _MESSAGE_KEYS and str(item.get("id", "msg")).startswith("msg"):
        return item
    kept = {key: value for key, value in item.items() if key in _MESSAGE_KEYS}
    return kept if str(kept.get("id", "msg")).startswith("msg") else without_id(kept)


def _items(
    message: Message, calls: Mapping[str, ToolCall], *, strict: bool, place: Place | Role, keeps_ids: bool
) -> list[dict[str, Any]]:
    shown: Place = "export" if place == "export" else "system" if place == "system" else "user"
    match message.role:
        case "assistant":
            items = _response(message.parts, strict, "export" if place == "export" else "assistant")
        case "tool" if message.result is not None:
            call = calls.get(message.result.call_id)
            kind = _call_kind(call) if call else _kind_of_output(message.result)
            items = _result(message.result, kind, strict, shown)
            if call and place != "export":
                items[0] = add_extra(items[0], _program_of(call))
        case _:
            items = _message(message, strict, shown)
    if keeps_ids and not strict:
        return items
    return [item if item.get("type") in _NEEDS_ID else without_id(item) for item in items]


def without_id(item: dict[str, Any]) -> dict[str, Any]:
    """Return the item without its id. A message goes without its status too, which belongs to a whole message."""
    left_out = ("id", "status") if _is_message(item) else ("id",)
    return {key: value for key, value in item.items() if key not in left_out}


def _message(message: Message, strict: bool, place: Place) -> list[dict[str, Any]]:
    """Write a message of the user or the system. Items among its parts stand before it."""
    items = [item for part in message.parts if (item := _own_item(part, strict)) is not None]
    content = [part for part in message.parts if not (isinstance(part, Opaque) and not part.kind.startswith(CONTENT))]
    if items and not content:
        return items
    extra = {} if strict else extra_fields(message.extra, NAME)
    own_role = extra_fields(message.extra, NAME).get("role")
    role = "developer" if own_role == "developer" else "user" if message.role == "tool" else message.role
    extra.pop("role", None)
    is_list = extra.pop("content", None) == "list"
    parts = _content(content, "input_text", strict, place)
    return [*items, add_extra({"role": role, "content": parts if is_list else _short(parts, "input_text")}, extra)]


def _short(content: list[dict[str, Any]], text_type: str) -> str | list[dict[str, Any]]:
    """Return a content as a string if it is one plain text."""
    match content:
        case [{"type": kind, "text": str(text), **rest}] if kind == text_type and not rest:
            return text
        case _:
            return content


def _own_item(part: Part, strict: bool) -> dict[str, Any] | None:
    """Return the item that is kept whole, if this part is one."""
    if not isinstance(part, Opaque) or part.format != NAME or part.kind.startswith(CONTENT) or strict:
        return None
    return parse_object(part.body)


def _response(parts: Sequence[Part], strict: bool, place: Place) -> list[dict[str, Any]]:
    """Write the items of one response."""
    if place != "export":
        while parts and isinstance(parts[-1], Reasoning):  # Reasoning that led to nothing is refused.
            parts = parts[:-1]
    items: list[dict[str, Any]] = []
    is_open = False  # Whether the last item is a message that takes further texts.
    for part in parts:
        if isinstance(part, Text | Media) or (isinstance(part, Opaque) and part.kind.startswith(CONTENT)):
            extra = extra_fields(part.extra, NAME) if isinstance(part, Text) else {}
            own = extra.get("item")
            if not is_open or isinstance(own, dict):
                items.append({"role": "assistant", "content": [], **_item_fields(own, strict)})
                is_open = True
            items[-1]["content"] += _content([part], "output_text", strict, place)
            continue
        is_open = False
        match part:
            case Reasoning() if part.format == NAME:
                items.append(_reasoning(part, strict))
            case ToolCall():
                items.append(_call(part, strict))
            case _ if (item := _own_item(part, strict)) is not None:
                items.append(item)
    for item in items:
        if item.get("role") == "assistant":
            is_list = item.pop("_list", False)
            item["content"] = item["content"] if is_list else _short(item["content"], "output_text")
    return items


def _item_fields(own: object, strict: bool) -> dict[str, Any]:
    """Return the fields of a message of the assistant. `_list` marks a content that stays a list."""
    if not isinstance(own, dict):
        return {}
    fields = {key: value for key, value in own.items() if key != "content" and (not strict or key in ("type", "phase"))}
    return {**fields, "_list": True} if own.get("content") == "list" else fields


def _reasoning(part: Reasoning, strict: bool) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": part.text}] if part.text else []
    extra = {} if strict else extra_fields(part.extra, NAME)
    item: dict[str, Any] = {"type": "reasoning", "summary": extra.get("summary", summary)}
    if part.encrypted:
        item["encrypted_content"] = part.encrypted
    return add_extra(item, extra)


def _call_kind(call: ToolCall) -> str:
    kind = extra_fields(call.extra, NAME).get("type")
    return kind if isinstance(kind, str) else "function_call"


def _program_of(call: ToolCall) -> dict[str, Any]:
    """Return the field by which an output goes to the program that made the call; {} if the model made it."""
    caller = extra_fields(call.extra, NAME).get("caller")
    return {"caller": caller} if isinstance(caller, dict) and caller.get("type") == "program" else {}


def _call(part: ToolCall, strict: bool) -> dict[str, Any]:
    kind = _call_kind(part)
    item: dict[str, Any] = {"type": kind, id_key(kind): part.call_id}
    match kind:
        case "mcp_approval_request":
            item |= {key: value for key, value in (parse_object(part.arguments) or {}).items() if key in APPROVED}
        case "function_call":
            item |= {"name": part.name, "arguments": part.arguments}
        case "custom_tool_call":
            item |= {"name": part.name, "input": free_text(part.arguments)}
        case _ if kind in CALLS and part.arguments != "{}":
            item[CALLS[kind]] = parse_object(part.arguments) or {}
    return item if strict and kind == "function_call" else add_extra(item, extra_fields(part.extra, NAME))


def _kind_of_output(result: ToolResult) -> str:
    """Return the kind of the call that this result answers, by the result alone."""
    kind = extra_fields(result.extra, NAME).get("type")
    for call in ("tool_search_call", APPROVAL):
        if kind == output_type(call):
            return call
    return kind.removesuffix("_output") if isinstance(kind, str) else "function_call"


def _result(result: ToolResult, call: str, strict: bool, place: Place) -> list[dict[str, Any]]:
    """Write the answer of a call of this kind: its item, and a message with the text that the item cannot show."""
    kind = output_type(call)
    extra = extra_fields(result.extra, NAME)
    if extra.pop("type", "function_call_output") != kind or strict:  # The answer was written for another kind of call.
        extra = {}
    is_list = extra.pop("output", None) == "list"
    text = ""  # Content that the item cannot show.
    item: dict[str, Any] = {"type": kind, id_key(kind): result.call_id}
    match kind:
        case "mcp_approval_response":
            item["approve"] = extra.pop("approve", False)  # Only an answer of this kind approves.
            if result.content:
                item["reason"] = _text_of(result.content)
        case "computer_call_output":
            item["output"], text = _screenshot(result.content, strict, place)
        case "shell_call_output":
            item["output"] = _shell_outputs(result.content)
        case "apply_patch_call_output":
            item["status"] = "completed" if result.state == "ok" else "failed"
            if result.content:
                item["output"] = _text_of(result.content)
        case "local_shell_call_output":
            item["output"] = _text_of(result.content)
            if "call_id" not in extra:  # The API names the call by this key.
                item["id"] = item.pop("call_id")
        case "tool_search_output":
            tools = [body for part in result.content if (body := _tools(part)) is not None]
            item["tools"] = tools[0] if tools else []
            text = _text_of(result.content)
        case _:
            content = result.content if place == "export" else [_silent(part) for part in result.content]
            parts = _content(content, "input_text", strict, place)
            item["output"] = parts if is_list else _short(parts, "input_text") or ""
    notes = [{"role": "user", "content": SHOWN + text}] if text else []
    return [add_extra(item, extra), *notes]


def _silent(part: Content) -> Content:
    """Return the part, or a text in place of a sound: only messages hold sounds."""
    if isinstance(part, Media) and part.mime.startswith("audio/"):
        return Text(hidden_media_text(part))
    return part


def _screenshot(content: Sequence[Content], strict: bool, place: Place) -> tuple[dict[str, Any], str]:
    """Return the screenshot, or a blank one and the text that stands for it."""
    match content:
        case [Media() as image] if place == "export" or is_sendable(image, NAME, IMAGES, _LARGEST):
            return _image(image, strict, "computer_screenshot", place), ""
        case [Opaque(format=form, body=body)] if form == NAME and (whole := parse_object(body)) is not None:
            return whole, ""
        case _:
            return {"type": "computer_screenshot", "image_url": BLANK}, _text_of(content)


def _shell_outputs(content: Sequence[Content]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for part in content:
        text = _text_of([part])
        extra = extra_fields(part.extra, NAME) if isinstance(part, Text) else {}
        if extra == STDERR and blocks:
            blocks[-1]["stderr"] = text
        else:
            default = {"stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
            blocks.append(add_extra({"stdout": text}, default if extra in ({}, STDERR) else extra))
    return blocks


def _tools(part: Content) -> object:
    if not isinstance(part, Opaque) or part.kind != f"{CONTENT}tools":
        return None
    return (parse_object(part.body) or {}).get("tools")


def _text_of(content: Sequence[Content]) -> str:
    """Return the text of a content, with a text in place of media."""
    texts = [hidden_media_text(part) if isinstance(part, Media) else getattr(part, "text", "") for part in content]
    return "\n".join(filter(None, texts))


def _content(parts: Iterable[Part], text_type: str, strict: bool, place: Place) -> list[dict[str, Any]]:
    """Return the parts of a content. `text_type` is the type of a text there."""
    return [wire for part in parts if (wire := _part(part, text_type, strict, place)) is not None]


def _part(part: Part, text_type: str, strict: bool, place: Place) -> dict[str, Any] | None:
    match part:
        case Text():
            extra = extra_fields(part.extra, NAME)
            extra.pop("item", None)
            kind = extra.pop("type", text_type)
            if kind == "refusal" and text_type == "output_text":
                return add_extra({"type": "refusal", "refusal": part.text}, {} if strict else extra)
            kind = kind if place == "export" and isinstance(kind, str) else text_type
            key = "refusal" if kind == "refusal" else "text"
            return add_extra({"type": kind, key: part.text}, {} if strict else extra)
        case Media():
            return _media(part, text_type, strict, place)
        case Opaque() if part.format == NAME and part.kind.startswith(CONTENT):
            return None if strict or place in ("system", "assistant") else parse_object(part.body)
        case _:
            return None


def _media(part: Media, text_type: str, strict: bool, place: Place) -> dict[str, Any]:
    types = IMAGES if part.is_image else () if part.mime.startswith("video/") else (part.mime,)
    if place != "export" and (place != "user" or not is_sendable(part, NAME, types, _LARGEST)):
        return {"type": text_type, "text": hidden_media_text(part)}
    kind = extra_fields(part.extra, NAME).get("type")
    if part.mime.startswith("audio/") and part.source == "base64" and kind != "input_file":
        inside = {"data": part.data, "format": sound_format(part)}
        return {"type": "input_audio", "input_audio": inside}
    if (part.is_image and kind != "input_file") or kind == "input_image":
        return _image(part, strict, "input_image", place)
    extra = {} if strict else extra_fields(part.extra, NAME)
    extra.pop("type", None)
    name = {"filename": part.name} if part.name else {}
    match part.source:
        case "file":
            item = {"type": "input_file", "file_id": part.data, **name}
        case "url":
            item = {"type": "input_file", "file_url": part.data, **name}
        case _:
            name = name if place == "export" else {"filename": file_name(part)}
            item = {"type": "input_file", "file_data": f"data:{part.mime};base64,{part.data}", **name}
    return add_extra(item, extra)


def _image(part: Media, strict: bool, kind: str, place: Place) -> dict[str, Any]:
    extra = {} if strict else extra_fields(part.extra, NAME)
    extra.pop("type", None)
    match part.source:
        case "file":
            item = {"type": kind, "file_id": part.data}
        case "url":
            item = {"type": kind, "image_url": part.data}
        case _:
            mime = part.mime if place == "export" else sent_type(part)
            item = {"type": kind, "image_url": f"data:{mime};base64,{part.data}"}
    return add_extra(item, extra)
