"""The ancestors of a branch, and which positions and edits it shares with each.

A fork copies nothing. It is a new branch number that stores, for each ancestor, up to which position and which edit it
shares that branch. So a conversation is read as one range per ancestor, oldest first, then its own branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from ..ports import Branch, Head

__all__ = [
    "Lineage",
    "Range",
    "Shared",
    "branch_of",
    "decode",
    "descend",
    "encode",
    "position_ranges",
    "record_ranges",
    "root_of",
    "shares",
    "spans",
]


class Shared(NamedTuple):
    """The part that a branch shares with an ancestor."""

    branch: int
    position: int
    """The last shared position; if an older ancestor reaches as far, no message of this one is shared."""
    number: int
    """The last shared edit, likewise."""


class Range(NamedTuple):
    """Positions, or edit numbers, first..last (both included), in rows of one branch."""

    branch: int
    first: int
    last: int


Lineage = tuple[Shared, ...]
"""The ancestors of a branch, oldest first; empty for the first branch of a tree."""

_decoder = msgspec.json.Decoder(Lineage)


def root_of(tenant: str, name: str) -> int:
    """Return the number, 1..2**63-1, of the tree that a conversation of this name starts; its name has it too."""
    digest = blake2b(f"{len(tenant)}:{tenant}{name}".encode(), digest_size=8, person=b"foveate root 1").digest()
    return int.from_bytes(digest, "big") % (2**63 - 1) + 1


def descend(lineage: Lineage, branch: int, position: int, number: int) -> Lineage:
    """Return the lineage of a new branch that leaves `branch`, whose lineage is `lineage`, at this point.

    Ancestors that share nothing are left out: an answer that is regenerated a thousand times makes a thousand branches.
    """
    kept: list[Shared] = []
    for shared in lineage:
        cut = Shared(shared.branch, min(shared.position, position), min(shared.number, number))
        before = kept[-1] if kept else Shared(0, 0, 0)
        if cut.position > before.position or cut.number > before.number:
            kept.append(cut)
    return (*kept, Shared(branch, position, number))


def branch_of(head: Head, lineage: Lineage) -> Branch:
    """Return the branch of this head; its parent is the last of its ancestors."""
    return Branch(head, *lineage[-1]) if lineage else Branch(head)


def position_ranges(lineage: Lineage, branch: int, first: int, last: int) -> Iterator[Range]:
    """Yield the rows with positions first..last of `branch`, in order."""
    return _ranges([(shared.branch, shared.position) for shared in lineage], branch, first, last)


def record_ranges(lineage: Lineage, branch: int, first: int, last: int) -> Iterator[Range]:
    """Yield the rows with the records of edits first..last of `branch`, in order."""
    return _ranges([(shared.branch, shared.number) for shared in lineage], branch, first, last)


def shares(lineage: Lineage, branch: int, last: int, rows: Iterable[Range]) -> bool:
    """Return whether positions 1..last of `branch` are some of these rows."""
    own = {part.branch: part for part in position_ranges(lineage, branch, 1, last)}
    return any((part := own.get(row.branch)) and row.first <= part.last and part.first <= row.last for row in rows)


def spans(positions: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the spans (first, last) of consecutive positions, each position once, in order."""
    ordered = sorted(set(positions))
    start = 0
    for index, position in enumerate(ordered):
        if index + 1 == len(ordered) or ordered[index + 1] != position + 1:
            yield ordered[start], position
            start = index + 1


def encode(lineage: Lineage) -> str:
    """Return JSON text: `[[branch, position, number], ...]`."""
    return msgspec.json.encode(lineage).decode()


def decode(text: str) -> Lineage:
    """Return the lineage that `encode` wrote. Raises msgspec.DecodeError."""
    return _decoder.decode(text)


def _ranges(ends: list[tuple[int, int]], branch: int, first: int, last: int) -> Iterator[Range]:
    begin = 1
    for lender, end in [*ends, (branch, last)]:
        low, high = max(first, begin), min(last, end)
        if low <= high:
            yield Range(lender, low, high)
        begin = max(begin, end + 1)
