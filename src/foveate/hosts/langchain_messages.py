"""Messages of LangChain as messages of foveate, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from ..core.messages import Content, Media, Message, Opaque, Part, Reasoning, ResultState, Text, ToolCall, ToolResult
from ..core.stamps import Usage
from .host import json_text, source_format, usage_of_totals

__all__ = ["from_langchain", "langchain_content", "to_langchain", "usage_of"]

_RAW_CALLS: Final = ("tool_calls", "function_call")


def from_langchain(message: BaseMessage, format: str) -> Message:
    """Return a message of LangChain as one of foveate. Blocks of unknown kinds are kept as they are.

    `format`: the wire format of the model. Reasoning goes back only to the format that it came from.
    """
    provider = str(message.response_metadata.get("model_provider", ""))
    parts = tuple(_parts(message, source_format(provider, format)))
    match message:
        case ToolMessage():
            state: ResultState = "error" if message.status == "error" else "ok"
            content = tuple(part for part in parts if isinstance(part, Text | Media | Opaque))
            return Message("tool", (ToolResult(message.tool_call_id, content, state, message.name or ""),))
        case AIMessage():
            calls = (ToolCall(call["id"] or "", call["name"], json_text(call["args"])) for call in message.tool_calls)
            bad = (ToolCall(c["id"] or "", c["name"] or "", c["args"] or "") for c in message.invalid_tool_calls)
            return Message("assistant", (*parts, *calls, *bad))
        case SystemMessage():
            return Message("system", parts)
        case _:
            return Message("user", parts)


def to_langchain(message: Message, own: BaseMessage | None = None) -> BaseMessage:
    """Return a message of foveate as one of LangChain. `own`: the state's message that it was, whose facts it keeps."""
    shown = _as_langchain(message)
    if own is None or own.type != shown.type:
        return shown
    source = next((part.format for part in _content(message) if isinstance(part, Reasoning | Opaque)), "")
    if from_langchain(own, source) == message:
        return own
    changes: dict[str, Any] = {"content": _kept_content(_content(message), own, source)}
    if isinstance(shown, AIMessage):  # The calls that some providers also have in `additional_kwargs` are the old ones.
        others = {key: value for key, value in own.additional_kwargs.items() if key not in _RAW_CALLS}
        changes |= {"tool_calls": shown.tool_calls, "invalid_tool_calls": [], "additional_kwargs": others}
    if isinstance(shown, ToolMessage):  # The view may rename a call.
        changes["tool_call_id"] = shown.tool_call_id
    return own.model_copy(update=changes)


def _as_langchain(message: Message) -> BaseMessage:
    content = langchain_content(_content(message))
    match message.role:
        case "tool":
            result = message.result or ToolResult("")
            status: Any = "error" if result.state == "error" else "success"
            return ToolMessage(content, tool_call_id=result.call_id, name=result.name or None, status=status)
        case "assistant":
            calls: Any = [
                {"name": call.name, "args": json.loads(call.arguments or "{}"), "id": call.call_id, "type": "tool_call"}
                for call in message.calls
            ]
            return AIMessage(content, tool_calls=calls)
        case "system":
            return SystemMessage(content)
        case _:
            return HumanMessage(content)


def _content(message: Message) -> Sequence[Part | Content]:
    return message.result.content if message.result else message.parts


def _kept_content(parts: Sequence[Part | Content], own: BaseMessage, source: str) -> str | list[Any]:
    """Return the content for these parts, with the blocks of the state's message that say the same."""
    if isinstance(own.content, str):
        return langchain_content(parts)
    raw: list[tuple[Any, list[Part | Content]]] = []
    for block in own.content:
        alone: dict[str, Any] = {"content": [block], "additional_kwargs": {}}
        single = own.model_copy(update=alone | ({"tool_calls": []} if isinstance(own, AIMessage) else {}))
        raw.append((block, [*_parts(single, source)]))
    blocks: list[Any] = []
    left = [part for part in parts if not isinstance(part, ToolCall)]
    while left:
        fits = ((place, same) for place, (_, same) in enumerate(raw) if same and left[: len(same)] == same)
        place, same = next(fits, (-1, left[:1]))
        block = raw[place][0] if place >= 0 else _block(left[0])
        blocks += [] if block is None else [block]
        raw, left = raw[place + 1 :], left[len(same) :]
    return blocks or ""


def langchain_content(parts: Sequence[Part | Content]) -> str | list[Any]:
    """Return the content of a message: a single text, or blocks. Reasoning and calls are left out."""
    blocks = [block for part in parts if (block := _block(part)) is not None]
    match blocks:
        case []:
            return ""
        case [{"type": "text", "text": str(text)}]:
            return text
        case _:
            return blocks


def usage_of(message: AIMessage) -> Usage | None:
    """Return the usage of a reply; None if the provider did not report it."""
    if not (usage := message.usage_metadata):
        return None
    prompt: Any = usage.get("input_token_details") or {}
    reasoning = (usage.get("output_token_details") or {}).get("reasoning")
    read, write = prompt.get("cache_read"), prompt.get("cache_creation")
    return usage_of_totals(usage["input_tokens"], read, write, usage["output_tokens"], reasoning)


def _parts(message: BaseMessage, format: str) -> Iterator[Part | Content]:
    for block in message.content_blocks:
        match dict(block):
            case {"type": "text", "text": str(text)}:
                if text:
                    yield Text(str(text))
            case {"type": "reasoning", **rest}:
                extras: Any = rest.get("extras") or {}
                yield Reasoning(str(rest.get("reasoning", "")), str(extras.get("signature", "")), "", format)
            case {"type": "tool_call" | "tool_call_chunk" | "invalid_tool_call"}:
                pass
            case {"type": "image" | "audio" | "video" | "file", "base64": str(data), **rest}:
                yield Media(str(rest.get("mime_type", "")), "base64", data)
            case {"type": "image" | "audio" | "video" | "file", "url": str(url), **rest}:
                yield Media(str(rest.get("mime_type", "")), "url", url)
            case {"type": "image" | "audio" | "video" | "file", "file_id": str(file), **rest}:
                yield Media(str(rest.get("mime_type", "")), "file", file)
            case other:
                yield Opaque(format, str(other.get("type", "")), json.dumps(other, default=str))


def _block(part: Part | Content) -> dict[str, Any] | None:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Media():
            key = {"base64": "base64", "url": "url", "file": "file_id"}[part.source]
            kind = "image" if part.is_image else part.mime.partition("/")[0]
            mime = {"mime_type": part.mime} if part.mime else {}
            return {"type": kind if kind in ("image", "audio", "video") else "file", key: part.data, **mime}
        case Opaque():
            block: dict[str, Any] = json.loads(part.body)
            return block.get("value", block) if block.get("type") == "non_standard" else block
        case _:
            return None
