"""history + edits -> view, kept while the conversation goes on.

A projection holds what is visible: a message costs O(1) when it is appended, an edit what it touches, a view
O(view). What a span hides is let go of; only its place is remembered, and `reveal` brings it back from the store.
Edits name ids; ids this projection does not hold are passed over, so that the fold of any journal over any history
is a view.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

import msgspec

from .arrange import Arrangement
from .counting import tokens_of
from .edits import Edit, Hide, Pin, Replace, Restore, Span, Summarize, Target, Unpin
from .journal import Record
from .messages import Message, Reasoning, Text
from .profiles import Profile
from .slots import Counter, Slot
from .stamps import Stamp
from .view import Entry
from .wire import encode_message

__all__ = ["Cover", "Facts", "Projection", "Row", "Snapshot"]


class Row(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A message in its place, as the projection takes it."""

    position: int
    id: str
    message: Message
    stamp: Stamp
    size: int
    """Bytes of its canonical form."""


class Cover(msgspec.Struct, array_like=True):
    """A hidden or summarised run of positions."""

    number: int
    first: int
    last: int
    edit: Hide | Summarize
    turn: int
    time: int
    holes: list[int] = []
    """Positions inside that stay visible: pinned, protected, or restored one by one."""

    def hides(self, position: int) -> bool:
        return self.first <= position <= self.last and position not in self.holes


class _Kept(msgspec.Struct, array_like=True):
    """What a snapshot says of one visible message that is not as it was appended."""

    position: int
    edits: list[tuple[int, Edit]] = []
    pinned: bool = False
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

    def after(self, position: int, message: Message, stamp: Stamp) -> Facts:
        """The facts once this message was appended."""
        is_reply = stamp.origin == "assistant"
        prompt = stamp.usage.prompt_tokens if stamp.usage and stamp.estimate else None
        return Facts(
            position if stamp.origin == "user" and message.says_something else self.last_input,
            max(self.turn, stamp.turn),
            stamp.time if is_reply else self.replied,
            self.measured if prompt is None else prompt,
            self.estimated if prompt is None else stamp.estimate,
        )


class Snapshot(msgspec.Struct, array_like=True):
    """A projection without the messages: which positions are visible, and the edits that touch them."""

    version: int
    position: int
    number: int
    visible: list[tuple[int, int]]
    """Runs of visible positions, both ends included."""
    kept: list[_Kept]
    covers: list[Cover]
    facts: Facts

    def positions(self) -> list[int]:
        """All visible positions, in order."""
        return [position for first, last in self.visible for position in range(first, last + 1)]

    def encode(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, body: bytes) -> Snapshot:
        return msgspec.json.decode(body, type=cls)


_VERSION = 1


class Projection:
    """The fold of a conversation's history and journal under one profile and one counter of text."""

    def __init__(self, profile: Profile, count: Counter) -> None:
        self._profile = profile
        self._count = count
        self._slots: list[Slot] = []
        self._by_id: dict[str, Slot] = {}
        self._covers: list[Cover] = []
        self._arrangement = Arrangement(profile, count)
        self._dirty = 0  # index of the first slot that is not as it was when entries were last arranged
        self._entries: tuple[Entry, ...] = ()
        self._current = True  # whether _entries shows all slots
        self.facts = Facts()
        self.position = 0
        """Position of the newest message seen."""
        self.number = 0
        """Number of the newest edit seen."""

    def copy(self) -> Projection:
        """A projection that may try edits out without changing this one."""
        twin = Projection(self._profile, self._count)
        twin._slots = list(self._slots)
        twin._by_id = dict(self._by_id)
        twin._covers = [msgspec.structs.replace(cover, holes=list(cover.holes)) for cover in self._covers]
        twin._arrangement = self._arrangement.copy()
        twin._dirty, twin._entries, twin._current = self._dirty, self._entries, self._current
        twin.facts = self.facts
        twin.position, twin.number = self.position, self.number
        return twin

    # ------------------------------------------------------------------------------------------------------- reading

    def entries(self) -> tuple[Entry, ...]:
        """What is visible now, in legal order. Entries that did not change are the same objects as before."""
        if not self._current:
            self._entries = self._arrangement.entries(self._slots, self._dirty)
            self._dirty, self._current = len(self._slots), True
        return self._entries

    def _touched(self, index: int) -> None:
        self._dirty, self._current = min(self._dirty, index), False

    def __len__(self) -> int:
        """Number of places that are visible, summaries included."""
        return len(self._slots)

    def holds(self, id: str) -> bool:
        """Whether the message with this id is visible (whole or shrunk)."""
        return id in self._by_id

    def tool_of(self, call_id: str) -> str:
        """The name of the tool behind the newest visible call with this id; "" if there is none."""
        for slot in reversed(self._slots):
            for call in slot.message.calls:
                if call.call_id == call_id:
                    return call.name
        return ""

    def is_protected(self, position: int) -> bool:
        """Whether no edit may touch this place: system prompts and the last user input are shown as they were said."""
        index = self._index(position)
        is_system = index is not None and self._slots[index].message.role == "system"
        return is_system or position == self.facts.last_input

    def covering(self, position: int) -> Cover | None:
        """The newest cover that hides this position, if one does."""
        return next((cover for cover in reversed(self._covers) if cover.hides(position)), None)

    # -------------------------------------------------------------------------------------------------------- growing

    def append(self, row: Row) -> None:
        """Take one more message at the end."""
        self._place(Slot(row.position, row.id, row.message, row.stamp, row.size))
        self.position = row.position
        self.facts = self.facts.after(row.position, row.message, row.stamp)

    def _place(self, slot: Slot) -> None:
        at = len(self._slots)
        if at and self._slots[-1].order > slot.order:
            at = bisect_left(self._slots, slot.order, key=lambda placed: placed.order)
        self._slots.insert(at, slot)
        if slot.span is None:
            self._by_id[slot.id] = slot
        self._touched(at)

    # -------------------------------------------------------------------------------------------------------- editing

    def needs(self, record: Record) -> list[tuple[int, int]]:
        """Runs of hidden positions that `reveal` must bring back when this record is applied."""
        runs: list[tuple[int, int]] = []
        for edit in record.edits:
            if isinstance(edit, Restore):
                runs.extend((c.first, c.last) for c in self._covers if c.number in edit.edits)
        return runs

    def apply(self, record: Record, positions: dict[str, int] | None = None) -> None:
        """Fold one record in. `positions` tells where hidden messages stand that its edits name."""
        where = positions or {}
        for number, edit in record.numbered():
            self._fold(number, edit, record, where)
            self.number = number

    def _fold(self, number: int, edit: Edit, record: Record, where: dict[str, int]) -> None:
        match edit:
            case Replace(target=target) | Hide(target=Target(path=(_, *_)) as target):
                slot = self._by_id.get(target.message)
                if slot and not self.is_protected(slot.position):
                    self._changing(slot, voids=True).edits += ((number, edit),)
            case Hide(target=target):
                span = target if isinstance(target, Span) else Span(target.message, target.message)
                self._cover(number, span, edit, record, where)
            case Summarize(span=span):
                self._cover(number, span, edit, record, where)
            case Restore():
                for cancelled in edit.edits:
                    self._cancel(cancelled, record.turn)
                for named in edit.targets:
                    self._restore(named, record.turn, where)
            case Pin(target=target) | Unpin(target=target):
                slot = self._by_id.get(target.message)
                if slot:
                    self._changing(slot, voids=False).pinned = isinstance(edit, Pin)

    def _changing(self, slot: Slot, *, voids: bool) -> Slot:
        """A copy of the slot in the slot's place, to be changed. `voids`: reasoning bound to what is shown here is
        void.
        """
        index = bisect_left(self._slots, slot.order, key=lambda placed: placed.order)
        twin = slot.copy()
        self._slots[index] = twin
        self._by_id[slot.id] = twin
        self._touched(index)
        if voids:
            self._void_after(index)
        return twin

    def _void_after(self, index: int) -> None:
        for i in range(index + 1, len(self._slots)):
            slot = self._slots[i]
            if not slot.stale and any(isinstance(part, Reasoning) for part in slot.message.parts):
                self._slots[i] = self._by_id[slot.id] = twin = slot.copy()
                twin.stale = True
                if self._profile.binds_reasoning:
                    self._touched(i)

    def _index(self, position: int, slot: Slot | None = None) -> int | None:
        key = slot.order if slot else (position, 1)
        index = bisect_left(self._slots, key, key=lambda placed: placed.order)
        return index if index < len(self._slots) and self._slots[index].order == key else None

    def _position_of(self, id: str, where: dict[str, int]) -> int | None:
        slot = self._by_id.get(id)
        if slot:
            return slot.position
        for cover in self._covers:  # The ends of a span that is hidden already can still be named.
            span = cover.edit.span if isinstance(cover.edit, Summarize) else cover.edit.target
            if isinstance(span, Span) and id in (span.first, span.last):
                return cover.first if id == span.first else cover.last
        return where.get(id)

    def _cover(self, number: int, span: Span, edit: Hide | Summarize, record: Record, where: dict[str, int]) -> None:
        first, last = self._position_of(span.first, where), self._position_of(span.last, where)
        if first is None or last is None or first > last:
            return
        cover = Cover(number, first, last, edit, record.turn, record.time)
        low = bisect_left(self._slots, (first, 0), key=lambda slot: slot.order)
        high = bisect_left(self._slots, (last + 1, 0), key=lambda slot: slot.order)
        kept: list[Slot] = []
        for slot in self._slots[low:high]:
            if slot.span is None and (slot.pinned or self.is_protected(slot.position)):
                cover.holes.append(slot.position)
                kept.append(slot)
            elif slot.span is not None and slot.last > last:
                kept.append(slot)
            elif slot.span is None:
                del self._by_id[slot.id]
        if len(kept) == high - low and not isinstance(edit, Summarize):
            return
        self._slots[low:high] = kept
        self._covers.append(cover)
        self._touched(low)
        self._show_summary(cover)
        self._void_after(low - 1)

    def _show_summary(self, cover: Cover) -> None:
        if not isinstance(cover.edit, Summarize):
            return
        message = Message("user", (Text(cover.edit.text),))
        stamp = Stamp(cover.turn, cover.time, tokens_of(message, self._count), "summary", cover.edit.policy)
        slot = Slot(
            cover.first,
            cover.edit.span.first,
            message,
            stamp,
            len(encode_message(message)),
            span=cover.edit.span,
            last=cover.last,
        )
        slot.edits = ((cover.number, cover.edit),)
        at = self._index(cover.first, slot)
        if at is not None:  # An older summary that begins at the same message gives way.
            self._slots.pop(at)
        self._place(slot)

    # ------------------------------------------------------------------------------------------------------ restoring

    def _cancel(self, number: int, turn: int) -> None:
        """Take the edit with this number out of the fold. What it had hidden comes back by `reveal`."""
        for slot in [slot for slot in self._slots if any(n == number for n, _ in slot.edits)]:
            if slot.span is None:
                twin = self._changing(slot, voids=True)
                twin.edits = tuple((n, edit) for n, edit in twin.edits if n != number)
                twin.renewed = turn
        for cover in [cover for cover in self._covers if cover.number == number]:
            self._uncover(cover)

    def _uncover(self, cover: Cover) -> None:
        self._covers.remove(cover)
        for index in [i for i, slot in enumerate(self._slots) if slot.span and slot.edits[0][0] == cover.number]:
            del self._slots[index]
            self._touched(index)
            self._void_after(index - 1)
        for older in self._covers:
            if cover.first <= older.first and older.last <= cover.last and self._is_topmost(older):
                self._show_summary(older)

    def _is_topmost(self, cover: Cover) -> bool:
        return not any(
            newer.number > cover.number and newer.first <= cover.first and cover.last <= newer.last
            for newer in self._covers
        )

    def _restore(self, named: Target | Span, turn: int, where: dict[str, int]) -> None:
        if isinstance(named, Span):
            first, last = self._position_of(named.first, where), self._position_of(named.last, where)
            if first is None or last is None:
                return
            self._open_holes(first, last)
            targets = [slot for slot in self._slots if slot.span is None and first <= slot.position <= last]
            for slot in targets:
                self._renew(slot, (), turn)
            return
        position = self._position_of(named.message, where)
        if position is None:
            return
        self._open_holes(position, position)
        found = self._by_id.get(named.message)
        if found:
            self._renew(found, named.path, turn)

    def _open_holes(self, first: int, last: int) -> None:
        for cover in list(self._covers):
            if first <= cover.first and cover.last <= last:
                self._uncover(cover)
                continue
            inside = range(max(first, cover.first), min(last, cover.last) + 1)
            cover.holes.extend(position for position in inside if position not in cover.holes)

    def _renew(self, slot: Slot, path: tuple[int, ...], turn: int) -> None:
        if not slot.edits and slot.renewed == turn:
            return
        twin = self._changing(slot, voids=bool(slot.edits))
        twin.edits = tuple((n, edit) for n, edit in slot.edits if path and _path(edit)[: len(path)] != path)
        twin.renewed = turn

    def missing(self, first: int, last: int) -> list[int]:
        """Positions in this run that are visible by the journal but not held: what `reveal` must bring."""
        held = {slot.position for slot in self._slots if slot.span is None and first <= slot.position <= last}
        return [p for p in range(first, min(last, self.position) + 1) if p not in held and not self.covering(p)]

    def reveal(self, rows: Iterable[Row], records: Sequence[Record], turn: int) -> None:
        """Take back messages that were hidden, with what the journal `records` still say of them."""
        revealed = {row.id: Slot(row.position, row.id, row.message, row.stamp, row.size) for row in rows}
        cancelled: set[int] = set()
        for record in records:
            for number, edit in record.numbered():
                match edit:
                    case Replace(target=target) | Hide(target=Target(path=(_, *_)) as target):
                        if target.message in revealed:
                            revealed[target.message].edits += ((number, edit),)
                    case Restore(targets=targets, edits=numbers):
                        cancelled.update(numbers)
                        for named in targets:
                            if isinstance(named, Target) and named.message in revealed:
                                slot = revealed[named.message]
                                slot.edits = tuple(
                                    (n, e)
                                    for n, e in slot.edits
                                    if named.path and _path(e)[: len(named.path)] != named.path
                                )
                    case Pin(target=target) | Unpin(target=target) if target.message in revealed:
                        revealed[target.message].pinned = isinstance(edit, Pin)
                    case _:
                        pass
        for slot in sorted(revealed.values(), key=lambda slot: slot.position):
            slot.edits = tuple((n, edit) for n, edit in slot.edits if n not in cancelled)
            slot.renewed = turn
            slot.stale = True
            self._place(slot)
            self._void_after(self._index(slot.position, slot) or 0)

    # ------------------------------------------------------------------------------------------------------- snapshots

    def snapshot(self) -> Snapshot:
        """What is needed to go on from here without the past."""
        runs: list[tuple[int, int]] = []
        kept: list[_Kept] = []
        for slot in self._slots:
            if slot.span is not None:
                continue
            if runs and runs[-1][1] == slot.position - 1:
                runs[-1] = (runs[-1][0], slot.position)
            else:
                runs.append((slot.position, slot.position))
            if slot.edits or slot.pinned or slot.renewed or slot.stale:
                kept.append(_Kept(slot.position, list(slot.edits), slot.pinned, slot.renewed, slot.stale))
        covers = [msgspec.structs.replace(cover, holes=list(cover.holes)) for cover in self._covers]
        return Snapshot(_VERSION, self.position, self.number, runs, kept, covers, self.facts)

    @classmethod
    def resume(cls, snapshot: Snapshot, rows: Iterable[Row], profile: Profile, count: Counter) -> Projection:
        """The projection that took this snapshot. `rows` are the messages at `snapshot.positions()`."""
        projection = cls(profile, count)
        kept = {keep.position: keep for keep in snapshot.kept}
        for row in rows:
            slot = Slot(row.position, row.id, row.message, row.stamp, row.size)
            if row.position in kept:
                keep = kept[row.position]
                slot.edits, slot.pinned = tuple((n, edit) for n, edit in keep.edits), keep.pinned
                slot.renewed, slot.stale = keep.renewed, keep.stale
            projection._slots.append(slot)
            projection._by_id[slot.id] = slot
        projection._covers = list(snapshot.covers)
        for cover in projection._covers:
            if projection._is_topmost(cover):
                projection._show_summary(cover)
        projection.facts = snapshot.facts
        projection.position, projection.number = snapshot.position, snapshot.number
        projection._current = False
        return projection


def _path(edit: Edit) -> tuple[int, ...]:
    target = getattr(edit, "target", None)
    return target.path if isinstance(target, Target) else ()
