"""Contents of Microsoft Agent Framework as parts of messages, and back.

Reasoning and contents of unknown kinds belong to the wire format of the client that brought them: only its provider
gets them back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final

from agent_framework import Content

from ..core.messages import Content as Piece
from ..core.messages import Media, Opaque, Part, Reasoning, State, Text, ToolCall, ToolResult
from .host import json_text

__all__ = ["content_of", "grouped", "part_contents", "part_of", "result_of"]

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


def part_contents(contents: Sequence[Content]) -> list[list[Content]]:
    """Return the contents behind each part: the texts of one item of reasoning together, others alone."""

    def belong(last: Content, next: Content) -> bool:
        return last.type == next.type == "text_reasoning" and bool(last.id) and last.id == next.id

    return grouped(contents, belong)


def result_of(content: Content, format: str) -> ToolResult:
    """Return the result of a tool in a content. `format`: the wire format of its client."""
    state: State = "error" if content.exception else "ok"
    if not content.items:
        text = content.result if isinstance(content.result, str) else json_text(content.result)
        return ToolResult(content.call_id or "", (Text(text),), state)
    pieces = (part for item in content.items if isinstance(part := part_of([item], format), Text | Media | Opaque))
    return ToolResult(content.call_id or "", tuple(pieces), state)


def part_of(contents: list[Content], format: str) -> Part:
    """Return the part of a message behind one of `part_contents`."""
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


def grouped(contents: Sequence[Content], belong: Callable[[Content, Content], bool]) -> list[list[Content]]:
    """Return the contents in groups: two neighbours that belong together are in one."""
    found: list[list[Content]] = []
    for content in contents:
        if found and belong(found[-1][-1], content):
            found[-1].append(content)
        else:
            found.append([content])
    return found
