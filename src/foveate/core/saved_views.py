"""Saved views: what a view shows and what was worked out to show it, as one blob.

A conversation that opens with a saved view reads no messages one by one, and makes, checks and renders only what is new
since. The blob is a cache next to a snapshot: it may be missing at any time. Two things decide whether it is used. A
blob of another `VERSION` is ignored. Its messages fit every model, but the entries, the state of the rules, the facts
and the rendered messages only fit the release, format, model, counter and profile with which they were made (`key_of`).

Large messages are left out, and read from the store: they are mostly media, which compress badly. The others are
packed: they refer to the rendered messages for their texts (`packed_messages.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from itertools import islice

import msgspec
from msgspec.structs import replace

from .edits import Path, Span
from .growing import SavedFact
from .packed_messages import PackedMessage
from .profiles import Profile
from .saved_bodies import SavedBodies
from .scalars import plain_scalar
from .server_tools import ServerBlock
from .stamps import Stamp
from .view import Entry, EntryKind, PinnedPart

__all__ = [
    "LARGE",
    "VERSION",
    "Refer",
    "SavedEntry",
    "SavedLegality",
    "SavedMark",
    "SavedMessage",
    "SavedRules",
    "SavedView",
    "decode_view",
    "encode_view",
    "key_of",
]

VERSION = 6
"""Version of the blob. Raise it whenever the same history gives other entries, violations, facts or rendered bytes."""
_Form = bytes  # `SavedEntry` has a field of that name.
LARGE = 65_536
"""Bytes of a message from which it is left out."""


class SavedMessage(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One visible message. Its position is that in the snapshot."""

    id: str
    """Id of the message."""
    packed: bytes | None
    """The message, or its outline, as `packed_form` returns it; None: it is large, and the store has it."""
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
    piece: int = -1
    """Index of the piece of rendered messages that `packed` refers to; -1: it refers to none."""


class SavedEntry(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """An entry that is not the plain one of its message."""

    place: int
    """Index of the slot that it shows."""
    form: tuple[str, ...]
    """Its form among those of the slot; empty for the slot's own entry."""
    position: int
    id: str | None
    """Its id; None: that of the slot. Ids do not compress."""
    packed: _Form | None
    """The visible message as `packed_form` returns it; None: that of the slot."""
    piece: int
    """Index of the piece of rendered messages that `packed` refers to; -1: it refers to none."""
    is_appended: bool
    """Whether it shows the appended message."""
    kind: EntryKind
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
    bodies: SavedBodies = SavedBodies()
    """The rendered messages at the beginning of the view."""
    facts: dict[str, SavedFact] = {}
    """Facts of policies about the beginning of the view, by their names."""
    is_plain: bool = False
    """Whether a request without the tool `expand` shows the same entries (`plain_handles.py`)."""
    entry_facts: dict[str, dict[int, msgspec.Raw]] = {}
    """Facts of policies about single entries, by their names and the indices of the entries in the view."""

    def packed(self, form: bytes, piece: int) -> PackedMessage:
        """Return the message with this form, which refers to this piece of rendered messages."""
        return PackedMessage(form, self.bodies.texts[piece] if piece >= 0 else b"")


class _Head(msgspec.Struct, array_like=True):
    version: int
    view: msgspec.Raw


_PIECE = 250
"""Messages of a piece. Only one piece is in memory while a view is read."""

_encode = msgspec.msgpack.Encoder(enc_hook=plain_scalar).encode
_decode_head = msgspec.msgpack.Decoder(_Head).decode
_decode_view = msgspec.msgpack.Decoder(SavedView).decode
_decode_messages = msgspec.msgpack.Decoder(list[SavedMessage]).decode


def encode_view(view: SavedView) -> list[bytes]:
    """Return a saved view in pieces: what was worked out first, then the rendered messages, then the messages."""
    bare = replace(view, messages=(), bodies=replace(view.bodies, texts=()))
    head = _Head(VERSION, msgspec.Raw(_encode(bare)))
    starts = range(0, len(view.messages), _PIECE)
    return [
        _encode(head),
        *view.bodies.texts,
        *[_encode(view.messages[start : start + _PIECE]) for start in starts],
    ]


def decode_view(pieces: Iterable[bytes], key: str) -> SavedView | None:
    """Return the saved view; without what was worked out under another key.

    Returns None if another version wrote it, or the bytes are damaged. Only one piece of messages is in memory at a
    time.
    """
    rest = iter(pieces)
    try:
        head = _decode_head(next(rest, b""))
        if head.version != VERSION:
            return None
        view = _decode_view(head.view)
        texts = [*islice(rest, len(view.bodies.pieces))]
        messages = [message for piece in rest for message in _decode_messages(piece)]
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    if len(texts) < len(view.bodies.pieces):
        return None
    known = view if view.key == key else SavedView("", ())
    return replace(known, messages=messages, bodies=replace(view.bodies, texts=texts))


def key_of(release: str, format: str, model: str, counter: str, profile: Profile) -> str:
    """Return the key of what was worked out for a view; "" if the counter has no name, so that none fits.

    `release`: version of foveate. Another one may show the same history in another way.
    """
    if not counter:
        return ""
    terms = _encode([release, format, model, counter, profile])
    return blake2b(terms, digest_size=16).hexdigest()


Refer = Callable[[Entry], int]
"""Returns the reference to an entry: the index of its slot, or `-1 - index` of one of the saved entries."""
