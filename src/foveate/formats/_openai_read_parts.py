"""The parts of a content of OpenAI's chat completions, read: text, images, sounds, files, refusals.

A content is a string or a list of parts. It does not know messages: who said it is for others to know.
"""

from __future__ import annotations

import re
from typing import Any

from ..core.messages import Content, Extra, Media, Opaque, Text
from ..errors import BadMessage
from ._blocks import MARKS, extra_of, plain, show, string, wrong
from ._json import text_of

__all__ = ["NAME", "read_parts", "unmarked"]

NAME = "openai"

_PART = MARKS | {"type"}

_DATA_URL = re.compile(r"data:([^;,]*);base64,")


def read_parts(content: object) -> tuple[Content, ...]:
    """The parts of a content. Raises BadMessage."""
    if isinstance(content, str):
        return (Text(content),)
    if not isinstance(content, list | tuple):
        raise wrong("message.content", content, "a string or a list of parts")
    return tuple([_part(plain(part, f"content[{n}]"), f"content[{n}]") for n, part in enumerate(content)])


def _part(part: dict[str, Any], where: str) -> Content:
    kind = part.get("type")
    match kind:
        case "text":
            return Text(string(part, "text", where), extra_of(NAME, part, _PART | {"text"}, where))
        case "refusal":
            extra = extra_of(NAME, part, _PART | {"refusal"}, where, {"type": "refusal"})
            return Text(string(part, "refusal", where), extra)
        case "image_url":
            return _image(part, where)
        case "input_audio":
            inner = plain(part.get(kind), f"{where}.{kind}")
            data, form = string(inner, "data", f"{where}.{kind}"), string(inner, "format", f"{where}.{kind}")
            return Media(f"audio/{form}", "base64", data, "", _extra(part, kind, inner, {"data", "format"}, where))
        case "file":
            return _file(part, where)
        case "tool_use" | "tool_result":  # Kept as a block of unknown kind, it would never be paired.
            raise BadMessage(
                f"{where} is a {kind}, which is Anthropic's; in OpenAI's chat completions calls are in tool_calls and "
                'results are messages of the role tool. Or open the conversation with format="anthropic".'
            )
        case str():
            return Opaque(NAME, kind, text_of(unmarked(part), where))
        case _:
            raise BadMessage(f"{where}.type is {show(kind)}; every part of a content has a type, such as text.")


def _image(part: dict[str, Any], where: str) -> Media:
    given = part.get("image_url")
    inner = {"url": given} if isinstance(given, str) else plain(given, f"{where}.image_url")
    url = string(inner, "url", f"{where}.image_url")
    found = _DATA_URL.match(url)
    # What was sent as an image although its type says otherwise is remembered as one.
    own = {"type": "image_url"} if found and not _is_image(found[1]) else None
    extra = _extra(part, "image_url", inner, {"url"}, where, own)
    if found:
        return Media(found[1], "base64", url[found.end() :], "", extra)
    return Media("", "url", url, "", extra)


def _file(part: dict[str, Any], where: str) -> Media | Opaque:
    inner = plain(part.get("file"), f"{where}.file")
    data, held, name = inner.get("file_data"), inner.get("file_id"), inner.get("filename")
    known = {"file_data", "file_id", "filename"} if isinstance(name, str) else {"file_data", "file_id"}
    label = name if isinstance(name, str) else ""
    if isinstance(held, str) and data is None:
        # A file's id means something to this provider only, so that it came from here is remembered.
        kept = _extra(part, "file", inner, known, where) or Extra(NAME, "{}")
        return Media("application/octet-stream", "file", held, label, kept)
    if isinstance(data, str) and held is None and (found := _DATA_URL.match(data)):
        # A picture or a sound that was sent as a file is remembered as one.
        own = {"type": "file"} if _is_image(found[1]) or found[1].startswith("audio/") else None
        extra = _extra(part, "file", inner, known, where, own)
        return Media(found[1], "base64", data[found.end() :], label, extra)
    return Opaque(NAME, "file", text_of(unmarked(part), where))


def _extra(
    part: dict[str, Any],
    kind: str,
    inner: dict[str, Any],
    known: set[str],
    where: str,
    own: dict[str, Any] | None = None,
) -> Extra | None:
    """The unknown fields of a part and of the object inside it."""
    kept = dict(own or {})
    if rest := {key: value for key, value in inner.items() if key not in known}:
        kept[kind] = rest
    return extra_of(NAME, part, _PART | {kind}, where, kept)


def _is_image(mime: str) -> bool:
    return not mime or mime.startswith("image/")


def unmarked(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of an object of which nothing is known, but for the marks of the cache."""
    return {key: value for key, value in fields.items() if key not in MARKS}
