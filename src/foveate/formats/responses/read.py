"""Reading of the items of OpenAI's Responses API.

All items of one response form one assistant message: reasoning, texts, calls, and what the provider ran itself. So a
list of items is grouped first (`group`). Calls that the caller answers become a ToolCall, of any kind; items of
other kinds are kept whole as Opaque. Unknown fields stay with their part.

Source: the reference of the Responses API and the types of the `openai` SDK 3.54, November 2026.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ...core.messages import (
    Content,
    Extra,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    is_author,
)
from ...core.stamps import Usage
from ...errors import BadMessage
from ..blocks import (
    MARKS,
    advice_without_role,
    as_dict,
    as_list,
    call_arguments,
    describe,
    get_count,
    get_string,
    make_extra,
    refuse_error,
    wrong_type,
)
from ..json import to_text
from .items import APPROVAL, group, id_key, is_of_model, kind_of, own_id, runs_at_provider

__all__ = [
    "APPROVED",
    "CALLS",
    "CONTENT",
    "NAME",
    "STDERR",
    "output_type",
    "parts_of",
    "read",
    "read_reply",
]

NAME = "openai_responses"

CONTENT = "content:"
"""Prefix for the kind of an Opaque that is a part of a content. Without it, an Opaque is an item of its own."""

CALLS: dict[str, str] = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
    "tool_search_call": "arguments",
    APPROVAL: "arguments",
}
"""The calls that a caller answers, and the field that holds their arguments."""

STDERR = {"type": "stderr"}
"""The fields that mark a text as the errors of the shell output before it."""

APPROVED = ("server_label", "name", "arguments")
"""The fields of a call of an MCP tool that the caller approves, in the order in which they are stored."""

_OF_DEVELOPER = frozenset({"additional_tools", "configuration_update"})
_ITEM = MARKS | {"type"}
_MESSAGE = MARKS | {"role", "content"}
_PART = MARKS | {"type"}
_TEXTS = ("input_text", "output_text", "text")
_DATA_URL = re.compile(r"data:([^;,]*);base64,")


# ------------------------------------------------------------------------------------------------------------- messages


def read(value: object) -> tuple[Message, ...]:
    """Return the messages in an item, a response, a list of items, or a string from the user."""
    if isinstance(value, str):
        return (Message("user", (Text(value),)),)
    if isinstance(value, list | tuple):
        if not value:
            raise BadMessage("The list of items is empty. Append it only if it holds items.")
        return tuple([message for each in group(value) for message in read(each)])
    item = as_dict(value, "item")
    kind = kind_of(item)
    if "output" in item and "type" not in item:
        output = as_list(item["output"], "response.output")
        return (Message("assistant", parts_of([as_dict(each, f"output[{n}]") for n, each in enumerate(output)])),)
    if is_of_model(item):
        return (Message("assistant", parts_of([item])),)
    if kind == "message" or (is_author(kind) and "role" not in item):
        return (_message(item),)
    if not isinstance(kind, str):
        raise BadMessage(f"item.type is {describe(kind)}. Every item has a type, such as message, or a role.")
    if kind in ("tool_use", "tool_result", "text", "image_url"):
        raise BadMessage(
            f"The item is of the type {kind}, which belongs to another API. Items of the Responses API are messages, "
            "function_call, function_call_output, ... Open the conversation with the format of your messages."
        )
    if kind.endswith("_output") or kind == output_type(APPROVAL):
        return (Message("tool", (_result(item, kind),)),)
    return (Message("system" if kind in _OF_DEVELOPER else "user", (_opaque(item, kind),)),)


def read_reply(reply: object) -> tuple[Message, Usage]:
    """Return the assistant message and the billed usage of a response."""
    response = as_dict(reply, "reply")
    if not isinstance(response.get("output"), list | tuple):
        refuse_error(response)
        raise BadMessage(
            f"reply.output is {describe(response.get('output'))}. Pass the whole response of client.responses.create. "
            'For a stream, pass gather("openai_responses").whole().'
        )
    status = response.get("status")
    if status in ("failed", "cancelled", "queued", "in_progress"):
        error = response.get("error")
        why = f": {error.get('code')}: {error.get('message')}" if isinstance(error, Mapping) else ""
        raise BadMessage(f"The response is {status}{why}. It holds no whole answer to record; send the request again.")
    for field in ("previous_response_id", "conversation"):
        if response.get(field):
            raise BadMessage(
                f"The response continues {field}={_id_of(response[field])!r}, so the model read what the provider "
                f"stores in addition to this conversation. A prompt holds the whole view: send it without {field}=. To "
                "keep this answer all the same, append(response.output)."
            )
    message, usage = read({"output": response["output"]})[0], _usage(response.get("usage"))
    if any(isinstance(part, Opaque) and part.kind.endswith("_call") for part in message.parts):
        # The provider ran tools, and the counts are the sums of all prompts that the model read in between.
        usage = replace(usage, sent=0)
    return message, usage


def _id_of(value: object) -> object:
    return value.get("id") if isinstance(value, Mapping) else value


def _usage(usage: object) -> Usage:
    """Return the usage, with the uncached rest as input: `input_tokens` includes the cached ones."""
    if usage is None:
        return Usage()
    fields = as_dict(usage, "reply.usage")
    inputs, outputs = fields.get("input_tokens_details"), fields.get("output_tokens_details")
    whole, cached = get_count(fields, "input_tokens"), get_count(inputs, "cached_tokens")
    written = get_count(inputs, "cache_write_tokens")
    if whole is not None and whole >= (from_cache := (cached or 0) + (written or 0)):
        whole -= from_cache
    return Usage(whole, cached, written, get_count(fields, "output_tokens"), get_count(outputs, "reasoning_tokens"))


def _message(item: dict[str, Any]) -> Message:
    """Read a message of the user, the system or the developer."""
    role = item.get("role")
    if role not in ("user", "system", "developer"):
        hint = " Answers of tools are function_call_output items here." if role == "tool" else ""
        hint = advice_without_role(item) if role is None else hint
        raise BadMessage(f"item.role is {describe(role)}. It must be user, assistant, system or developer.{hint}")
    own: dict[str, Any] = {"role": role} if role == "developer" else {}
    parts = _content(item.get("content"), "content", "input_text")
    if _is_listed_text(item, parts):
        own["content"] = "list"
    author: Role = "user" if role == "user" else "system"
    return Message(author, parts, "", make_extra(NAME, item, _MESSAGE, "item", own))


def _is_listed_text(item: Mapping[str, Any], parts: Sequence[Part]) -> bool:
    """Return whether the content is a list, although it could be a string. The writer must know."""
    plain = len(parts) == 1 and isinstance(parts[0], Text) and parts[0].extra is None
    return plain and not isinstance(item.get("content"), str)


# --------------------------------------------------------------------------------------------------- items of the model


def parts_of(items: Sequence[dict[str, Any]]) -> tuple[Part, ...]:
    """Return the parts of the assistant message that these items form."""
    answered = {
        own_id(item, id_key(item.get("type")))
        for item in items
        if str(item.get("type")).endswith(("_output", output_type(APPROVAL)))
    }
    parts: list[Part] = []
    for number, item in enumerate(items):
        where, kind = f"output[{number}]", kind_of(item)
        if not isinstance(kind, str):
            raise BadMessage(f"{where}.type is {describe(kind)}. Every item has a type, such as message.")
        if kind == "message":
            parts += _texts(item, where, follows_text=bool(parts) and isinstance(parts[-1], Text))
        elif kind == "reasoning":
            parts.append(_reasoning(item, where))
        elif _is_call(item, kind) and own_id(item, id_key(kind)) not in answered:
            parts.append(_call(item, kind, where))
        else:
            parts.append(_opaque(item, kind))
    return tuple(parts)


def _is_call(item: Mapping[str, Any], kind: str) -> bool:
    """Return whether this is a call that the caller answers."""
    return kind == APPROVAL or (kind.endswith("_call") and not runs_at_provider(item))


def _texts(item: dict[str, Any], where: str, follows_text: bool) -> tuple[Part, ...]:
    """Read a message of the assistant. Its first text keeps the fields of the item, under the key `item`."""
    if item.get("role", "assistant") != "assistant":
        raise BadMessage(f"{where}.role is {describe(item.get('role'))}. An item of a response is the assistant's.")
    parts = _content(item.get("content"), f"{where}.content", "output_text")
    if not parts or not isinstance(parts[0], Text):
        return (_opaque(item, "message"),)
    own = {key: value for key, value in item.items() if key not in _MESSAGE}
    if _is_listed_text(item, parts):
        own["content"] = "list"
    if not own and not follows_text:
        return parts
    first = parts[0]
    fields = f'{{"item":{to_text(own, where)}{"," + first.extra.fields[1:] if first.extra else "}"}'
    return (Text(first.text, Extra(NAME, fields)), *parts[1:])


def _reasoning(item: dict[str, Any], where: str) -> Reasoning:
    encrypted = item.get("encrypted_content")
    summary, content = item.get("summary"), item.get("content")
    blocks = [*(summary if isinstance(summary, list) else ()), *(content if isinstance(content, list) else ())]
    texts = [block["text"] for block in blocks if isinstance(block, Mapping) and isinstance(block.get("text"), str)]
    text = "\n\n".join(texts)
    known = _ITEM
    if isinstance(encrypted, str) and encrypted:
        known = known | {"encrypted_content"}
    if summary == ([{"type": "summary_text", "text": text}] if text else []):
        known = known | {"summary"}
    encrypted = encrypted if isinstance(encrypted, str) else ""
    return Reasoning(text, "", encrypted, NAME, make_extra(NAME, item, known, where))


def _call(item: dict[str, Any], kind: str, where: str) -> ToolCall:
    key = id_key(kind)
    call_id = item.get(key)
    if call_id is None:
        call_id = ""  # Some servers send no id; the rules repair that when a view is made.
    elif not isinstance(call_id, str):
        raise wrong_type(f"{where}.{key}", call_id, "a string")
    field = CALLS.get(kind, "")
    known = _ITEM | {key}
    own: dict[str, Any] = {} if kind == "function_call" else {"type": kind}
    name = kind.removesuffix("_call")
    match kind:
        case "function_call":
            known = known | {"name", "arguments", "parsed_arguments"}
            name, arguments = get_string(item, "name", where), call_arguments(item, where)
        case "custom_tool_call":
            known = known | {"name", "input"}
            name = get_string(item, "name", where)
            arguments = to_text({"input": get_string(item, "input", where)}, where)
        case "mcp_approval_request":  # The call of the tool itself is not for the caller.
            asked = {key: item[key] for key in APPROVED if key in item}
            name, known, arguments = kind, known.union(APPROVED), to_text(asked, where)
        case _ if isinstance(payload := item.get(field), Mapping) and payload:
            known = known | {field}
            arguments = to_text(dict(payload), f"{where}.{field}")
        case _:
            arguments = "{}"
    return ToolCall(call_id, name, arguments, make_extra(NAME, item, known, where, own))


def _opaque(item: dict[str, Any], kind: str) -> Opaque:
    return Opaque(NAME, kind, to_text({key: value for key, value in item.items() if key not in MARKS}, "item"))


# -------------------------------------------------------------------------------------------------------------- results


def output_type(kind: str) -> str:
    """Return the type of the item that answers a call of this kind."""
    return {"tool_search_call": "tool_search_output", APPROVAL: "mcp_approval_response"}.get(kind, f"{kind}_output")


def _result(item: dict[str, Any], kind: str) -> ToolResult:
    # The output of a local shell names its call by `id`. Some clients add a `call_id`, which is kept too.
    is_local_shell = kind == "local_shell_call_output"
    key = "id" if is_local_shell and "call_id" not in item else id_key(kind)
    call_id = item.get(key)
    if call_id is not None and not isinstance(call_id, str):
        raise wrong_type(f"item.{key}", call_id, "a string")
    known = _ITEM | {key, "output"}
    own: dict[str, Any] = {} if kind == "function_call_output" else {"type": kind}
    if is_local_shell and key == "call_id":
        own["call_id"] = call_id
    state: Any = "ok"
    match kind:
        case "computer_call_output":
            parts: tuple[Content, ...] = (_part(as_dict(item.get("output"), "item.output"), "item.output", ""),)
        case "shell_call_output":
            blocks = [as_dict(each, "output") for each in _output(item)]
            parts = tuple([text for n, block in enumerate(blocks) for text in _shell_output(block, n)])
        case "apply_patch_call_output":
            output = item.get("output")
            parts = (Text(output),) if isinstance(output, str) else ()
            if not isinstance(output, str):
                known = known - {"output"}
            if item.get("status") in ("completed", "failed"):
                known, state = known | {"status"}, "error" if item["status"] == "failed" else "ok"
        case "mcp_approval_response":
            reason = item.get("reason")
            parts = (Text(reason),) if isinstance(reason, str) else ()
            known = known | {"reason"} if parts else known
        case "tool_search_output":
            known = known | {"tools"}
            parts = (Opaque(NAME, f"{CONTENT}tools", to_text({"tools": item.get("tools")}, "item.tools")),)
        case _:
            parts = _content(item.get("output"), "item.output", "input_text")
            if not isinstance(item.get("output"), str) and (not parts or _is_listed_text({}, parts)):
                own["output"] = "list"
    return ToolResult(call_id or "", parts, state, "", make_extra(NAME, item, known, "item", own))


def _output(item: Mapping[str, Any]) -> Sequence[object]:
    return as_list(item.get("output"), "item.output")


def _shell_output(block: dict[str, Any], number: int) -> list[Text]:
    """Return the text of the output, and that of the errors if there is one."""
    where, errors = f"item.output[{number}]", block.get("stderr")
    has_errors = isinstance(errors, str) and errors != ""
    rest = {**block, "stderr": ""} if has_errors else block
    output = Text(get_string(block, "stdout", where), make_extra(NAME, rest, frozenset({"stdout"}), where))
    return [output, Text(str(errors), make_extra(NAME, {}, frozenset(), where, STDERR))] if has_errors else [output]


# -------------------------------------------------------------------------------------------------------------- content


def _content(content: object, where: str, text_type: str) -> tuple[Content, ...]:
    """Return the parts of a content, a string or a list. `text_type` is the usual type of a text there."""
    if isinstance(content, str):
        return (Text(content),)
    if not isinstance(content, list | tuple):
        raise wrong_type(where, content, "a string or a list of parts")
    return tuple([_part(as_dict(part, f"{where}[{n}]"), f"{where}[{n}]", text_type) for n, part in enumerate(content)])


def _part(part: dict[str, Any], where: str, text_type: str) -> Content:
    kind = part.get("type")
    match kind:
        case "input_text" | "output_text" | "text" | "refusal":
            key = "refusal" if kind == "refusal" else "text"
            own = {} if kind == text_type else {"type": kind}
            return Text(get_string(part, key, where), make_extra(NAME, part, _PART | {key, "parsed"}, where, own))
        case "input_image" | "computer_screenshot":
            return _image(part, kind, where)
        case "input_file":
            return _file(part, where)
        case "input_audio":
            inner = as_dict(part.get(kind), f"{where}.{kind}")
            if inner.keys() == {"data", "format"} and isinstance(inner["data"], str) and part.keys() <= _PART | {kind}:
                return Media(f"audio/{inner['format']}", "base64", inner["data"])
            return _opaque_part(part, kind, where)
        case str():
            return _opaque_part(part, kind, where)
        case _:
            raise BadMessage(f"{where}.type is {describe(kind)}. Every part has a type, such as input_text.")


def _image(part: dict[str, Any], kind: str, where: str) -> Media | Opaque:
    url, held = part.get("image_url"), part.get("file_id")
    own = {"type": kind} if kind != "input_image" else {}
    if isinstance(url, str) and held is None:
        data_url = _DATA_URL.match(url)
        if data_url is None:
            return Media("", "url", url, "", make_extra(NAME, part, _PART | {"image_url"}, where, own))
        if not data_url[1].startswith("image/"):
            own = {"type": kind}
        extra = make_extra(NAME, part, _PART | {"image_url"}, where, own)
        return Media(data_url[1], "base64", url[data_url.end() :], "", extra)
    if isinstance(held, str) and url is None:
        extra = make_extra(NAME, part, _PART | {"file_id"}, where, own) or Extra(NAME, "{}")  # The id is OpenAI's.
        return Media("", "file", held, "", extra)
    return _opaque_part(part, kind, where)


def _file(part: dict[str, Any], where: str) -> Media | Opaque:
    data, held, url, name = (part.get(key) for key in ("file_data", "file_id", "file_url", "filename"))
    known = _PART | {"filename"} if isinstance(name, str) else _PART
    label = name if isinstance(name, str) else ""
    if sum(value is not None for value in (data, held, url)) != 1:
        return _opaque_part(part, "input_file", where)
    if isinstance(held, str):
        file_extra = make_extra(NAME, part, known | {"file_id"}, where) or Extra(NAME, "{}")
        return Media("application/octet-stream", "file", held, label, file_extra)
    if isinstance(url, str):
        return Media("application/pdf", "url", url, label, make_extra(NAME, part, known | {"file_url"}, where))
    if isinstance(data, str) and (data_url := _DATA_URL.match(data)):
        # Keep the type for an image or a sound that was sent as a file.
        own = {"type": "input_file"} if data_url[1].startswith(("image/", "audio/")) or not data_url[1] else None
        extra = make_extra(NAME, part, known | {"file_data"}, where, own)
        return Media(data_url[1], "base64", data[data_url.end() :], label, extra)
    return _opaque_part(part, "input_file", where)


def _opaque_part(part: dict[str, Any], kind: str, where: str) -> Opaque:
    kept = {key: value for key, value in part.items() if key not in MARKS}
    return Opaque(NAME, CONTENT + kind, to_text(kept, where))
