"""The parts of a content of OpenAI's chat completions, written: text, images, sounds, files, refusals.

It does not know messages, only the place in one that a part is written for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.messages import Media, Opaque, Part, Text
from ._blocks import Place, fields_of, with_extra
from ._json import object_of
from ._media import IMAGES, is_sendable, untold
from ._openai_read import TOOL_CALL
from ._openai_read_parts import NAME

__all__ = ["content_of", "has_place"]

_LARGEST = 50_000_000
"""Characters of base64 that a request could hold at all."""


def content_of(parts: Iterable[Part], strict: bool, place: Place) -> str | list[dict[str, Any]]:
    """The content of a message: a string where it is one plain text, otherwise a list of parts."""
    content = [wire for part in parts if (wire := _part(part, strict, place)) is not None]
    if len(content) == 1 and content[0].get("type") == "text" and content[0].keys() == {"type", "text"}:
        text: str = content[0]["text"]
        return text
    return content


def _part(part: Part, strict: bool, place: Place) -> dict[str, Any] | None:
    match part:
        case Text():
            extra = {} if strict else fields_of(part.extra, NAME)
            refused = extra.pop("type", None) == "refusal" and place in ("export", "assistant")
            kind = "refusal" if refused else "text"
            return with_extra({"type": kind, kind: part.text}, extra)
        case Media():
            return _media(part, strict) if has_place(part, place) else {"type": "text", "text": untold(part)}
        case Opaque() if part.format == NAME and not part.kind.startswith(TOOL_CALL):
            # A system prompt is text, and strict servers know no parts but the common ones.
            return None if strict or place == "system" else object_of(part.body)
        case _:
            return None  # Foreign, or with a place of its own: calls, results, reasoning.


def _media(part: Media, strict: bool) -> dict[str, Any]:
    extra = {} if strict else fields_of(part.extra, NAME)
    asked = extra.pop("type", None)
    data = f"data:{part.mime};base64,{part.data}"
    inside: dict[str, Any]
    if part.source == "file":
        kind, inside = "file", {"file_id": part.data}
    elif part.source == "url":
        kind, inside = "image_url", {"url": part.data}
    elif asked == "image_url" or (part.is_image and asked != "file"):
        kind, inside = "image_url", {"url": data}
    elif part.mime.startswith("audio/") and asked != "file":
        kind, inside = "input_audio", {"data": part.data, "format": part.mime.removeprefix("audio/")}
    else:
        kind, inside = "file", {"file_data": data}
    if kind == "file" and part.name:
        inside["filename"] = part.name
    nested = extra.pop(kind, None)
    if isinstance(nested, dict):
        with_extra(inside, nested)
    return with_extra({"type": kind, kind: inside}, extra)


def has_place(part: Media, place: Place) -> bool:
    """Whether this can be shown there: no URL but an image's ever, and in a request only what the user's side shows."""
    if part.source == "url" and not part.is_image:
        return False
    if place == "export":
        return part.source != "file" or part.extra is None or part.extra.format == NAME
    return place == "user" and is_sendable(part, NAME, IMAGES if part.is_image else (part.mime,), _LARGEST)
