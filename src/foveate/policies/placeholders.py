"""The texts that stand for what was shrunk, and the handles in them.

A handle is short and never moves: `m12` is the twelfth message of the conversation, `m12.1` its first part,
`m12.1.2` the second part inside that. `expand` takes it as it stands in the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from ..core.caches import cached
from ..core.edits import Path, Replace, Target
from ..core.messages import Media, Message, Opaque, Part, Text, ToolResult
from ..core.view import Entry
from ..digest import describe

__all__ = [
    "CLEARED",
    "FIELDS",
    "OMITTED",
    "about",
    "cut",
    "cut_arguments",
    "handle",
    "is_whole",
    "outgrows",
    "placeholder",
    "replacement",
    "shrink_arguments",
]

FIELDS = ("{about}", "{kind}", "{size}", "{items}", "{gist}")
"""Names that may stand in the template of a placeholder, beside `{handle}`."""

_GIST = 80
"""Characters of the line, at most."""
_LEAST = 800
"""Of what has fewer characters, `{about}` tells nothing: the placeholder would be a good part of it."""
_OUTER = str.maketrans('"[]{}', "'()()")


@cached(4_096)
def about(message: Message, path: Path = ()) -> dict[str, str]:
    """The texts for `FIELDS`, of a message or of one of its parts. The same object each time: only to be read."""
    parts = _parts(message, path)
    text = "\n".join(part.text for part in parts if isinstance(part, Text))
    media = [part for part in parts if isinstance(part, Media)]
    if not text.strip() and media:
        size = f"{sum(len(one.data) for one in media):,} characters" if media[0].source == "base64" else media[0].source
        fields = (media[0].mime or "media", size, _counted(len(media), "files"), _plain(media[0].name))
        return _filled(*fields, is_long=sum(len(one.data) for one in media) >= _LEAST)
    told = describe(text)
    items = _counted(told.items, told.item) if told.items else _counted(told.lines, "lines")
    return _filled(
        told.kind, _counted(told.characters, "characters"), items, _plain(told.gist), is_long=len(text) >= _LEAST
    )


def _filled(kind: str, size: str, items: str, gist: str, *, is_long: bool) -> dict[str, str]:
    whole = f"{kind}, {size}, {items}" + (f': "{gist}"; ' if gist else "; ")
    return dict(zip(FIELDS, (whole if is_long else "", kind, size, items, gist), strict=True))


def _parts(message: Message, path: Path) -> tuple[Part, ...]:
    """What stands at a path, the content of a result in its place."""
    found: tuple[Part, ...] = message.parts
    for index in path:
        found = found[index : index + 1]
        if found and isinstance(found[0], ToolResult):
            found = found[0].content
    return tuple(nested for part in found for nested in (part.content if isinstance(part, ToolResult) else (part,)))


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun[:-1] if number == 1 and noun.endswith('s') else noun}"


def _plain(line: str) -> str:
    """A line that can stand in quotes inside a placeholder."""
    shown = "".join([character if character.isprintable() else " " for character in line[: 4 * _GIST]])
    flat = " ".join(shown.translate(_OUTER).split())
    return flat if len(flat) <= _GIST else f"{flat[: _GIST - 1].rstrip()}…"


OMITTED = '[Omitted: {about}expand("{handle}")]'
"""For a filtered tool result. A template without fields is used as it is, such as the plain `[Omitted]`."""

CLEARED = '[Old tool result content cleared: {about}expand("{handle}")]'
"""For a pruned tool output."""

_FIELD = re.compile("|".join(map(re.escape, ("{handle}", *FIELDS))))


def handle(entry: Entry, path: Path = ()) -> str:
    """The handle of an entry's message, or of one of its parts; where it is the copy of an original, that one's."""
    copied = entry.stamp.expanded
    if copied and copied.form == "whole" and entry.source is not None:
        return copied.handle
    return ".".join([entry.handle, *(str(index + 1) for index in path)])


@cached(4_096)  # By the entry itself: mechanisms fill the same placeholders at every call.
def placeholder(template: str, entry: Entry, path: Path = ()) -> str:
    """The placeholder for this entry or part.

    Its fields: `{handle}`, what `expand` takes; `{kind}`, `{size}`, `{items}` and `{gist}`, what it was, as in `json`,
    `12,304 characters`, `41 rows` and one line of at most 80 characters; `{about}`, all four and a semicolon, or
    nothing where the original is short itself. All else stands as it is.
    """

    def field(found: re.Match[str]) -> str:
        if found[0] == "{handle}":
            return handle(entry, path)
        return "" if entry.source is None else about(entry.source, path)[found[0]]

    return _FIELD.sub(field, template)


def is_whole(entry: Entry) -> bool:
    """Whether the content of a result was not replaced yet; an image in it may have been."""
    return (0,) not in entry.shrunk


def outgrows(entry: Entry, text: str) -> bool:
    """Whether what is shown of a result takes more room than `text` would in its place."""
    result = entry.message.result
    shown = result.content if result else entry.message.parts[1:]  # A note begins with what it is about.
    length = 0
    for part in shown:
        match part:
            case Text():
                length += len(part.text)
            case Opaque():
                length += len(part.body)
            case _:
                return True
    return length > len(text)


def replacement(entry: Entry, text: str, policy: str, reason: str, path: Path = ()) -> Replace:
    """Show `text` in place of the message's content, or of one part of it."""
    return Replace(Target(entry.id, path), (Text(text),), policy, reason)


def cut(text: str, keep: int, name: str) -> str:
    """The first `keep` characters, and a note that says what is missing and how to see it."""
    return f'{text[:keep]}\n[cut: {keep:,} of {len(text):,} characters; expand("{name}") shows all]'


def shrink_arguments(arguments: str, keep: int, name: str, *, shorten: Callable[[str], str] | None = None) -> str:
    """The same JSON object with every string longer than `keep` cut, leaf by leaf: it stays valid JSON.

    `shorten`: what is made of such a string instead, such as a digest that names the handle itself. Arguments that are
    no JSON object, or nested too deeply to be walked through, are cut as a whole; those without a long string stay as
    they are, byte for byte.
    """

    def shrink(value: Any) -> Any:
        match value:
            case str() if len(value) > keep:
                return shorten(value) if shorten else _shortened(value, keep, name)
            case dict():
                return {key: shrink(nested) for key, nested in value.items()}
            case list():
                return [shrink(nested) for nested in value]
            case _:
                return value

    try:
        given = json.loads(arguments)
        small = shrink(given)
        if isinstance(given, dict):
            return arguments if small == given else _json(small)
        return cut_arguments(arguments, keep, name)
    except (ValueError, RecursionError):
        return cut_arguments(arguments, keep, name)


def cut_arguments(arguments: str, keep: int, name: str) -> str:
    """A JSON object that holds the first `keep` characters of these arguments."""
    return _json({"cut_arguments": _shortened(arguments, keep, name)})


def _shortened(text: str, keep: int, name: str) -> str:
    return f'{text[:keep]} [cut: {keep:,} of {len(text):,} characters; expand("{name}") shows all]'


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
