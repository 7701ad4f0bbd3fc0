"""What a store hands out and takes: messages in their places, heads, branches, and what it found or erased.

Values alone, but for `Tail`, which reads when it is asked. Nothing here knows how any of it is kept.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from ..core.edits import Record
from ..core.stamps import Stamp

__all__ = ["IMPORTING", "Appended", "Branch", "Erased", "Finding", "Found", "Head", "Stray", "Tail"]

IMPORTING = "~importing "
"""What the name of a conversation begins with that an import has not finished."""


class Appended(Struct, frozen=True):
    """One message in its place in a conversation, as a store keeps it."""

    position: int
    """From 1, along this conversation's chain."""
    id: str
    seal: str
    """The link of the chain of stamps."""
    stamp: Stamp
    body: bytes
    """The message's canonical bytes, or b"" where it was erased."""
    body_hash: str


class Head(Struct, frozen=True):
    """Where a conversation stands: the ends of its three chains. The token of optimistic concurrency."""

    tenant: str
    name: str
    root: int
    """The conversation this tree of forks began with, as a 63-bit number; every key in the store begins with it."""
    branch: int
    """The branch of the root that this conversation writes to."""
    position: int = 0
    """Number of messages: the position of the tip."""
    tip: str = ""
    """Id of the newest message."""
    seal: str = ""
    """Newest link of the chain of stamps."""
    number: int = 0
    """Number of the newest edit."""
    record: str = ""
    """Id of the newest journal record."""
    erased: int = 0
    """Number of the newest erasure that was made in its tree: what was read before it may tell what is gone."""


class Branch(Struct, frozen=True):
    """One conversation of a tree of forks, and where it left the one that it came from."""

    head: Head
    parent: int = 0
    """The branch it came from; 0 where it began with nothing."""
    position: int = 0
    """The last message that the two have in common."""
    number: int = 0
    """The last edit that the two have in common."""


class Finding(Struct, frozen=True):
    """One thing `verify` found wrong."""

    where: str
    """For example `message 17` or `record 3`."""
    problem: str


class Stray(Struct, frozen=True):
    """Something in a store that belongs to no conversation, or a name that leads to none. A sound store has none."""

    tenant: str
    where: str
    """For example `name 'support-456'`, or `branch 2 of tree 6473103368560257525`."""
    problem: str


class Erased(Struct, frozen=True):
    """What one erasure did, without a word of what is gone."""

    number: int
    """From 1, along the tree of forks; 0 where there was nothing left to erase, and nothing was written."""
    time: int = 0
    """Milliseconds since 1970, as the caller said."""
    who: str = ""
    reason: str = ""
    name: str = ""
    """The conversation it was asked of."""
    handles: str = ""
    """What was named, such as `m3` or `m3-m17 m20`; "" for runs alone."""
    messages: int = 0
    """Rows of messages that say nothing any more, those on other branches and those that showed others again too."""
    edits: int = 0
    """Edits of the journal whose texts are gone."""
    runs: int = 0
    """Runs of agents of which a text is gone."""
    steps: int = 0


class Found(Struct, frozen=True):
    """One message that a search found."""

    position: int
    score: float
    """The larger the better; only to be compared within one search."""


class Tail(Protocol):
    """What a conversation has beyond a head that somebody has of it. Rows and records are made when they are asked for,
    and may raise Damaged.

    Where what was read before holds no longer, since the name stands for another branch now or something was erased,
    there is a new head, and nothing beyond it: read anew.
    """

    head: Head
    """Where the conversation stands."""

    def newest(self) -> Stamp | None:
        """The stamp of the newest message, if there is one beyond."""
        ...

    def rows(self) -> list[Appended]:
        """The messages beyond, in order."""
        ...

    def records(self) -> list[tuple[str, Record]]:
        """The journal's records beyond, each with its id, in order."""
        ...
