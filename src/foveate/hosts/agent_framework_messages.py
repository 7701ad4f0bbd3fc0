"""Messages of Microsoft Agent Framework as messages of foveate, and back.

A message of the framework may hold several results of tools. Each of them is a message of foveate. Reasoning and
contents of unknown kinds belong to the wire format of the client that brought them: only its provider gets them back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from agent_framework import Content, Message

from ..core.messages import Content as Piece
from ..core.messages import Media, Opaque, Part, Reasoning, ResultState, Role, Text, ToolCall, ToolResult
from ..core.messages import Message as CoreMessage
from ..core.stamps import Usage
from .host import json_text, usage_of_totals

__all__ = ["content_of", "groups", "messages_of", "to_agent_framework", "usage_of"]

_ROLES: Final[dict[str, Role]] = {"system": "system", "developer": "system", "assistant": "assistant"}


def messages_of(message: Message, format: str) -> list[CoreMessage]:
    """Return the messages of foveate in a message of the framework. `format`: the wire format of its client."""
    return [_message_of(message, group, format) for group in groups(message)]


def groups(message: Message) -> list[list[Content]]:
    """Return the contents behind each of `messages_of(message)`: a result alone, others together."""
    return _grouped(message.contents, lambda last, next: "function_result" not in (last.type, next.type)) or [[]]


def to_agent_framework(
    message: CoreMessage, format: str, own: Message | None = None, kept: Sequence[Content] = ()
) -> Message:
    """Return a message of foveate as one of the framework.

    `own`, `kept`: the message that it was and its contents, which are used again for every part that is the same.
    """
    contents = _contents_of(message, format, kept)
    if own is None or _ROLES.get(own.role, own.role) != message.role:
        return Message(message.role, contents)
    return Message(
        own.role,
        contents,
        author_name=own.author_name,
        message_id=own.message_id,
        additional_properties=own.additional_properties,
    )


def usage_of(response: Any) -> Usage | None:
    """Return the usage of a reply. The framework's input tokens include those of the cache."""
    details = response.usage_details or {}
    if (total := details.get("input_token_count")) is None:
        return None
    read, write = details.get("cache_read_input_token_count"), details.get("cache_creation_input_token_count")
    output, reasoning = details.get("output_token_count"), details.get("reasoning_output_token_count")
    return usage_of_totals(total, read, write, output, reasoning)


def _message_of(message: Message, contents: list[Content], format: str) -> CoreMessage:
    if contents and contents[0].type == "function_result":
        return CoreMessage("tool", (_result_of(contents[0], format),))
    parts = tuple(_part_of(group, format) for group in _part_contents(contents))
    return CoreMessage(_ROLES.get(message.role, "user"), parts)


def _contents_of(message: CoreMessage, format: str, kept: Sequence[Content]) -> list[Content]:
    if (result := message.result) is not None:
        old = kept[0] if kept else None
        if old is not None and _result_of(old, format) == result:
            return [old]
        failure = (old.exception if old is not None else None) or ("failed" if result.state != "ok" else None)
        items = [content_of(part) for part in result.content]
        return [Content.from_function_result(result.call_id, result=items, exception=failure, id=old and old.id)]
    same = {_part_of(group, format): group for group in _part_contents(kept)}
    return [content for part in message.parts for content in same.get(part) or [content_of(part)]]


_OWN: Final = " of agent-framework"
"""The end of the kind of a content that foveate does not read."""


def content_of(part: Part | Piece) -> Content:
    """Return a part of a message as a content of the framework."""
    match part:
        case Text(text=text):
            return Content.from_text(text)
        case Reasoning():
            data = part.encrypted or part.signature
            return Content.from_text_reasoning(text=part.text or None, protected_data=data or None)
        case ToolCall():
            return Content.from_function_call(part.call_id, part.name, arguments=part.arguments)
        case Media(source="base64"):
            return Content.from_uri(f"data:{part.mime};base64,{part.data}", name=part.name or None)
        case Media(source="url"):
            return Content.from_uri(part.data, media_type=part.mime or None, name=part.name or None)
        case Media():
            return Content.from_hosted_file(part.data, media_type=part.mime or None, name=part.name or None)
        case Opaque() if part.kind.endswith(_OWN):
            return Content.from_dict(json.loads(part.body))
        case other:
            return Content.from_text(f"[{getattr(other, 'kind', 'content')}]")


def _part_contents(contents: Sequence[Content]) -> list[list[Content]]:
    """Return the contents behind each part: the texts of one item of reasoning together, others alone."""

    def belong(last: Content, next: Content) -> bool:
        return last.type == next.type == "text_reasoning" and bool(last.id) and last.id == next.id

    return _grouped(contents, belong)


def _result_of(content: Content, format: str) -> ToolResult:
    """Return the result of a tool in a content. `format`: the wire format of its client."""
    state: ResultState = "error" if content.exception else "ok"
    if not content.items:
        text = content.result if isinstance(content.result, str) else json_text(content.result)
        return ToolResult(content.call_id or "", (Text(text),), state)
    pieces = (part for item in content.items if isinstance(part := _part_of([item], format), Text | Media | Opaque))
    return ToolResult(content.call_id or "", tuple(pieces), state)


def _part_of(contents: list[Content], format: str) -> Part:
    """Return the part of a message behind one of `_part_contents`."""
    content = contents[0]
    match content.type:
        case "text":
            return Text(content.text)
        case "text_reasoning":
            text = "\n".join(each.text for each in contents if each.text)
            data = next((each.protected_data for each in contents if each.protected_data), "")
            is_encrypted = format == "openai_responses"
            return Reasoning(text, "" if is_encrypted else data, data if is_encrypted else "", format)
        case "function_call" if not content.informational_only and not content.hosted:
            arguments = content.arguments or "{}"
            body = arguments if isinstance(arguments, str) else json_text(arguments)
            return ToolCall(content.call_id or "", content.name or "", body)
        case "data" if ";base64," in content.uri:
            head, _, data = content.uri.partition(";base64,")
            return Media(content.media_type or head.removeprefix("data:"), "base64", data, content.name or "")
        case "uri":
            return Media(content.media_type or "", "url", content.uri, content.name or "")
        case "hosted_file":
            return Media(content.media_type or "", "file", content.file_id or "", content.name or "")
        case kind:
            return Opaque(format, f"{kind}{_OWN}", json.dumps(content.to_dict(), default=str))


def _grouped(contents: Sequence[Content], belong: Callable[[Content, Content], bool]) -> list[list[Content]]:
    """Return the contents in groups: two neighbours that belong together are in one."""
    found: list[list[Content]] = []
    for content in contents:
        if found and belong(found[-1][-1], content):
            found[-1].append(content)
        else:
            found.append([content])
    return found
