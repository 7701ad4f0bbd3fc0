"""Values that a store returns and accepts: stored messages, heads, branches, findings.

They know nothing about how a store keeps them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from ..core.edits import Record
from ..core.stamps import Stamp
from ..errors import conversation_label

__all__ = [
    "IMPORTING",
    "Branch",
    "Changes",
    "Clock",
    "Erasure",
    "Finding",
    "Head",
    "LinkedRows",
    "Listed",
    "Orphan",
    "SearchHit",
    "StoredMessage",
    "wall_clock",
]

Clock = Callable[[], int]
"""Returns the time in milliseconds since 1970."""

IMPORTING = "~importing "
"""Prefix of the name of a conversation whose import is not finished."""


class StoredMessage(Struct, frozen=True):
    """One message at its position in a conversation, as a store keeps it."""

    position: int
    """From 1, along the chain of this conversation."""
    id: str
    """The id of the message."""
    seal: str
    """The link of the chain of stamps."""
    stamp: Stamp
    """The facts that are stored with it."""
    body: bytes
    """The canonical bytes of the message, or of its outline if it was released; b"" if it was erased."""
    body_hash: str
    """The hash of the message as it was appended."""
    is_released: bool = False
    """Whether the original was released, so that the body is only an outline of the message."""


class LinkedRows(list[StoredMessage]):
    """Rows whose ids and seals were computed just now, one after the other. A store does not compute them again."""

    def __init__(self, head: Head) -> None:
        """`head`: the end that the first row follows."""
        super().__init__()
        self.follows = head.position, head.tip, head.seal
        """Position, tip and seal of that end."""


class Head(Struct, frozen=True):
    """The ends of a conversation's three chains: the token of optimistic concurrency."""

    tenant: str
    """The owner of the conversation."""
    name: str
    """The conversation."""
    root: int
    """The tree of forks, as a 63-bit number. Every key in the store begins with tenant and root."""
    branch: int
    """The branch of the tree that this conversation writes to."""
    position: int = 0
    """The number of messages: the position of the tip."""
    tip: str = ""
    """The id of the newest message."""
    seal: str = ""
    """The newest link of the chain of stamps."""
    number: int = 0
    """The number of the newest edit."""
    record: str = ""
    """The id of the newest journal record."""
    erased: int = 0
    """The number of the newest erasure in the tree. Data that was read before it may contain erased text."""

    @property
    def label(self) -> str:
        """The conversation as errors name it: with its tenant, if it has one."""
        return conversation_label(self.tenant, self.name)

    @property
    def log_name(self) -> str:
        """The conversation as lines of the log begin with it: with its tenant, if it has one."""
        return f"{self.name} of the tenant {self.tenant!r}" if self.tenant else self.name


class Listed(Struct, frozen=True):
    """One conversation of a list."""

    name: str
    """The name of the conversation."""
    messages: int
    """The number of its messages."""
    edits: int
    """The number of the newest edit in its journal."""
    time: int
    """The time of its newest message in milliseconds since 1970; 0 if it is not known."""


class Branch(Struct, frozen=True):
    """One conversation of a tree of forks, and the point where it left its parent."""

    head: Head
    """The newest message and the newest record of the journal."""
    parent: int = 0
    """The branch that it left; 0 if it started empty."""
    position: int = 0
    """The last message that both have."""
    number: int = 0
    """The last edit that both have."""


class Finding(Struct, frozen=True):
    """One fault that `verify` found."""

    where: str
    """For example `message 17` or `record 3`."""
    problem: str
    """The fault."""


class Orphan(Struct, frozen=True):
    """Something in a store that belongs to no conversation, or a name that leads to none. A sound store has none."""

    tenant: str
    """The owner for whom the row was written."""
    where: str
    """For example `name 'support-456'`, or `branch 2 of tree 6473103368560257525`."""
    problem: str
    """The thing that the row belongs to, and that is missing."""


class Erasure(Struct, frozen=True):
    """The record of one erasure. It contains nothing of the erased text."""

    number: int
    """From 1, along the tree of forks; 0 if there was nothing left to erase, and nothing was written."""
    time: int = 0
    """Milliseconds since 1970, as the caller passed it."""
    who: str = ""
    """The person or program that asked for it."""
    reason: str = ""
    """Why it was asked for."""
    name: str = ""
    """The conversation that the caller named."""
    handles: str = ""
    """The erased handles, such as `m3` or `m3-m17 m20`; "" if only runs were erased."""
    messages: int = 0
    """Rows of messages that were emptied, including those on other branches and those that repeated the messages."""
    edits: int = 0
    """Edits of the journal whose texts were removed."""
    runs: int = 0
    """Runs of agents from which a text was removed."""
    steps: int = 0
    """Steps of runs whose texts were erased."""


class SearchHit(Struct, frozen=True):
    """One message that a search found."""

    position: int
    """The number of the message."""
    score: float
    """Higher is better. Scores are comparable within one search only."""


class Changes:
    """The changes to a conversation since a head: the new messages and records, loaded when they are read.

    A writer that waits for its turn usually needs the newest stamp only. Reading may raise Damaged. If the caller must
    start again, because the name leads to another branch now or because something was erased, `head` is the new head
    and there are no messages and no records.
    """

    __slots__ = ("_load_records", "_load_rows", "_newest", "_records", "_rows", "head")

    def __init__(
        self,
        head: Head,
        rows: Callable[[], list[StoredMessage]] = list,
        records: Callable[[], list[tuple[str, Record]]] = list,
        newest: Callable[[], Stamp | None] | None = None,
    ) -> None:
        """`rows` and `records` are called at most once; `newest` each time, until the rows are loaded."""
        self.head: Head = head
        """The head of the conversation now."""
        self._load_rows, self._load_records, self._newest = rows, records, newest
        self._rows: list[StoredMessage] | None = None
        self._records: list[tuple[str, Record]] | None = None

    def newest(self) -> Stamp | None:
        """Return the stamp of the newest message; None if there is no new message."""
        if self._rows is None and self._newest is not None:
            return self._newest()
        rows = self.rows()
        return rows[-1].stamp if rows else None

    def rows(self) -> list[StoredMessage]:
        """Return the new messages, in order."""
        if self._rows is None:
            self._rows = self._load_rows()
        return self._rows

    def records(self) -> list[tuple[str, Record]]:
        """Return the new records of the journal, each with its id, in order."""
        if self._records is None:
            self._records = self._load_records()
        return self._records

    def with_rows(self, head: Head, rows: Sequence[StoredMessage]) -> Changes:
        """Return the changes after these rows were appended; `head` is the head after them."""
        return Changes(
            head, lambda: [*self.rows(), *rows], self.records, lambda: rows[-1].stamp if rows else self.newest()
        )


def wall_clock() -> int:
    """Return the time of this computer: milliseconds since 1970."""
    return time.time_ns() // 1_000_000
