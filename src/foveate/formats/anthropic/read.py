"""From Anthropic's wire to messages.

A user message that packs tool results and other blocks becomes several messages, in the order of its blocks. What the
model here does not know stays with the part it came with, or is kept whole as Opaque. Where a block may be cached,
and the facts of the API call around a reply (its id, model, stop reason, usage), are not part of what was said and
are left behind.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Literal

from ...core.messages import Content, Extra, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from ...core.stamps import Usage
from ...errors import BadMessage
from ..blocks import MARKS, extra_of, items, plain, show, string, wrong
from ..json import text_of

__all__ = ["NAME", "read", "read_reply"]

NAME = "anthropic"

_MESSAGE = frozenset({"role", "content"})
_ENVELOPE = frozenset(
    {"id", "type", "model", "stop_reason", "stop_sequence", "stop_details", "usage", "container"}
    | {"context_management", "diagnostics", "input_transformations"}
)
_TEXT = MARKS | {"type", "text", "parsed_output"}  # The last is the SDK's own reading of the text.
_MEDIA = MARKS | {"type", "source"}
_DOCUMENT = _MEDIA | {"title"}
_THINKING = MARKS | {"type", "thinking", "signature"}
_REDACTED = MARKS | {"type", "data"}
_CALL = MARKS | {"type", "id", "name", "input"}
_RESULT = MARKS | {"type", "tool_use_id", "content", "is_error"}

# Fields whose null says what their absence says; the API fills them in.
_NULLABLE = ("citations", "caller", "toolset_name", "title", "context", "transformations")

_FOREIGN_ROLES = ("tool", "function", "developer")
_OPENAIS = ' If this is a message of OpenAI\'s, open the conversation with format="openai".'

_SOURCES = {
    "base64": {"type", "media_type", "data"},
    "text": {"type", "media_type", "data"},
    "url": {"type", "url"},
    "file": {"type", "file_id"},
}


def read(message: object) -> tuple[Message, ...]:
    """The messages in one wire message, in a list of content blocks (said by the user), or in a string (the same)."""
    if isinstance(message, str):
        return (Message("user", (Text(message),)),)
    if isinstance(message, list | tuple):
        if not message:
            raise BadMessage("An empty list of blocks says nothing: append it only when there are tool results in it.")
        return _from_user(_blocks(message, "blocks", "user"), None)
    fields = plain(message, "message")
    role, content = fields.get("role"), fields.get("content")
    if not isinstance(role, str) or role not in ("user", "assistant", "system"):
        hint = " To hand in content blocks alone, put them in a list." if role is None and "type" in fields else ""
        hint = _OPENAIS if role in _FOREIGN_ROLES else hint
        raise BadMessage(f"message.role is {show(role)}; it has to be user, assistant or system.{hint}")
    if fields.get("tool_calls"):  # Kept as an unknown field, they would never be answered.
        raise BadMessage(
            f"message.tool_calls is OpenAI's; Anthropic's calls are tool_use blocks of the content.{_OPENAIS}"
        )
    extra = _extra_of_message(fields)
    if isinstance(content, str):
        # An assistant that says "" says nothing, as when a list of blocks is empty.
        parts: tuple[Part, ...] = () if role == "assistant" and not content else (Text(content),)
    elif isinstance(content, list | tuple):
        parts = _blocks(content, "content", role)
    else:
        raise wrong("message.content", content, "a string or a list of blocks")
    if role == "user":
        return _from_user(parts, extra)
    return (Message("assistant" if role == "assistant" else "system", parts, "", extra),)


def read_reply(reply: object) -> tuple[Message, Usage]:
    """The assistant message and the billed usage in a response of the Messages API."""
    fields = plain(reply, "reply")
    if fields.get("role") != "assistant":
        raise BadMessage(
            f"reply.role is {show(fields.get('role'))}; a reply of the Messages API has the role assistant. "
            "Pass the whole response; gather a stream into its final message first."
        )
    return read(fields)[0], _usage(fields.get("usage"))


def _usage(usage: object) -> Usage:
    if usage is None:
        return Usage()
    fields = plain(usage, "reply.usage")
    details = fields.get("output_tokens_details")
    return Usage(
        input=_count(fields, "input_tokens"),
        cache_read=_count(fields, "cache_read_input_tokens"),
        cache_write=_count(fields, "cache_creation_input_tokens"),
        output=_count(fields, "output_tokens"),
        reasoning=_count(details, "thinking_tokens") if isinstance(details, dict) else None,
    )


def _count(fields: Mapping[str, Any], key: str) -> int | None:
    """A number of tokens; None, never 0, where there is none."""
    value = fields.get(key)
    return value if type(value) is int and value >= 0 else None


def _extra_of_message(fields: dict[str, Any]) -> Extra | None:
    if fields.keys() <= _MESSAGE:
        return None
    if fields.get("type") == "message":  # A whole reply: everything but role and content is about the call.
        return None
    known = _MESSAGE | _ENVELOPE if fields.get("role") == "assistant" else _MESSAGE
    return extra_of(NAME, fields, known | MARKS, "message")


def _from_user(parts: tuple[Part, ...], extra: Extra | None) -> tuple[Message, ...]:
    """One message for each tool result, and one for each run of other blocks; the first one keeps the extra fields."""
    if not any(type(part) is ToolResult for part in parts):
        return (Message("user", parts, "", extra),)
    messages: list[Message] = []
    said: list[Part] = []
    for part in parts:
        if type(part) is not ToolResult:
            said.append(part)
            continue
        if said:
            messages.append(Message("user", tuple(said), "", None if messages else extra))
            said = []
        messages.append(Message("tool", (part,), "", None if messages else extra))
    if said:
        messages.append(Message("user", tuple(said)))
    return tuple(messages)


def _blocks(blocks: list[Any] | tuple[Any, ...], where: str, role: str) -> tuple[Part, ...]:
    return tuple([_part(block, f"{where}[{number}]", role) for number, block in enumerate(blocks)])


def _part(value: object, where: str, role: str) -> Part:
    """The part that one content block of a message says."""
    block = plain(value, where)
    match block.get("type"):
        case "tool_result":
            _only("user", role, "tool_result", where)
            return _result(block, where)
        case "tool_use":
            _only("assistant", role, "tool_use", where)
            return _call(block, where)
        case "thinking":
            _only("assistant", role, "thinking", where)
            signature = block.get("signature")
            if signature is not None and not isinstance(signature, str):
                raise wrong(f"{where}.signature", signature, "a string")
            extra = extra_of(NAME, block, _THINKING, where)
            return Reasoning(string(block, "thinking", where), signature or "", "", NAME, extra)
        case "redacted_thinking":
            _only("assistant", role, "redacted_thinking", where)
            extra = extra_of(NAME, block, _REDACTED, where)
            return Reasoning("", "", string(block, "data", where), NAME, extra)
        case _:
            return _content(block, where)


def _only(wanted: str, role: str, kind: str, where: str) -> None:
    if role != wanted:
        raise BadMessage(
            f"{where} is a {kind} in a message of the role {role}; only the role {wanted} has such blocks. "
            "Change the role."
        )


def _call(block: dict[str, Any], where: str) -> ToolCall:
    given = block.get("input")
    if given is not None and not isinstance(given, Mapping):
        raise wrong(f"{where}.input", given, "an object")
    extra = extra_of(NAME, block, _known(block, _CALL), where)
    arguments = text_of(dict(given), f"{where}.input") if given else "{}"
    return ToolCall(string(block, "id", where), string(block, "name", where), arguments, extra)


def _result(block: dict[str, Any], where: str) -> ToolResult:
    content, failed = block.get("content"), block.get("is_error")
    said: tuple[Content, ...]
    if isinstance(content, str):
        said = (Text(content),)
    elif content is None:
        said = ()
    else:
        inner = items(content, f"{where}.content")
        said = tuple(
            [_content(plain(item, f"{where}.content[{n}]"), f"{where}.content[{n}]") for n, item in enumerate(inner)]
        )
    if failed is not None and not isinstance(failed, bool):
        raise wrong(f"{where}.is_error", failed, "true or false")
    extra = extra_of(NAME, block, _known(block, _RESULT), where)
    return ToolResult(string(block, "tool_use_id", where), said, "error" if failed else "ok", "", extra)


def _content(block: dict[str, Any], where: str) -> Content:
    """A block that may stand in a message and in a tool result alike."""
    kind = block.get("type")
    match kind:
        case "text":
            return Text(string(block, "text", where), extra_of(NAME, block, _known(block, _TEXT), where))
        case "image" | "document":
            return _media(block, kind, where)
        case str():
            return _opaque(block, kind, where)
        case _:
            raise BadMessage(
                f"{where}.type is {show(kind)}; every content block has a type, such as text or tool_result."
            )


def _known(block: dict[str, Any], known: frozenset[str]) -> frozenset[str]:
    """The known fields of a block, and those whose null says nothing."""
    if block.keys() <= known:
        return known
    return known.union([name for name in _NULLABLE if block.get(name, "") is None])


def _media(block: dict[str, Any], kind: str, where: str) -> Media | Opaque:
    source = plain(block.get("source"), f"{where}.source")
    form = source.get("type")
    if not isinstance(form, str) or source.keys() - MARKS != _SOURCES.get(form):
        return _opaque(block, kind, where)  # A source of a kind that came later, or with more in it than we know.
    inside = f"{where}.source"
    held: Literal["base64", "url", "file"] = "base64"
    match form:
        case "base64":
            mime, data = string(source, "media_type", inside), string(source, "data", inside)
        case "text":
            mime, text = string(source, "media_type", inside), string(source, "data", inside)
            if mime != "text/plain":
                return _opaque(block, kind, where)
            try:
                data = b64encode(text.encode()).decode()
            except UnicodeEncodeError:
                return _opaque(block, kind, where)  # Which says what is wrong with it.
        case "url":
            held, data = "url", string(source, "url", inside)
            mime = "application/pdf" if kind == "document" else ""  # The only documents Anthropic fetches.
        case _:
            held, data = "file", string(source, "file_id", inside)
            mime = "application/octet-stream" if kind == "document" else ""
    # A block that is not what its type suggests is remembered as what it said it is, to say so again.
    own = {"type": kind} if (not mime or mime.startswith("image/")) != (kind == "image") else None
    title = block.get("title")
    name = title if kind == "document" and isinstance(title, str) else None
    extra = extra_of(NAME, block, _known(block, _MEDIA if name is None else _DOCUMENT), where, own)
    if held == "file" and extra is None:
        extra = Extra(NAME, "{}")  # A file's id means something to this provider only.
    return Media(mime, held, data, name or "", extra)


def _opaque(block: dict[str, Any], kind: str, where: str) -> Opaque:
    kept = {key: value for key, value in block.items() if key not in MARKS}
    return Opaque(NAME, kind, text_of(kept, where))
