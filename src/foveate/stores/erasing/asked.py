"""What an erasure is asked for: how it is named, which runs go, and whether the caller has seen what there is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec.structs import replace

from ...core.handles import Handle
from ...core.runs import AgentRun
from ...errors import ConflictError
from ...ports import Head
from ..checks import check_not_shown_again, commit_conflict
from ..lineage import Range, position_ranges, shares
from .tree import Ends, Tree

__all__ = ["check_seen", "named", "whole_runs"]


def check_seen(
    tree: Tree, head: Head, spans: Sequence[tuple[int, int]], seen: Iterable[Head], ends: Ends, *, is_still: bool
) -> None:
    """Raises ConflictError where a branch that shares messages of these spans of `head` is not as it was `seen` any
    more:
    see `Store.erase`.
    """
    families, first, last = tree.branches(), dict[int, int](), dict[int, int]()
    for span in spans:
        for part in position_ranges(families[head.branch], head.branch, *span):
            first[part.branch] = min(part.first, first.get(part.branch, part.first))
            last[part.branch] = max(part.last, last.get(part.branch, part.last))
    reached = [Range(branch, first[branch], last[branch]) for branch in first]
    known = {one.branch: one for one in seen}
    for branch, (position, number, erased) in ends.items():
        if not shares(families[branch], branch, position, reached):
            continue
        before = known.get(branch)
        if before is None:
            raise ConflictError(
                f"{head.name!r} was forked since its views were looked at. Nothing was erased. Look again."
            )
        if (number, erased) != (before.number, before.erased):
            raise commit_conflict(before, replace(before, number=number, erased=erased))
        if position != before.position and is_still:
            raise ConflictError(
                f"Something was said in {before.name!r} since it was looked at. Nothing was erased. Look again."
            )
        if position != before.position:
            check_not_shown_again(before, (one.stamp for one in tree.rows(branch, before.position + 1)))


def named(spans: Iterable[tuple[int, int]]) -> str:
    """What was named, as handles."""
    return " ".join(str(Handle(first, last)) for first, last in spans if last)


def whole_runs(head: Head, runs: bool | Collection[str]) -> Callable[[AgentRun], bool]:
    """Of which runs all texts go: see `Store.erase`."""
    if isinstance(runs, bool):
        return lambda run: runs and run.conversation == head.name
    wanted = frozenset(runs)
    return lambda run: run.id in wanted
