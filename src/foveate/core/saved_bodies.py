"""Saved bodies: the rendered messages at the beginning of a saved view, in pieces that a request joins as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

__all__ = ["GroupPlace", "SavedBodies", "SavedGroup", "SavedPiece", "join_bodies"]

_PIECE = 250
"""Groups of a piece."""


class SavedGroup(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The wire messages of consecutive entries (`formats/memo.py`)."""

    size: int
    """Number of entries."""
    lengths: tuple[int, ...]
    """Bytes of each wire message; empty: they show a large message, and are written again."""
    shown: tuple[tuple[int, ...], ...] = ()
    """For each wire message: the indices of its entries in the group; empty: one message shows all of them."""


class SavedPiece(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The numbers of a piece of wire messages."""

    entries: int
    """Entries that they show."""
    wires: int
    """Wire messages; 0 for a group that is written again."""


class GroupPlace(NamedTuple):
    """The place of a group's wire messages."""

    group: SavedGroup
    piece: int
    """Index of the piece."""
    start: int
    """Place of the first byte in the piece."""
    stop: int
    """Place behind the last byte."""


class SavedBodies(msgspec.Struct, frozen=True, array_like=True):
    """The JSON bytes of wire messages."""

    pieces: tuple[SavedPiece, ...] = ()
    groups: bytes = b""
    """The groups, encoded: only an edit, or a format that looks into wire messages, needs them."""
    texts: Sequence[bytes] = ()
    """For each piece: its wire messages, with a comma between two."""

    def places(self) -> Iterator[GroupPlace]:
        """Yield the groups with their places, in order."""
        number = done = start = 0
        for group in _decode_groups(self.groups) if self.groups else ():
            if done == self.pieces[number].entries:
                number, done, start = number + 1, 0, 0
            stop = start + sum(group.lengths) + max(0, len(group.lengths) - 1)
            yield GroupPlace(group, number, start, stop)
            done += group.size
            start = stop + 1


_encode_groups = msgspec.msgpack.encode
_decode_groups = msgspec.msgpack.Decoder(list[SavedGroup]).decode


def join_bodies(groups: Iterable[tuple[SavedGroup, Sequence[bytes]]]) -> SavedBodies:
    """Return groups with the bodies of their wire messages in pieces."""
    pieces: list[SavedPiece] = []
    texts: list[bytes] = []
    waiting: list[bytes] = []
    known: list[SavedGroup] = []
    entries = count = 0

    def end() -> None:
        nonlocal entries, count
        if entries:
            pieces.append(SavedPiece(entries, len(waiting)))
            texts.append(b",".join(waiting))
        entries = count = 0
        waiting.clear()

    for group, bodies in groups:
        known.append(group)
        if not bodies or count == _PIECE:
            end()
        entries, count = entries + group.size, count + 1
        waiting += bodies
        if not bodies:
            end()
    end()
    return SavedBodies(tuple(pieces), _encode_groups(known), texts)
