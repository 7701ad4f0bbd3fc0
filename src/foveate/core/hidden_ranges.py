"""Hidden ranges: the spans of a conversation that edits hide or summarize, oldest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from msgspec.structs import replace

from .edits import Span, released_by, target_of
from .ids import is_erased
from .snapshots import (
    Cover,
    ForgottenRange,
    enclosing_range,
    forget_covers,
    hidden_pieces,
    is_covered,
    subtract_range,
    topmost,
)

__all__ = ["HiddenRanges"]


class HiddenRanges:
    """The hidden ranges of one projection. Of a long conversation, the oldest are forgotten."""

    def __init__(
        self, covers: Sequence[Cover] = (), gone: Sequence[ForgottenRange] = (), newest_forgotten: int = 0
    ) -> None:
        self.covers = list(covers)
        """The ranges that are known, in the order of their numbers."""
        self.gone = list(gone)
        """Ranges that only forgotten covers hide."""
        self.newest_forgotten = newest_forgotten
        """Number of the newest forgotten cover."""
        self._ends: dict[str, int] | None = None  # Positions of the messages at the ends of the ranges, by id.

    def copy(self) -> HiddenRanges:
        """Return an independent copy."""
        return HiddenRanges(self.covers, self.gone, self.newest_forgotten)

    def add(self, cover: Cover) -> None:
        """Add the range of the newest edit."""
        self.covers.append(cover)
        if self._ends is not None:
            self._ends.update(_ends_of(cover))

    def topmost(self) -> list[Cover]:
        """Return the ranges that no newer one hides, oldest first."""
        return topmost(self.covers)

    def erased_summaries(self) -> list[Cover]:
        """Return the erased summaries that are visible, or would be without other erased ones, oldest first."""
        tops = [cover for cover in self.topmost() if is_erased(cover.edit)]
        inside = (cover for cover in self.covers if is_erased(cover.edit))
        return [cover for cover in inside if any(cover.lies_in(top.first, top.last) for top in tops)]

    def numbered(self, numbers: Set[int]) -> list[Cover]:
        """Return the ranges of the edits with these numbers."""
        return [cover for cover in self.covers if cover.number in numbers]

    def position_of(self, id: str) -> int | None:
        """Return the position of the message with which a range begins or ends: an edit can still name it."""
        if self._ends is None:  # A plan of a long history asks for thousands.
            self._ends = {id: position for cover in self.covers for id, position in _ends_of(cover)}
        return self._ends.get(id)

    def needs_forgotten(self, numbers: Set[int]) -> bool:
        """Return whether cancelling these edits shows messages that only forgotten covers inside of them hide."""
        left = [cover for cover in self.covers if cover.number not in numbers]
        return any(cover.lost and not is_covered(cover.lost, left) for cover in self.numbered(numbers))

    def visible(self, first: int, last: int) -> list[ForgottenRange]:
        """Return the parts of a range of positions that nothing hides."""
        left: list[ForgottenRange] = [(first, last, 0)]
        for cover in reversed(self.covers):  # Newest first: a moving window leaves little for the other ranges.
            for piece in hidden_pieces(cover, first, last) if left else ():
                left = subtract_range(left, *piece)
        for start, end, _ in self.gone:
            left = subtract_range(left, start, end)
        return left

    def remove(self, cover: Cover) -> Iterator[Cover]:
        """Remove a range; return the older ones inside it that it hid, and that nothing else hides."""
        self.covers.remove(cover)
        self._ends = None
        if cover.lost:  # Another cover still hides the forgotten covers inside this one, so it inherits them.
            for index, other in enumerate(self.covers):
                if is_covered(cover.lost, (other,)):
                    self.covers[index] = replace(other, lost=enclosing_range(other.lost, cover.lost))
        older = (other for other in self.covers if other.number < cover.number)
        return (other for other in older if other.lies_in(cover.first, cover.last) and self._is_topmost(other))

    def _is_topmost(self, cover: Cover) -> bool:
        """Return whether no newer range hides all of this one, including its summary."""
        for newer in reversed(self.covers):  # Newest first: a moving window covers all earlier ranges.
            if newer.number <= cover.number:
                return True
            if cover.lies_in(newer.first, newer.last):
                return False
        return True

    def open(self, first: int, last: int) -> list[Cover]:
        """Show these positions; return the ranges that lie in them, which the caller removes."""
        if self.gone:
            self.gone = subtract_range(self.gone, first, last)
        inside = []
        for index, cover in enumerate(self.covers):
            if released_by(cover.edit):
                continue
            if cover.lies_in(first, last):
                inside.append(cover)
            elif cover.first <= last and first <= cover.last:
                shown = range(max(first, cover.first), min(last, cover.last) + 1)
                self.covers[index] = replace(cover, holes=tuple(dict.fromkeys((*cover.holes, *shown))))
        return inside

    def forget(self) -> None:
        """Drop ranges that are unlikely to come back. The visible entries stay the same."""
        if result := forget_covers(self.covers, self.gone):
            self.covers, self.gone, newest = result
            self._ends = None
            self.newest_forgotten = max(self.newest_forgotten, newest)


def _ends_of(cover: Cover) -> tuple[tuple[str, int], ...]:
    """Return the ids and positions of the messages with which a range of messages begins and ends."""
    span = target_of(cover.edit)
    return ((span.last, cover.last), (span.first, cover.first)) if isinstance(span, Span) else ()
