"""Conversations as Markdown: every message as it was appended, to read, to paste or to keep."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from ...conversation import Conversation
from ...conversation.session import HistoryEntry
from ...core.labels import TITLE, without_labels
from ...core.messages import Media, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from ...core.plurals import plural
from ..views.entries import role_of_erased
from ..views.moments import erased_positions

__all__ = ["markdown_of"]

_ROWS = 500
"""Messages read at a time."""
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_CODE = re.compile(r"(`+)(?:(?!\1).)*?\1")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_PARSED = 100_000
"""Characters of a text in which code keeps its `<`."""
_CONTROL = dict.fromkeys((*range(9), *range(11, 32), 127, *range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd")


def markdown_of(chat: Conversation) -> Iterator[str]:
    """Yield the Markdown of a conversation, piece by piece, so that a long one is never in memory as a whole.

    Words of people and models keep their Markdown, without HTML. Calls and results stand in code blocks.
    """
    yield f"# {_line(chat.name)}\n\n{plural(len(chat), 'message')}.\n"
    for first in range(1, len(chat) + 1, _ROWS):
        entries = chat.history(first, first + _ROWS - 1)
        erased = erased_positions(chat._session, first, first + _ROWS - 1)
        yield from (_message(entry, is_erased=entry.position in erased) for entry in entries)


def _message(entry: HistoryEntry, *, is_erased: bool) -> str:
    message = entry.message
    role = role_of_erased(entry.stamp) if is_erased else message.role
    name = f"{role} {_line(entry.stamp.tool)}".strip()
    pieces = ["*erased*"] if is_erased else [piece for part in message.parts for piece in _part(part)]
    return f"\n## {entry.handle} {name}\n\n" + "\n\n".join(pieces) + "\n"


def _part(part: Part) -> Iterable[str]:
    match part:
        case Text(text=text):
            yield _prose(text)
        case Reasoning(text=text):
            yield "\n".join(f"> {line}" for line in (_prose(text) if text else "(encrypted reasoning)").split("\n"))
        case ToolCall(name=name, arguments=arguments):
            yield f"**{_line(name)}**\n\n{_block(arguments, 'json')}"
        case ToolResult(content=content, state=state):
            if state != "ok":
                yield f"*{state}*"
            for nested in content:
                yield from [_block(nested.text)] if isinstance(nested, Text) else _part(nested)
        case Media(mime=mime, source=source, data=data):
            size = f"{len(data) * 3 // 4:,} bytes" if source == "base64" else _line(data)[:200]
            yield f"`[{_line(mime) or 'media'}, {size}]`".replace("``", "`")
        case Opaque(kind=kind, body=body):
            yield f"*{_line(kind)}*\n\n{_block(body, 'json')}"


def _block(text: str, language: str = "") -> str:
    """Return a code block. Its fence is longer than any in the text."""
    plain = _printable(text)
    longest = max((len(run) for run in re.findall(r"`+", plain)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{plain}\n{fence}"


def _prose(text: str) -> str:
    """Return words of a person or a model, with the HTML in them as text, and an open code block closed.

    Code keeps its tags, unless a reader of Markdown would see HTML there: code in lists, for example, ends elsewhere.
    """
    text = without_labels(_printable(text), TITLE)
    prose = _outside_of_code(text)
    return _TAG.sub("&lt;", prose) if _TAG.search(prose) and _has_html(prose) else prose


def _has_html(text: str) -> bool:
    """Return whether a text has HTML for a reader of Markdown."""
    if len(text) > _PARSED:
        return True
    try:
        tokens = _parser().parse(text)
    except (ValueError, RecursionError, IndexError):  # Half of a surrogate pair in an address, or deep nesting.
        return True
    return any(one.type.startswith("html_") for token in tokens for one in (token, *(token.children or ())))


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt  # Takes 20 ms to import.

    return MarkdownIt("commonmark", {"html": True})


def _outside_of_code(text: str) -> str:
    """Return a text with tags as text in lines and parts of lines that do not look like code."""
    lines, fence = [], ""
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if fence:
            lines.append(line)
            if match and match[1].startswith(fence) and not line[match.end() :].strip():
                fence = ""
        elif match:
            lines.append(line)
            fence = match[1]
        else:
            lines.append(_without_tags(line))
    return "\n".join([*lines, fence] if fence else lines)


def _without_tags(line: str) -> str:
    """Return a line with its HTML tags as text, except in code."""
    if "<" not in line:
        return line
    pieces, end = [], 0
    for code in _CODE.finditer(line[:10_000]):
        pieces += [_TAG.sub("&lt;", line[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*pieces, _TAG.sub("&lt;", line[end:])])


def _line(text: str) -> str:
    """Return a name on one line, without characters that Markdown reads."""
    return _TAG.sub("&lt;", re.sub(r"([\\`*_\[\]#])", r"\\\1", " ".join(_printable(text).split())))


def _printable(text: str) -> str:
    return text.replace("\r\n", "\n").encode("utf-8", "replace").decode().translate(_CONTROL)
