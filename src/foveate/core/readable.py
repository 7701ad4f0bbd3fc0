"""Readable forms of media and of blocks that are kept whole, for placeholders, summaries and copies.

Media become a few words, such as `image 1024x768 png`. A block that only its provider reads becomes its texts, without
encrypted content, and its images and documents. The use of a server tool and its result become a call and a result.

These forms are for people, summaries and copies. A request has the blocks themselves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from .caches import cached_by_text
from .media_duration import duration
from .media_tokens import image_size, media_type, page_count
from .messages import Content, Extra, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from .plurals import plural
from .server_tools import server_block

__all__ = [
    "block_content",
    "content_text",
    "describe_media",
    "in_message",
    "media_in",
    "readable_messages",
    "with_marks",
]

_OF_RESULTS = frozenset({"tool_reference", "browser_state", "content:tools", "content:computer_screenshot"})
"""Kinds of blocks that providers take only in the result of their own call. Elsewhere, the model sees their image or
reads them as JSON.
"""

_SILENT = frozenset(
    {"type", "id", "tool_use_id", "call_id", "status", "signature", "thoughtSignature", "cache_control", "citations"}
    | {"media_type", "mimeType", "caller", "annotations", "logprobs"}
)
"""Fields without content for a reader."""
_BARE = frozenset({"text", "content", "output", "stdout", "logs", "result", "data"})
"""Fields whose names say nothing that their text does not say."""
_ARGUMENTS = ("input", "args", "arguments", "action", "queries", "code")
"""Fields with the arguments of a call."""
_PAYLOAD = re.compile(r"(?:data:[^;,]{0,100};base64,)?([A-Za-z0-9+/_-]{256,}={0,2})")
"""A string of base64: media, or content that only the provider can read."""
_OF_BLOCK = "block"
"""In place of a format, in the fields of a text that stands for a block of another provider."""
_PLACE_MAX = 200
"""Characters of a URL or a file id."""


def describe_media(media: Media) -> str:
    """Return a few words about media: `image 1024x768 png`, `pdf document, 3 pages, report.pdf`, `wav sound, 12 s`.

    Media that a message only names are described by their URL or file id.
    """
    family, _, kind = media.mime.partition("/")
    facts = [" ".join(filter(None, (kind if kind != "octet-stream" else "", _NOUNS.get(family, "document"))))]
    if media.is_image:
        size = image_size(media.data) if media.source == "base64" else None
        facts = [" ".join(filter(None, ("image", f"{size[0]}x{size[1]}" if size else "", kind)))]
    elif media.source == "base64" and media.mime == "application/pdf" and (pages := _page_count(media.data)):
        facts.append(plural(pages, "page"))
    elif media.source == "base64" and family in _NOUNS and (seconds := duration(media.data)):
        facts.append(f"{max(1, round(seconds)):,} s")
    if media.name:
        facts.append(media.name)
    place = {"url": " at ", "file": " with the id "}.get(media.source)
    return ", ".join(facts) + (f"{place}{media.data[:_PLACE_MAX]}" if place else "")


_NOUNS = {"audio": "sound", "video": "video"}


@cached_by_text(512)  # A document has megabytes, and a fold is written again and again.
def _page_count(data: str) -> int:
    return page_count(data)


def block_content(block: Opaque) -> tuple[Text | Media, ...]:
    """Return the text of a block without encrypted content, if it has some, then its images and documents."""
    try:
        fields = msgspec.json.decode(block.body)
        return _content_of(fields)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return (Text(block.body),) if block.body.strip() else ()


def content_text(content: Iterable[Part]) -> str:
    """Return the readable text of parts, joined by newlines, with a few words in brackets in place of media."""
    return "\n".join(filter(None, map(_text_of, content)))


def in_message(part: Content) -> Sequence[Content]:
    """Return a part of a result as a message of the user, or the result of another call, may have it."""
    match part:
        case Text():
            return (Text(part.text),)  # The fields of the provider belong to a result.
        case Opaque() if part.kind in _OF_RESULTS:
            media = [each for each in block_content(part) if isinstance(each, Media)]
            return media or (Text(part.body),)
        case _:
            return (part,)


def media_in(message: Message) -> Iterator[Media]:
    """Yield the media in a message, including those in results and in blocks that are kept whole."""
    for part in message.parts:
        for inner in part.content if isinstance(part, ToolResult) else (part,):
            match inner:
                case Media():
                    yield inner
                case Opaque():
                    yield from (piece for piece in block_content(inner) if isinstance(piece, Media))
                case _:
                    pass


def readable_messages(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages with the content of blocks that are kept whole, for a reader who is not their provider.

    A block of the model becomes a call of a tool, its result, or both. A block of the user, such as a document, becomes
    a result without a call: it is not in the user's words. Results are messages of their own.
    """
    if not any(_has_blocks(message) for message in messages):
        return messages
    return [readable for number, message in enumerate(messages) for readable in _readable(message, number)]


def with_marks(shown: Message, appended: Message) -> Message:
    """Return a message of the user as shown, with marks at the texts that stand for blocks of another provider.

    `readable_messages` takes a marked text for the block, else for the user's words.
    """
    marked: dict[Part, Part] = {}
    for block in appended.parts if shown.role == "user" and shown is not appended else ():
        if isinstance(block, Opaque) and block not in shown.parts:
            for piece in block_content(block):
                if isinstance(piece, Text):
                    marked[piece] = Text(piece.text, Extra(_OF_BLOCK, json.dumps({"kind": block.kind})))
    if not marked:
        return shown
    return Message(shown.role, tuple(marked.get(part, part) for part in shown.parts), shown.name, shown.extra)


# ------------------------------------------------------------------------------------------------------------- blocks


def _has_blocks(message: Message) -> bool:
    for part in message.parts:
        if _kind_of(part):
            return True
        if isinstance(part, ToolResult) and any(isinstance(inner, Opaque) for inner in part.content):
            return True
    return False


def _kind_of(part: Part) -> str:
    """Return the kind of a block, or of the block that a text stands for; "" for anything else."""
    match part:
        case Opaque(kind=kind):
            return kind or "block"
        case Text(extra=Extra(format=format, fields=fields)) if format == _OF_BLOCK:
            return str(json.loads(fields)["kind"]) or "block"
        case _:
            return ""


def _text_of(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case Media():
            return f"[{describe_media(part)}]"
        case Opaque():
            return content_text(block_content(part))
        case ToolResult(content=content):
            return content_text(content)
        case _:
            return ""


def _content_of(value: object) -> tuple[Text | Media, ...]:
    lines: list[str] = []
    media: list[Media] = []
    _collect("", value, lines, media)
    text = "\n".join(lines)
    return (*((Text(text),) if text else ()), *media)


def _collect(key: str, value: Any, lines: list[str], media: list[Media]) -> None:
    """Add the texts in a value of JSON as lines, and the media in it."""
    match value:
        case dict():
            for name, inner in value.items():
                if name not in _SILENT and not name.startswith("encrypted"):
                    _collect(name, inner, lines, media)
        case list():
            for inner in value:
                _collect(key, inner, lines, media)
        case str() if (payload := _PAYLOAD.fullmatch(value)) is not None:
            if mime := media_type(payload[1]):
                media.append(Media(mime, "base64", payload[1]))
        case str() if value.strip():
            end = "\n" if "\n" in value else " "
            lines.append(value if key in _BARE or not key else f"{key}:{end}{value}")
        case int() | float() if value is not False:
            lines.append(f"{key}: {json.dumps(value)}")
        case _:
            pass


# ----------------------------------------------------------------------------------------------------------- messages


def _readable(message: Message, number: int) -> Iterator[Message]:
    if not _has_blocks(message):
        yield message
    elif message.role == "assistant":
        yield from _with_steps(message, number)
    elif message.role == "user":
        for part in message.parts:
            content = block_content(part) if isinstance(part, Opaque) else (part,) if isinstance(part, Text) else ()
            if content and (kind := _kind_of(part)):
                yield Message("tool", (ToolResult("", content, "ok", kind),))
        if words := tuple(part for part in message.parts if not _kind_of(part)):
            yield Message("user", words, message.name, message.extra)
    else:
        parts = [inner for part in message.parts for inner in _without_blocks(part)]
        yield Message(message.role, tuple(parts), message.name, message.extra)


def _without_blocks(part: Part) -> tuple[Part, ...]:
    match part:
        case Opaque():
            return block_content(part)
        case ToolResult(content=content) if any(isinstance(inner, Opaque) for inner in content):
            readable = [new for old in content for new in (block_content(old) if isinstance(old, Opaque) else (old,))]
            return (ToolResult(part.call_id, tuple(readable), part.state, part.name, part.extra),)
        case _:
            return (part,)


def _with_steps(message: Message, number: int) -> Iterator[Message]:
    """Yield the pieces of a message of the model, each with the results of the provider's tools behind it.

    `number`: that of the message, for the ids of calls that have none.
    """
    parts: list[Part] = []
    names: dict[str, str] = {}
    for index, part in enumerate(message.parts):
        if not isinstance(part, Opaque):
            parts.append(part)
            continue
        if part.is_compaction:
            parts += block_content(part)
            continue
        call, content = _step_of(part, f"{part.kind}.{number}.{index}")
        if call is not None:
            names[call.call_id] = call.name
            parts.append(call)
        if content is None:
            continue
        if parts:
            yield Message("assistant", tuple(parts), message.name, message.extra)
            parts = []
        answered = call.call_id if call is not None else _answered(part, names)
        yield Message("tool", (ToolResult(answered, content, "ok", names.get(answered, part.kind)),))
    if any(not isinstance(part, Reasoning) for part in parts):
        yield Message("assistant", tuple(parts), message.name, message.extra)


def _step_of(block: Opaque, place: str) -> tuple[ToolCall | None, tuple[Content, ...] | None]:
    """Return the call in a block of the model, and the content of its result; None for what the block does not have.

    `place`: the id of the call, if it has none.
    """
    half = server_block(block)
    if not (half.is_use if half is not None else block.kind.endswith("_call")):
        return None, block_content(block) or None
    try:
        fields = msgspec.json.decode(block.body)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        return None, block_content(block)
    if isinstance(inner := fields.get(block.kind), dict):  # Gemini's parts have one field, named by the kind.
        fields = inner
    name = fields.get("name") or fields.get("toolType") or block.kind.removesuffix("_call")
    key = next((key for key in _ARGUMENTS if key in fields), "")
    call = ToolCall((half.id if half else "") or place, str(name), _arguments(key, fields.get(key)))
    if half is not None:
        return call, None
    left_out = {key, "name"}
    return call, _content_of({name: value for name, value in fields.items() if name not in left_out})


def _answered(block: Opaque, names: dict[str, str]) -> str:
    """Return the id of the call that a result answers: without an id, the newest one."""
    half = server_block(block)
    return (half.id if half is not None else "") or next(reversed(names), "")


def _arguments(key: str, value: Any) -> str:
    if isinstance(value, str):
        try:
            if isinstance(msgspec.json.decode(value), dict):
                return value
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            pass
    if not isinstance(value, dict):
        value = {key: value} if key else {}
    return json.dumps({name: inner for name, inner in value.items() if name != "type"}, ensure_ascii=False)
