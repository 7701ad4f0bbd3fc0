"""Slot lists: the visible slots of a projection in order, found by id or by position in the history."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence

from .compactions import compaction_of
from .slots import Slot

__all__ = ["SlotList", "order_of"]


class SlotList(list[Slot]):
    """The slots of the visible messages and summaries, in order.

    Copies share their slots, so a slot that changes is replaced. The list knows the first place that changed since its
    entries were last worked out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.by_id: dict[str, Slot] = {}
        """The slots of messages, by id."""
        self.compactions: list[int] = []
        """Positions of messages with a compaction by the provider, ascending."""
        self.retained: dict[str, None] = {}
        """Ids of the visible messages with retention."""
        self.has_leases = False
        """Whether a message that is or was visible has a lease."""
        self.first_changed = 0
        """Index of the first slot that changed."""
        self.is_current = True
        """Whether no slot changed."""

    def copy(self) -> SlotList:
        """Return an independent copy."""
        twin = SlotList()
        twin.extend(self)
        twin.by_id, twin.retained = self.by_id.copy(), self.retained.copy()
        twin.compactions, twin.has_leases = self.compactions.copy(), self.has_leases
        twin.first_changed, twin.is_current = self.first_changed, self.is_current
        return twin

    def mark(self, index: int) -> None:
        """Note that the slots from an index on changed."""
        self.first_changed, self.is_current = min(self.first_changed, index), False

    def settle(self) -> None:
        """Note that the entries of all slots are worked out."""
        self.first_changed, self.is_current = len(self), True

    def place(self, slot: Slot) -> None:
        """Insert a slot in order."""
        at = len(self)
        if at and self[-1].order > slot.order:
            at = bisect_left(self, slot.order, key=order_of)
        self.insert(at, slot)
        if slot.span is None:
            self.hold(slot)
        self.mark(at)

    def hold(self, slot: Slot) -> None:
        """Note the message of a slot that was inserted."""
        if compaction_of(slot.message) and slot.position not in self.compactions:
            insort(self.compactions, slot.position)
        self._note(slot)

    def fill(self, slots: Sequence[Slot], *, may_compact: bool) -> None:
        """Add the slots of messages in order to an empty list. `may_compact`: whether one may have a compaction."""
        self.extend(slots)
        for slot in slots:
            if may_compact:
                self.hold(slot)
            else:
                self._note(slot)

    def _note(self, slot: Slot) -> None:
        self.by_id[slot.id] = slot
        if slot.stamp.retention:
            self.retained[slot.id] = None
        self.has_leases |= slot.stamp.lease is not None

    def release(self, slot: Slot) -> None:
        """Forget the message of a slot that is taken out."""
        del self.by_id[slot.id]
        self.retained.pop(slot.id, None)

    def replace(self, index: int, slot: Slot, *, is_same: bool = False) -> None:
        """Put another slot of the same message or summary in a place. `is_same`: it shows the same."""
        self[index] = slot
        if slot.span is None:
            self.by_id[slot.id] = slot
        if not is_same:
            self.mark(index)

    def index_at(self, position: int) -> int | None:
        """Return the index of the message at this position, or None if it is hidden."""
        if self:  # Most messages come without a gap after the first one shown, or before the last one.
            for index in (position - self[0].position, len(self) - 1 - (self[-1].position - position)):
                if 0 <= index < len(self) and self[index].position == position and self[index].span is None:
                    return index
        index = bisect_left(self, (position, 1), key=order_of)
        is_shown = index < len(self) and self[index].position == position and self[index].span is None
        return index if is_shown else None

    def index_of(self, slot: Slot) -> int:
        """Return the index of a slot that is shown."""
        index = self.index_at(slot.position) if slot.span is None else None
        return bisect_left(self, slot.order, key=order_of) if index is None else index

    def within(self, first: int, last: int) -> list[Slot]:
        """Return the slots from the message at the first position on, up to the last position."""
        low, high = bisect_left(self, (first, 1), key=order_of), bisect_right(self, (last, 1), key=order_of)
        return self[low:high]

    def after(self, order: tuple[int, int]) -> int:
        """Return the index of the first slot behind a place in the order."""
        return bisect_right(self, order, key=order_of)


def order_of(slot: Slot) -> tuple[int, int]:
    """Return the sorting key of a slot."""
    return slot.order
