"""One tree of forks as an erasure reads it, whatever the store keeps it in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from ...core.edits import Record
from ...core.messages import Message
from ...core.runs import AgentRun, AgentRunStep
from ...core.stamps import Stamp
from ..lineage import Lineage

__all__ = ["Ends", "Place", "Seen", "Tree"]

Ends = Mapping[int, tuple[int, int, int]]
"""By branch: its newest message, its newest edit, the newest erasure that it knows of."""


class Place(NamedTuple):
    """Where a message's own row lies."""

    branch: int
    position: int


class Seen(NamedTuple):
    """A message's row, without what was said."""

    position: int
    id: str
    stamp: Stamp
    has_body: bool


class Tree(Protocol):
    """One tree of forks, as it is stored. Rows and records are those of a branch itself, not those it shares."""

    def branches(self) -> Mapping[int, Lineage]:
        """All branches, and where each came from."""
        ...

    def rows(self, branch: int, first: int = 1) -> Iterable[Seen]:
        """In order, from this position on."""
        ...

    def said(self, place: Place) -> Message | None:
        """What a row says; None where it was erased or is damaged."""
        ...

    def records(self, branch: int) -> Iterable[Record]:
        """In order."""
        ...

    def snapshots(self) -> Iterable[tuple[int, bytes]]:
        """By branch."""
        ...

    def runs(self) -> Sequence[AgentRun]:
        """All runs of the tree."""
        ...

    def steps(self, run: str) -> Sequence[AgentRunStep]:
        """The steps of one of them."""
        ...
