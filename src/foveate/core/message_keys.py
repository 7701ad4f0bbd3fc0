"""Keys of messages by what they say: two forms of one message have one key.

A program that keeps its own list converts messages to its own classes and back. On the way, arguments of calls are
written again, and reasoning, cache marks, ids and unknown fields are lost. A key covers what remains: the role, the
texts, the images, the calls with their ids, and the results.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

import msgspec

from .fallbacks import void_parts
from .messages import Extra, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

__all__ = ["message_key"]

_encode = msgspec.json.Encoder().encode
_sorted_json = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def _without_null(fields: dict[str, Any]) -> dict[str, Any]:
    """Return an object without the fields that are null: the SDK of a provider adds them, or leaves them out."""
    return {key: value for key, value in fields.items() if value is not None}


_decode = json.JSONDecoder(object_hook=_without_null).decode
_MARKS = frozenset({"cache_control", "cachePoint", "id", "status"})
"""Fields of a provider's block that say nothing: marks for its cache, and what it assigns."""


def message_key(message: Message) -> bytes:
    """Return the key of what a message says, 16 bytes.

    Texts that follow each other count as one, and arguments and unknown blocks are compared as JSON without nulls. The
    key leaves out reasoning, unknown fields, and the name and the state of a result, which some formats do not carry;
    also what is void in a reply that another model continued. A spoken reply counts by its id: lists have no more.
    The name of a reply is left out too: providers send none, and frameworks add that of their agent.
    """
    content: list[Any] = [message.role, "" if message.role == "assistant" else message.name]
    _add(content, message.parts)
    if len(content) == 2 and message.extra is not None:  # It has only settings for the provider.
        content.append(_plain(message.extra.fields, _MARKS))
    try:
        body = _encode(content)
    except UnicodeEncodeError:  # Half of a surrogate pair: an append refuses it.
        body = repr(content).encode("utf-8", "backslashreplace")
    return blake2b(body, digest_size=16).digest()


def _add(content: list[Any], parts: tuple[Part, ...]) -> None:
    texts: list[str] = []

    def end_text() -> None:
        if any(texts):
            content.append("".join(texts))
        texts.clear()

    void = void_parts(parts)
    for index, part in enumerate(parts):
        if index in void:
            continue
        match part:
            case Text(text=text, extra=extra):
                if extra is None or not (spoken := _spoken_id(extra)):
                    texts.append(text)
                else:
                    end_text()
                    content.append(("spoken", spoken))
                continue
            case Reasoning():
                continue
            case _:
                end_text()
        match part:
            case ToolCall():
                content.append(("call", part.call_id, part.name, _plain(part.arguments)))
            case ToolResult():
                result: list[Any] = ["result", part.call_id]
                _add(result, part.content)
                content.append(result)
            case Media():
                content.append(("media", part.mime, part.source, part.data))
            case Opaque():
                content.append(("opaque", part.kind, _plain(part.body, _MARKS)))
    end_text()


def _spoken_id(extra: Extra) -> str:
    """Return the id of the spoken reply of chat completions whose transcript has these fields; "" if it is none."""
    if extra.format != "openai" or not extra.fields.startswith('{"type":"audio"'):
        return ""
    match json.loads(extra.fields):
        case {"audio": {"id": str(id)}}:
            return id
        case _:
            return ""


def _plain(text: str, marks: frozenset[str] = frozenset()) -> str:
    """Return JSON text with sorted keys, and without these fields and those that are null; other text unchanged."""
    if text == "{}":
        return text
    try:
        value = _decode(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, dict):
        value = {key: value[key] for key in value if key not in marks}
    return _sorted_json(value)
