"""Messages of Strands as messages of foveate, and back.

A message of the user has one message of foveate for each tool's result in it, and one for the blocks between results. A
message of the model is one message.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Sequence
from typing import Any, Final

from ..core.messages import Content, Media, Message, Opaque, Part, Reasoning, ResultState, Text, ToolCall, ToolResult
from .host import json_text

__all__ = ["blocks_of", "messages_of", "result_block"]

Block = dict[str, Any]


def messages_of(message: Any, format: str) -> list[Message]:
    """Return the messages of foveate in a message of Strands. Blocks of unknown kinds are kept as they are.

    `format`: the wire format of the model, which gets its own reasoning back and no other's.
    """
    content: Sequence[Block] = message["content"]
    if message["role"] == "assistant":
        parts = tuple(part for block in content if (part := _part(block, format)) is not None)
        return [Message("assistant", parts or (Text("[blank text]"),))]  # Strands sends this text.
    messages = []
    for is_result, blocks in itertools.groupby(content, key=lambda block: "toolResult" in block):
        if is_result:
            messages += [Message("tool", (_result(block["toolResult"], format),)) for block in blocks]
        elif parts := tuple(part for block in blocks if (part := _part(block, format)) is not None):
            messages.append(Message("user", parts))
    return messages


def blocks_of(message: Message, own: Sequence[Block] = ()) -> list[Block]:
    """Return the blocks of a message. `own`: those that it had, which are kept where they still say the same."""
    if (result := message.result) is None:
        return _blocks(message.parts, own)
    results: list[Block] = [block["toolResult"] for block in own if "toolResult" in block]
    old = next((block for block in results if block["toolUseId"] == result.call_id), {})
    return [{"toolResult": result_block(result, result.call_id, old)}]


def result_block(result: ToolResult, call_id: str, own: Block | None = None) -> Block:
    """Return the result of the call with this id. `own`: the block that it was."""
    own = own or {}
    status = "error" if result.state == "error" else "success"
    return {**own, "toolUseId": call_id, "status": status, "content": _blocks(result.content, own.get("content", ()))}


def _part(block: Block, format: str) -> Any:
    """Return the part of a message in a block; None for an empty text, and for a mark of the cache."""
    match block:
        case {"cachePoint": _}:
            return None
        case {"text": str(text)}:
            return Text(text) if text else None
        case {"toolUse": {"toolUseId": id, "name": name, "input": arguments}}:
            return ToolCall(id, name, json_text(arguments))
        case {"reasoningContent": {"reasoningText": {"text": text, **rest}}}:
            return Reasoning(text, str(rest.get("signature") or ""), "", format)
        case {"reasoningContent": {"redactedContent": bytes(data)}}:
            return Reasoning("", "", base64.b64encode(data).decode(), format)
        case {"json": value}:  # Models get this text of it.
            return Text(json_text(value))
        case _:
            return _media_of(block) or Opaque(format, next(iter(block), ""), json.dumps(block, default=_packed))


def _result(result: Any, format: str) -> ToolResult:
    content = tuple(part for block in result["content"] if (part := _part(block, format)) is not None)
    state: ResultState = "error" if result.get("status") == "error" else "ok"
    return ToolResult(result["toolUseId"], content, state)


def _blocks(parts: Sequence[Part | Content], own: Sequence[Block]) -> list[Block]:
    others = [block for block in own if "toolResult" not in block]
    blocks = []
    for part in parts:
        format = part.format if isinstance(part, Reasoning | Opaque) else ""
        old = next((block for block in others if _part(block, format) == part), None)
        if (block := old or _block(part)) is not None:
            blocks.append(block)
    return blocks


def _block(part: Part | Content) -> Block | None:
    match part:
        case Text(text=text):
            return {"text": text}
        case ToolCall():
            arguments = json.loads(part.arguments or "{}")
            return {"toolUse": {"toolUseId": part.call_id, "name": part.name, "input": arguments}}
        case Reasoning(encrypted=data) if data:
            return {"reasoningContent": {"redactedContent": base64.b64decode(data)}}
        case Reasoning():
            signature = {"signature": part.signature} if part.signature else {}
            return {"reasoningContent": {"reasoningText": {"text": part.text, **signature}}}
        case Media(source="base64"):
            return _file_block(part)
        case Media():
            return {"text": f"[{part.mime or 'file'}: {part.data}]"}
        case Opaque(kind=kind, body=body):
            unpacked: Block = json.loads(body, object_hook=_unpacked)
            return unpacked if kind in unpacked else None  # A block of Strands, which another host has not.
        case _:
            return None


def _packed(value: object) -> object:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else str(value)


def _unpacked(value: dict[str, Any]) -> Any:
    return base64.b64decode(value["base64"]) if value.keys() == {"base64"} else value


_DOCUMENTS: Final = {
    "pdf": "application/pdf",
    "csv": "text/csv",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "html": "text/html",
    "txt": "text/plain",
    "md": "text/markdown",
}
"""Format of a document block -> media type."""
_FORMATS: Final = {mime: format for format, mime in _DOCUMENTS.items()}
_FIELDS: Final = {
    "image": {"format", "source"},
    "audio": {"format", "source"},
    "video": {"format", "source"},
    "document": {"format", "name", "source"},
}
"""Kinds of files -> the fields that `Media` holds. A file with others is kept as it is."""


def _media_of(block: dict[str, Any]) -> Media | None:
    """Return the file in a block; None if it is no file, or one with facts that `Media` has no place for."""
    for kind, fields in _FIELDS.items():
        match block.get(kind):
            case {"format": str(format), "source": {"bytes": bytes(data), **elsewhere}, **rest} if not elsewhere:
                if rest.keys() <= fields and (kind != "document" or format in _DOCUMENTS):
                    mime = _DOCUMENTS[format] if kind == "document" else f"{kind}/{format}"
                    return Media(mime, "base64", base64.b64encode(data).decode(), str(rest.get("name", "")))
    return None


def _file_block(media: Media) -> dict[str, Any]:
    """Return the block of a file whose bytes are known."""
    kind, _, format = media.mime.partition("/")
    source = {"bytes": base64.b64decode(media.data)}
    if media.mime not in _FORMATS and kind in _FIELDS:
        return {kind: {"format": format, "source": source}}
    document = {"format": _FORMATS.get(media.mime, "txt"), "name": media.name or "document", "source": source}
    return {"document": document}
