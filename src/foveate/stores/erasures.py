"""The request and the result of an erasure: checks before it, its record, and the proof after it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec.structs import replace

from ..core.handles import Handle
from ..core.runs import AgentRun
from ..errors import ConflictError
from ..ports import Erasure, Finding, Head
from .checks import check_no_repeats, commit_conflict
from .derived_data import DerivedData, Ends, Tree
from .lineage import Range, position_ranges, shares

__all__ = ["check_seen", "counted", "handles_of", "residue", "whole_runs"]


def check_seen(
    tree: Tree, head: Head, spans: Sequence[tuple[int, int]], seen: Iterable[Head], ends: Ends, *, is_still: bool
) -> None:
    """Raise ConflictError if a branch that shares messages of these spans of `head` has changed since it was `seen`.

    See `Erases.erase`.
    """
    families, first, last = tree.branches(), dict[int, int](), dict[int, int]()
    for span in spans:
        for part in position_ranges(families[head.branch], head.branch, *span):
            first[part.branch] = min(part.first, first.get(part.branch, part.first))
            last[part.branch] = max(part.last, last.get(part.branch, part.last))
    reached = [Range(branch, first[branch], last[branch]) for branch in first]
    known = {head.branch: head for head in seen}
    for branch, (position, number, erased) in ends.items():
        if not shares(families[branch], branch, position, reached):
            continue
        before = known.get(branch)
        if before is None:
            raise ConflictError(
                f"{head.label} was forked since its views were read. Nothing was erased. Read them again."
            )
        if (number, erased) != (before.number, before.erased):
            raise commit_conflict(before, replace(before, number=number, erased=erased))
        if position != before.position and is_still:
            raise ConflictError(
                f"A message was added to {before.label} since it was read. Nothing was erased. Read it again."
            )
        if position != before.position:
            check_no_repeats(before, (row.stamp for row in tree.rows(branch, before.position + 1)))


def handles_of(spans: Iterable[tuple[int, int]]) -> str:
    """Return these spans as handles, such as `m3-m17 m20`."""
    return " ".join(str(Handle(first, last)) for first, last in spans if last)


def whole_runs(head: Head, runs: bool | Collection[str]) -> Callable[[AgentRun], bool]:
    """Return a function that says whether all texts of a run are erased: see `Erases.erase`."""
    if isinstance(runs, bool):
        return lambda run: runs and run.conversation == head.name
    wanted = frozenset(runs)
    return lambda run: run.id in wanted


def counted(data: DerivedData, erasure: Erasure) -> Erasure:
    """Return the record of an erasure with its counts."""
    return replace(
        erasure,
        messages=len({*data.bodies, *data.stamps}),
        edits=data.edits,
        runs=len(data.runs),
        steps=len(data.steps),
    )


def residue(data: DerivedData) -> list[Finding]:
    """Return the derived data that is left after an erasure, as findings."""
    return [
        *(Finding(f"message {place.position}", "it shows again what was erased") for place in sorted(data.bodies)),
        *(
            Finding(f"message {place.position}", "its stamp holds facts of an application, and it was erased")
            for place in sorted(data.stamps)
        ),
        *(Finding(f"record {record.first}", "it holds a text made of what was erased") for _, record in data.records),
        *(Finding(f"snapshot of branch {n}", "it holds a text made of what was erased") for n in data.snapshots),
        *(Finding(f"run {run.id}", "it repeats what was erased") for run in data.runs),
        *(Finding(f"step {step.run}/{step.number}", "it contains data of an erased message") for step in data.steps),
    ]
