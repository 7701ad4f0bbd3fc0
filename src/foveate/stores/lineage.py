"""Where a branch's messages and records lie: the branches it came from, and how much of each it shares.

A fork copies nothing. It is a new branch number that remembers, for each branch it descends from, up to which
position and which edit it shares that branch. So a conversation is read as one short range per ancestor, the oldest
first, and its own branch last. Numbers only; nothing here knows SQL.
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
    "runs",
    "shares",
]


class Shared(NamedTuple):
    """What a branch shares with one it came from."""

    branch: int
    position: int
    """The last shared position of the conversation; where an older ancestor reaches as far, this one lends no
    message.
    """
    number: int
    """The last shared edit, likewise."""


class Range(NamedTuple):
    """Positions, or edit numbers, first..last (both included), as rows of one branch."""

    branch: int
    first: int
    last: int


Lineage = tuple[Shared, ...]
"""A branch's ancestors, the oldest first. Empty where the branch began a tree."""

_decoder = msgspec.json.Decoder(Lineage)


def root_of(tenant: str, name: str) -> int:
    """The number, 1..2**63-1, under which a conversation of this name begins its tree, and under which its name is
    found.
    """
    digest = blake2b(f"{len(tenant)}:{tenant}{name}".encode(), digest_size=8, person=b"foveate root 1").digest()
    return int.from_bytes(digest, "big") % (2**63 - 1) + 1


def descend(lineage: Lineage, branch: int, position: int, number: int) -> Lineage:
    """The lineage of a new branch that leaves `branch` (whose lineage is given) after this position and this edit.

    Older branches that lend the new one nothing are left out: who regenerates one answer a thousand times makes a
    thousand branches, and none of them may drag the others along.
    """
    kept: list[Shared] = []
    for shared in lineage:
        cut = Shared(shared.branch, min(shared.position, position), min(shared.number, number))
        before = kept[-1] if kept else Shared(0, 0, 0)
        if cut.position > before.position or cut.number > before.number:
            kept.append(cut)
    return (*kept, Shared(branch, position, number))


def branch_of(head: Head, lineage: Lineage) -> Branch:
    """The branch of this head: the last of its ancestors is the one it left."""
    return Branch(head, *lineage[-1]) if lineage else Branch(head)


def position_ranges(lineage: Lineage, branch: int, first: int, last: int) -> Iterator[Range]:
    """The rows that hold positions first..last of `branch`, in order."""
    return _ranges([(shared.branch, shared.position) for shared in lineage], branch, first, last)


def record_ranges(lineage: Lineage, branch: int, first: int, last: int) -> Iterator[Range]:
    """The rows that hold the records with edits first..last of `branch`, in order."""
    return _ranges([(shared.branch, shared.number) for shared in lineage], branch, first, last)


def shares(lineage: Lineage, branch: int, last: int, rows: Iterable[Range]) -> bool:
    """Whether positions 1..last of `branch` are some of these rows."""
    own = {part.branch: part for part in position_ranges(lineage, branch, 1, last)}
    return any((part := own.get(one.branch)) and one.first <= part.last and part.first <= one.last for one in rows)


def runs(positions: Iterable[int]) -> Iterator[tuple[int, int]]:
    """These positions, sorted and once each, as runs (first, last) of neighbours."""
    ordered = sorted(set(positions))
    start = 0
    for index, position in enumerate(ordered):
        if index + 1 == len(ordered) or ordered[index + 1] != position + 1:
            yield ordered[start], position
            start = index + 1


def encode(lineage: Lineage) -> str:
    """JSON text: `[[branch, position, number], ...]`."""
    return msgspec.json.encode(lineage).decode()


def decode(text: str) -> Lineage:
    """The lineage that `encode` wrote. Raises msgspec.DecodeError."""
    return _decoder.decode(text)


def _ranges(ends: list[tuple[int, int]], branch: int, first: int, last: int) -> Iterator[Range]:
    begin = 1
    for lender, end in [*ends, (branch, last)]:
        low, high = max(first, begin), min(last, end)
        if low <= high:
            yield Range(lender, low, high)
        begin = max(begin, end + 1)
