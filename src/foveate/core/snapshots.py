"""What a projection is made of, and what is kept of it so that a conversation can be gone on with without its past.

Values only. `projection.py` makes and reads them.

A run that a newer one holds, or that nothing stands for, only matters when what hides it is taken back. Of those the
newest are kept, and of the others nothing but their places. Who takes back more than what is known here folds the
history anew. Knows runs and numbers; what a projection makes of them it does not know.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from .edits import Edit, Hide, Summarize, Task
from .messages import Message
from .stamps import Stamp
from .view import PinnedPart

__all__ = [
    "KEPT_MAX",
    "VERSION",
    "Cover",
    "Facts",
    "ForgottenRange",
    "Row",
    "SlotState",
    "Snapshot",
    "forget",
    "hull",
    "is_held",
    "merged",
    "pieces",
    "topmost",
    "without",
]

VERSION = 3
"""Of the snapshot."""
_READABLE = (2, 3)
"""Versions that are read. In the second nothing was forgotten yet. Others are not: it is only ever a shortcut."""


class Row(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A message in its place, as the projection takes it."""

    position: int
    id: str
    message: Message
    stamp: Stamp
    size: int
    """Bytes of its canonical form."""


ForgottenRange = tuple[int, int, int]
"""First and last of some positions whose hidden runs were forgotten, and the number of the newest of these."""


class Cover(msgspec.Struct, frozen=True, array_like=True):
    """A hidden or summarised run of positions."""

    number: int
    first: int
    last: int
    edit: Hide | Summarize
    turn: int
    time: int
    holes: tuple[int, ...] = ()
    """Positions inside that stay visible: pinned, protected, kept by the edit, or restored one by one."""
    seen: int = 0
    """Position of the newest message when it was made."""
    lost: ForgottenRange | None = None
    """A run around all older ones inside of it that were forgotten."""

    def lies_in(self, first: int, last: int) -> bool:
        return first <= self.first and self.last <= last


class SlotState(msgspec.Struct, array_like=True):
    """What a snapshot says of one visible message that is not as it was appended."""

    position: int
    edits: list[tuple[int, Edit]] = []
    pins: tuple[PinnedPart, ...] = ()
    renewed: int = 0
    stale: bool = False


class Facts(msgspec.Struct, frozen=True, array_like=True):
    """What the newest messages say about the conversation as a whole."""

    last_input: int = 0
    """Position of the last user input."""
    turn: int = 0
    """Model calls begun."""
    replied: int = 0
    """When the last reply was recorded, in milliseconds since 1970."""
    measured: int = 0
    estimated: int = 0
    """Tokens of the last measured prompt, by the provider and by the counter."""
    sequences: tuple[tuple[int, int], ...] = ()
    """The newest sequence number of retention in each of the last two turns that have one: (turn, number) pairs."""

    @property
    def sequence(self) -> int:
        """The newest sequence number of retention."""
        return self.sequences[-1][1] if self.sequences else 0

    def retained(self, turn: int) -> int:
        """The newest sequence number of retention that had its first call before the call `turn`."""
        return max((number for appended, number in self.sequences if appended + 1 < turn), default=0)

    def after(self, position: int, message: Message, stamp: Stamp, *, is_erased: bool = False) -> Facts:
        """The facts once this message was appended. `is_erased`: what it said is gone; else it would be no input."""
        is_reply = stamp.origin == "assistant"
        prompt = stamp.usage.prompt_tokens if stamp.usage and stamp.estimate else None
        return Facts(
            position if stamp.origin == "user" and (is_erased or message.has_content) else self.last_input,
            max(self.turn, stamp.turn),
            stamp.time if is_reply else self.replied,
            self.measured if prompt is None else prompt,
            self.estimated if prompt is None else stamp.estimate,
            self._counted(stamp) if stamp.retention else self.sequences,
        )

    def _counted(self, stamp: Stamp) -> tuple[tuple[int, int], ...]:
        number = stamp.retention.sequence if stamp.retention else 0
        return (*[pair for pair in self.sequences if pair[0] != stamp.turn][-1:], (stamp.turn, number))


class Snapshot(msgspec.Struct, array_like=True):
    """A projection without the messages: which positions are visible, and the edits that touch them."""

    version: int
    position: int
    number: int
    visible: list[tuple[int, int]]
    """Runs of visible positions, both ends included."""
    kept: list[SlotState]
    covers: list[Cover]
    facts: Facts
    edited: int = 0
    """The newest turn whose view was changed by an edit."""
    tasks: list[Task] = []
    """The newest task of each policy."""
    gone: list[ForgottenRange] = []
    """What is hidden, and by nothing that is held."""
    forgotten: int = 0
    """Number of the newest hidden run that was forgotten."""

    def positions(self) -> list[int]:
        """All visible positions, in order."""
        return [position for first, last in self.visible for position in range(first, last + 1)]

    def encode(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, body: bytes) -> Snapshot | None:
        """The snapshot, or None if another version of foveate wrote it: then all is folded from the beginning."""
        try:
            snapshot = msgspec.json.decode(body, type=cls)
        except msgspec.MsgspecError:
            return None
        return snapshot if snapshot.version in _READABLE else None


def topmost(covers: Sequence[Cover]) -> list[Cover]:
    """Those that no newer one hides with their summary, oldest first; in one pass, since there may be thousands."""
    top: list[Cover] = []
    firsts: list[int] = []  # Of runs none of which lies in another, so that their ends are in order too.
    lasts: list[int] = []
    for cover in sorted(covers, key=lambda cover: cover.number, reverse=True):
        at = bisect_right(firsts, cover.first)
        if at and lasts[at - 1] >= cover.last:
            continue
        top.append(cover)
        within = slice(bisect_left(firsts, cover.first), bisect_right(lasts, cover.last))
        firsts[within], lasts[within] = [cover.first], [cover.last]
    return top[::-1]


KEPT_MAX = 256
"""Hidden runs kept beside the summaries that are shown: undoing that far back reads nothing but what comes back."""
_TEXT_MAX = 64_000
"""Characters of their summaries."""
_SLACK = 1.25
"""By how much they may grow beyond that before some are forgotten, so that it is done for many at once."""


def forget(
    covers: Sequence[Cover], gone: Sequence[ForgottenRange]
) -> tuple[list[Cover], list[ForgottenRange], int] | None:
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


def is_held(lost: ForgottenRange, covers: Iterable[Cover]) -> bool:
    """Whether one of these runs, a newer one, hides all that was forgotten there."""
    first, last, number = lost
    return any(cover.number > number and cover.first <= first and last <= cover.last for cover in covers)


def merged(runs: Iterable[ForgottenRange]) -> list[ForgottenRange]:
    """The same positions in as few runs as may be, in order."""
    made: list[ForgottenRange] = []
    for first, last, number in sorted(runs):
        if made and first <= made[-1][1] + 1:
            made[-1] = made[-1][0], max(last, made[-1][1]), max(number, made[-1][2])
        else:
            made.append((first, last, number))
    return made


def without(runs: Iterable[ForgottenRange], first: int, last: int) -> list[ForgottenRange]:
    """The same runs without the positions first..last."""
    left: list[ForgottenRange] = []
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


def hull(one: ForgottenRange | None, other: ForgottenRange | None) -> ForgottenRange | None:
    """The run that holds both, with the newer number."""
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1]), max(one[2], other[2])


def _hand_over(kept: list[Cover], run: ForgottenRange, lost: ForgottenRange | None = None) -> bool:
    """Note in every newer run that holds this one that it was forgotten. Whether there is any."""
    holders = [i for i, cover in enumerate(kept) if is_held(run, (cover,))]
    for i in holders:
        kept[i] = replace(kept[i], lost=hull(kept[i].lost, hull(run, lost)))
    return bool(holders)


def _text(cover: Cover) -> int:
    return len(cover.edit.text) if isinstance(cover.edit, Summarize) else 0
