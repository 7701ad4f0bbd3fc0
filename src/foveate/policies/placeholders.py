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
from ..core.messages import Opaque, Text
from ..core.view import Entry
from .about import FIELDS, about

__all__ = [
    "CLEARED",
    "OMITTED",
    "cut",
    "cut_arguments",
    "fill",
    "handle",
    "is_whole",
    "outgrows",
    "replacement",
    "shrink_arguments",
]

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
def fill(template: str, entry: Entry, path: Path = ()) -> str:
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
