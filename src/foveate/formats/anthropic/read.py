"""Reading of Anthropic's wire messages.

A user message with tool results and other blocks becomes several messages, in the order of its blocks. Unknown fields
stay with their part, and unknown blocks are kept whole as Opaque. Cache marks and the facts of the API call around a
reply (its id, model, stop reason, usage) are not part of a message and are dropped.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from ...core.fallbacks import VOID_CALL, is_fallback
from ...core.messages import Content, Extra, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from ...core.server_tools import server_blocks
from ...core.stamps import Usage
from ...errors import BadMessage
from ..blocks import (
    MARKS,
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

__all__ = ["NAME", "read", "read_reply"]

NAME = "anthropic"

_MESSAGE = frozenset({"role", "content"})
_ENVELOPE = frozenset(
    {"id", "type", "model", "stop_reason", "stop_sequence", "stop_details", "usage", "container"}
    | {"context_management", "diagnostics", "input_transformations"}
)
_TEXT = MARKS | {"type", "text", "parsed_output"}  # The SDK adds `parsed_output`, its own reading of the text.
_MEDIA = MARKS | {"type", "source"}
_DOCUMENT = _MEDIA | {"title"}
_THINKING = MARKS | {"type", "thinking", "signature"}
_REDACTED = MARKS | {"type", "data"}
_CALL = MARKS | {"type", "id", "name", "input"}
_RESULT = MARKS | {"type", "tool_use_id", "content", "is_error"}

# The API fills these fields in; null means the same as a missing field.
_NULLABLE = ("citations", "caller", "toolset_name", "title", "context", "transformations")

_FOREIGN_ROLES = ("tool", "function", "developer")
_OPENAI_HINT = ' If this message is from OpenAI, open the conversation with format="openai".'

_SOURCES = {
    "base64": {"type", "media_type", "data"},
    "text": {"type", "media_type", "data"},
    "url": {"type", "url"},
    "file": {"type", "file_id"},
}


def read(message: object) -> tuple[Message, ...]:
    """Return the messages in a wire message, or in a list of content blocks or a string from the user."""
    if isinstance(message, str):
        return (Message("user", (Text(message),)),)
    if isinstance(message, list | tuple):
        if not message:
            raise BadMessage("The list of blocks is empty. Append it only if it holds tool results.")
        return _from_user(_blocks(message, "blocks", "user"), None)
    fields = as_dict(message, "message")
    role, content = fields.get("role"), fields.get("content")
    if not isinstance(role, str) or role not in ("user", "assistant", "system"):
        hint = advice_without_role(fields) if role is None else ""
        hint = _OPENAI_HINT if role in _FOREIGN_ROLES else hint
        raise BadMessage(f"message.role is {describe(role)}. It must be user, assistant or system.{hint}")
    if fields.get("tool_calls"):  # Kept as an unknown field, the calls would never be answered.
        raise BadMessage(
            f"message.tool_calls belongs to OpenAI; Anthropic's calls are tool_use blocks of the content.{_OPENAI_HINT}"
        )
    extra = _extra_of_message(fields)
    if isinstance(content, str):
        # An assistant text "" is empty, like an empty list of blocks.
        parts: tuple[Part, ...] = () if role == "assistant" and not content else (Text(content),)
    elif isinstance(content, list | tuple):
        parts = _blocks(content, "content", role)
    else:
        raise wrong_type("message.content", content, "a string or a list of blocks")
    if role == "user":
        return _from_user(parts, extra)
    return (Message("assistant" if role == "assistant" else "system", parts, "", extra),)


def read_reply(reply: object) -> tuple[Message, Usage]:
    """Return the assistant message and the billed usage of a response of the Messages API."""
    fields = as_dict(reply, "reply")
    if fields.get("role") != "assistant":
        refuse_error(fields)
        raise BadMessage(
            f"reply.role is {describe(fields.get('role'))}; a reply of the Messages API has the role assistant. "
            "Pass the whole response. For a stream, pass its final message."
        )
    message = read(fields)[0]
    billed = _usage(fields.get("usage"), runs_tools=any(not block.is_use for _, block in server_blocks(message)))
    if (cleared := _cleared(fields.get("context_management"))) and billed.sent_tokens is not None:
        billed = replace(billed, sent=billed.sent_tokens + cleared)
    return message, billed


def _usage(usage: object, *, runs_tools: bool) -> Usage:
    """Return the billed usage. The API reports what its own compactions cost apart, in `iterations`.

    `runs_tools`: whether the API ran tools for this reply, and so gave the model the prompt several times.
    """
    if usage is None:
        return Usage()
    fields = as_dict(usage, "reply.usage")
    details, iterations = fields.get("output_tokens_details"), fields.get("iterations")
    items = [item for item in iterations if isinstance(item, dict)] if isinstance(iterations, list) else []
    compactions = [_counts(item) for item in items if item.get("type") == "compaction"]
    billed = _counts(fields)
    for each in compactions:
        sums = [None if x is None and y is None else (x or 0) + (y or 0) for x, y in zip(billed, each, strict=True)]
        billed = (sums[0], sums[1], sums[2], sums[3])
    return Usage(*billed, get_count(details, "thinking_tokens"), _sent(items, runs_tools=runs_tools))


def _sent(iterations: Sequence[Mapping[str, Any]], *, runs_tools: bool) -> int | None:
    """Return the tokens of the prompt as it was sent; None if they are the billed ones, 0 if they are unknown.

    The billed tokens are those of all iterations. The first iteration reads the prompt as it was sent, unless it is a
    compaction: its tokens are not those of the context that it closes. After a fallback, the first one is of another
    model.
    """
    kinds = [item.get("type") for item in iterations]
    if "fallback_message" in kinds or not kinds:
        return 0 if runs_tools else None
    if kinds[0] != "message":
        return 0
    return sum(count or 0 for count in _counts(iterations[0])[:3]) if len(kinds) > 1 else None


def _counts(fields: Mapping[str, Any]) -> tuple[int | None, int | None, int | None, int | None]:
    """Return the tokens of one call: input, read from the cache, written to it, output."""
    read_, write = get_count(fields, "cache_read_input_tokens"), get_count(fields, "cache_creation_input_tokens")
    return get_count(fields, "input_tokens"), read_, write, get_count(fields, "output_tokens")


def _cleared(management: object) -> int:
    """Return the tokens that the API's own context editing removed from the prompt (`applied_edits`)."""
    edits = management.get("applied_edits") if isinstance(management, dict) else None
    counts = [get_count(edit, "cleared_input_tokens") for edit in edits or ()]
    return sum(count or 0 for count in counts)


def _extra_of_message(fields: dict[str, Any]) -> Extra | None:
    if fields.keys() <= _MESSAGE:
        return None
    if fields.get("type") == "message":  # A whole reply: all other fields are facts of the API call.
        return None
    known = _MESSAGE | _ENVELOPE if fields.get("role") == "assistant" else _MESSAGE
    return make_extra(NAME, fields, known | MARKS, "message")


def _from_user(parts: tuple[Part, ...], extra: Extra | None) -> tuple[Message, ...]:
    """Split into a message for each tool result and each sequence of other blocks; the first keeps the extra fields."""
    if not any(type(part) is ToolResult for part in parts):
        return (Message("user", parts, "", extra),)
    messages: list[Message] = []
    others: list[Part] = []
    for part in parts:
        if type(part) is not ToolResult:
            others.append(part)
            continue
        if others:
            messages.append(Message("user", tuple(others), "", None if messages else extra))
            others = []
        messages.append(Message("tool", (part,), "", None if messages else extra))
    if others:
        messages.append(Message("user", tuple(others)))
    return tuple(messages)


def _blocks(blocks: list[Any] | tuple[Any, ...], where: str, role: str) -> tuple[Part, ...]:
    """Return the parts for the blocks of a message. A call that is void, because another model went on, is no call."""
    parts = [_part(block, f"{where}[{number}]", role) for number, block in enumerate(blocks)]
    last = max([number for number, part in enumerate(parts) if is_fallback(part)], default=0)
    for number in range(last):
        if isinstance(parts[number], ToolCall):
            place = f"{where}[{number}]"
            parts[number] = _opaque(as_dict(blocks[number], place), VOID_CALL, place)
    return tuple(parts)


def _part(value: object, where: str, role: str) -> Part:
    """Return the part for one content block of a message."""
    block = as_dict(value, where)
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
                raise wrong_type(f"{where}.signature", signature, "a string")
            extra = make_extra(NAME, block, _THINKING, where)
            return Reasoning(get_string(block, "thinking", where), signature or "", "", NAME, extra)
        case "redacted_thinking":
            _only("assistant", role, "redacted_thinking", where)
            extra = make_extra(NAME, block, _REDACTED, where)
            return Reasoning("", "", get_string(block, "data", where), NAME, extra)
        case _:
            return _content(block, where)


def _only(wanted: str, role: str, kind: str, where: str) -> None:
    if role != wanted:
        raise BadMessage(
            f"{where} is a {kind} in a message of the role {role}; only the role {wanted} has such blocks. "
            "Change the role."
        )


def _call(block: dict[str, Any], where: str) -> ToolCall:
    arguments = block.get("input")
    if arguments is not None and not isinstance(arguments, Mapping):
        raise wrong_type(f"{where}.input", arguments, "an object")
    extra = make_extra(NAME, block, _known(block, _CALL), where)
    text = to_text(dict(arguments), f"{where}.input") if arguments else "{}"
    return ToolCall(get_string(block, "id", where), get_string(block, "name", where), text, extra)


def _result(block: dict[str, Any], where: str) -> ToolResult:
    content, failed = block.get("content"), block.get("is_error")
    parts: tuple[Content, ...]
    if isinstance(content, str):
        parts = (Text(content),)
    elif content is None:
        parts = ()
    else:
        inner = as_list(content, f"{where}.content")
        parts = tuple(
            [_content(as_dict(item, f"{where}.content[{n}]"), f"{where}.content[{n}]") for n, item in enumerate(inner)]
        )
    if failed is not None and not isinstance(failed, bool):
        raise wrong_type(f"{where}.is_error", failed, "true or false")
    extra = make_extra(NAME, block, _known(block, _RESULT), where)
    return ToolResult(get_string(block, "tool_use_id", where), parts, "error" if failed else "ok", "", extra)


def _content(block: dict[str, Any], where: str) -> Content:
    """Read a block that may stand in a message or in a tool result."""
    kind = block.get("type")
    match kind:
        case "text":
            return Text(get_string(block, "text", where), make_extra(NAME, block, _known(block, _TEXT), where))
        case "image" | "document":
            return _media(block, kind, where)
        case str():
            return _opaque(block, kind, where)
        case _:
            raise BadMessage(
                f"{where}.type is {describe(kind)}. Every content block has a type, such as text or tool_result."
            )


def _known(block: dict[str, Any], known: frozenset[str]) -> frozenset[str]:
    """Return the known fields of a block, plus those that are null."""
    if block.keys() <= known:
        return known
    return known.union([name for name in _NULLABLE if block.get(name, "") is None])


def _media(block: dict[str, Any], kind: str, where: str) -> Media | Opaque:
    source = as_dict(block.get("source"), f"{where}.source")
    form = source.get("type")
    if not isinstance(form, str) or source.keys() - MARKS != _SOURCES.get(form):
        return _opaque(block, kind, where)  # A newer kind of source, or one with unknown fields.
    inside = f"{where}.source"
    held: Literal["base64", "url", "file"] = "base64"
    match form:
        case "base64":
            mime, data = get_string(source, "media_type", inside), get_string(source, "data", inside)
        case "text":
            mime, text = get_string(source, "media_type", inside), get_string(source, "data", inside)
            if mime != "text/plain":
                return _opaque(block, kind, where)
            try:
                data = b64encode(text.encode()).decode()
            except UnicodeEncodeError:
                return _opaque(block, kind, where)  # Keeping it opaque raises the error that names the problem.
        case "url":
            held, data = "url", get_string(source, "url", inside)
            mime = "application/pdf" if kind == "document" else ""  # Anthropic fetches no other documents.
        case _:
            held, data = "file", get_string(source, "file_id", inside)
            mime = "application/octet-stream" if kind == "document" else ""
    # Keep the block's type if the media type suggests another one, so that it is written back the same.
    own = {"type": kind} if (not mime or mime.startswith("image/")) != (kind == "image") else None
    title = block.get("title")
    name = title if kind == "document" and isinstance(title, str) else None
    extra = make_extra(NAME, block, _known(block, _MEDIA if name is None else _DOCUMENT), where, own)
    if held == "file" and extra is None:
        extra = Extra(NAME, "{}")  # Marks the id as Anthropic's.
    return Media(mime, held, data, name or "", extra)


def _opaque(block: dict[str, Any], kind: str, where: str) -> Opaque:
    kept = {key: value for key, value in block.items() if key not in MARKS}
    return Opaque(NAME, kind, to_text(kept, where))
