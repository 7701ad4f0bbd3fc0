"""One tree of forks of the memory store, as an erasure reads it, and as it is once that is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from ...core import ids, wire
from ...core.edits import Record
from ...core.messages import Message
from ...core.redacted_form import redacted_record, redacted_stamp
from ...core.runs import AgentRun, AgentRunStep
from ...ports import Appended, Head
from .. import lineage
from ..checks import too_early
from ..erasing import Ends, Place, Reach, Seen
from .words import MemoryWords

__all__ = ["MemoryBranch", "MemoryTree"]


class MemoryBranch(Struct):
    """One branch: everything it can see, its own or shared."""

    name: str
    rows: list[Appended]
    journal: list[tuple[str, Record]]
    lineage: lineage.Lineage = ()
    snapshot: tuple[int, int, bytes] | None = None
    words: MemoryWords = field(default_factory=MemoryWords)


class MemoryTree:
    """The Tree of the branches of one root."""

    def __init__(
        self,
        branches: Mapping[int, MemoryBranch],
        runs: dict[str, AgentRun],
        steps: Mapping[str, dict[int, AgentRunStep]],
    ) -> None:
        self._branches, self._runs, self._steps = branches, runs, steps

    def branches(self) -> dict[int, lineage.Lineage]:
        return {number: branch.lineage for number, branch in self._branches.items()}

    def rows(self, branch: int, first: int = 1) -> Iterator[Seen]:
        one = self._branches[branch]
        for row in one.rows[max(first - 1, one.lineage[-1].position if one.lineage else 0) :]:
            yield Seen(row.position, row.id, row.stamp, bool(row.body))

    def ends(self, erased: int) -> Ends:
        """Of all branches. `erased`: the newest erasure of the tree."""
        return {
            number: (len(one.rows), one.journal[-1][1].last if one.journal else 0, erased)
            for number, one in self._branches.items()
        }

    def said(self, place: Place) -> Message | None:
        body = self._branches[place.branch].rows[place.position - 1].body
        return wire.decode_message(body) if body else None

    def records(self, branch: int) -> Iterator[Record]:
        one = self._branches[branch]
        shared = one.lineage[-1].number if one.lineage else 0
        return (record for _, record in one.journal if record.first > shared)

    def snapshots(self) -> Iterator[tuple[int, bytes]]:
        return ((n, branch.snapshot[2]) for n, branch in self._branches.items() if branch.snapshot)

    def runs(self) -> Sequence[AgentRun]:
        return list(self._runs.values())

    def steps(self, run: str) -> Sequence[AgentRunStep]:
        there = self._steps.get(run, {})
        return [there[number] for number in sorted(there)]

    def check(self, head: Head, found: Reach) -> None:
        """Raises StoreError where the chains could not be verified any more."""
        for place, stamp in found.stamps.items():
            rows = self._branches[place.branch].rows
            row, parent = (
                rows[place.position - 1],
                rows[place.position - 2].seal if place.position > 1 else ids.NO_PARENT,
            )
            if ids.seal(parent, row.id, redacted_stamp(stamp)) != row.seal:
                raise too_early(head, f"The application's facts of message {place.position} were")
        for number, record in found.records:
            journal = self._branches[number].journal
            at = next(i for i, (_, old) in enumerate(journal) if old.first == record.first)
            parent = journal[at - 1][0] if at else ids.NO_PARENT
            if ids.record_id(parent, redacted_record(record)) != journal[at][0]:
                raise too_early(head, f"Record {record.first} of the journal was")

    def write(self, found: Reach, *, keep_snapshots: bool) -> None:
        """Let every branch show it, whether it owns what is erased or shares it."""
        records = {self._id_of(number, record): record for number, record in found.records}
        # By the seal too: one message may lie on two branches, each with facts of its own.
        stamps = {self._branches[at.branch].rows[at.position - 1].seal: stamp for at, stamp in found.stamps.items()}
        bodies = {found.places[place] for place in found.bodies}
        for branch in self._branches.values():
            branch.rows = [
                replace(row, body=b"" if row.id in bodies else row.body, stamp=stamps.get(row.seal, row.stamp))
                if row.id in bodies or row.seal in stamps
                else row
                for row in branch.rows
            ]
            branch.journal = [(id, records.get(id, record)) for id, record in branch.journal]
            branch.words = MemoryWords()
            if not keep_snapshots:
                branch.snapshot = None
        for number, body in found.snapshots.items():
            branch = self._branches[number]
            branch.snapshot = (*branch.snapshot[:2], body) if branch.snapshot and body else None
        self._runs.update({run.id: run for run in found.runs})
        for step in found.steps:
            self._steps[step.run][step.number] = step

    def holding(self, number: int) -> list[int]:
        """Positions of a branch that say nothing, and of which its index has words."""
        branch = self._branches[number]
        return [row.position for row in branch.rows if not row.body and branch.words.holds(row.position)]

    def _id_of(self, number: int, record: Record) -> str:
        return next(id for id, old in self._branches[number].journal if old.first == record.first)
