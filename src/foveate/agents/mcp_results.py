"""Results of MCP tools as parts for the model: text, images, sound, resources, structured content.

Any tool may return such a result: the SDK's `CallToolResult`, or its form as a dict. The fields are those of the
protocol (`modelcontextprotocol.io`, revision 2025-06-18 and later).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..core.messages import Content, Media, ResultState, Text

__all__ = ["read_mcp_result"]

_FIELDS = frozenset(
    ("content", "isError", "is_error", "structuredContent", "structured_content", "_meta", "meta", "resultType")
)
_KINDS = frozenset(("text", "image", "audio", "resource", "resource_link"))


def read_mcp_result(value: object) -> tuple[tuple[Content, ...], ResultState] | None:
    """Return the content of a result, and whether it is an error; None if the value is not a result of MCP.

    Structured content is shown if no text repeats it, as servers should. The content may be empty.
    """
    fields = _fields_of(value)
    if fields is None:
        return None
    parts = [part for block in fields["content"] for part in _parts(block)]
    structured = fields.get("structuredContent", fields.get("structured_content"))
    if structured is not None and not any(isinstance(part, Text) for part in parts):
        parts.append(Text(_json(structured)))
    return tuple(parts), "error" if fields.get("isError", fields.get("is_error")) else "ok"


def _fields_of(value: object) -> Mapping[str, Any] | None:
    """Return a result as a dict with the protocol's names, or None for another value."""
    if isinstance(value, Mapping):
        fields: Any = value
    elif isinstance(getattr(value, "content", None), list) and callable(dump := getattr(value, "model_dump", None)):
        fields = dump(by_alias=True, mode="json", exclude_none=True)
    else:
        return None
    if not isinstance(fields, Mapping) or not fields.keys() <= _FIELDS or not isinstance(fields.get("content"), list):
        return None
    is_result = all(isinstance(block, Mapping) and block.get("type") in _KINDS for block in fields["content"])
    return fields if is_result and (fields["content"] or len(fields) > 1) else None


def _parts(block: Mapping[str, Any]) -> list[Content]:
    """Return the parts for one block."""
    match block:
        case {"type": "text", "text": str(text)}:
            return [Text(text)]
        case {"type": "image" | "audio", "data": str(data), "mimeType": str(mime)}:
            return [Media(mime, "base64", data)]
        case {"type": "resource", "resource": {"uri": uri, "text": str(text)}}:
            return [Text(f"[Resource {uri}]\n{text}")]
        case {"type": "resource", "resource": {"uri": uri, "blob": str(data), **more}}:
            return [Text(f"[Resource {uri}]"), Media(str(more.get("mimeType") or _BINARY), "base64", data, str(uri))]
        case {"type": "resource_link", "uri": uri, **more}:
            facts = [str(more[name]) for name in ("title", "mimeType", "description") if more.get(name)]
            return [Text(f"[Resource {uri}{': ' if facts else ''}{', '.join(facts)}]")]
        case _:
            return [Text(_json(block))]


_BINARY = "application/octet-stream"


def _json(value: object) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()
