"""Images, documents, audio and video in blocks of Strands as media of foveate, and back."""

from __future__ import annotations

import base64
from typing import Any, Final

from ..core.messages import Media

__all__ = ["file_block", "media_of"]

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


def media_of(block: dict[str, Any]) -> Media | None:
    """Return the file in a block; None if it is no file, or one with facts that `Media` has no place for."""
    for kind, fields in _FIELDS.items():
        match block.get(kind):
            case {"format": str(format), "source": {"bytes": bytes(data), **elsewhere}, **rest} if not elsewhere:
                if rest.keys() <= fields and (kind != "document" or format in _DOCUMENTS):
                    mime = _DOCUMENTS[format] if kind == "document" else f"{kind}/{format}"
                    return Media(mime, "base64", base64.b64encode(data).decode(), str(rest.get("name", "")))
    return None


def file_block(media: Media) -> dict[str, Any]:
    """Return the block of a file whose bytes are known."""
    kind, _, format = media.mime.partition("/")
    source = {"bytes": base64.b64decode(media.data)}
    if media.mime not in _FORMATS and kind in _FIELDS:
        return {kind: {"format": format, "source": source}}
    document = {"format": _FORMATS.get(media.mime, "txt"), "name": media.name or "document", "source": source}
    return {"document": document}
