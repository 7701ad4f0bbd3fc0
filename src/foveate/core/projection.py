"""The projection: it computes views from history and edits, and grows with the conversation.

A projection holds the visible messages. An append costs O(1), an edit costs the messages it touches, a view costs
O(view). For a hidden span it keeps only the positions, and `reveal` loads the messages from the store. Edits name ids,
and unknown ids are skipped, so any journal over any history gives a view.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .compactions import PROVIDER
from .edits import (
    CALLER,
    INTERRUPTED,
    Bill,
    Edit,
    Hide,
    Path,
    Pin,
    Record,
    Replace,
    Restore,
    Span,
    Summarize,
    Target,
    Task,
    Unpin,
    named_messages,
    path_of,
    paths_overlap,
    released_by,
)
from .effective_edits import EffectiveEdits, remaining_pins
from .hidden_ranges import HiddenRanges
from .messages import Message, Text
from .originals import ReadOriginal
from .profiles import Profile
from .rendering import apply_edits
from .saved_bodies import SavedBodies
from .saved_slots import (
    Order,
    Packer,
    restore_entries,
    restored_slots,
    saved_message,
    saved_order,
    slot_states,
    summary_sizes,
)
from .saved_views import SavedView
from .sizes import tokens_of
from .slot_list import order_of
from .slots import Counter, Slot
from .snapshots import VERSION, Cover, Row, Snapshot
from .stamps import Stamp
from .view import PinnedPart
from .visible_messages import VisibleMessages
from .wire import encode_message

__all__ = ["Projection"]

_SUMMARIES_MAX = 64
"""Summaries whose sizes are kept. A plan may try more; the rest are counted again when they are committed."""


class Projection(VisibleMessages):
    """The state of a conversation's history and journal under one profile and one text counter."""

    def copy(self) -> Projection:
        """Return an independent copy, to try edits without changing this projection."""
        twin = Projection(self._profile, self._count, self._read)
        twin._summaries = self._summaries
        twin._slots, twin._shrunk, twin._compacted = self._slots.copy(), dict(self._shrunk), self._compacted
        twin._hidden = self._hidden.copy()
        twin._legalizer = self._legalizer.copy()
        twin._entries = self._entries
        twin.facts, twin._edited, twin.tasks = self.facts, self._edited, dict(self.tasks)
        twin._interrupted_at, twin._hidden_late = self._interrupted_at, set(self._hidden_late)
        twin.position, twin.number = self.position, self.number
        return twin

    # -------------------------------------------------------------------------------------------------------- editing

    def needs(self, record: Record, positions: Mapping[str, int] | None = None) -> list[tuple[int, int]]:
        """Return the ranges of positions that this record shows again. After `apply`, `missing` returns the messages to
        load.
        """
        where = positions or {}
        runs: list[tuple[int, int]] = []
        for edit in record.edits:
            if isinstance(edit, Restore):
                runs.extend((cover.first, cover.last) for cover in self._hidden.numbered({*edit.edits}))
                runs.extend(run for named in edit.targets if (run := self.range_of(named, where)))
        return runs

    def cancels_forgotten(self, record: Record) -> list[int] | None:
        """Return whether this record cancels forgotten covers, so that the history must be folded again first.

        None: it certainly does. Otherwise: the numbers of the edits for which the journal must show whether they hid
        whole messages. Empty if no cover was forgotten.
        """
        numbers = {number for edit in record.edits if isinstance(edit, Restore) for number in edit.edits}
        if self._hidden.needs_forgotten(numbers):
            return None
        newest = self._hidden.newest_forgotten
        known = {cover.number for cover in self._hidden.numbered(numbers)}
        known.update(number for slot in self._slots for number, _ in slot.edits)
        return sorted(number for number in numbers - known if number <= newest) if newest else []

    def apply(self, record: Record, positions: Mapping[str, int] | None = None) -> None:
        """Apply one record. `positions`: positions of the hidden messages that its edits name."""
        shown = {id: slot.position for id in named_messages(record.edits) if (slot := self._slots.by_id.get(id))}
        where = {**(positions or {}), **shown}  # An edit may hide a message that the next edit names.
        for number, edit in record.numbered():
            self._fold(number, edit, record, where)
            self.number = number
        self._void_reasoning(record.turn)

    def _fold(self, number: int, edit: Edit, record: Record, where: Mapping[str, int]) -> None:
        match edit:
            case Replace(target=target) | Hide(target=Target(path=(_, *_)) as target):
                slot = self._slots.by_id.get(target.message)
                if slot and not self.refuses(edit, tip=record.position):
                    edits = (*slot.edits, (number, edit))
                    twin = self._replace_slot(slot, voids=self._changes(slot, edits))
                    twin.edits = edits
                    if edit.released:
                        twin.drop_released()
                    self._shrunk[slot.id] = None
            case Hide(target=named):
                self._cover(number, named, edit, record, where)
            case Summarize(span=named):
                self._cover(number, named, edit, record, where)
            case Restore():
                if edit.edits:
                    self._cancel(frozenset(edit.edits), record.turn)
                for named in edit.targets:
                    self._restore(named, record.turn, where)
            case Pin(target=target) | Unpin(target=target):
                slot = self._slots.by_id.get(target.message)
                if slot:
                    self._replace_slot(slot, voids=False).pins = _repinned(slot.pins, edit)
            case Task():
                self.tasks[edit.policy] = edit
                if edit.policy == INTERRUPTED:
                    self._interrupted_at = record.position
            case Bill():
                self.facts = self.facts.billed(edit)

    def _changes(self, slot: Slot, edits: tuple[tuple[int, Edit], ...]) -> bool:
        """Return whether these edits void reasoning that no earlier change voids.

        A mark shows the same content again, so it does not void bound reasoning.
        """
        if self._void is not None and self._void <= slot.order:
            return False
        before = apply_edits(slot.message, slot.edits).message if slot.edits else slot.message
        return apply_edits(slot.message, edits).message != before

    def _replace_slot(self, slot: Slot, *, voids: bool) -> Slot:
        """Replace the slot by a copy and return the copy. `voids`: the change voids reasoning bound to this slot."""
        twin = slot.copy()
        self._slots.replace(self._slots.index_of(slot), twin)
        if voids:
            self._void_after(slot.order)
        return twin

    def _void_after(self, order: tuple[int, int]) -> None:
        self._void = min(self._void or order, order)

    def _void_reasoning(self, turn: int) -> None:
        """Mark reasoning after the earliest change, in replies to calls before `turn`, as bound to another past.

        Turns decide, not positions alone: a reply may arrive after an edit that its call did not see.
        """
        if self._void is None:
            return
        for i in range(self._slots.after(self._void), len(self._slots)):
            if self._slots[i].stamp.turn < turn:
                self._void_at(i)
        self._void, self._edited = None, max(self._edited, turn)

    def void_erased(self, until: int) -> None:
        """Mark reasoning in replies up to the time `until` as bound to another past if a message before them is erased.

        `until`: milliseconds since 1970. Time decides because an erasure is not an edit, and its record does not name a
        call.
        """
        places = [slot.position for slot in self._slots if slot.span is None and not slot.size]
        places += [cover.first for cover in self.erased_summaries()]
        first = min(places, default=self.position)
        for i, slot in enumerate(self._slots):
            if slot.position > first and slot.stamp.time <= until:
                self._void_at(i)

    def _void_at(self, index: int) -> None:
        slot = self._slots[index]
        if slot.has_reasoning and not slot.stale:
            binds = self._profile.binds_reasoning
            twin = slot.copy(changes=binds)
            twin.stale = True
            self._slots.replace(index, twin, is_same=not binds)

    def _cover(
        self, number: int, named: Target | Span, edit: Hide | Summarize, record: Record, where: Mapping[str, int]
    ) -> None:
        run = self.range_of(named, where)
        if run is None:
            return
        first, last = run
        low, high = self._slots.after((first - 1, 1)), self._slots.after((last, 1))
        kept: list[Slot] = []
        spared = edit.keep if isinstance(edit, Summarize) else ()
        for slot in self._slots[low:high]:
            if slot.span is not None:
                stays = slot.last > last
            elif edit.policy == CALLER:
                stays = False
            else:
                stays = bool(slot.pins) or slot.id in spared
                stays = stays or self._protects(slot.position, slot, (), record.position)
            if stays:
                kept.append(slot)
            elif slot.span is None:
                self._slots.release(slot)
                if slot.is_late:
                    self._hidden_late.add(slot.position)
        holes = tuple(slot.position for slot in kept if slot.span is None)
        cover = Cover(number, first, last, edit, record.turn, record.time, holes, record.position)
        self._slots[low:high] = kept
        self._hidden.add(cover)
        self._slots.mark(low)
        self._show_summary(cover)
        if not self._is_compacted(cover):
            self._void_after((first - 1, 1))

    def _is_compacted(self, cover: Cover) -> bool:
        """Return whether this only records a compaction by the provider: nothing that is sent changes."""
        index = self._active_compaction() if cover.edit.policy == PROVIDER else None
        return index is not None and self._slots[index].position > cover.last

    def _show_summary(self, cover: Cover, sizes: tuple[int, int] | None = None) -> None:
        """Show the summary of a cover, if it has one. `sizes`: its tokens and bytes, if they are known."""
        if not isinstance(cover.edit, Summarize):
            return
        text = cover.edit.text
        message, tokens, size = (Message("user", (Text(text),)), *sizes) if sizes else self._summary(text)
        stamp = Stamp(cover.turn, cover.time, tokens, "summary", cover.edit.policy)
        slot = Slot(cover.first, cover.edit.span.first, message, stamp, size, span=cover.edit.span, last=cover.last)
        slot.seen = cover.seen
        slot.edits = ((cover.number, cover.edit),)
        self._slots.place(slot)

    def _summary(self, text: str) -> tuple[Message, int, int]:
        """Return a summary as a message, with its tokens and bytes. A plan tries the text that a commit then shows."""
        known = self._summaries.get(text)
        if known is None:
            if len(self._summaries) >= _SUMMARIES_MAX:
                self._summaries.clear()
            message = Message("user", (Text(text),))
            known = self._summaries[text] = message, tokens_of(message, self._count), len(encode_message(message))
        return known

    # ------------------------------------------------------------------------------------------------------ restoring

    def _cancel(self, numbers: frozenset[int], turn: int) -> None:
        """Cancel the edits with these numbers. `reveal` brings back the messages that they hid."""
        for slot in [slot for slot in self._slots if slot.edits and any(n in numbers for n, _ in slot.edits)]:
            if slot.span is None:
                twin = self._replace_slot(slot, voids=True)
                twin.reload()
                self._shrunk[slot.id] = None
                twin.edits = tuple((n, edit) for n, edit in twin.edits if n not in numbers or released_by(edit))
                twin.renewed = turn
        for cover in self._hidden.numbered(numbers):
            if released_by(cover.edit):
                continue
            if cover.edit.policy == PROVIDER:  # The messages in it that stayed are now shown without the compaction.
                for slot in [slot for slot in self._slots if slot.position in cover.holes and slot.span is None]:
                    self._replace_slot(slot, voids=False).renewed = turn
            self._uncover(cover)

    def _uncover(self, cover: Cover) -> None:
        uncovered = self._hidden.remove(cover)
        for index in [i for i, slot in enumerate(self._slots) if slot.span and slot.edits[0][0] == cover.number]:
            del self._slots[index]
            self._slots.mark(index)
        self._void_after((cover.first - 1, 1))
        for older in uncovered:
            self._show_summary(older)

    def _restore(self, named: Target | Span, turn: int, where: Mapping[str, int]) -> None:
        run = self.range_of(named, where)
        if run is None:
            return
        for cover in self._hidden.open(*run):
            self._uncover(cover)
        path = named.path if isinstance(named, Target) else ()
        for slot in self._slots.within(*run):
            if slot.span is None:
                self._renew(slot, path, turn)

    def _renew(self, slot: Slot, path: Path, turn: int) -> None:
        if not slot.edits and slot.renewed == turn:
            return
        twin = self._replace_slot(slot, voids=bool(slot.edits))
        twin.reload()
        self._shrunk[slot.id] = None
        twin.edits = tuple(
            (n, edit) for n, edit in slot.edits if released_by(edit) or not paths_overlap(path_of(edit), path)
        )
        twin.renewed = turn

    def missing(self, first: int, last: int) -> list[int]:
        """Return the positions in this range that the journal shows but the projection does not hold. `reveal` needs
        them.
        """
        left = self._hidden.visible(first, min(last, self.position))
        held = {slot.position for slot in self._slots if slot.span is None and first <= slot.position <= last}
        return [p for start, end, _ in left for p in range(start, end + 1) if p not in held]

    def reveal(
        self, rows: Iterable[Row], records: Sequence[Record], positions: Mapping[str, int] | None = None
    ) -> None:
        """Add messages that were hidden, with their edits from `records`, newest record last.

        `positions`: positions of the spans that its `Restore` edits name.
        """
        edits = [numbered for record in records for numbered in record.numbered()]
        gone = {released_by(edit) for _, edit in edits if isinstance(edit, Hide) and not path_of(edit)}
        revealed = {
            row.id: Slot(row.position, row.id, row.message, row.stamp, row.size) for row in rows if row.id not in gone
        }
        about = [(n, edit) for n, edit in edits if isinstance(edit, Restore) or _message_of(edit) in revealed]
        where = {**(positions or {}), **{slot.id: slot.position for slot in revealed.values()}}
        standing = EffectiveEdits(about, where)
        turn = records[-1].turn
        for slot in sorted(revealed.values(), key=order_of):
            slot.edits = tuple(standing.parts.get(slot.id, {}).items())
            pins = sorted((path, who) for (id, path), who in standing.pins.items() if id == slot.id)
            slot.pins, slot.renewed, slot.stale = tuple(PinnedPart(*pin) for pin in pins), turn, slot.has_reasoning
            slot.is_late = slot.position in self._hidden_late
            self._slots.place(slot)
            self._shrunk[slot.id] = None
            self._void_after(slot.order)
        self._void_reasoning(turn)

    def release_originals(self) -> None:
        """Hold only the outlines of messages whose content edits replaced or hid. The view stays the same."""
        shrunk, self._shrunk = self._shrunk, {}
        for id in shrunk if self._read else ():
            slot = self._slots.by_id.get(id)
            if slot and self._read and slot.original is None and (twin := slot.released(self._read)):
                self._slots.replace(self._slots.index_of(slot), twin)

    def take(self, other: Projection) -> None:
        """Take over the state of another projection of the same conversation."""
        self.__dict__.update(other.copy().__dict__)

    # ------------------------------------------------------------------------------------------------------- snapshots

    def forget(self) -> None:
        """Drop hidden ranges that are unlikely to come back. The visible entries stay the same."""
        self._hidden.forget()

    def snapshot(self) -> Snapshot:
        """Return the state that a resume needs without the past."""
        runs, kept = slot_states(self._slots)
        hidden, facts, tasks = self._hidden.copy(), self.facts, list(self.tasks.values())
        return Snapshot(
            VERSION,
            self.position,
            self.number,
            runs,
            kept,
            hidden.covers,
            facts,
            self._edited,
            tasks,
            hidden.gone,
            hidden.newest_forgotten,
            self._interrupted_at,
            sorted(self._hidden_late),
        )

    def saved_view(self, key: str, bodies: SavedBodies) -> SavedView:
        """Return what the snapshot of this moment shows.

        `key`: that of the profile and counter (`key_of`). `bodies`: the rendered messages at the beginning of the view.
        """
        entries = self.entries()
        packer = Packer(entries, bodies)
        order = None
        # With a compaction by the provider, the entries do not follow from the slots alone.
        if key and entries and not self._slots.compactions and not any(slot.is_recounted for slot in self._slots):
            shown = [slot.entry(self._profile, self._count) for slot in self._slots]
            order = saved_order(self._slots, shown, self._legalizer.saved, packer)
        if order is None:
            key, bodies, order = "", SavedBodies(), Order()
            packer = Packer((), bodies)
        messages = [saved_message(slot, packer) for slot in self._slots if slot.span is None]
        return SavedView(key, messages, *order, bodies=bodies)

    @classmethod
    def resume(
        cls,
        snapshot: Snapshot,
        rows: Iterable[Row],
        profile: Profile,
        count: Counter,
        read: ReadOriginal | None = None,
        view: SavedView | None = None,
    ) -> Projection:
        """Return the projection of this snapshot.

        `rows`: the messages at `snapshot.positions()`, without those that the view has, each used only once. `read`:
        reads messages of which only the outline is held; None: all stay in memory. `view`: the saved view; its entries
        are used if it has any.
        """
        projection = cls(profile, count, read)
        slots = restored_slots(snapshot, rows, read, view)
        # A view with a compaction by the provider is saved without its entries.
        projection._slots.fill(slots, may_compact=view is None or not view.key)
        projection._hidden = HiddenRanges(snapshot.covers, snapshot.gone, snapshot.forgotten)
        sizes = summary_sizes(view) if view and view.key else {}
        for cover in projection._hidden.topmost():
            projection._show_summary(cover, sizes.get((cover.first, cover.last)))
        projection.facts, projection._edited = snapshot.facts, snapshot.edited
        projection.tasks = {task.policy: task for task in snapshot.tasks}
        projection._interrupted_at, projection._hidden_late = snapshot.interrupted, set(snapshot.hidden_late)
        projection.position, projection.number = snapshot.position, snapshot.number
        projection._slots.mark(0)
        if view and view.key:
            projection._restore_entries(view)
        return projection

    def _restore_entries(self, view: SavedView) -> None:
        restored = restore_entries(view, self._slots)
        legality = view.legality
        if legality is None:
            return
        own = [slot.own_entry for slot in self._slots]
        order = (own[ref] if ref >= 0 else restored[-1 - ref] for ref in legality.order)
        self._legalizer.restore(legality, self._slots, [entry for entry in order if entry])
        self._slots.first_changed = len(self._slots)


def _repinned(pins: Iterable[PinnedPart], edit: Pin | Unpin) -> tuple[PinnedPart, ...]:
    path = edit.target.path
    if isinstance(edit, Pin):  # In the order of their paths, not of their creation: a new fold gives the same order.
        others = (pin for pin in pins if pin.path != path)
        return tuple(sorted((*others, PinnedPart(path, edit.policy)), key=lambda pin: pin.path))
    left = remaining_pins((pin.path for pin in pins), path)
    return tuple(pin for pin in pins if pin.path in left)


def _message_of(edit: Edit) -> str | None:
    """Return the id of the one message that an edit changes, or None."""
    target = getattr(edit, "target", None)
    return target.message if isinstance(target, Target) else None
