"""Conversion between the slots of a projection and the messages and entries of a saved view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from .messages import Message
from .originals import ReadOriginal
from .packed_messages import PackedMessage, packed_form
from .saved_bodies import GroupPlace, SavedBodies
from .saved_views import LARGE, Refer, SavedEntry, SavedLegality, SavedMessage, SavedView
from .slots import Slot
from .snapshots import Row, SlotState, Snapshot
from .view import Entry

__all__ = [
    "Order",
    "Packer",
    "restore_entries",
    "restored_slots",
    "saved_message",
    "saved_order",
    "slot_states",
    "summary_sizes",
]


class Packer:
    """Packs the messages of one view, which refer to its rendered messages."""

    def __init__(self, entries: Sequence[Entry], bodies: SavedBodies) -> None:
        """`bodies`: the rendered messages at the beginning of the view."""
        self._texts = bodies.texts
        self._places: dict[int, GroupPlace] = {}
        at = 0
        for place in bodies.places():
            for entry in entries[at : at + place.group.size]:
                self._places[id(entry)] = place
            at += place.group.size

    def packed(self, message: Message, entry: Entry | None) -> tuple[bytes, int]:
        """Return the form of a message that an entry shows, and the index of the piece that it refers to."""
        place = self._places.get(id(entry))
        if place is None:
            return packed_form(message), -1
        return packed_form(message, self._texts[place.piece], range(place.start, place.stop)), place.piece


def saved_message(slot: Slot, packer: Packer) -> SavedMessage:
    """Return the message of a slot to be saved."""
    base = slot.own_entry
    images, is_result = (base.images, base.is_result) if base else (0, False)
    is_outline = slot.original is not None
    is_left_out = not is_outline and slot.size >= LARGE
    form, piece = (None, -1) if is_left_out else packer.packed(slot.message, base)
    return SavedMessage(slot.id, form, slot.stamp, slot.size, is_outline, images, is_result, piece)


class _PackedEntry(Entry, frozen=True, eq=False, gc=False):
    """The entry of a packed message. It becomes a plain one when its message is looked at."""

    def __repr__(self) -> str:
        return repr(_unpacked(self))


def _unpacked(entry: _PackedEntry) -> Entry:
    """Return the same object as a plain entry, whose fields are as fast as those of any other."""
    message, appended = _MESSAGE.__get__(entry), _APPENDED.__get__(entry)
    if isinstance(message, PackedMessage):
        _MESSAGE.__set__(entry, message.message())
    if isinstance(appended, PackedMessage):
        _APPENDED.__set__(entry, appended.message())
    _CLASS.__set__(entry, Entry)
    return entry


# The fields of a frozen Struct and its class can be set only in this way.
_MESSAGE: Any = vars(Entry)["message"]
_APPENDED: Any = vars(Entry)["appended"]
_CLASS: Any = vars(object)["__class__"]
_PackedEntry.message = property(lambda entry: _unpacked(entry).message)  # type: ignore[assignment]
_PackedEntry.appended = property(lambda entry: _unpacked(entry).appended)  # type: ignore[assignment]


def slot_states(slots: Iterable[Slot]) -> tuple[list[tuple[int, int]], list[SlotState]]:
    """Return the ranges of visible positions, and the messages that are not as they were appended."""
    ranges: list[tuple[int, int]] = []
    kept: list[SlotState] = []
    for slot in slots:
        if slot.span is not None:
            continue
        if ranges and ranges[-1][1] == slot.position - 1:
            ranges[-1] = (ranges[-1][0], slot.position)
        else:
            ranges.append((slot.position, slot.position))
        if slot.edits or slot.pins or slot.renewed or slot.stale or slot.is_late:
            kept.append(SlotState(slot.position, list(slot.edits), slot.pins, slot.renewed, slot.stale, slot.is_late))
    return ranges, kept


def restored_slots(
    snapshot: Snapshot, rows: Iterable[Row], read: ReadOriginal | None, view: SavedView | None
) -> list[Slot]:
    """Return the slots of the visible messages of a snapshot, with their own entries if the view has any.

    `rows`: the messages that the view does not have, in order.
    """
    kept = {keep.position: keep for keep in snapshot.kept}
    others = iter(rows)
    saved_messages: Iterable[SavedMessage | None] = view.messages if view else repeat(None)
    slots: list[Slot] = []
    for position, saved in zip(snapshot.positions(), saved_messages, strict=False):
        if view is None or saved is None or saved.packed is None:
            row = next(others)
            slot = Slot(position, row.id, row.message, row.stamp, row.size)
        else:
            slot = Slot(position, saved.id, view.packed(saved.packed, saved.piece), saved.stamp, saved.size)
        if position in kept:
            keep = kept[position]
            slot.edits, slot.pins = tuple((n, edit) for n, edit in keep.edits), keep.pins
            slot.renewed, slot.stale, slot.is_late = keep.renewed, keep.stale, keep.is_late
            if saved is None or saved.packed is None:
                slot = (slot.released(read) if read else None) or slot
            elif saved.is_outline and read:
                slot.hold_outline(slot.message, read)
        if view and saved and view.key:
            slot.hold_entry(_plain_entry(slot, saved.images, saved.is_result))
        slots.append(slot)
    return slots


def _is_plain(entry: Entry, slot: Slot) -> bool:
    """Return whether `plain_entry` returns an equal entry."""
    return (
        slot.span is None
        and entry.message is slot.message
        and not (entry.edits or entry.shrunk or entry.pins or entry.legalized)
        and entry.kind == "message"
        and (entry.tokens, entry.bytes) == (slot.stamp.tokens, slot.size)
    )


def _saved_entry(entry: Entry, place: int, slot: Slot, packer: Packer, form: tuple[str, ...] = ()) -> SavedEntry:
    """Return an entry of the slot at index `place`, to be saved."""
    packed, piece = (None, -1) if entry.message is slot.message else packer.packed(entry.message, entry)
    return SavedEntry(
        place,
        form,
        entry.position,
        None if entry.id == slot.id else entry.id,
        packed,
        piece,
        entry.appended is not None,
        entry.kind,
        entry.tool,
        entry.edits,
        entry.shrunk,
        entry.shrunk_by,
        entry.expandable,
        entry.span,
        entry.last,
        entry.seen,
        entry.pins,
        entry.renewed,
        entry.legalized,
        entry.tokens,
        entry.bytes,
        entry.images,
        entry.is_result,
    )


def _restored_entry(view: SavedView, saved: SavedEntry, slot: Slot) -> Entry:
    """Return the entry that was saved."""
    return _PackedEntry(
        saved.position,
        slot.id if saved.id is None else saved.id,
        slot.packed if saved.packed is None else view.packed(saved.packed, saved.piece),  # type: ignore[arg-type]
        (slot.original or slot.packed) if saved.is_appended else None,  # type: ignore[arg-type]
        slot.stamp,
        saved.kind,
        saved.tool,
        saved.edits,
        saved.shrunk,
        saved.shrunk_by,
        saved.expandable,
        saved.span,
        saved.last,
        saved.seen,
        saved.pins,
        saved.renewed,
        saved.legalized,
        saved.tokens,
        saved.bytes,
        saved.images,
        saved.is_result,
    )


class Order(NamedTuple):
    """The entries of some slots, to be saved."""

    hidden: tuple[int, ...] = ()
    entries: tuple[SavedEntry, ...] = ()
    legality: SavedLegality | None = None


def saved_order(
    slots: Sequence[Slot],
    shown: Sequence[Entry | None],
    legality: Callable[[Refer, Mapping[int, int]], SavedLegality | None],
    packer: Packer,
) -> Order | None:
    """Return the entries of slots, and their legal order; None if an entry cannot be saved.

    `shown`: the own entry of each slot. `legality`: returns the legal order, for a function that refers to an
    entry, and the index of each slot by its identity.
    """
    entries: list[SavedEntry] = []
    refs: dict[int, int] = {}
    hidden: list[int] = []
    for place, (slot, entry) in enumerate(zip(slots, shown, strict=True)):
        if entry is None:
            hidden.append(place)
        elif _is_plain(entry, slot):
            refs[id(entry)] = place
        else:
            entries.append(_saved_entry(entry, place, slot, packer))
            refs[id(entry)] = -len(entries)
    forms: dict[int, tuple[int, tuple[str, ...], Entry]] = {}

    def refer(entry: Entry) -> int:
        """Return the reference to an entry. Raises KeyError for an entry that no slot holds."""
        if id(entry) in refs:
            return refs[id(entry)]
        if not forms:
            for place, slot in enumerate(slots):
                forms.update({id(entry): (place, form, entry) for form, entry in slot.forms.items()})
        place, form, _ = forms[id(entry)]
        entries.append(_saved_entry(entry, place, slots[place], packer, form))
        refs[id(entry)] = -len(entries)
        return -len(entries)

    try:
        saved = legality(refer, {id(slot): place for place, slot in enumerate(slots)})
    except KeyError:
        return None
    return Order(tuple(hidden), tuple(entries), saved)


def summary_sizes(view: SavedView) -> dict[tuple[int, int], tuple[int, int]]:
    """Return the tokens and bytes of the summaries that are shown as they are, by their first and last positions."""
    shown = [entry for entry in view.entries if entry.kind == "summary" and entry.packed is None and not entry.form]
    return {(entry.position, entry.last): (entry.tokens, entry.bytes) for entry in shown}


def restore_entries(view: SavedView, slots: Sequence[Slot]) -> list[Entry]:
    """Give each slot its own entry and its other forms as they were saved. Return the entries of `view.entries`."""
    restored = [_restored_entry(view, saved, slots[saved.place]) for saved in view.entries]
    for saved, entry in zip(view.entries, restored, strict=True):
        slots[saved.place].hold_entry(entry, saved.form)
    for place in view.hidden:
        slots[place].hold_entry(None)
    return restored


def _plain_entry(slot: Slot, images: int, is_result: bool) -> Entry:
    """Return the entry of a message that is shown as it was appended."""
    stamp, message = slot.stamp, slot.packed
    return _PackedEntry(
        slot.position,
        slot.id,
        message,  # type: ignore[arg-type]
        slot.original or message,  # type: ignore[arg-type]
        stamp,
        "message",
        stamp.tool if is_result else "",
        (),
        (),
        (),
        True,
        None,
        slot.last,
        0,
        (),
        slot.renewed,
        "",
        stamp.tokens,
        slot.size,
        images,
        is_result,
    )
