"""From OpenAI's chat completions to messages.

Read with an open mind, because many servers speak this dialect: reasoning in a field of its own, calls without a
type, arguments that are an object. The legacy `function_call` and the role `function` become an ordinary call and its
result, named by the function where there is no id. What the model here does not know stays with the part it came
with, or is kept whole as Opaque.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...core.messages import Content, Extra, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from ...core.stamps import Usage
from ...errors import BadMessage
from ..blocks import MARKS, extra_of, items, plain, show, string, wrong
from ..json import text_of

__all__ = ["NAME", "TOOL_CALL", "read", "read_parts", "read_reply", "unmarked"]

# MODULEDOC """The parts of a content of OpenAI's chat completions, read: text, images, sounds, files, refusals.
#
# A content is a string or a list of parts. It does not know messages: who said it is for others to know.
# """
NAME = "openai"

_PART = MARKS | {"type"}

_DATA_URL = re.compile(r"data:([^;,]*);base64,")


def read_parts(content: object) -> tuple[Content, ...]:
    """The parts of a content. Raises BadMessage."""
    if isinstance(content, str):
        return (Text(content),)
    if not isinstance(content, list | tuple):
        raise wrong("message.content", content, "a string or a list of parts")
    return tuple([_part(plain(part, f"content[{n}]"), f"content[{n}]") for n, part in enumerate(content)])


def _part(part: dict[str, Any], where: str) -> Content:
    kind = part.get("type")
    match kind:
        case "text":
            return Text(string(part, "text", where), extra_of(NAME, part, _PART | {"text"}, where))
        case "refusal":
            extra = extra_of(NAME, part, _PART | {"refusal"}, where, {"type": "refusal"})
            return Text(string(part, "refusal", where), extra)
        case "image_url":
            return _image(part, where)
        case "input_audio":
            inner = plain(part.get(kind), f"{where}.{kind}")
            data, form = string(inner, "data", f"{where}.{kind}"), string(inner, "format", f"{where}.{kind}")
            return Media(f"audio/{form}", "base64", data, "", _extra(part, kind, inner, {"data", "format"}, where))
        case "file":
            return _file(part, where)
        case "tool_use" | "tool_result":  # Kept as a block of unknown kind, it would never be paired.
            raise BadMessage(
                f"{where} is a {kind}, which is Anthropic's; in OpenAI's chat completions calls are in tool_calls and "
                'results are messages of the role tool. Or open the conversation with format="anthropic".'
            )
        case str():
            return Opaque(NAME, kind, text_of(unmarked(part), where))
        case _:
            raise BadMessage(f"{where}.type is {show(kind)}; every part of a content has a type, such as text.")


def _image(part: dict[str, Any], where: str) -> Media:
    given = part.get("image_url")
    inner = {"url": given} if isinstance(given, str) else plain(given, f"{where}.image_url")
    url = string(inner, "url", f"{where}.image_url")
    found = _DATA_URL.match(url)
    # What was sent as an image although its type says otherwise is remembered as one.
    own = {"type": "image_url"} if found and not _is_image(found[1]) else None
    extra = _extra(part, "image_url", inner, {"url"}, where, own)
    if found:
        return Media(found[1], "base64", url[found.end() :], "", extra)
    return Media("", "url", url, "", extra)


def _file(part: dict[str, Any], where: str) -> Media | Opaque:
    inner = plain(part.get("file"), f"{where}.file")
    data, held, name = inner.get("file_data"), inner.get("file_id"), inner.get("filename")
    known = {"file_data", "file_id", "filename"} if isinstance(name, str) else {"file_data", "file_id"}
    label = name if isinstance(name, str) else ""
    if isinstance(held, str) and data is None:
        # A file's id means something to this provider only, so that it came from here is remembered.
        kept = _extra(part, "file", inner, known, where) or Extra(NAME, "{}")
        return Media("application/octet-stream", "file", held, label, kept)
    if isinstance(data, str) and held is None and (found := _DATA_URL.match(data)):
        # A picture or a sound that was sent as a file is remembered as one.
        own = {"type": "file"} if _is_image(found[1]) or found[1].startswith("audio/") else None
        extra = _extra(part, "file", inner, known, where, own)
        return Media(found[1], "base64", data[found.end() :], label, extra)
    return Opaque(NAME, "file", text_of(unmarked(part), where))


def _extra(
    part: dict[str, Any],
    kind: str,
    inner: dict[str, Any],
    known: set[str],
    where: str,
    own: dict[str, Any] | None = None,
) -> Extra | None:
    """The unknown fields of a part and of the object inside it."""
    kept = dict(own or {})
    if rest := {key: value for key, value in inner.items() if key not in known}:
        kept[kind] = rest
    return extra_of(NAME, part, _PART | {kind}, where, kept)


def _is_image(mime: str) -> bool:
    return not mime or mime.startswith("image/")


def unmarked(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of an object of which nothing is known, but for the marks of the cache."""
    return {key: value for key, value in fields.items() if key not in MARKS}


TOOL_CALL = "tool_call:"
"""Before the kind of an Opaque that stood among the tool calls of its message."""

_MESSAGE = MARKS | {"role", "content"}
_ASSISTANT = _MESSAGE | {"parsed"}  # The SDK's own reading of the content.
_TOOL = _MESSAGE | {"tool_call_id"}
_CALL = MARKS | {"id", "type", "index"}  # A call's index is its place in the stream that it was gathered from.

# Fields whose null (or empty list) says what their absence says; the API fills them in.
_NULLABLE = ("name", "refusal", "audio", "annotations", "function_call", "tool_calls", "reasoning_content", "reasoning")


def read(message: object) -> tuple[Message, ...]:
    """The message in one wire message, or in a string (said by the user)."""
    if isinstance(message, str):
        return (Message("user", (Text(message),)),)
    fields = plain(message, "message")
    role = fields.get("role")
    match role:
        case "user" | "system":
            return (_said(fields, role, None),)
        case "developer":
            return (_said(fields, "system", {"role": "developer"}),)
        case "assistant":
            return (_answer(fields),)
        case "tool" | "function":
            return (_result(fields, role),)
        case _:
            raise BadMessage(
                f"message.role is {show(role)}; it has to be system, developer, user, assistant, tool or function."
            )


def read_reply(reply: object) -> tuple[Message, Usage]:
    """The assistant message and the billed usage in a chat completion, or in its message alone."""
    fields = plain(reply, "reply")
    if "choices" not in fields:
        message: dict[str, Any] = fields
    else:
        choices = items(fields["choices"], "reply.choices")
        if not choices:
            raise BadMessage(
                "reply.choices is empty: the server answered nothing. Ask again; there is nothing to record."
            )
        choice = plain(choices[0], "reply.choices[0]")
        if "message" not in choice and "delta" in choice:
            raise BadMessage(
                "The reply is one chunk of a stream. Gather the stream, then hand in the whole completion."
            )
        message = {"role": "assistant", **plain(choice.get("message"), "reply.choices[0].message")}
    if message.get("role") != "assistant":
        raise BadMessage(f"The role of a reply is {show(message.get('role'))}; it has to be assistant.")
    return _answer(message), _usage(fields.get("usage"))


def _usage(usage: object) -> Usage:
    """The usage, its input made the uncached rest: this provider's sum includes what was read from and written to the
    cache.
    """
    if usage is None:
        return Usage()
    fields = plain(usage, "reply.usage")
    details = fields.get("prompt_tokens_details")
    asked = details if isinstance(details, dict) else {}
    details = fields.get("completion_tokens_details")
    answered = details if isinstance(details, dict) else {}
    prompt, cached = _count(fields, "prompt_tokens"), _count(asked, "cached_tokens")
    if cached is None:
        cached = _count(fields, "prompt_cache_hit_tokens")  # DeepSeek's word for it.
    written = _count(asked, "cache_write_tokens")
    if prompt is not None and prompt >= (aside := (cached or 0) + (written or 0)):
        prompt -= aside  # Otherwise the server counts its cache apart.
    return Usage(prompt, cached, written, _count(fields, "completion_tokens"), _count(answered, "reasoning_tokens"))


def _count(fields: Mapping[str, Any], key: str) -> int | None:
    """A number of tokens; None, never 0, where there is none."""
    value = fields.get(key)
    return value if type(value) is int and value >= 0 else None


def _said(fields: dict[str, Any], role: Any, own: dict[str, Any] | None) -> Message:
    """A message of a user or a system prompt."""
    content = fields.get("content")
    if content is None:
        raise BadMessage(f"A message of the role {fields['role']} has no content; give it a string or a list of parts.")
    name = fields.get("name")
    known = _MESSAGE | {"name"} if isinstance(name, str) else _MESSAGE
    extra = extra_of(NAME, fields, _known(fields, known), "message", own)
    return Message(role, read_parts(content), name if isinstance(name, str) else "", extra)


def _answer(fields: dict[str, Any]) -> Message:
    """What the model said: reasoning, text, calls."""
    taken = {"name"} if isinstance(fields.get("name"), str) else set()
    parts: list[Part] = []
    for field in ("reasoning_content", "reasoning"):
        thought = fields.get(field)
        if isinstance(thought, str):
            taken.add(field)
            # Servers disagree about the field's name; the one that is not the usual is remembered.
            extra = None if field == "reasoning_content" else Extra(NAME, '{"type":"reasoning"}')
            parts.append(Reasoning(thought, "", "", NAME, extra))
    content = fields.get("content")
    if content is not None and content != "":  # An assistant that says "" says nothing, as with null.
        parts += read_parts(content)
    refusal = fields.get("refusal")
    if refusal is not None:
        taken.add("refusal")
        if string(fields, "refusal", "message"):
            parts.append(Text(refusal, Extra(NAME, '{"type":"refusal"}')))
    calls = fields.get("tool_calls")
    if calls is not None:
        taken.add("tool_calls")
        given = items(calls, "tool_calls")
        parts += [_call(plain(call, f"tool_calls[{n}]"), f"tool_calls[{n}]") for n, call in enumerate(given)]
    legacy = fields.get("function_call")
    if legacy is not None:
        taken.add("function_call")
        function = plain(legacy, "function_call")
        name = string(function, "name", "function_call")
        parts.append(ToolCall(name, name, _arguments(function, "function_call")))
    known = _known(fields, _ASSISTANT | taken if taken else _ASSISTANT)
    name = fields["name"] if "name" in taken else ""
    return Message("assistant", tuple(parts), name, extra_of(NAME, fields, known, "message"))


def _call(call: dict[str, Any], where: str) -> ToolCall | Opaque:
    kind = call.get("type") or ("function" if "function" in call else None)
    if not isinstance(kind, str):
        raise BadMessage(f"{where}.type is {show(kind)}; a tool call has the type function or custom.")
    if kind not in ("function", "custom"):
        return Opaque(NAME, TOOL_CALL + kind, text_of(unmarked(call), where))
    call_id = call.get("id")
    if call_id is None:
        call_id = ""  # Some servers give none; rules mend that where a view is made.
    elif not isinstance(call_id, str):
        raise wrong(f"{where}.id", call_id, "a string")
    own: dict[str, Any] = {}
    inner = plain(call.get(kind), f"{where}.{kind}")
    inside = f"{where}.{kind}"
    name = string(inner, "name", inside)
    if kind == "custom":
        # The text a custom tool takes is not JSON; as the field of an object it can be kept and shown like any call.
        own["type"], known = "custom", {"name", "input"}
        arguments = text_of({"input": string(inner, "input", inside)}, inside)
    else:
        known = {"name", "arguments", "parsed_arguments"}
        arguments = _arguments(inner, inside)
    if rest := {key: value for key, value in inner.items() if key not in known}:
        own[kind] = rest
    return ToolCall(call_id, name, arguments, extra_of(NAME, call, _CALL | {kind}, where, own))


def _arguments(function: Mapping[str, Any], where: str) -> str:
    """The arguments byte for byte where they are text, as they should be; some servers send an object."""
    given = function.get("arguments")
    if isinstance(given, str):
        return given
    if given is None:
        return "{}"
    if isinstance(given, Mapping):
        return text_of(dict(given), f"{where}.arguments")
    raise wrong(f"{where}.arguments", given, "a string of JSON")


def _result(fields: dict[str, Any], role: str) -> Message:
    """What a tool answered. Said as null or as an empty list it is an empty text: this format has no other nothing."""
    call_id, name = fields.get("tool_call_id"), fields.get("name")
    if role == "function" and call_id is None:
        call_id = name
    if call_id is None:
        call_id = ""
    elif not isinstance(call_id, str):
        raise wrong("message.tool_call_id", call_id, "a string")
    content = fields.get("content")
    said: tuple[Content, ...] = (Text(""),) if content is None else read_parts(content) or (Text(""),)
    known = _TOOL | {"name"} if isinstance(name, str) else _TOOL
    result = ToolResult(call_id, said, "ok", name if isinstance(name, str) else "")
    return Message("tool", (result,), "", extra_of(NAME, fields, _known(fields, known), "message"))


def _known(fields: dict[str, Any], known: frozenset[str]) -> frozenset[str]:
    """The known fields of a message, and those that say nothing."""
    if fields.keys() <= known:
        return known
    empty = [name for name in _NULLABLE if (value := fields.get(name, "")) is None or (value == [] and name in fields)]
    return known.union(empty)
