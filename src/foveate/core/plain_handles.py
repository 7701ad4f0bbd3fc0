"""Plain handles: texts for requests that do not offer the tool `expand`.

Placeholders, digests, folds, summaries and notes name a handle as `expand("m12")`. In a request without the tool they
name it as `m12`: the program can still use it, and the model is not told to call a tool that it does not have. Plain
texts are a function of the stored texts, so each kind of request, with the tool and without it, keeps its own prefix.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeGuard, TypeVar

from msgspec.structs import replace

from .caches import newest_forms
from .edits import CALLER, Edit, Replace, Summarize
from .growing import shared_length
from .messages import Message, Part, Text, ToolCall, ToolResult
from .slots import Counter, reshape
from .view import Entry

__all__ = ["PlainEntries", "plain_edits", "plain_entries", "plain_message", "plain_text"]

_HANDLE = r"m\d{1,12}(?:\.\d{1,6}){0,2}(?:-m\d{1,12})?|\{handle\}|\{last\}"
_QUOTE = r"""(?:\\*["'`])?"""
_CALL = (
    rf"expand(?<![\w.]expand)\(\s*+(?:\{{?\s*+{_QUOTE}handle{_QUOTE}\s*+[=:]\s*+)?"
    rf"{_QUOTE}(?:{_HANDLE}){_QUOTE}(?:,[^()\n]{{0,80}})?\s*+\}}?\s*+\)"
)
"""A call of the tool as foveate writes it, and as models copy it: with other quotes, or with further arguments.

It begins with a word, not with a look behind, so that the search skips all other characters.
"""
_SENTENCE = re.compile(rf"[;.] {_CALL} [a-z][^.;\[\]\n]{{0,120}}\.(?=\])")
"""A sentence, or the end of one, about what the call shows. It closes a note that names the handle before."""
_CALL_IN_TEXT = re.compile(rf'{_CALL}(?: or \(\\?"m[^()\n]{{1,80}}\))?(?: shows all\b)?')
_NAME = re.compile(_HANDLE)

P = TypeVar("P", bound=Part)


def plain_text(text: str) -> str:
    """Return a text with each call of `expand` replaced by its handle, such as `m12`."""
    if "expand(" not in text:
        return text
    if "; expand(" in text or ". expand(" in text:
        text = _SENTENCE.sub(".", text)
    return _CALL_IN_TEXT.sub(_handle_in, text)


def plain_message(message: Message, source: Message | None) -> Message:
    """Return a message with plain texts, except in the parts that it shows as they are in `source`."""
    parts = _plain_parts(message.parts, source.parts if source else ())
    return message if parts is message.parts else replace(message, parts=parts)


def plain_edits(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Return the same edits with plain texts. Edits by hand and by the caller's list keep their texts."""

    def is_ours(edit: Edit) -> TypeGuard[Replace | Summarize]:
        return isinstance(edit, Replace | Summarize) and edit.policy not in ("", CALLER)

    return tuple(_plain_edit(edit) if is_ours(edit) else edit for edit in edits)


def plain_entries(entries: tuple[Entry, ...], count: Counter) -> tuple[Entry, ...]:
    """Return these entries, those with calls of `expand` in texts of foveate replaced by plain ones.

    An unchanged entry has the same plain entry in every view. `count`: returns the tokens of a text.
    """
    return tuple([_plain_entry(entry, count) if entry.edits else entry for entry in entries])


class PlainEntries:
    """The plain entries of the newest view, kept while it grows."""

    def __init__(self) -> None:
        self._entries: tuple[Entry, ...] = ()
        self._plain: tuple[Entry, ...] = ()
        self._count: Counter | None = None

    def of(self, entries: tuple[Entry, ...], count: Counter) -> tuple[Entry, ...]:
        """Return these entries with plain texts, at the cost of those that are new. `count`: as for `plain_entries`."""
        before = self._entries
        if entries is not before or count is not self._count:
            same = shared_length(before, entries) if count is self._count else 0
            self._plain = self._plain[:same] + plain_entries(entries[same:], count)
            self._entries, self._count = entries, count
        return self._plain

    def are_same(self, entries: tuple[Entry, ...], count: Counter) -> bool:
        """Return whether these entries are known to have no other plain texts."""
        return self._entries == entries == self._plain and count is self._count  # Entries compare by identity.

    def restore(self, entries: tuple[Entry, ...], count: Counter) -> None:
        """Continue with entries that have no other plain texts."""
        self._entries = self._plain = entries
        self._count = count


def _plain_entry(entry: Entry, count: Counter) -> Entry:
    def make() -> Entry | None:
        is_callers = all(policy == CALLER for policy in entry.shrunk_by) and bool(entry.shrunk_by)
        message = entry.message if is_callers else plain_message(entry.message, entry.outline)
        return None if message is entry.message else reshape(entry, message, entry.legalized, count)

    return newest_forms(entry, "plain", count, make) or entry


def _handle_in(call: re.Match[str]) -> str:
    handle = _NAME.search(call[0])
    return handle[0] if handle else call[0]


def _plain_parts(parts: tuple[P, ...], source: Sequence[Part]) -> tuple[P, ...]:
    """Return the parts with plain texts; the same tuple if nothing changes."""
    plain = tuple([part if part in source else _plain_part(part, source) for part in parts])
    return parts if all(new is old for new, old in zip(plain, parts, strict=True)) else plain


def _plain_part(part: P, source: Sequence[Part]) -> P:
    match part:
        case Text() if (text := plain_text(part.text)) != part.text:
            return replace(part, text=text)
        case ToolCall() if (arguments := plain_text(part.arguments)) != part.arguments:
            return replace(part, arguments=arguments)
        case ToolResult():
            before = [nested for old in source if isinstance(old, ToolResult) for nested in old.content]
            content = _plain_parts(part.content, before)
            return part if content is part.content else replace(part, content=content)
        case _:
            return part


def _plain_edit(edit: Replace | Summarize) -> Edit:
    match edit:
        case Summarize():
            text = plain_text(edit.text)
            return edit if text == edit.text else replace(edit, text=text)
        case Replace():
            content = _plain_parts(edit.content, ())
            return edit if content is edit.content else replace(edit, content=content)
