"""Snapshots of a projection, and the hidden ranges they keep.

A conversation resumes from a snapshot without its past. `projection.py` writes and reads these values.

A hidden range inside a newer one, or one without a summary, matters only if an undo cancels the edits over it. The
projection keeps the newest of these ranges and only the positions of the others. An undo further back folds the history
again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from .edits import Bill, Edit, Hide, Summarize, Task
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
    "enclosing_range",
    "forget_covers",
    "hidden_pieces",
    "is_covered",
    "merge_ranges",
    "subtract_range",
    "topmost",
]

VERSION = 3
"""Version of the snapshot format."""
_MODELS_MAX = 8
"""Models whose calibration is kept."""
_READABLE = (2, 3)
"""Readable versions. Version 2 had no forgotten ranges. A snapshot is only a shortcut, so others are ignored."""


class Row(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A message with its position and stamp."""

    position: int
    """Position in the history, from 1."""
    id: str
    """Id of the message."""
    message: Message
    """The message."""
    stamp: Stamp
    """Its stamp."""
    size: int
    """Bytes of its canonical form; 0 if it is erased."""


ForgottenRange = tuple[int, int, int]
"""First and last position of forgotten covers, and the number of the newest of these covers."""


class Cover(msgspec.Struct, frozen=True, array_like=True):
    """A range of positions that an edit hides or summarizes."""

    number: int
    """Number of the edit."""
    first: int
    """First position."""
    last: int
    """Last position."""
    edit: Hide | Summarize
    """The edit."""
    turn: int
    """The first turn that sees the edit."""
    time: int
    """Time of the edit, in milliseconds since 1970."""
    holes: tuple[int, ...] = ()
    """Positions inside that stay visible: pinned, protected, kept by the edit, or restored one by one."""
    seen: int = 0
    """Position of the newest message when the edit was made."""
    lost: ForgottenRange | None = None
    """A range around all older forgotten covers inside this one."""

    def lies_in(self, first: int, last: int) -> bool:
        """Return whether all positions are within first..last."""
        return first <= self.first and self.last <= last


class SlotState(msgspec.Struct, array_like=True):
    """The part of a snapshot for one visible message that is not as it was appended."""

    position: int
    edits: list[tuple[int, Edit]] = []
    pins: tuple[PinnedPart, ...] = ()
    renewed: int = 0
    stale: bool = False
    is_late: bool = False


class Facts(msgspec.Struct, frozen=True, array_like=True):
    """Facts of the newest messages about the whole conversation."""

    last_input: int = 0
    """Position of the last user input."""
    turn: int = 0
    """Number of model calls begun."""
    replied: int = 0
    """Time of the last reply, in milliseconds since 1970."""
    measured: int = 0
    """Tokens of the last measured prompt, by the provider."""
    estimated: int = 0
    """Tokens of the same prompt, by the counter."""
    sequences: tuple[tuple[int, int], ...] = ()
    """(turn, sequence number) of the newest message with retention, for each of the last two turns that have one."""
    calibrations: tuple[tuple[str, int, int], ...] = ()
    """(model, tokens by the provider, tokens by the counter) of the last measured prompt of each model, newest last."""
    model: str = ""
    """The model of the last reply; "" if it is not known."""

    @property
    def sequence(self) -> int:
        """Return the newest sequence number of retention."""
        return self.sequences[-1][1] if self.sequences else 0

    def retained(self, turn: int) -> int:
        """Return the newest sequence number of retention that had its first call before the call `turn`."""
        return max((number for appended, number in self.sequences if appended + 1 < turn), default=0)

    def after(self, position: int, message: Message, stamp: Stamp, *, is_erased: bool = False) -> Facts:
        """Return the facts after this message. `is_erased`: the message is erased, but still counts as input."""
        is_reply = stamp.origin == "assistant"
        prompt = stamp.usage.sent_tokens if stamp.usage and stamp.estimate else None
        return Facts(
            position if stamp.origin == "user" and (is_erased or message.has_content) else self.last_input,
            max(self.turn, stamp.turn),
            stamp.time if is_reply else self.replied,
            self.measured if prompt is None else prompt,
            self.estimated if prompt is None else stamp.estimate,
            self._counted(stamp) if stamp.retention else self.sequences,
            self.calibrations if prompt is None else self._calibrated(stamp.model, prompt, stamp.estimate),
            stamp.model if is_reply else self.model,
        )

    def billed(self, bill: Bill) -> Facts:
        """Return the facts after usage that was reported late. A newer measurement of the model is not replaced."""
        prompt = bill.usage.sent_tokens
        if prompt is None or not bill.estimate or bill.call < self.turn:
            return self
        return replace(
            self,
            measured=prompt,
            estimated=bill.estimate,
            calibrations=self._calibrated(bill.model, prompt, bill.estimate),
        )

    def calibration(self, model: str) -> tuple[int, int]:
        """Return the tokens of the last measured prompt of this model, by the provider and by the counter; 0 for none.

        A measurement without a model counts for every model that has none of its own.
        """
        known = {name: (measured, estimated) for name, measured, estimated in self.calibrations}
        if not known:  # Written before models were recorded.
            return self.measured, self.estimated
        return known.get(model) or known.get("") or (0, 0)

    def _calibrated(self, model: str, measured: int, estimated: int) -> tuple[tuple[str, int, int], ...]:
        others = [known for known in self.calibrations if known[0] != model]
        return (*others[1 - _MODELS_MAX :], (model, measured, estimated))

    def _counted(self, stamp: Stamp) -> tuple[tuple[int, int], ...]:
        number = stamp.retention.sequence if stamp.retention else 0
        return (*[pair for pair in self.sequences if pair[0] != stamp.turn][-1:], (stamp.turn, number))


class Snapshot(msgspec.Struct, array_like=True):
    """A projection without the messages: visible positions, and the edits that change them."""

    version: int
    """Version of the format."""
    position: int
    """Position of the newest message."""
    number: int
    """Number of the newest edit."""
    visible: list[tuple[int, int]]
    """Ranges of visible positions, both ends included."""
    kept: list[SlotState]
    """Visible messages that are not as they were appended."""
    covers: list[Cover]
    """Hidden ranges."""
    facts: Facts
    """Facts of the newest messages."""
    edited: int = 0
    """The newest turn whose view an edit changed."""
    tasks: list[Task] = []
    """The newest task of each policy."""
    gone: list[ForgottenRange] = []
    """Ranges that only forgotten covers hide."""
    forgotten: int = 0
    """Number of the newest forgotten cover."""
    interrupted: int = 0
    """Position of the newest message when a call was last shown without its answer."""
    hidden_late: list[int] = []
    """Positions of hidden answers that came after a request had shown a stand-in for them."""

    def positions(self) -> list[int]:
        """Return all visible positions, in order."""
        return [position for first, last in self.visible for position in range(first, last + 1)]

    def encode(self) -> bytes:
        """Return the snapshot as JSON."""
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, body: bytes) -> Snapshot | None:
        """Return the snapshot, or None if another version wrote it: then the history is folded from the beginning."""
        try:
            snapshot = msgspec.json.decode(body, type=cls)
        except msgspec.MsgspecError:
            return None
        return snapshot if snapshot.version in _READABLE else None


def topmost(covers: Sequence[Cover]) -> list[Cover]:
    """Return the covers that no newer one hides with their summary, oldest first, in one pass."""
    top: list[Cover] = []
    firsts: list[int] = []  # No range lies inside another one, so both lists are sorted.
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
"""Hidden ranges kept in addition to visible summaries. An undo of these reads only the messages that come back."""
_TEXT_MAX = 64_000
"""Characters of their summaries."""
_SLACK = 1.25
"""Growth beyond these limits before some are forgotten, so that many are forgotten at once."""


def forget_covers(
    covers: Sequence[Cover], gone: Sequence[ForgottenRange]
) -> tuple[list[Cover], list[ForgottenRange], int] | None:
    """Return the covers to keep, the forgotten ranges, and the number of the newest forgotten cover.

    Returns None to keep all covers. `covers`: in the order of their numbers. All covers with a visible summary are
    kept, and the newest of the others.
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
        if not _inherit(kept, (cover.first, cover.last, cover.number), cover.lost):
            left += [(item[0], item[1], cover.number) for item in hidden_pieces(cover, cover.first, cover.last)]
    left = [item for item in left if not _inherit(kept, item)]
    return kept, merge_ranges(left), max(old)


def is_covered(lost: ForgottenRange, covers: Iterable[Cover]) -> bool:
    """Return whether a newer cover hides all of this forgotten range."""
    first, last, number = lost
    return any(cover.number > number and cover.first <= first and last <= cover.last for cover in covers)


def merge_ranges(ranges: Iterable[ForgottenRange]) -> list[ForgottenRange]:
    """Return the same positions in as few ranges as possible, in order."""
    merged: list[ForgottenRange] = []
    for first, last, number in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1]), max(number, merged[-1][2])
        else:
            merged.append((first, last, number))
    return merged


def subtract_range(ranges: Iterable[ForgottenRange], first: int, last: int) -> list[ForgottenRange]:
    """Return the same ranges without the positions first..last."""
    left: list[ForgottenRange] = []
    for start, end, number in ranges:
        left += [(a, b, number) for a, b in ((start, min(end, first - 1)), (max(start, last + 1), end)) if a <= b]
    return left


def hidden_pieces(cover: Cover, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of first..last that the cover hides, around its visible positions."""
    first, last = max(first, cover.first), min(last, cover.last)
    for hole in sorted({hole for hole in cover.holes if first <= hole <= last}):
        if first < hole:
            yield first, hole - 1
        first = hole + 1
    if first <= last:
        yield first, last


def enclosing_range(a: ForgottenRange | None, b: ForgottenRange | None) -> ForgottenRange | None:
    """Return the range around both, with the newer number."""
    if a is None or b is None:
        return a or b
    return min(a[0], b[0]), max(a[1], b[1]), max(a[2], b[2])


def _inherit(kept: list[Cover], forgotten: ForgottenRange, lost: ForgottenRange | None = None) -> bool:
    """Record the forgotten range in every newer cover around it. Return whether there is such a cover."""
    holders = [i for i, cover in enumerate(kept) if is_covered(forgotten, (cover,))]
    for i in holders:
        kept[i] = replace(kept[i], lost=enclosing_range(kept[i].lost, enclosing_range(forgotten, lost)))
    return bool(holders)


def _text(cover: Cover) -> int:
    return len(cover.edit.text) if isinstance(cover.edit, Summarize) else 0
