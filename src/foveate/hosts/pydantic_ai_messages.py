"""Messages of Pydantic AI as messages of foveate, and back.

A request has one message for each of its parts, a response is one message.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from pydantic_ai.messages import (
    ERROR_OUTCOMES,
    AudioUrl,
    BinaryContent,
    CompactionPart,
    DocumentUrl,
    FileUrl,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    RetryPromptPart,
    SpeechPart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
    VideoUrl,
)

from ..core.messages import Content, Media, Message, Opaque, Part, Reasoning, ResultState, Text, ToolCall, ToolResult
from .host import source_format

__all__ = ["content_of", "messages_of", "request_part", "response_of"]

_URLS: Final[dict[str, Any]] = {
    "image/*": ImageUrl,
    "audio/*": AudioUrl,
    "video/*": VideoUrl,
    "application/*": DocumentUrl,
}
"""Classes of files at an address, by the kind of file that foveate stores for them."""
_NO_TIME: Final = datetime.fromtimestamp(0, UTC)
"""The time of a part that is made here, so that the same content is always the same text."""


def messages_of(message: ModelMessage, format: str) -> list[Message]:
    """Return the messages of foveate in a request or a response.

    `format`: the wire format of the model. Reasoning goes back only to the format that it came from.
    """
    if isinstance(message, ModelResponse):
        source = source_format(message.provider_name or "", format)
        return [Message("assistant", tuple(_response_parts(message, source)))]
    return [_request_message(part, format) for part in message.parts]


def _request_message(part: Any, format: str) -> Message:
    match part:
        case SystemPromptPart():
            return Message("system", (Text(part.content),))
        case UserPromptPart():
            return Message("user", tuple(_user_content(part.content, format)))
        case ToolReturnPart():
            text = part.content if isinstance(part.content, str) else part.model_response_str(wrap_if_error=False)
            content: tuple[Content, ...] = (Text(text), *_user_content(part.files, format))
            state: ResultState = "error" if part.outcome in ERROR_OUTCOMES else "ok"
            return Message("tool", (ToolResult(part.tool_call_id, content, state, part.tool_name),))
        case RetryPromptPart() if part.tool_name:
            content = (Text(part.model_response()),)
            return Message("tool", (ToolResult(part.tool_call_id, content, "error", part.tool_name),))
        case RetryPromptPart():
            return Message("user", (Text(part.model_response()),))
        case RetryFeedbackPart() | CompactionPart() | SpeechPart():
            return Message("user", (_opaque(ModelRequest, part, format),))
        case _:  # A record of the framework, such as a changed instruction: without it, the model follows the old one.
            return Message("system", (_opaque(ModelRequest, part, format),))


def _user_content(content: Any, format: str) -> Iterator[Content]:
    for piece in [content] if isinstance(content, str) else content:
        match piece:
            case str():
                yield Text(piece)
            case TextContent():
                yield Text(piece.content)
            case BinaryContent() | FileUrl():
                yield _media(piece)
            case _:
                yield _opaque(ModelRequest, UserPromptPart([piece], timestamp=_NO_TIME), format)


def _media(file: Any) -> Media:
    if isinstance(file, BinaryContent):
        return Media(file.media_type, "base64", base64.b64encode(file.data).decode())
    mime = next((mime for mime, kind in _URLS.items() if isinstance(file, kind)), "")
    return Media(mime, "url", str(getattr(file, "url", file)))


def _response_parts(response: ModelResponse, format: str) -> Iterator[Part]:
    for part in response.parts:
        match part:
            case TextPart():
                if part.content:
                    yield Text(part.content)
            case ThinkingPart():
                yield Reasoning(part.content, part.signature or "", "", format)
            case ToolCallPart():
                yield ToolCall(part.tool_call_id, part.tool_name, part.args_as_json_str())
            case _:
                yield _opaque(ModelResponse, part, format)


def _opaque(kind: type[ModelRequest | ModelResponse], part: Any, format: str) -> Opaque:
    """Return a part that is kept whole."""
    [message] = ModelMessagesTypeAdapter.dump_python([kind([part])], mode="json")
    body = {"kind": message["kind"], "parts": message["parts"]}  # Other fields have the time of this conversion.
    return Opaque(format, f"pydantic_ai:{part.part_kind}", json.dumps(body))


def _restored(block: Opaque) -> Any:
    """Return the part that was kept whole."""
    return ModelMessagesTypeAdapter.validate_json(f"[{block.body}]")[0].parts[0]


def request_part(message: Message, own: Any = None) -> Any:
    """Return a part of a request for a message. `own`: the part that it was, whose other fields it keeps."""
    result = message.result
    parts = message.parts if result is None else result.content
    opaque = next((part for part in parts if isinstance(part, Opaque)), None)
    if own is not None and _request_message(own, opaque.format if opaque else "") == message:
        return own
    if result is not None:
        content = content_of(result.content)
        if isinstance(content, list) and all(isinstance(piece, str) for piece in content):
            content = "\n".join(content)  # A list of texts would become JSON.
        if isinstance(own, ToolReturnPart):
            return replace(own, content=content, tool_call_id=result.call_id)  # The view may rename a call.
        outcome: Any = "failed" if result.state == "error" else "success"
        return ToolReturnPart(result.name or "tool", content, tool_call_id=result.call_id, outcome=outcome)
    if opaque and not isinstance(part := _restored(opaque), UserPromptPart):  # A part, and not a piece of a prompt.
        return part
    if message.role == "system":
        return SystemPromptPart(message.text)
    return UserPromptPart(content_of(message.parts))


def response_of(message: Message, own: ModelResponse | None = None) -> ModelResponse:
    """Return a response for a message. `own`: the response that it was, whose parts and other fields it keeps."""
    source = next((part.format for part in message.parts if isinstance(part, Reasoning | Opaque)), "")
    olds = [(old, [*_response_parts(ModelResponse([old]), source)]) for old in own.parts] if own else []
    parts: list[Any] = []
    for part in message.parts:
        place = next((place for place, (_, same) in enumerate(olds) if same == [part]), None)
        match part:
            case _ if place is not None:
                parts.append(olds[place][0])
                olds = olds[place + 1 :]  # Equal parts keep their order.
            case Text(text=text):
                parts.append(TextPart(text))
            case ToolCall():
                parts.append(ToolCallPart(part.name, part.arguments, part.call_id))
            case Opaque():
                parts.append(_restored(part))
            # Reasoning that the response did not have is left out: a provider refuses it without its signature.
    return replace(own, parts=parts) if own else ModelResponse(parts)


def content_of(parts: Sequence[Part | Content]) -> Any:
    """Return the content of a user's prompt or a tool's result: a text, or texts and files."""
    pieces: list[Any] = []
    for part in parts:
        match part:
            case Text(text=text):
                pieces.append(text)
            case Media(source="base64"):
                pieces.append(BinaryContent(base64.b64decode(part.data), media_type=part.mime))
            case Media(source="url"):
                pieces.append(_URLS.get(part.mime, ImageUrl)(part.data))
            case Opaque():
                pieces += _restored(part).content
            case _:
                pass
    match pieces:
        case []:
            return ""
        case [str(text)]:
            return text
        case _:
            return pieces
