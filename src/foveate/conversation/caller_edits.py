"""Edits that make a stored message show what the caller's list has in its place."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.edits import CALLER, Edit, Hide, Path, Replace, Restore, Target
from ..core.message_keys import message_key
from ..core.messages import Media, Message, Part, Reasoning, Text, ToolCall, ToolResult
from ..core.rendering import apply_edits

__all__ = ["edits_between"]

_REASON = "the caller's list has other content here"


def edits_between(id: str, stored: Message, wanted: Message, before: Sequence[int]) -> list[Edit] | None:
    """Return the edits after which the stored message says what `wanted` says; None if edits cannot express it.

    `before`: numbers of earlier edits of this kind, which are cancelled. An edit keeps the role, the calls and the call
    that a result answers.
    """
    replacements = _replacements(id, stored, wanted)
    if replacements is None:
        return None
    edits: list[Edit] = [Restore((), tuple(before), CALLER, _REASON)] if before else []
    if message_key(stored) == message_key(wanted):
        return edits
    shown = apply_edits(stored, list(enumerate(replacements, 1))).message
    return [*edits, *replacements] if message_key(shown) == message_key(wanted) else None


def _replacements(id: str, stored: Message, wanted: Message) -> list[Edit] | None:
    if stored.role != wanted.role:
        return None
    if stored.result is not None and wanted.result is not None:
        return _replacement(id, (0,), wanted.result.content)
    parts = [part for part in wanted.parts if not isinstance(part, Reasoning)]
    if not stored.calls:
        return _replacement(id, (), parts)
    edits: list[Edit] = []
    rest = list(parts)
    for index, part in enumerate(stored.parts):
        if isinstance(part, Reasoning):
            continue
        match = rest[0] if rest and type(rest[0]) is type(part) else None
        if match is None and isinstance(part, Text):
            edits.append(Hide(Target(id, (index,)), CALLER, _REASON))
            continue
        if match is None:
            return None
        rest.pop(0)
        if isinstance(part, ToolCall) and isinstance(match, ToolCall):
            if match.arguments != part.arguments:
                edits += _replacement(id, (index,), [Text(match.arguments)]) or []
        elif match != part:
            replacement = _replacement(id, (index,), [match])
            if replacement is None:
                return None
            edits += replacement
    return None if rest else edits


def _replacement(id: str, path: Path, parts: Sequence[Part | ToolResult]) -> list[Edit] | None:
    content = tuple(part for part in parts if isinstance(part, Text | Media))
    if len(content) < len(parts):
        return None
    return [Replace(Target(id, path), content, CALLER, _REASON, expandable=False)]
