"""Compactions by the provider: a part of a reply that stands for everything before it.

Anthropic and OpenAI can compact a conversation themselves. Their reply then holds a part that later requests send back,
and nothing before it reaches the model. A view therefore begins with the newest compaction that is *active*: it belongs
to the format, and nothing before it was shown again, pinned, erased or summarized by others since it came. An inactive
one is left out, since the provider would ignore everything before it. When a message was erased is not known: if one
before a compaction is erased, only the newest message can have a compaction that was made later.

An edit of the policy `provider` records each compaction: a `Summarize` over everything before it. Its text is the
readable local copy, which a view shows where the compaction is not active.

Sources: Anthropic's documentation of compaction (a block replaces what is before it; a signed one must come first) and
OpenAI's (items before the newest compaction item may be dropped), as of November 2026.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from .edits import Span, Summarize
from .handles import Handle
from .messages import Message, Opaque
from .rendering import apply_edits
from .slots import Slot

__all__ = ["PROVIDER", "begins_compacted", "compaction_edit", "compaction_of", "is_active"]

PROVIDER = "provider"
"""The policy of the edits that record what a provider did."""

_READABLE = "[Summary of {}, written by the provider]\n"
_UNREADABLE = "[{}: the provider compacted these messages into a form that only it can read.]"
_INPUTS = 20
_CHARACTERS = 300
"""The newest of the user's messages in such a text, and characters of each."""


def compaction_of(message: Message, format: str = "") -> Opaque | None:
    """Return the newest compaction in a message, of one format or of any; None if there is none."""
    for part in reversed(message.parts):
        if isinstance(part, Opaque) and part.is_compaction and part.format == (format or part.format):
            return part
    return None


def begins_compacted(message: Message) -> bool:
    """Return whether a message begins with a compaction. Such a message may be the first one of a request."""
    return bool(message.parts) and isinstance(message.parts[0], Opaque) and message.parts[0].is_compaction


def is_active(slots: Sequence[Slot], index: int, first: int, format: str) -> bool:
    """Return whether the compaction in the slot at `index` stands for the slots from `first` up to it."""
    slot = slots[index]
    if compaction_of(apply_edits(slot.message, slot.edits).message, format) is None:
        return False
    return all(_is_compacted(earlier, slot) for earlier in slots[first:index])


def _is_compacted(earlier: Slot, slot: Slot) -> bool:
    """Return whether nothing happened to an earlier slot since the compaction in `slot`."""
    if earlier.span is not None:
        return earlier.seen < slot.position or (_is_by_provider(earlier) and not _is_erased(earlier))
    return bool(earlier.size) and not earlier.pins and earlier.renewed <= slot.stamp.turn


def _is_by_provider(slot: Slot) -> bool:
    return slot.span is not None and slot.edits[0][1].policy == PROVIDER


def _is_erased(slot: Slot) -> bool:
    """Return whether the local copy is erased: the compaction sums up a message that was erased since."""
    edit = slot.edits[0][1]
    return isinstance(edit, Summarize) and bool(edit.erased)


def compaction_edit(slots: Sequence[Slot], index: int, first: int, format: str) -> Summarize | None:
    """Return the edit that records the compaction in the slot at `index`.

    None if it is recorded, was undone, or only another provider can read it.
    """
    slot = slots[index]
    before = [earlier for earlier in slots[first:index] if earlier.message.role != "system"]
    covered = max((earlier.last for earlier in before if _is_by_provider(earlier)), default=0)
    if all(earlier.position <= covered for earlier in before):
        return None
    if any(earlier.renewed > slot.stamp.turn for earlier in before):
        return None
    if not all(_is_compacted(earlier, slot) for earlier in before if earlier.span is not None):
        return None
    if index < len(slots) - 1 and not all(earlier.size for earlier in before if earlier.span is None):
        return None
    part = compaction_of(slot.message)
    content = msgspec.json.decode(part.body).get("content") if part else None
    if part is None or not (isinstance(content, str) or part.format == format):
        return None
    newest, until = before[-1], max(earlier.last for earlier in before)
    handle = str(Handle(before[0].position, until))
    text = _READABLE.format(handle) + content if isinstance(content, str) else _unreadable(handle, before)
    span = Span(before[0].id, newest.span.last if newest.span else newest.id)
    reason = f"the provider compacted what is before m{slot.position}"
    return Summarize(span, text, PROVIDER, reason, sum(earlier.stamp.tokens for earlier in before))


def _unreadable(handle: str, before: Sequence[Slot]) -> str:
    """Return a local copy of what matters most if the provider's own summary is encrypted: the user's messages."""
    inputs = [slot for slot in before if slot.is_input and slot.span is None][-_INPUTS:]
    lines = [f"m{slot.position}: {' '.join(slot.message.text.split())[:_CHARACTERS]}" for slot in inputs]
    return "\n".join([_UNREADABLE.format(handle), *(["The user's messages in it began:"] if lines else []), *lines])
