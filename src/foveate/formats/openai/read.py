"""Reading of messages of OpenAI's chat completions.

Many servers speak this format, so the reader accepts variants: reasoning in a separate field, calls without a type,
arguments as an object. The legacy `function_call` and the role `function` become an ordinary call and its result, with
the function's name as id if there is none. Unknown fields stay with their part; unknown parts are kept whole as Opaque.
"""

from __future__ import annotations

import re
from typing import Any

from ...core.messages import Content, Extra, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
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

__all__ = ["MESSAGE_KEYS", "NAME", "TOOL_CALL", "read", "read_parts", "read_reply", "unmarked"]

NAME = "openai"

_PART = MARKS | {"type"}

_DATA_URL = re.compile(r"data:([^;,]*);base64,")


def read_parts(content: object) -> tuple[Content, ...]:
    """Return the parts of a content, a string or a list. Raises BadMessage."""
    if isinstance(content, str):
        return (Text(content),)
    if not isinstance(content, list | tuple):
        raise wrong_type("message.content", content, "a string or a list of parts")
    return tuple([_part(as_dict(part, f"content[{n}]"), f"content[{n}]") for n, part in enumerate(content)])


def _part(part: dict[str, Any], where: str) -> Content:
    kind = part.get("type")
    match kind:
        case "text":
            return Text(get_string(part, "text", where), make_extra(NAME, part, _PART | {"text"}, where))
        case "refusal":
            extra = make_extra(NAME, part, _PART | {"refusal"}, where, {"type": "refusal"})
            return Text(get_string(part, "refusal", where), extra)
        case "image_url":
            return _image(part, where)
        case "input_audio":
            inner = as_dict(part.get(kind), f"{where}.{kind}")
            data, form = get_string(inner, "data", f"{where}.{kind}"), get_string(inner, "format", f"{where}.{kind}")
            return Media(f"audio/{form}", "base64", data, "", _extra(part, kind, inner, {"data", "format"}, where))
        case "file":
            return _file(part, where)
        case "tool_use" | "tool_result":  # Kept as an unknown block, it would never be paired.
            raise BadMessage(
                f"{where} is a {kind}, which belongs to Anthropic. In OpenAI's chat completions calls are in "
                "tool_calls and "
                'results are messages of the role tool. Convert it, or open the conversation with format="anthropic".'
            )
        case str():
            return Opaque(NAME, kind, to_text(unmarked(part), where))
        case _:
            raise BadMessage(f"{where}.type is {describe(kind)}. Every part of a content has a type, such as text.")


def _image(part: dict[str, Any], where: str) -> Media:
    image = part.get("image_url")
    inner = {"url": image} if isinstance(image, str) else as_dict(image, f"{where}.image_url")
    url = get_string(inner, "url", f"{where}.image_url")
    data_url = _DATA_URL.match(url)
    # Keep the wire type image_url if the media type is not an image.
    own = {"type": "image_url"} if data_url and not _is_image(data_url[1]) else None
    extra = _extra(part, "image_url", inner, {"url"}, where, own)
    if data_url:
        return Media(data_url[1], "base64", url[data_url.end() :], "", extra)
    return Media("", "url", url, "", extra)


def _file(part: dict[str, Any], where: str) -> Media | Opaque:
    inner = as_dict(part.get("file"), f"{where}.file")
    data, held, name = inner.get("file_data"), inner.get("file_id"), inner.get("filename")
    known = {"file_data", "file_id", "filename"} if isinstance(name, str) else {"file_data", "file_id"}
    label = name if isinstance(name, str) else ""
    if isinstance(held, str) and data is None:
        # Marks the id as this provider's.
        kept = _extra(part, "file", inner, known, where) or Extra(NAME, "{}")
        return Media("application/octet-stream", "file", held, label, kept)
    if isinstance(data, str) and held is None and (data_url := _DATA_URL.match(data)):
        # Keep the wire type file of all but documents that OpenAI itself reads: this server may take more.
        own = None if data_url[1] == "application/pdf" else {"type": "file"}
        extra = _extra(part, "file", inner, known, where, own)
        return Media(data_url[1], "base64", data[data_url.end() :], label, extra)
    return Opaque(NAME, "file", to_text(unmarked(part), where))


def _extra(
    part: dict[str, Any],
    kind: str,
    inner: dict[str, Any],
    known: set[str],
    where: str,
    own: dict[str, Any] | None = None,
) -> Extra | None:
    """Return the unknown fields of a part and of the object inside it."""
    kept = dict(own or {})
    if rest := {key: value for key, value in inner.items() if key not in known}:
        kept[kind] = rest
    return make_extra(NAME, part, _PART | {kind}, where, kept)


def _is_image(mime: str) -> bool:
    return not mime or mime.startswith("image/")


def unmarked(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an unknown object, without cache marks."""
    return {key: value for key, value in fields.items() if key not in MARKS}


TOOL_CALL = "tool_call:"
"""Prefix for the kind of an Opaque that stood among the tool calls of its message."""

SPOKEN = "[A spoken reply]"
"""The text of a spoken reply without a transcript."""

MESSAGE_KEYS = frozenset(
    {"role", "name", "refusal", "audio", "annotations"}  # OpenAI's own
    | {"reasoning", "reasoning_content", "reasoning_details"}  # OpenRouter, DeepSeek, vLLM
    | {"reasoning_text", "reasoning_opaque"}  # GitHub Copilot
    | {"extra_content"}  # Gemini's endpoint: signatures of thoughts
    | {"thinking_blocks", "provider_specific_fields"}  # LiteLLM
    | {"prefix", "partial"}  # DeepSeek and Mistral, Moonshot: a reply to continue
)
"""Keys of a message, content and calls aside, that a server documents. OpenAI's API refuses others.

Sources: the types of the SDK 3.54; OpenRouter, "Preserving reasoning"; DeepSeek, "Thinking mode" and "Chat prefix
completion"; Google, "Thought signatures" of the OpenAI compatibility; LiteLLM, "Thinking"; Mistral, "Prefix"; Moonshot,
"Partial mode"; the Copilot provider of opencode.
"""

_MESSAGE = MARKS | {"role", "content"}
_ASSISTANT = _MESSAGE | {"parsed"}  # The SDK adds `parsed`, its own reading of the content.
_TOOL = _MESSAGE | {"tool_call_id"}
_CALL = MARKS | {"id", "type", "index"}  # `index` is the call's place in a gathered stream.

# The API fills these fields in; null or an empty list means the same as a missing field.
_NULLABLE = ("name", "refusal", "audio", "annotations", "function_call", "tool_calls", "reasoning_content", "reasoning")


def read(message: object) -> tuple[Message, ...]:
    """Return the message in a wire message, or in a string from the user."""
    if isinstance(message, str):
        return (Message("user", (Text(message),)),)
    if isinstance(message, list | tuple):
        raise BadMessage(
            "message is a list. It must be an object. Put the parts of a content into a message with a role, such as "
            "user."
        )
    fields = as_dict(message, "message")
    role = fields.get("role")
    match role:
        case "user" | "system":
            return (_user_or_system(fields, role, None),)
        case "developer":
            return (_user_or_system(fields, "system", {"role": "developer"}),)
        case "assistant":
            message = _assistant(fields)
            _check_content(message, fields)
            return (message,)
        case "tool" | "function":
            return (_result(fields, role),)
        case _:
            raise BadMessage(
                f"message.role is {describe(role)}. It must be system, developer, user, assistant, tool or function."
                f"{advice_without_role(fields) if role is None else ''}"
            )


def read_reply(reply: object) -> tuple[Message, Usage]:
    """Return the assistant message and the billed usage of a chat completion, or of its message alone."""
    fields = as_dict(reply, "reply")
    if not fields.get("choices") and fields.get("role") != "assistant":
        refuse_error(fields)
    if "choices" not in fields:
        message: dict[str, Any] = fields
    else:
        choices = as_list(fields["choices"], "reply.choices")
        if not choices:
            raise BadMessage(
                "reply.choices is empty: the server sent no reply. Send the request again; there is nothing to record."
            )
        choice = as_dict(choices[0], "reply.choices[0]")
        if "message" not in choice and "delta" in choice:
            raise BadMessage("The reply is one chunk of a stream. Gather the stream, then pass the whole completion.")
        if choice.get("error") or choice.get("finish_reason") == "error":  # Its text may end in the middle.
            for holder in (choice, fields, {"error": "finish_reason: error"}):
                refuse_error(holder)
        message = {"role": "assistant", **as_dict(choice.get("message"), "reply.choices[0].message")}
    if message.get("role") != "assistant":
        raise BadMessage(f"The role of a reply is {describe(message.get('role'))}. It must be assistant.")
    return _assistant(message), _usage(fields.get("usage"))


def _usage(usage: object) -> Usage:
    """Return the usage, with the uncached rest as input.

    The provider's `prompt_tokens` includes the tokens that were read from the cache and written to it.
    """
    if usage is None:
        return Usage()
    fields = as_dict(usage, "reply.usage")
    prompt_details, completion_details = fields.get("prompt_tokens_details"), fields.get("completion_tokens_details")
    prompt, cached = get_count(fields, "prompt_tokens"), get_count(prompt_details, "cached_tokens")
    if cached is None:
        cached = get_count(fields, "prompt_cache_hit_tokens")  # DeepSeek's name for it.
    written = get_count(prompt_details, "cache_write_tokens")
    if prompt is not None and prompt >= (from_cache := (cached or 0) + (written or 0)):
        prompt -= from_cache  # Otherwise the server reports its cache separately.
    return Usage(
        prompt,
        cached,
        written,
        get_count(fields, "completion_tokens"),
        get_count(completion_details, "reasoning_tokens"),
    )


def _user_or_system(fields: dict[str, Any], role: Any, own: dict[str, Any] | None) -> Message:
    """Read a user message or a system prompt."""
    content = fields.get("content")
    if content is None:
        raise BadMessage(f"A message of the role {fields['role']} has no content. Give it a string or a list of parts.")
    name = fields.get("name")
    known = _MESSAGE | {"name"} if isinstance(name, str) else _MESSAGE
    extra = make_extra(NAME, fields, _known(fields, known), "message", own)
    return Message(role, read_parts(content), name if isinstance(name, str) else "", extra)


def _assistant(fields: dict[str, Any]) -> Message:
    """Read an assistant message: reasoning, text, calls."""
    taken = {"name"} if isinstance(fields.get("name"), str) else set()
    parts: list[Part] = []
    for field in ("reasoning_content", "reasoning"):
        thought = fields.get(field)
        if isinstance(thought, str):
            taken.add(field)
            # Servers disagree about the field's name; the less usual one is kept.
            extra = None if field == "reasoning_content" else Extra(NAME, '{"type":"reasoning"}')
            parts.append(Reasoning(thought, "", "", NAME, extra))
    content = fields.get("content")
    if content is not None and content != "":  # An assistant text "" is empty, like null.
        parts += read_parts(content)
    refusal = fields.get("refusal")
    if refusal is not None:
        taken.add("refusal")
        if get_string(fields, "refusal", "message"):
            parts.append(Text(refusal, Extra(NAME, '{"type":"refusal"}')))
    audio = fields.get("audio")
    if isinstance(audio, dict) and isinstance(audio.get("id"), str):
        taken.add("audio")
        transcript = audio.get("transcript")
        text = transcript if isinstance(transcript, str) and transcript.strip() else SPOKEN
        parts.append(Text(text, Extra(NAME, to_text({"type": "audio", "audio": audio}, "message.audio"))))
    calls = fields.get("tool_calls")
    if calls is not None:
        taken.add("tool_calls")
        entries = as_list(calls, "tool_calls")
        parts += [_call(as_dict(call, f"tool_calls[{n}]"), f"tool_calls[{n}]") for n, call in enumerate(entries)]
    legacy = fields.get("function_call")
    if legacy is not None:
        taken.add("function_call")
        function = as_dict(legacy, "function_call")
        name = get_string(function, "name", "function_call")
        parts.append(ToolCall(name, name, call_arguments(function, "function_call")))
    known = _known(fields, _ASSISTANT | taken if taken else _ASSISTANT)
    name = fields["name"] if "name" in taken else ""
    return Message("assistant", tuple(parts), name, make_extra(NAME, fields, known, "message"))


def _check_content(message: Message, fields: dict[str, Any]) -> None:
    """Raise BadMessage for an assistant message of another API: its content is in a field that is never sent."""
    if message.parts or fields.get("content") is not None:
        return
    for key, value in fields.items():
        if key not in MESSAGE_KEYS and isinstance(value, dict | list) and value:
            raise BadMessage(
                f"The assistant's message has neither content nor tool_calls, but {key!r:.40}, {describe(value)}. Its "
                "content would never be sent. Pass a message of OpenAI's chat completions."
            )


def _call(call: dict[str, Any], where: str) -> ToolCall | Opaque:
    kind = call.get("type") or ("function" if "function" in call else None)
    if not isinstance(kind, str):
        raise BadMessage(f"{where}.type is {describe(kind)}. A tool call has the type function or custom.")
    if kind not in ("function", "custom"):
        return Opaque(NAME, TOOL_CALL + kind, to_text(unmarked(call), where))
    call_id = call.get("id")
    if call_id is None:
        call_id = ""  # Some servers send no id; the rules repair that when a view is made.
    elif not isinstance(call_id, str):
        raise wrong_type(f"{where}.id", call_id, "a string")
    own: dict[str, Any] = {}
    inner = as_dict(call.get(kind), f"{where}.{kind}")
    inside = f"{where}.{kind}"
    name = get_string(inner, "name", inside)
    if kind == "custom":
        # A custom tool takes free text. As the field of an object it can be kept and shown like any call.
        own["type"], known = "custom", {"name", "input"}
        arguments = to_text({"input": get_string(inner, "input", inside)}, inside)
    else:
        known = {"name", "arguments", "parsed_arguments"}
        arguments = call_arguments(inner, inside)
    if rest := {key: value for key, value in inner.items() if key not in known}:
        own[kind] = rest
    return ToolCall(call_id, name, arguments, make_extra(NAME, call, _CALL | {kind}, where, own))


def _result(fields: dict[str, Any], role: str) -> Message:
    """Read a tool result. A content of null or an empty list becomes an empty text, the only empty result here."""
    call_id, name = fields.get("tool_call_id"), fields.get("name")
    if role == "function" and call_id is None:
        call_id = name
    if call_id is None:
        call_id = ""
    elif not isinstance(call_id, str):
        raise wrong_type("message.tool_call_id", call_id, "a string")
    content = fields.get("content")
    content_parts: tuple[Content, ...] = (Text(""),) if content is None else read_parts(content) or (Text(""),)
    known = _TOOL | {"name"} if isinstance(name, str) else _TOOL
    result = ToolResult(call_id, content_parts, "ok", name if isinstance(name, str) else "")
    return Message("tool", (result,), "", make_extra(NAME, fields, _known(fields, known), "message"))


def _known(fields: dict[str, Any], known: frozenset[str]) -> frozenset[str]:
    """Return the known fields of a message, plus those that are empty."""
    if fields.keys() <= known:
        return known
    empty = [name for name in _NULLABLE if (value := fields.get(name, "")) is None or (value == [] and name in fields)]
    return known.union(empty)
