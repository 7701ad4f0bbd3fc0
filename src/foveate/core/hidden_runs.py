"""Which hidden runs of a conversation need not be held: so a projection holds what is visible, however long the past.

A run that a newer one holds, or that nothing stands for, only matters when what hides it is taken back. Of those the
newest are kept, and of the others nothing but their places. Who takes back more than what is known here folds the
history anew. Knows runs and numbers; what a projection makes of them it does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from .edits import Summarize
from .snapshots import Cover, Gone, topmost

__all__ = ["KEPT_MAX", "forget", "hull", "is_held", "merged", "pieces", "without"]

KEPT_MAX = 256
"""Hidden runs kept beside the summaries that are shown: undoing that far back reads nothing but what comes back."""
_TEXT_MAX = 64_000
"""Characters of their summaries."""
_SLACK = 1.25
"""By how much they may grow beyond that before some are forgotten, so that it is done for many at once."""


def forget(covers: Sequence[Cover], gone: Sequence[Gone]) -> tuple[list[Cover], list[Gone], int] | None:
    """The runs to keep, what is told of the others, and the newest number of these; None where all are kept.

    `covers` in the order of their numbers. Kept are all summaries that are shown and the newest of the others.
    """
    shown = {cover.number for cover in topmost(covers) if isinstance(cover.edit, Summarize)}
    loose = [cover for cover in covers if cover.number not in shown]
    if len(loose) <= KEPT_MAX * _SLACK and sum(map(_text, loose)) <= _TEXT_MAX * _SLACK:
        return None
    room, first = _TEXT_MAX, len(loose)
    while first and len(loose) - first < KEPT_MAX and (room := room - _text(loose[first - 1])) >= 0:
        first -= 1
    if not first:
        return None
    old = {cover.number for cover in loose[:first]}
    kept = [cover for cover in covers if cover.number not in old]
    left = list(gone)
    for cover in loose[:first]:
        if not _hand_over(kept, (cover.first, cover.last, cover.number), cover.lost):
            left += [(run[0], run[1], cover.number) for run in pieces(cover, cover.first, cover.last)]
    left = [run for run in left if not _hand_over(kept, run)]
    return kept, merged(left), max(old)


def is_held(lost: Gone, covers: Iterable[Cover]) -> bool:
    """Whether one of these runs, a newer one, hides all that was forgotten there."""
    first, last, number = lost
    return any(cover.number > number and cover.first <= first and last <= cover.last for cover in covers)


def merged(runs: Iterable[Gone]) -> list[Gone]:
    """The same positions in as few runs as may be, in order."""
    made: list[Gone] = []
    for first, last, number in sorted(runs):
        if made and first <= made[-1][1] + 1:
            made[-1] = made[-1][0], max(last, made[-1][1]), max(number, made[-1][2])
        else:
            made.append((first, last, number))
    return made


def without(runs: Iterable[Gone], first: int, last: int) -> list[Gone]:
    """The same runs without the positions first..last."""
    left: list[Gone] = []
    for start, end, number in runs:
        left += [(a, b, number) for a, b in ((start, min(end, first - 1)), (max(start, last + 1), end)) if a <= b]
    return left


def pieces(cover: Cover, first: int, last: int) -> Iterator[tuple[int, int]]:
    """What a run hides of the positions first..last, around what stays visible in it."""
    first, last = max(first, cover.first), min(last, cover.last)
    for hole in sorted({hole for hole in cover.holes if first <= hole <= last}):
        if first < hole:
            yield first, hole - 1
        first = hole + 1
    if first <= last:
        yield first, last


def hull(one: Gone | None, other: Gone | None) -> Gone | None:
    """The run that holds both, with the newer number."""
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1]), max(one[2], other[2])


def _hand_over(kept: list[Cover], run: Gone, lost: Gone | None = None) -> bool:
    """Note in every newer run that holds this one that it was forgotten. Whether there is any."""
    holders = [i for i, cover in enumerate(kept) if is_held(run, (cover,))]
    for i in holders:
        kept[i] = replace(kept[i], lost=hull(kept[i].lost, hull(run, lost)))
    return bool(holders)


def _text(cover: Cover) -> int:
    return len(cover.edit.text) if isinstance(cover.edit, Summarize) else 0
