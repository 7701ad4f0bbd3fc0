"""A tree of forks of the memory store, as an erasure reads and changes it, with the words of its branches.

A search brings the index of words up to date. Erased messages are not in it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from ...core import ids, wire
from ...core.edits import Record
from ...core.ids import redacted_record, redacted_stamp
from ...core.messages import Message
from ...core.runs import AgentRun, AgentRunStep
from ...ports import Head, SearchHit, StoredMessage
from .. import lineage
from ..checks import too_old_to_erase
from ..derived_data import DerivedData, Ends, Place, Row
from ..ranking import find
from ..words import keys_of, text_of

__all__ = ["MemoryBranch", "MemoryTree", "MemoryWords"]


class MemoryWords:
    """The words of the messages that one branch shows, up to a position: a `ranking.Index`."""

    def __init__(self) -> None:
        self._positions: defaultdict[str, list[int]] = defaultdict(list)
        """By key: the positions of the messages that contain it, in order."""
        self._rows: Sequence[StoredMessage] = ()
        self._count = self._last = 0
        """Messages that are indexed, and the last one that the search looks at."""

    def catch_up(self, rows: Sequence[StoredMessage]) -> None:
        """Add the new rows. `rows`: all rows of the branch."""
        for row in rows[self._count :]:
            for key in keys_of(text_of(row.body)):
                self._positions[key].append(row.position)
        self._rows, self._count = rows, len(rows)

    def holds(self, position: int) -> bool:
        """Return whether the index has any key of a message."""
        return any(position in positions for positions in self._positions.values())

    def search(self, query: str, limit: int, last: int) -> list[SearchHit]:
        """Search positions 1..last: see `Searches.search`."""
        self._last = last
        return find(self, query, last, limit)

    def positions(self, keys: Collection[str]) -> dict[str, Sequence[int]]:
        return {
            key: found[: bisect_right(found, self._last)] if (found := self._positions.get(key)) else () for key in keys
        }

    def keys_from(self, beginnings: Collection[str]) -> Iterator[str]:
        return (key for key in self._positions if key.startswith(tuple(beginnings)))

    def texts(self, positions: Sequence[int]) -> dict[int, str]:
        return {position: text for position in positions if (text := text_of(self._rows[position - 1].body))}


class MemoryBranch(Struct):
    """One branch, with all messages and records that it shows, its own and shared ones."""

    name: str
    rows: list[StoredMessage]
    journal: list[tuple[str, Record]]
    lineage: lineage.Lineage = ()
    snapshot: tuple[int, int, bytes] | None = None
    view: tuple[int, int, tuple[bytes, ...]] | None = None
    words: MemoryWords = field(default_factory=MemoryWords)


class MemoryTree:
    """The `derived_data.Tree` of one root."""

    def __init__(
        self,
        branches: Mapping[int, MemoryBranch],
        runs: dict[str, AgentRun],
        steps: Mapping[str, dict[int, AgentRunStep]],
    ) -> None:
        self._branches, self._runs, self._steps = branches, runs, steps

    def branches(self) -> dict[int, lineage.Lineage]:
        return {number: branch.lineage for number, branch in self._branches.items()}

    def rows(self, branch: int, first: int = 1) -> Iterator[Row]:
        own = self._branches[branch]
        for row in own.rows[max(first - 1, own.lineage[-1].position if own.lineage else 0) :]:
            yield Row(row.position, row.id, row.stamp, bool(row.body))

    def ends(self, erased: int) -> Ends:
        """Return the ends of all branches. `erased`: the newest erasure of the tree."""
        return {
            number: (len(branch.rows), branch.journal[-1][1].last if branch.journal else 0, erased)
            for number, branch in self._branches.items()
        }

    def message(self, place: Place) -> Message | None:
        body = self._branches[place.branch].rows[place.position - 1].body
        return wire.decode_message(body) if body else None

    def records(self, branch: int) -> Iterator[Record]:
        own = self._branches[branch]
        shared = own.lineage[-1].number if own.lineage else 0
        return (record for _, record in own.journal if record.first > shared)

    def snapshots(self) -> Iterator[tuple[int, bytes]]:
        return ((n, branch.snapshot[2]) for n, branch in self._branches.items() if branch.snapshot)

    def runs(self) -> Sequence[AgentRun]:
        return list(self._runs.values())

    def steps(self, run: str) -> Sequence[AgentRunStep]:
        there = self._steps.get(run, {})
        return [there[number] for number in sorted(there)]

    def check(self, head: Head, data: DerivedData) -> None:
        """Raise StoreError if the chains could not be verified any more."""
        for place, stamp in data.stamps.items():
            rows = self._branches[place.branch].rows
            row, parent = (
                rows[place.position - 1],
                rows[place.position - 2].seal if place.position > 1 else ids.NO_PARENT,
            )
            if ids.seal(parent, row.id, redacted_stamp(stamp)) != row.seal:
                raise too_old_to_erase(head, f"The application's facts of message {place.position} were")
        for number, record in data.records:
            journal = self._branches[number].journal
            at = next(i for i, (_, old) in enumerate(journal) if old.first == record.first)
            parent = journal[at - 1][0] if at else ids.NO_PARENT
            if ids.record_id(parent, redacted_record(record)) != journal[at][0]:
                raise too_old_to_erase(head, f"Record {record.first} of the journal was")

    def write(self, data: DerivedData, *, keep_snapshots: bool) -> None:
        """Replace the erased data in every branch that has or shares it."""
        records = {self._id_of(number, record): record for number, record in data.records}
        # By the seal: two branches may have the same message with different stamps.
        stamps = {self._branches[at.branch].rows[at.position - 1].seal: stamp for at, stamp in data.stamps.items()}
        bodies = {data.places[place] for place in data.bodies}
        for branch in self._branches.values():
            branch.rows = [
                replace(
                    row,
                    body=b"" if row.id in bodies else row.body,
                    is_released=row.is_released and row.id not in bodies,
                    stamp=stamps.get(row.seal, row.stamp),
                )
                if row.id in bodies or row.seal in stamps
                else row
                for row in branch.rows
            ]
            branch.journal = [(id, records.get(id, record)) for id, record in branch.journal]
            branch.words = MemoryWords()
            branch.view = None
            if not keep_snapshots:
                branch.snapshot = None
        for number, body in data.snapshots.items():
            branch = self._branches[number]
            branch.snapshot = (*branch.snapshot[:2], body) if branch.snapshot and body else None
        self._runs.update({run.id: run for run in data.runs})
        for step in data.steps:
            self._steps[step.run][step.number] = step

    def holding(self, number: int) -> list[int]:
        """Return the positions of erased messages of a branch whose words are still in its index."""
        branch = self._branches[number]
        return [row.position for row in branch.rows if not row.body and branch.words.holds(row.position)]

    def _id_of(self, number: int, record: Record) -> str:
        return next(id for id, old in self._branches[number].journal if old.first == record.first)
