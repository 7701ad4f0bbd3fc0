"""A view as rows for people: what each entry shows, why it looks so, and what is left out.

Pure: it takes views, covers and records, and reads no store.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from ...conversation.session import HistoryEntry
from ...core.edits import Hide, Record, Summarize
from ...core.explain import RELEASED, explain
from ...core.handles import Handle
from ...core.messages import Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from ...core.receipts import receipt_of
from ...core.results import headline_of
from ...core.snapshots import Cover
from ...core.stamps import Stamp, is_interrupted
from ...core.system_messages import position_of
from ...core.view import Entry, View
from ...replay.lookup import ContentKind, content_kind

__all__ = [
    "KINDS",
    "EntryRow",
    "GapRow",
    "RowKind",
    "RowPlace",
    "appended_row",
    "edit_numbers",
    "index_at",
    "places_of",
    "readable",
    "role_of_erased",
    "row_kind",
    "rows_of",
]

RowKind = Literal[
    "whole", "digest", "placeholder", "fold", "summary", "expanded", "stand-in", "note", "continuation", "erased"
]
"""The form in which a row shows its message, see `KINDS`."""

KINDS: Mapping[RowKind, str] = {
    "whole": "shown as it was appended",
    "digest": "shown in a short form",
    "placeholder": "a short text stands for it",
    "fold": "finished steps in a few lines, made without a model",
    "summary": "one text stands for several messages",
    "expanded": "shown whole again on request",
    "stand-in": "stands for an answer that the conversation does not have",
    "note": "shown as a user's note, because the provider does not take it in its place",
    "continuation": "further calls of the message before, which the provider limits",
    "erased": "erased: only its place, its stamp and its hashes are left",
}
"""The kinds of rows with their meaning."""

_FOLDING = frozenset({"fold", "recap"})
"""Policies whose texts for spans are lists of steps, made without a model."""
_FLOOR = "floor"
"""The policy whose text for a span is a placeholder."""
_PLACEHOLDER = re.compile(r"\[[^\n]{0,600}\]")
_CALL_IS_NEAR = 60
"""Entries before a result among which its call is looked for."""

RowPlace = int | tuple[int, int]
"""A place in a list of rows: the index of an entry, or the first and last position of messages that are not shown."""


class EntryRow(Struct, frozen=True):
    """One entry of a view, or one message as it was appended."""

    key: str
    """Its name on the page: the handle, and a number where several entries share one; `s3` for a stand-in before m3."""
    handle: str
    """Its handle, `m12`, or that of a range, `m3-m17`; "" for a text that no message has."""
    position: int
    """Position of the message, of the first of a span, or of the message behind a stand-in that has none."""
    last: int
    """Position of the last message that it stands for."""
    kind: RowKind
    """The form in which it is shown."""
    content: ContentKind
    """The kind of content, as in the chart."""
    role: Role
    """The role of the visible message."""
    tool: str
    """For a result: the name of the tool."""
    tokens: int
    """Tokens as shown."""
    original_tokens: int
    """Tokens as appended, or of the span that it stands for."""
    parts: tuple[Part, ...]
    """The visible parts."""
    call: ToolCall | None
    """For a result: its call, if that is near."""
    turn: int
    """The model call that was the newest when the message was appended."""
    time: int
    """When it was appended or made, in milliseconds since 1970."""
    is_pinned: bool = False
    """Whether a pin keeps it, or a part of it, as it is."""
    is_changed: bool = False
    """Whether it shows other content than was appended."""
    policy: str = ""
    """The policy of the newest edit; "by hand" for an edit without one; "" without edits."""
    reason: str = ""
    """The reason of the newest edit."""
    author: str = ""
    """The author of a summary, if it is known."""
    sentences: tuple[str, ...] = ()
    """Why it looks as it does: a sentence for each edit, rule and pin."""
    receipts: tuple[tuple[int, int, str], ...] = ()
    """The commits that shaped it, newest first: number of the first and last edit, and a title."""
    model: str = ""
    """For a reply: the model that wrote it."""
    is_interrupted: bool = False
    """Whether the caller stopped the reply."""

    @property
    def is_result(self) -> bool:
        """Return whether it shows a result, which is closed at first."""
        return self.content in ("results_full", "results_shrunk", "placeholders")

    @property
    def covered(self) -> int:
        """Return the number of messages that it stands for."""
        return self.last - self.position + 1


class GapRow(Struct, frozen=True):
    """Messages that the view does not show at all."""

    key: str
    first: int
    last: int
    policy: str = ""
    """The policy that hid them; "" if it is not known or a hand did."""
    reason: str = ""
    """Why they are hidden."""
    receipts: tuple[tuple[int, int, str], ...] = ()

    @property
    def count(self) -> int:
        """Return the number of messages."""
        return self.last - self.first + 1


def row_kind(entry: Entry, edit: Summarize | None = None) -> RowKind:
    """Return what an entry shows. `edit`: for a summary, the edit that made it."""
    match entry.kind:
        case "summary":
            policy = edit.policy if edit else ""
            is_bare = policy == _FLOOR and _is_placeholder(entry)  # The floor had no room for a digest.
            return "fold" if policy in _FOLDING else "placeholder" if is_bare else "summary"
        case "stand-in" | "note" | "continuation" as kind:
            return kind
        case _ if entry.shrunk and not _is_marked_only(entry):
            return "placeholder" if _is_placeholder(entry) else "digest"
        case _:
            copy = entry.stamp.expanded
            return "expanded" if entry.renewed or (copy is not None and copy.shows_original) else "whole"


def _is_marked_only(entry: Entry) -> bool:
    """Return whether the edits of a message left its content as it was: policies mark short results."""
    return entry.tokens == entry.stamp.tokens and entry.message == entry.source


def _is_placeholder(entry: Entry) -> bool:
    """Return whether a shrunk message has no content but a sentence with its handle."""
    message = entry.message
    if message.calls:
        return False
    result = message.result
    parts: Sequence[Part] = result.content if result else message.parts
    if any(not isinstance(part, Text) for part in parts):
        return False
    text = message.text
    if entry.stamp.origin == "tool" and (first := headline_of(message)):
        text = text[len(first) :]
    return not text.strip() or _PLACEHOLDER.fullmatch(text.strip()) is not None


def places_of(view: View, last: int = 0) -> list[RowPlace]:
    """Return the rows of a view in order: its entries, and the ranges of messages that it leaves out.

    `last`: the position of the newest message; 0 if it is not known.
    """
    places: list[RowPlace] = []
    end = 0
    for index, entry in enumerate(view.entries):
        position = position_of(view.entries, index)
        if position > end + 1:
            places.append((end + 1, position - 1))
        places.append(index)
        end = max(end, entry.last, position)
    if last > end:
        places.append((end + 1, last))
    return places


def edit_numbers(view: View, places: Iterable[RowPlace], covers: Iterable[Cover]) -> set[int]:
    """Return the numbers of the edits that shaped these rows."""
    chosen = list(places)
    numbers = {number for place in chosen if isinstance(place, int) for number in view.entries[place].edits}
    gaps = [place for place in chosen if not isinstance(place, int)]
    return numbers | {cover.number for gap in gaps if (cover := _cover_of(gap, covers)) is not None}


def rows_of(
    view: View, places: Sequence[RowPlace], records: Iterable[Record], covers: Iterable[Cover] = ()
) -> list[EntryRow | GapRow]:
    """Return the rows at these places. `records`: those of `edit_numbers`."""
    by_number = {number: record for record in records for number, _ in record.numbered()}
    calls = _calls_near(view, [place for place in places if isinstance(place, int)])
    keys: set[str] = set()
    return [
        _entry_row(view.entries[place], position_of(view.entries, place), by_number, calls, keys)
        if isinstance(place, int)
        else _gap_row(place, by_number, covers)
        for place in places
    ]


def _entry_row(
    entry: Entry, position: int, records: Mapping[int, Record], calls: Mapping[str, ToolCall], keys: set[str]
) -> EntryRow:
    number = entry.edits[-1] if entry.edits else 0
    record = records.get(number)
    edit = record.edits[number - record.first] if record else None
    summary = edit if isinstance(edit, Summarize) else None
    sentences = explain(entry, records).split("\n")[1:] if entry.edits or entry.legalized or entry.pins else []
    result = entry.message.result
    original = entry.stamp.tokens if entry.outline is not None else entry.tokens
    if summary is not None and record is not None:  # Edits by hand do not count what they replace.
        freed = record.tokens_before - record.tokens_after if len(record.edits) == 1 else 0
        original = summary.tokens_before or entry.tokens + max(0, freed)
    return EntryRow(
        key=_key(f"s{position}" if entry.is_between else entry.handle, keys),
        handle=str(Handle(entry.position, entry.last)),
        position=position,
        last=max(entry.last, position),
        kind=row_kind(entry, summary),
        content=content_kind(entry),
        role=entry.message.role,
        tool=entry.tool,
        tokens=entry.tokens,
        original_tokens=original,
        parts=entry.message.parts,
        call=calls.get(result.call_id) if result else None,
        turn=entry.stamp.turn,
        time=entry.stamp.time,
        is_pinned=bool(entry.pins),
        is_changed=(bool(entry.shrunk) and not _is_marked_only(entry))
        or entry.span is not None
        or bool(entry.legalized),
        policy=(edit.policy or "by hand") if edit else "",
        reason=edit.reason if edit else entry.legalized,
        author=getattr(edit, "by", ""),
        sentences=tuple(sentences),
        receipts=_receipts(entry.edits, records),
        model=entry.stamp.model,
        is_interrupted=is_interrupted(entry.stamp.stop),
    )


def _gap_row(gap: tuple[int, int], records: Mapping[int, Record], covers: Iterable[Cover]) -> GapRow:
    first, last = gap
    cover = _cover_of(gap, covers)
    if cover is None:
        return GapRow(f"g{first}", first, last)
    receipts = _receipts((cover.number,), records)
    return GapRow(f"g{first}", first, last, cover.edit.policy or "by hand", cover.edit.reason, receipts)


def _cover_of(gap: tuple[int, int], covers: Iterable[Cover]) -> Cover | None:
    """Return the newest hidden or summarized range that has a message of the gap."""
    found = [cover for cover in covers if cover.first <= gap[1] and gap[0] <= cover.last]
    hiding = [cover for cover in found if isinstance(cover.edit, Hide)] or found
    return max(hiding, key=lambda cover: cover.number, default=None)


def _receipts(numbers: Iterable[int], records: Mapping[int, Record]) -> tuple[tuple[int, int, str], ...]:
    known = {record.first: record for number in numbers if (record := records.get(number))}
    receipts = (receipt_of(known[first]) for first in sorted(known, reverse=True))
    return tuple((receipt.first, receipt.last, str(receipt)) for receipt in receipts)


def _key(handle: str, keys: set[str]) -> str:
    key, number = handle, 1
    while key in keys:
        number += 1
        key = f"{handle}_{number}"
    keys.add(key)
    return key


def _calls_near(view: View, indices: Sequence[int]) -> dict[str, ToolCall]:
    """Return the calls in these entries, and in those shortly before them, by their ids."""
    if not indices:
        return {}
    near = view.entries[max(0, min(indices) - _CALL_IS_NEAR) : max(indices) + 1]
    return {call.call_id: call for entry in near for call in entry.message.calls}


def appended_row(entry: HistoryEntry, calls: Mapping[str, ToolCall], *, is_erased: bool) -> EntryRow:
    """Return the row of a message as it was appended. `calls`: those before it, by their ids."""
    message, stamp = entry.message, entry.stamp
    result = message.result
    role = role_of_erased(stamp) if is_erased else message.role
    return EntryRow(
        key=f"o{entry.position}",
        handle=entry.handle,
        position=entry.position,
        last=entry.position,
        kind="erased" if is_erased else "whole",
        content=_content_of(role, stamp),
        role=role,
        tool=stamp.tool,
        tokens=stamp.tokens,
        original_tokens=stamp.tokens,
        parts=message.parts,
        call=calls.get(result.call_id) if result else None,
        turn=stamp.turn,
        time=stamp.time,
        sentences=(RELEASED,) if entry.is_released else (),
        model=stamp.model,
        is_interrupted=is_interrupted(stamp.stop),
    )


def role_of_erased(stamp: Stamp) -> Role:
    """Return the role of an erased message, which only its stamp still shows."""
    origin = stamp.origin
    return origin if origin in ("system", "assistant", "tool") else "user"


def _content_of(role: Role, stamp: Stamp) -> ContentKind:
    if role == "tool" or stamp.origin == "tool":
        return "results_full"
    return role


def index_at(view: View, places: Sequence[RowPlace], position: int) -> int:
    """Return the index of the first row that ends at this position or after it."""

    def end(place: RowPlace) -> int:
        if not isinstance(place, int):
            return place[1]
        entry = view.entries[place]
        if entry.is_between and place + 1 < len(view.entries):
            return end(place + 1)  # It belongs to the entry behind it.
        # A stand-in for an answer has the position of its call, and stands after the answers that came.
        is_after = entry.kind == "stand-in" and place and not entry.is_between
        return max(entry.last, end(place - 1)) if is_after else entry.last

    return bisect_left(places, position, key=end)


def readable(message: Message) -> str:
    """Return everything that a message says as text, to compare two forms of it."""
    return "\n\n".join(piece for part in message.parts for piece in _pieces(part))


def _pieces(part: Part) -> list[str]:
    match part:
        case Text(text=text):
            return [text]
        case Reasoning(text=text):
            return [f"(reasoning) {text}" if text else "(reasoning, encrypted)"]
        case ToolCall(name=name, arguments=arguments):
            return [f"{name} {arguments}"]
        case ToolResult(content=content):
            return [piece for nested in content for piece in _pieces(nested)]
        case Media(mime=mime, source=source, data=data):
            return [f"({mime or 'media'}, {len(data):,} characters)" if source == "base64" else f"({mime} {data})"]
        case Opaque(kind=kind, body=body):
            return [f"({kind}) {body}"]
