"""Saved views: what a view shows and what was worked out to show it, as one blob.

A conversation that opens with a saved view reads no messages one by one, and makes, checks and renders only what is new
since. The blob is a cache next to a snapshot: it may be missing at any time. Two things decide whether it is used. A
blob of another `VERSION` is ignored. Its messages fit every model, but the entries, the state of the rules and the
rendered messages only fit the format, model, counter and profile under which they were made (`key_of`).

Large messages are left out, and read from the store: they are mostly media, which compress badly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from .edits import Path, Span
from .messages import Message, Text, ToolCall, ToolResult
from .profiles import Profile
from .scalars import plain_scalar
from .server_tools import ServerBlock
from .slots import Slot
from .snapshots import Row
from .stamps import Stamp
from .view import Entry, Kind, PinnedPart

__all__ = [
    "LARGE",
    "VERSION",
    "Refer",
    "SavedEntry",
    "SavedGroup",
    "SavedLegality",
    "SavedMark",
    "SavedMessage",
    "SavedRules",
    "SavedView",
    "decode_view",
    "encode_view",
    "key_of",
    "long_texts",
    "plain_entry",
    "restore_entries",
    "saved_message",
    "saved_order",
    "saved_rows",
]

VERSION = 1
"""Version of the blob. Raise it whenever the same history gives other entries, violations or rendered bytes."""
LARGE = 65_536
"""Bytes of a message from which it is left out."""


class SavedMessage(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One visible message. Its position is that in the snapshot."""

    id: str
    """Id of the message."""
    message: Message | None
    """The message, or its outline; None: it is large, and the store has it."""
    stamp: Stamp
    """Its stamp."""
    size: int
    """Bytes of its canonical form; 0 if it is erased."""
    is_outline: bool = False
    """Whether `message` is only the outline."""
    images: int = 0
    """Number of images that the plain entry shows."""
    is_result: bool = False
    """Whether the plain entry shows a result."""


class SavedEntry(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """An entry that is not the plain one of its message."""

    place: int
    """Index of the slot that it shows."""
    form: tuple[str, ...]
    """Its form among those of the slot; empty for the slot's own entry."""
    position: int
    id: str | None
    """Its id; None: that of the slot. Ids do not compress."""
    message: Message | None
    """The visible message; None: that of the slot."""
    is_appended: bool
    """Whether it shows the appended message."""
    kind: Kind
    tool: str
    edits: tuple[int, ...]
    shrunk: tuple[Path, ...]
    shrunk_by: tuple[str, ...]
    expandable: bool
    span: Span | None
    last: int
    seen: int
    pins: tuple[PinnedPart, ...]
    renewed: int
    legalized: str
    tokens: int
    bytes: int
    images: int
    is_result: bool


class SavedMark(msgspec.Struct, frozen=True, array_like=True):
    """The beginning of a unit in the legal order (`legalize.py`)."""

    slot: int
    """Index of its first slot."""
    entry: int
    """Index of its first entry."""
    open_uses: tuple[tuple[str, int, ServerBlock], ...] = ()
    """Uses of server tools without a result: key, index of the slot, block."""
    call_ids: tuple[str, ...] = ()
    """Ids of calls up to the next mark."""


class SavedLegality(msgspec.Struct, frozen=True, array_like=True):
    """The legal order of the slots before the last unit."""

    order: tuple[int, ...]
    """For each entry: the index of its slot, or `-1 - index` of one of `SavedView.entries`."""
    marks: tuple[SavedMark, ...]
    last: SavedMark
    marked: tuple[str, ...]
    """Ids of calls since the newest mark, before the last unit."""


class SavedRules(msgspec.Struct, frozen=True, array_like=True):
    """The state of the rules (`rules.py`) after the first `read` entries, which break none."""

    read: int
    states: tuple[dict[str, bool | int | str | list[str] | dict[str, ServerBlock]], ...]


class SavedGroup(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The wire messages of consecutive entries (`formats/memo.py`)."""

    size: int
    """Number of entries."""
    bodies: tuple[tuple[bytes | int, ...], ...]
    """For each wire message its JSON bytes, with numbers of `long_texts` in place of these texts."""
    shown: tuple[tuple[int, ...], ...] = ()
    """For each wire message: the indices of its entries in the group; empty: one message shows all of them."""


class SavedView(msgspec.Struct, frozen=True, array_like=True):
    """The messages of one view, and facts that were worked out to show them."""

    key: str
    """The key of the facts, as `key_of` returns it; "" if only the messages were saved."""
    messages: Sequence[SavedMessage]
    """The visible messages, in the order of the snapshot."""
    hidden: tuple[int, ...] = ()
    """Indices of slots that have no entry."""
    entries: tuple[SavedEntry, ...] = ()
    """All entries but the plain ones."""
    legality: SavedLegality | None = None
    rules: SavedRules | None = None
    groups: Sequence[SavedGroup] = ()


class _Head(msgspec.Struct, array_like=True):
    version: int
    view: msgspec.Raw


class _Piece(msgspec.Struct, array_like=True):
    messages: Sequence[SavedMessage]
    groups: Sequence[SavedGroup]


_PIECE = 250
"""Messages of a piece. Only one piece is in memory while a view is read."""
_LONG = 32
"""Characters of a text from which a wire message refers to it."""

_encode = msgspec.msgpack.Encoder(enc_hook=plain_scalar).encode
_decode_head = msgspec.msgpack.Decoder(_Head).decode
_decode_view = msgspec.msgpack.Decoder(SavedView).decode
_decode_piece = msgspec.msgpack.Decoder(_Piece).decode


def encode_view(view: SavedView) -> list[bytes]:
    """Return a saved view in pieces, in MessagePack: what was worked out first, then the messages."""
    messages, groups = view.messages, view.groups
    count = max(1, -(-len(messages) // _PIECE))
    head = _Head(VERSION, msgspec.Raw(_encode(replace(view, messages=(), groups=()))))
    pieces = [_encode(head)]
    for number in range(count):
        first, last = number * _PIECE, (number + 1) * _PIECE
        begin, end = len(groups) * number // count, len(groups) * (number + 1) // count
        pieces.append(_encode(_Piece(messages[first:last], groups[begin:end])))
    return pieces


def decode_view(pieces: Iterable[bytes], key: str) -> SavedView | None:
    """Return the saved view; without what was worked out under another key.

    Returns None if another version wrote it, or the bytes are damaged. Only one of the pieces is in memory at a time.
    """
    rest = iter(pieces)
    try:
        head = _decode_head(next(rest, b""))
        if head.version != VERSION:
            return None
        view = _decode_view(head.view)
        messages: list[SavedMessage] = []
        groups: list[SavedGroup] = []
        for body in rest:
            piece = _decode_piece(body)
            messages += piece.messages
            groups += piece.groups if view.key == key else ()
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return replace(view, messages=messages, groups=groups) if view.key == key else SavedView("", messages)


def key_of(format: str, model: str, counter: str, profile: Profile) -> str:
    """Return the key of a view's entries and rendered messages; "" if the counter has no name, so that none fits."""
    if not counter:
        return ""
    facts = _encode([format, model, counter, profile])
    return blake2b(facts, digest_size=16).hexdigest()


def saved_message(slot: Slot) -> SavedMessage:
    """Return the message of a slot to be saved."""
    base = slot.own_entry
    images, is_result = (base.images, base.is_result) if base else (0, False)
    is_outline = slot.original is not None
    message = slot.message if is_outline or slot.size < LARGE else None
    return SavedMessage(slot.id, message, slot.stamp, slot.size, is_outline, images, is_result)


def plain_entry(slot: Slot, images: int, is_result: bool) -> Entry:
    """Return the entry of a message that is shown as it was appended."""
    stamp, message = slot.stamp, slot.message
    return Entry(
        slot.position,
        slot.id,
        message,
        slot.original or message,
        stamp,
        tool=stamp.tool if is_result else "",
        last=slot.last,
        renewed=slot.renewed,
        tokens=stamp.tokens,
        bytes=slot.size,
        images=images,
        is_result=is_result,
    )


def long_texts(entries: Sequence[Entry]) -> list[str]:
    """Return the long texts of entries, which their wire messages repeat."""
    texts: list[str] = []
    for entry in entries:
        for part in entry.message.parts:
            if type(part) is Text:  # Faster than `isinstance`, and a resume looks at every part.
                texts.append(part.text)
            elif type(part) is ToolResult:
                texts += [inner.text for inner in part.content if type(inner) is Text]
            elif type(part) is ToolCall:
                texts.append(part.arguments)
    return [text for text in texts if len(text) >= _LONG]


def _is_plain(entry: Entry, slot: Slot) -> bool:
    """Return whether `plain_entry` returns an equal entry."""
    return (
        slot.span is None
        and entry.message is slot.message
        and not (entry.edits or entry.shrunk or entry.pins or entry.legalized)
        and entry.kind == "message"
        and (entry.tokens, entry.bytes) == (slot.stamp.tokens, slot.size)
    )


def _saved_entry(entry: Entry, place: int, slot: Slot, form: tuple[str, ...] = ()) -> SavedEntry:
    """Return an entry of the slot at index `place`, to be saved."""
    return SavedEntry(
        place,
        form,
        entry.position,
        None if entry.id == slot.id else entry.id,
        None if entry.message is slot.message else entry.message,
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


def _restored_entry(saved: SavedEntry, slot: Slot) -> Entry:
    """Return the entry that was saved."""
    return Entry(
        saved.position,
        slot.id if saved.id is None else saved.id,
        slot.message if saved.message is None else saved.message,
        (slot.original or slot.message) if saved.is_appended else None,
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


Refer = Callable[[Entry], int]
"""Returns the reference to an entry: the index of its slot, or `-1 - index` of one of the saved entries."""


def saved_rows(view: SavedView, positions: Sequence[int]) -> dict[int, Row]:
    """Return the messages of a saved view by position, without the large ones. `positions`: those of the snapshot."""
    return {
        position: Row(position, saved.id, saved.message, saved.stamp, saved.size)
        for position, saved in zip(positions, view.messages, strict=True)
        if saved.message is not None
    }


class Order(NamedTuple):
    """The entries of some slots, to be saved."""

    hidden: tuple[int, ...]
    entries: tuple[SavedEntry, ...]
    legality: SavedLegality | None


def saved_order(
    slots: Sequence[Slot],
    shown: Sequence[Entry | None],
    legality: Callable[[Refer, Mapping[int, int]], SavedLegality | None],
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
            entries.append(_saved_entry(entry, place, slot))
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
        entries.append(_saved_entry(entry, place, slots[place], form))
        refs[id(entry)] = -len(entries)
        return -len(entries)

    try:
        saved = legality(refer, {id(slot): place for place, slot in enumerate(slots)})
    except KeyError:
        return None
    return Order(tuple(hidden), tuple(entries), saved)


def restore_entries(view: SavedView, slots: Sequence[Slot]) -> list[Entry]:
    """Give each slot its own entry and its other forms as they were saved. Return the entries of `view.entries`."""
    restored = [_restored_entry(saved, slots[saved.place]) for saved in view.entries]
    for saved, entry in zip(view.entries, restored, strict=True):
        slots[saved.place].hold_entry(entry, saved.form)
    for place in view.hidden:
        slots[place].hold_entry(None)
    return restored
