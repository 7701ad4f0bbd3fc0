"""Reading of Gemini's contents and responses.

The reader takes the names of the REST API (`inlineData`) and those of the Python SDK (`inline_data`), dicts and SDK
objects. A content with function responses becomes one message for each response, and one for the parts between them.

A function call needs no id here. A call or a response without one gets the function's name as its id, with a mark that
keeps this id out of requests; the n-th response of a function then answers its n-th call. A thought signature stays
with the part it came with. Unknown fields stay with their part, and parts of unknown kinds are kept whole as Opaque.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

from ...core.messages import Content, Extra, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from ...core.stamps import Usage
from ...errors import BadMessage
from ..blocks import (
    advice_without_role,
    as_dict,
    as_list,
    describe,
    get_count,
    get_string,
    make_extra,
    refuse_error,
    wrong_type,
)
from ..json import to_text

__all__ = [
    "CALL",
    "NAME",
    "PLACEHOLDERS",
    "RESPONSE",
    "SIGNATURE",
    "fields_of",
    "read",
    "read_parts",
    "read_reply",
    "response_fields",
]

NAME = "gemini"

SIGNATURE = "thoughtSignature"
CALL = "functionCall"
RESPONSE = "functionResponse"

PLACEHOLDERS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
"""The values that Google documents for a call without a signature ("Thought signatures", 2025)."""

_FILES = re.compile(r"gs://|https://generativelanguage\.googleapis\.com/")
"""Addresses of files that only Google can read."""

_KINDS = frozenset({"text", "inlineData", "fileData", CALL, RESPONSE})
_NOT_KINDS = frozenset(
    {SIGNATURE, "thought", "videoMetadata", "mediaResolution", "partMetadata", "mediaProcessing", "speechMetadata"}
    | {"documentMetadata", "spreadsheetMetadata", "audioMetadata", "audioTranscription"}
)
"""Fields of a part that say something about its content."""
_OTHERS = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")
_KNOWN = _NOT_KINDS.union(_KINDS, _OTHERS)
_INSIDE = frozenset(
    {"mimeType", "fileUri", "displayName", "willContinue", "partialArgs", "toolType"}
    | {"jsonPath", "stringValue", "numberValue", "boolValue", "nullValue"}
)
_NULLABLE = _INSIDE | {"parts", "scheduling"}
"""Fields inside a part for which null means the same as none."""
_REPLY = frozenset(
    {"usageMetadata", "promptFeedback", "finishReason", "finishMessage", "blockReason", "modelVersion", "responseId"}
    | {"promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "thoughtsTokenCount"}
    | {"toolUsePromptTokenCount", "groundingMetadata", "citationMetadata", "safetyRatings", "tokenCount"}
)
_CAMEL = {
    snake: name
    for name in (*_KINDS, *_OTHERS, *_NOT_KINDS, *_INSIDE, *_REPLY)
    if (snake := re.sub("([A-Z])", r"_\1", name).lower()) != name
}
"""The SDK's name of a field -> the name in the REST API."""

_ROLES = ("user", "model", "system", "function")
_MESSAGE = frozenset({"role", "parts"})
_HINT = ' If this message is from another provider, open the conversation with format="openai" or "anthropic".'


def fields_of(value: object, where: str) -> dict[str, Any]:
    """Return the fields of an object by their names in the REST API. Bytes stay bytes. Raises BadMessage."""
    if type(value) is not dict and not isinstance(value, Mapping | type) and hasattr(value, "model_dump"):
        # With mode="json", the SDK would write bytes in an alphabet that other providers do not read. If it fails,
        # `as_dict` tries the other options and raises the error that names the problem.
        with suppress(Exception):
            dumped = value.model_dump(exclude_unset=True, by_alias=True)
            if isinstance(role := getattr(value, "role", None), str):  # `ModelContent` has it as a default.
                dumped = {"role": role, **dumped}
            value = dumped
    fields = as_dict(value, where)
    if fields.keys().isdisjoint(_CAMEL):
        return fields
    return {_CAMEL.get(key, key): item for key, item in fields.items()}


def response_fields(value: object, where: str) -> dict[str, Any]:
    """Return the fields of a GenerateContentResponse, which Code Assist and batches have inside of an object."""
    fields = fields_of(value, where)
    inside = fields.get("response")
    return fields if inside is None else fields_of(inside, f"{where}.response")


def read(message: object) -> tuple[Message, ...]:
    """Return the messages in a content, a part, a list of parts of the user, or a string of the user."""
    if isinstance(message, str):
        return (Message("user", (Text(message),)),)
    if isinstance(message, list | tuple):
        if not message:
            raise BadMessage("The list of parts is empty. Append it only if it holds parts.")
        return _from_user(read_parts(message, "parts", "user"), None)
    fields = fields_of(message, "content")
    if "role" not in fields and "parts" not in fields and any(kind in fields for kind in _KINDS):
        fields = {"role": "model" if CALL in fields else "user", "parts": [fields]}
    role, parts = fields.get("role"), fields.get("parts")
    if role is None and "parts" in fields:
        role = "user"  # The API's default.
    if not isinstance(role, str) or role not in _ROLES:
        hint = advice_without_role(fields) if role is None else _HINT
        raise BadMessage(f"content.role is {describe(role)}. It must be user or model.{hint}")
    if parts is None and "content" in fields:
        raise BadMessage(f"content.parts is missing; Gemini has no field `content`.{_HINT}")
    read_ones = read_parts(() if parts is None else parts, "parts", role)
    own = {"role": role} if role == "function" else None
    extra = make_extra(NAME, fields, _MESSAGE, "content", own)
    if role in ("user", "function"):
        return _from_user(read_ones, extra)
    return (Message("assistant" if role == "model" else "system", read_ones, "", extra),)


def read_reply(reply: object) -> tuple[Message, Usage]:
    """Return the message of the model and the billed usage of a GenerateContentResponse.

    A candidate without content is an empty message. Raises BadMessage if there is no candidate: the prompt was blocked.
    """
    fields = response_fields(reply, "reply")
    if "candidates" not in fields and "parts" in fields:
        candidate: dict[str, Any] = {"content": fields}
    else:
        candidates = as_list(fields.get("candidates") or (), "reply.candidates")
        if not candidates:
            raise _no_candidate(fields)
        candidate = fields_of(candidates[0], "reply.candidates[0]")
    content = fields_of(candidate.get("content") or {}, "reply.candidates[0].content")
    if content.get("role", "model") not in ("model", None):
        raise BadMessage(f"The role of a reply is {describe(content.get('role'))}. It must be model.")
    return read({**content, "role": "model"})[0], _usage(fields.get("usageMetadata"))


def _no_candidate(fields: dict[str, Any]) -> BadMessage:
    refuse_error(fields)
    feedback = fields_of(fields.get("promptFeedback") or {}, "reply.promptFeedback")
    if reason := feedback.get("blockReason"):
        return BadMessage(
            f"Gemini blocked the prompt: {getattr(reason, 'value', reason)}. There is no reply to record. Change the "
            "newest input, or hide the message that is blocked."
        )
    return BadMessage("reply.candidates is empty: Gemini sent no reply. Send the request again.")


def _usage(usage: object) -> Usage:
    """Return the usage. `promptTokenCount` includes the cached tokens, and `candidatesTokenCount` no thoughts."""
    if usage is None:
        return Usage()
    fields = fields_of(usage, "reply.usageMetadata")
    prompt, cached = get_count(fields, "promptTokenCount"), get_count(fields, "cachedContentTokenCount")
    if prompt is not None:
        prompt += (get_count(fields, "toolUsePromptTokenCount") or 0) - (cached or 0)
    written, thoughts = get_count(fields, "candidatesTokenCount"), get_count(fields, "thoughtsTokenCount")
    output = None if written is None and thoughts is None else (written or 0) + (thoughts or 0)
    return Usage(None if prompt is None else max(prompt, 0), cached, None, output, thoughts)


def _from_user(parts: tuple[Part, ...], extra: Extra | None) -> tuple[Message, ...]:
    """Split into a message for each result and each sequence of other parts; the first keeps the extra fields."""
    messages: list[Message] = []
    others: list[Part] = []
    for part in (*parts, None):
        if part is not None and type(part) is not ToolResult:
            others.append(part)
            continue
        if others or (part is None and not messages):
            messages.append(Message("user", tuple(others), "", None if messages else extra))
            others = []
        if part is not None:
            messages.append(Message("tool", (part,), "", None if messages else extra))
    return tuple(messages)


def read_parts(parts: object, where: str, role: str) -> tuple[Part, ...]:
    """Return the parts of a content. Raises BadMessage."""
    if isinstance(parts, str):
        return (Text(parts),)
    numbered = enumerate(as_list(parts, where))
    return tuple([part for n, value in numbered if (part := _part(value, f"{where}[{n}]", role)) is not None])


def _part(value: object, where: str, role: str) -> Part | None:
    """Return the part; None for a part without any field, which the SDK leaves of a kind that it does not know."""
    if isinstance(value, str):
        return Text(value)
    part = _known_fields(value, where)
    kinds = _KINDS.intersection(part)
    match next(iter(kinds)) if len(kinds) == 1 else "":
        case "text":
            return _text(part, where, role)
        case "inlineData" | "fileData" as kind:
            return _media(part, kind, where)
        case "functionCall":
            _only("model", role, CALL, where)
            return _call(part, where)
        case "functionResponse":
            if role == "model":
                _only("user", role, RESPONSE, where)
            return _result(part, where)
    if part.keys() == {SIGNATURE} and role == "model":
        return _text({**part, "text": ""}, where, role)
    return _opaque(part, where) if part else None


def _known_fields(value: object, where: str) -> dict[str, Any]:
    """Return the fields of a part, without those that the API knows and that are null."""
    part = fields_of(value, where)
    if None in part.values():  # The same as a missing field, if the API knows it.
        part = {key: item for key, item in part.items() if item is not None or key not in _KNOWN}
    if SIGNATURE in part:
        part = {**part, SIGNATURE: _signature(part[SIGNATURE], f"{where}.{SIGNATURE}")}
    return part


def _only(wanted: str, role: str, kind: str, where: str) -> None:
    if role != wanted:
        raise BadMessage(f"{where} is a {kind} in a content of the role {role}. Only the role {wanted} has such parts.")


def _text(part: dict[str, Any], where: str, role: str) -> Part:
    text = get_string(part, "text", where)
    signature = part.get(SIGNATURE)
    is_thought = part.get("thought") is True
    if not is_thought and (text or signature is None):
        return Text(text, _extra(part, {"text"}, where))
    if role != "model":
        return _opaque(part, where)
    # A signature can arrive in a part with an empty text. It is no text that the model said.
    own = {"thought": is_thought} if is_thought != (bool(text) or signature is None) else {}
    known = {"text", "thought", SIGNATURE}
    return Reasoning(text, signature or "", "", NAME, _extra(part, known, where, own))


def _signature(value: object, where: str) -> str:
    return value if isinstance(value, str) and value in PLACEHOLDERS else _base64(value, where)


def _base64(value: object, where: str) -> str:
    """Return bytes, or a base64 text, as text in the standard alphabet.

    The SDK's JSON has `-` and `_`, which other providers do not read. Equal bytes must have equal texts, so that a
    content that comes back is recognised.
    """
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, str):
        return value.replace("-", "+").replace("_", "/")
    raise wrong_type(where, value, "base64 text or bytes")


def _opaque(part: dict[str, Any], where: str) -> Opaque:
    kind = next((key for key in part if key not in _NOT_KINDS), next(iter(part)))
    return Opaque(NAME, kind, to_text(part, where))


def _media(part: dict[str, Any], kind: str, where: str) -> Media:
    inner = fields_of(part[kind], f"{where}.{kind}")
    mime, label = inner.get("mimeType"), inner.get("displayName")
    known = {kind_of for kind_of, item in (("mimeType", mime), ("displayName", label)) if isinstance(item, str)}
    source: Literal["base64", "url", "file"] = "base64"
    if kind == "inlineData":
        data = _base64(inner.get("data"), f"{where}.{kind}.data")
        known.add("data")
    else:
        data = get_string(inner, "fileUri", f"{where}.{kind}")
        source = "file" if _FILES.match(data) else "url"
        known.add("fileUri")
    extra = _extra(part, {kind}, where, _nested(kind, inner, known))
    if source == "file" and extra is None:
        extra = Extra(NAME, "{}")  # Marks the address as Google's.
    return Media(mime if isinstance(mime, str) else "", source, data, label if isinstance(label, str) else "", extra)


def _call(part: dict[str, Any], where: str) -> ToolCall:
    inside = f"{where}.{CALL}"
    inner = fields_of(part[CALL], inside)
    name, arguments = get_string(inner, "name", inside), inner.get("args")
    if arguments is not None and not isinstance(arguments, Mapping):
        raise wrong_type(f"{inside}.args", arguments, "an object")
    call_id, own = _id_of(inner, inside, name)
    nested = _nested(CALL, inner, {"id", "name", "args"}, own)
    text = to_text(dict(arguments), f"{inside}.args") if arguments else "{}"
    return ToolCall(call_id, name, text, _extra(part, {CALL}, where, nested))


def _id_of(inner: dict[str, Any], inside: str, name: str) -> tuple[str, dict[str, Any]]:
    """Return the id of a call or a response, and the mark if it had none."""
    call_id = inner.get("id")
    if call_id is None or call_id == "":
        return name, {"id": None}
    if not isinstance(call_id, str):
        raise wrong_type(f"{inside}.id", call_id, "a string")
    return call_id, {}


def _result(part: dict[str, Any], where: str) -> ToolResult:
    inside = f"{where}.{RESPONSE}"
    inner = fields_of(part[RESPONSE], inside)
    name, response, media = get_string(inner, "name", inside), inner.get("response"), inner.get("parts")
    if response is not None and not isinstance(response, Mapping):
        raise wrong_type(f"{inside}.response", response, "an object")
    call_id, own = _id_of(inner, inside, name)
    content: list[Content] = []
    known = {"id", "name", "response", "parts"}
    failed = False
    if response:
        text, key = _readable(dict(response), f"{inside}.response")
        content.append(Text(text))
        failed = response.get("error") not in (None, "", False)
        if key != ("error" if failed else "output"):
            own["response"] = key
    if media is not None:
        for number, value in enumerate(as_list(media, f"{inside}.parts")):
            content += _content(value, f"{inside}.parts[{number}]")
    extra = _extra(part, {RESPONSE}, where, _nested(RESPONSE, inner, known, own))
    return ToolResult(call_id, tuple(content), "error" if failed else "ok", name, extra)


def _content(value: object, where: str) -> list[Content]:
    """Return the media in a part of a function response. A part with anything else is kept whole."""
    part = _known_fields(value, where)
    kinds = _KINDS.intersection(part)
    for kind in ("inlineData", "fileData"):
        if kinds == {kind}:
            return [_media(part, kind, where)]
    return [_opaque(part, where)] if part else []


def _readable(response: dict[str, Any], where: str) -> tuple[str, str | None]:
    """Return the text of a response, and the name of its only field; None for the name if the text is all the JSON."""
    if len(response) == 1:
        key, value = next(iter(response.items()))
        if isinstance(key, str) and isinstance(value, str):
            return value, key
    return to_text(response, where), None


def _nested(
    kind: str, inner: dict[str, Any], known: set[str], own: dict[str, Any] | None = None
) -> dict[str, dict[str, Any]]:
    """Return the unknown fields of the object inside a part, after what the format itself must remember."""
    rest = {key: item for key, item in inner.items() if key not in known and not (item is None and key in _NULLABLE)}
    return {kind: {**(own or {}), **rest}} if rest or own else {}


def _extra(part: dict[str, Any], known: set[str], where: str, own: dict[str, Any] | None = None) -> Extra | None:
    if part.get("thought") is False:
        known = known | {"thought"}
    return make_extra(NAME, part, frozenset(known), where, own or None)
