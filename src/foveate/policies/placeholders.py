"""Placeholders: the texts that replace shrunk content, with the handles for `expand`.

A handle is short and never changes: `m12` is the twelfth message of the conversation, `m12.1` its first part,
`m12.1.2` the second part inside `m12.1`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from ..core.caches import cached_on_entry
from ..core.edits import Path, Replace, Target
from ..core.json_objects import objects_in
from ..core.messages import Media, Message, Opaque, Part, Text, ToolResult
from ..core.plurals import plural
from ..core.readable import block_content, describe_media
from ..core.results import native_message, with_headline
from ..core.scripts import beginning_of, whole_end
from ..core.view import Entry
from ..digest import describe

__all__ = [
    "CLEARED",
    "FIELDS",
    "OMITTED",
    "cut_arguments",
    "cut_text",
    "describe_fields",
    "handle_of",
    "harmless_line",
    "is_longer",
    "is_whole",
    "placeholder",
    "replacement",
    "shrink_arguments",
    "shrink_step",
]

OMITTED = '[Omitted: {about}expand("{handle}")]'
"""Template for a filtered tool result."""

CLEARED = '[Old tool result content cleared: {about}expand("{handle}")]'
"""Template for a pruned tool output."""

FIELDS = ("{about}", "{kind}", "{size}", "{items}", "{gist}")
"""Fields of a template, in addition to `{handle}`."""

_FIELD = re.compile("|".join(map(re.escape, ("{handle}", *FIELDS))))
_GIST_MAX = 80
"""Characters."""
_DESCRIBED_MIN = 800
"""Characters. `{about}` is empty for shorter originals, where the placeholder would be a good part of the size."""
_QUOTES_AND_BRACKETS = str.maketrans('"[]{}', "'()()")


def placeholder(template: str, entry: Entry, path: Path = ()) -> str:
    """Return the placeholder for an entry, or for the part of it at `path`.

    Fields of `template`: `{handle}`, the argument of `expand`; `{kind}`, `{size}`, `{items}` and `{gist}`, which
    describe the original, such as `json`, `12,304 characters`, `41 rows` and one line of at most 80 characters;
    `{about}`, all four and a semicolon, or nothing for a short original; of media alone, `{about}` is a few words such
    as `image 1024x768 png` and a semicolon. Other text is kept as it is.
    """
    return _placeholder(entry, template, path)


@cached_on_entry  # Policies fill the same placeholders at every call.
def _placeholder(entry: Entry, template: str, path: Path) -> str:
    def field_text(field: re.Match[str]) -> str:
        if field[0] == "{handle}":
            return handle_of(entry, path)
        described = entry.source if path else native_message(entry)
        return "" if described is None else describe_fields(described, path)[field[0]]

    return _FIELD.sub(field_text, template)


def replacement(entry: Entry, text: str, policy: str, reason: str, path: Path = ()) -> Replace:
    """Return the edit that shows `text` in place of the content of a message, or of the part at `path`.

    `policy` and `reason` are stored in the journal. The headline of an action's result stays before the text.
    """
    return Replace(Target(entry.id, path), (Text(text if path else with_headline(entry, text)),), policy, reason)


def handle_of(entry: Entry, path: Path = ()) -> str:
    """Return the handle of an entry's message, or of the part at `path`. A copy has the handle of its original."""
    expanded = entry.stamp.expanded
    if expanded and expanded.form == "whole" and entry.outline is not None:
        return expanded.handle
    return ".".join([entry.handle, *(str(index + 1) for index in path)])


def is_whole(entry: Entry) -> bool:
    """Return whether no edit replaced the content of a result; edits may have replaced images in it."""
    return (0,) not in entry.shrunk and () not in entry.shrunk


def is_longer(entry: Entry, text: str) -> bool:
    """Return whether the content that an entry shows takes more characters than `text`, its short form."""
    result = entry.message.result
    # The first part of a note names the call.
    parts = result.content if result else entry.message.parts[1 if entry.kind == "note" else 0 :]
    text, length = with_headline(entry, text), 0
    for part in parts:
        match part:
            case Text():
                length += len(part.text)
            case Opaque():
                length += len(part.body)
            case _:
                return True
    return length > len(text)


def describe_fields(message: Message, path: Path = ()) -> dict[str, str]:
    """Return the text of each of `FIELDS` for a message or the part at `path`. Callers must not change the dict.

    The gist cannot end the placeholder, break its line or name a handle.
    """
    parts = [each for part in _content_at(message, path) for each in _without_block(part)]
    text = "\n".join(part.text for part in parts if isinstance(part, Text))
    media = [part for part in parts if isinstance(part, Media)]
    described = describe(text)
    kind, items, gist = described.kind, described.counted_items, harmless_line(described.gist)
    size = plural(described.characters, "character")
    is_long = len(text) >= _DESCRIBED_MIN
    about = f"{kind}, {size}, {items}"
    if media and not is_long:
        first, length = media[0], sum(len(part.data) for part in media)
        is_long = first.source != "base64" or length >= _DESCRIBED_MIN
        about = harmless_line(describe_media(first)) + (f" and {len(media) - 1} more" if len(media) > 1 else "")
        if not text.strip():
            size = f"{length:,} characters" if first.source == "base64" else first.source
            kind, gist = harmless_line(first.mime) or "media", harmless_line(first.name)
            items = plural(len(media), "file")
            return _fields(f"{about}; " if is_long else "", kind, size, items, gist)
        gist = harmless_line(text)
    about += f': "{gist}"; ' if gist else "; "
    return _fields(about if is_long else "", kind, size, items, gist)


def _fields(*values: str) -> dict[str, str]:
    return dict(zip(FIELDS, values, strict=True))


def _without_block(part: Part) -> tuple[Part, ...]:
    return block_content(part) if isinstance(part, Opaque) else (part,)


def _content_at(message: Message, path: Path) -> tuple[Part, ...]:
    """Return the parts at a path. The content of a result replaces the result."""
    parts: tuple[Part, ...] = message.parts
    for index in path:
        parts = parts[index : index + 1]
        if parts and isinstance(parts[0], ToolResult):
            parts = parts[0].content
    return tuple(nested for part in parts for nested in (part.content if isinstance(part, ToolResult) else (part,)))


def harmless_line(line: str) -> str:
    """Return a line that can stand in quotes inside a placeholder."""
    printable = "".join([character if character.isprintable() else " " for character in line[: 4 * _GIST_MAX]])
    flat = " ".join(printable.translate(_QUOTES_AND_BRACKETS).split())
    return flat if len(flat) <= _GIST_MAX else f"{beginning_of(flat, _GIST_MAX - 1).rstrip()}…"


# --------------------------------------------------------------------------------------------------------- cut texts


def cut_text(text: str, keep: int, handle: str) -> str:
    """Return the first `keep` characters and a note with the handle of the rest."""
    keep = whole_end(text, keep)
    return f'{text[:keep]}\n[cut: {keep:,} of {len(text):,} characters; expand("{handle}") shows all]'


def shrink_arguments(arguments: str, keep: int, handle: str, *, shorten: Callable[[str], str] | None = None) -> str:
    """Return the JSON object of a call with each string longer than `keep` characters cut.

    `shorten`: returns the short form of a string, with the handle in it (default: its first characters and a note).
    Arguments without a long string are returned byte for byte. Arguments that are not a JSON object, or are nested too
    deeply, are cut as a whole.
    """

    def shrink(value: Any) -> Any:
        match value:
            case str() if len(value) > keep:
                return shorten(value) if shorten else _cut_string(value, keep, handle)
            case dict():
                return {key: shrink(nested) for key, nested in value.items()}
            case list():
                return [shrink(nested) for nested in value]
            case _:
                return value

    try:
        value = json.loads(arguments)
        small = shrink(value)
        if isinstance(value, dict):
            return arguments if small == value else _json(small)
        return cut_arguments(arguments, keep, handle)
    except (ValueError, RecursionError):
        return cut_arguments(arguments, keep, handle)


def shrink_step(text: str, keep: int, handle: str, *, shorten: Callable[[str], str] | None = None) -> str:
    """Return a text of the model that calls actions in JSON, with each long string in its objects cut.

    The JSON stays valid, since a model writes its next step in the form of the earlier ones. `keep`, `shorten`: as for
    `shrink_arguments`. Text around the objects stays.
    """
    pieces: list[str] = []
    at = 0
    for _, start, end in objects_in(text, []):
        pieces += [text[at:start], shrink_arguments(text[start:end], keep, handle, shorten=shorten)]
        at = end
    return "".join([*pieces, text[at:]])


def cut_arguments(arguments: str, keep: int, handle: str) -> str:
    """Return a JSON object that holds the first `keep` characters of these arguments."""
    return _json({"cut_arguments": _cut_string(arguments, keep, handle)})


def _cut_string(text: str, keep: int, handle: str) -> str:
    keep = whole_end(text, keep)
    return f'{text[:keep]} [cut: {keep:,} of {len(text):,} characters; expand("{handle}") shows all]'


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
