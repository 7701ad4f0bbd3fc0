"""Messages of LangChain as messages of foveate, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from ..core.messages import Content, Media, Message, Opaque, Part, Reasoning, State, Text, ToolCall, ToolResult
from ..core.stamps import Usage
from .host import source_format, usage_of_totals

__all__ = ["from_langchain", "langchain_content", "to_langchain", "usage_of"]


def from_langchain(message: BaseMessage, format: str) -> Message:
    """Return a message of LangChain as one of foveate. Blocks of unknown kinds are kept as they are.

    `format`: the wire format of the model. Reasoning goes back only to the format that it came from.
    """
    provider = str(message.response_metadata.get("model_provider", ""))
    parts = tuple(_parts(message, source_format(provider, format)))
    match message:
        case ToolMessage():
            state: State = "error" if message.status == "error" else "ok"
            content = tuple(part for part in parts if isinstance(part, Text | Media | Opaque))
            return Message("tool", (ToolResult(message.tool_call_id, content, state, message.name or ""),))
        case AIMessage():
            calls = (ToolCall(call["id"] or "", call["name"], json.dumps(call["args"])) for call in message.tool_calls)
            return Message("assistant", (*parts, *calls))
        case SystemMessage():
            return Message("system", parts)
        case _:
            return Message("user", parts)


def to_langchain(message: Message, own: BaseMessage | None = None) -> BaseMessage:
    """Return a message of foveate as one of LangChain. `own`: the state's message that it was, whose facts it keeps."""
    match message.role:
        case "tool":
            result = message.result or ToolResult("")
            content = langchain_content(result.content)
            if isinstance(own, ToolMessage):
                return own.model_copy(update={"content": content})
            status: Any = "error" if result.state == "error" else "success"
            return ToolMessage(content, tool_call_id=result.call_id, name=result.name or None, status=status)
        case "assistant":
            calls: Any = [
                {"name": call.name, "args": json.loads(call.arguments or "{}"), "id": call.call_id, "type": "tool_call"}
                for call in message.calls
            ]
            content = langchain_content(message.parts)
            if thoughts := _thoughts(message, own):
                content = [*thoughts, *([{"type": "text", "text": content}] if isinstance(content, str) else content)]
                content = [block for block in content if block.get("text") != ""]
            return AIMessage(content, tool_calls=calls, id=own.id if own else None)
        case "system":
            return SystemMessage(langchain_content(message.parts), id=own.id if own else None)
        case _:
            return HumanMessage(langchain_content(message.parts), id=own.id if own else None)


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


def _thoughts(message: Message, own: BaseMessage | None) -> list[Any]:
    """Return the blocks of reasoning of the state's message, in its provider's form, if the message shows reasoning."""
    shows = any(isinstance(part, Reasoning) for part in message.parts)
    if not shows or own is None or isinstance(own.content, str):
        return []
    return [
        block for block in own.content if isinstance(block, dict) and block.get("type") in ("thinking", "reasoning")
    ]


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
