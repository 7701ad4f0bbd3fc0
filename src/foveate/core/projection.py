"""The projection: it computes views from history and edits, and grows with the conversation.

A projection holds the visible messages. An append costs O(1), an edit costs the messages it touches, a view costs
O(view). For a hidden span it keeps only the positions, and `reveal` loads the messages from the store. Edits name ids,
and unknown ids are skipped, so any journal over any history gives a view.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from .compactions import PROVIDER, compaction_edit, is_active
from .edits import (
    CALLER,
    INTERRUPTED,
    NOT_OFFERED,
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
from .legalize import Legalizer
from .messages import Message, Text, ToolCall
from .originals import ReadOriginal
from .profiles import Profile
from .rendering import apply_edits
from .saved_bodies import SavedBodies
from .saved_slots import Order, Packer, restore_entries, restored_slots, saved_message, saved_order
from .saved_views import SavedView
from .sizes import tokens_of
from .slot_list import SlotList, order_of
from .slots import Counter, Slot
from .snapshots import (
    VERSION,
    Cover,
    Facts,
    Row,
    SlotState,
    Snapshot,
)
from .stamps import Stamp
from .system_messages import last_prompt
from .view import Entry, PinnedPart
from .wire import encode_message

__all__ = ["Projection"]

_SUMMARIES_MAX = 64
"""Summaries whose sizes are kept. A plan may try more; the rest are counted again when they are committed."""


class Projection:
    """The state of a conversation's history and journal under one profile and one text counter."""

    def __init__(self, profile: Profile, count: Counter, read: ReadOriginal | None = None) -> None:
        """`read`: reads messages of which only the outline is held; None: all messages stay in memory."""
        self._profile = profile
        self._count = count
        self._read = read
        self._shrunk: dict[str, None] = {}  # ids of messages that edits changed since the last `release_originals`
        self._slots = SlotList()
        self._compacted: tuple[int, int] | None = None  # position of the active one, and slots before it that are sent
        self._hidden = HiddenRanges()
        self._summaries: dict[str, tuple[Message, int, int]] = {}  # newest ones by text; copies share them
        self._legalizer = Legalizer(profile, count)
        self._entries: tuple[Entry, ...] = ()
        self._edited = 0  # newest turn whose view an edit changed: replies of earlier turns followed another past
        self._void: tuple[int, int] | None = None  # order of the earliest change that is not yet applied to reasoning
        self.facts = Facts()
        self.tasks: dict[str, Task] = {}
        """The newest task of each policy."""
        self._interrupted_at = 0  # position of the newest message when a call was last shown without its answer
        self._hidden_late: set[int] = set()  # positions of hidden answers that are late, also when they come back
        self.position = 0
        """Position of the newest message."""
        self.number = 0
        """Number of the newest edit."""

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

    def use(self, profile: Profile, count: Counter) -> None:
        """Show the same messages under another profile and counter. Costs O(view) if one of them differs.

        With another counter, all visible messages are counted again, since their stamps hold the old counts.
        """
        if profile == self._profile and count is self._count:
            return
        is_recounted = count is not self._count
        self._profile, self._count = profile, count
        for index, slot in enumerate(self._slots):
            twin = slot.copy()
            twin.is_recounted |= is_recounted
            self._slots.replace(index, twin)
        self._legalizer, self._summaries = Legalizer(profile, count), {}
        self._slots.mark(0)

    # ------------------------------------------------------------------------------------------------------- reading

    @property
    def interrupted(self) -> int:
        """The newest model call that was shown a call without its answer; 0 if there was none."""
        task = self.tasks.get(INTERRUPTED)
        return task.turn if task else 0

    @property
    def offers_expand(self) -> bool:
        """Whether the newest model call got texts that name the tool `expand`, as far as there are any."""
        task = self.tasks.get(NOT_OFFERED)
        return task is None or task.state != "done"

    def entries(self) -> tuple[Entry, ...]:
        """Return the visible entries in legal order. Unchanged entries are the same objects as before."""
        if not self._slots.is_current:
            self._entries = self._legalizer.entries(*self._sent_slots())
            self._slots.settle()
        return self._entries

    def _sent_slots(self) -> tuple[list[Slot], int]:
        """Return the slots that may be sent, and the index of the first that changed.

        An active compaction by the provider leaves out everything before it, except system prompts at the beginning.
        """
        if not self._slots.compactions:
            return self._slots, self._slots.first_changed
        before, index = self._compacted, self._active_compaction()
        prompts = last_prompt(self._slots)
        self._compacted = None if index is None else (self._slots[index].position, prompts)
        for position in {key[0] for key in (before, self._compacted) if key}:
            at = self._slots.index_at(position)
            if at is not None and self._slots[at].compacts != (at == index):
                twin = self._slots[at].copy()
                twin.compacts = at == index
                self._slots.replace(at, twin)
        if index is None:
            return self._slots, 0 if before else self._slots.first_changed
        is_same = before == self._compacted and self._slots.first_changed > index
        sent = [*self._slots[:prompts], *self._slots[index:]]
        return sent, self._slots.first_changed - index + prompts if is_same else 0

    def _active_compaction(self) -> int | None:
        """Return the index of the newest message whose compaction stands for what is before it."""
        prompts = last_prompt(self._slots)
        for position in reversed(self._slots.compactions):
            index = self._slots.index_at(position)
            if index is not None and is_active(self._slots, index, prompts, self._profile.format):
                return index
        return None

    def compaction_edit(self) -> Summarize | None:
        """Return the edit that records the provider's newest compaction; None if there is none to record."""
        for position in reversed(self._slots.compactions):
            index = self._slots.index_at(position)
            if index is not None:
                return compaction_edit(self._slots, index, last_prompt(self._slots), self._profile.format)
        return None

    def withheld(self) -> tuple[Entry, ...]:
        """Return empty entries for the messages with retention that show nothing now."""
        held = (self._slots.by_id[id].withheld(self._profile, self._count) for id in self._slots.retained)
        return tuple(entry for entry in held if entry)

    @property
    def has_terms(self) -> bool:
        """Whether a visible message may have a lease, or a retention of its parts."""
        return self._slots.has_leases or bool(self._slots.retained)

    def covers(self) -> list[Cover]:
        """Return the hidden and summarized ranges, oldest first, without those inside a newer one."""
        return self._hidden.topmost()

    def erased_summaries(self) -> list[Cover]:
        """Return the erased summaries that are visible, or would be without other erased ones, oldest first."""
        return self._hidden.erased_summaries()

    def since_reply(self) -> Iterator[tuple[Message, Stamp]]:
        """Yield the visible messages after the newest reply, newest first."""
        for slot in reversed(self._slots):
            if slot.stamp.origin == "assistant" or slot.span is not None:
                return
            yield slot.message, slot.stamp

    def newest_calls(self) -> Sequence[ToolCall]:
        """Return the calls of the newest visible reply, answered or not."""
        newest = (slot for slot in reversed(self._slots) if slot.message.role == "assistant" and slot.span is None)
        return next((slot.message.calls for slot in newest), ())

    def __len__(self) -> int:
        """Return the number of visible places, including summaries."""
        return len(self._slots)

    def holds(self, id: str) -> bool:
        """Return whether the message with this id is visible (whole or shrunk)."""
        return id in self._slots.by_id

    def is_pinned(self, id: str) -> bool:
        """Return whether the message with this id is visible and has a pin."""
        return id in self._slots.by_id and bool(self._slots.by_id[id].pins)

    def tool_of(self, call_id: str) -> str:
        """Return the tool name of the newest visible call with this id, or ""."""
        for slot in reversed(self._slots):
            for call in slot.message.calls:
                if call.call_id == call_id:
                    return call.name
        return ""

    def is_protected(self, position: int, path: Path = (), *, tip: int | None = None) -> bool:
        """Return whether no edit may change this place: system prompts and the last user input stay unchanged.

        Edits may still remove parts that plugins added to the input. `tip`: the position of the newest message when the
        edit was made, if newer messages exist.
        """
        index = self._slots.index_at(position)
        return self._protects(position, None if index is None else self._slots[index], path, tip)

    def _protects(self, position: int, slot: Slot | None, path: Path, tip: int | None) -> bool:
        """Return `is_protected` for the message in this slot; None: it is hidden."""
        if slot is not None and slot.message.role == "system":
            return True
        if position != self._last_input(self.position if tip is None else tip):
            return False
        return slot is None or not slot.stamp.is_added(path)

    def refuses(self, edit: Replace | Hide, *, tip: int | None = None) -> bool:
        """Return whether this edit of one message is forbidden: its place is protected, or the last user input would
        have no content after it, because all its content was added by plugins. `tip`: as for `is_protected`.
        """
        if not isinstance(edit.target, Target) or edit.target.message not in self._slots.by_id or edit.policy == CALLER:
            return False
        slot, path = self._slots.by_id[edit.target.message], edit.target.path
        if self._protects(slot.position, slot, path, tip):
            return True
        if not path or slot.position != self._last_input(self.position if tip is None else tip):
            return False
        return not apply_edits(slot.message, (*slot.edits, (0, edit))).message.has_content

    def _last_input(self, tip: int) -> int:
        if self.facts.last_input <= tip:
            return self.facts.last_input
        inputs = (slot.position for slot in reversed(self._slots) if slot.is_input and slot.position <= tip)
        return next(inputs, 0)

    def holds_all(self, first: int, last: int) -> bool:
        """Return whether no message in this range of positions is hidden."""
        return sum(slot.span is None for slot in self._slots.within(first, last)) == last - first + 1

    def range_of(self, named: Target | Span, positions: Mapping[str, int] | None = None) -> tuple[int, int] | None:
        """Return the first and last position of the target, or None if an end is unknown or the range is empty.

        Known messages are those visible, those at the ends of hidden ranges, and those in `positions`.
        """
        ends = (named.first, named.last) if isinstance(named, Span) else (named.message, named.message)
        first, last = self._position_of(ends[0], positions or {}), self._position_of(ends[1], positions or {})
        return None if first is None or last is None or first > last else (first, last)

    # -------------------------------------------------------------------------------------------------------- growing

    def append(self, row: Row) -> None:
        """Add one message at the end."""
        slot = Slot(row.position, row.id, row.message, row.stamp, row.size)
        # An edit changed the view before this reply to it arrived.
        slot.stale = row.stamp.turn < self._edited and slot.has_reasoning
        slot.is_late = self._is_late(row.stamp)
        self._slots.place(slot)
        self.position = row.position
        self.facts = self.facts.after(row.position, row.message, row.stamp, is_erased=not row.size)

    def _is_late(self, stamp: Stamp) -> bool:
        """Return whether a new message is an answer of a process that did not know of the newest request.

        Its turn is that of its call, but the journal has a record that a request showed the call without its answer.
        """
        if stamp.turn >= self.interrupted or stamp.origin not in ("tool", "derived"):
            return False
        openings = (slot.position for slot in reversed(self._slots) if slot.message.role == "assistant")
        return next(openings, 0) <= self._interrupted_at

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

    def _position_of(self, id: str, where: Mapping[str, int]) -> int | None:
        slot = self._slots.by_id.get(id)
        if slot:
            return slot.position
        if id in where:
            return where[id]
        return self._hidden.position_of(id)

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
        self._hidden.covers.append(cover)
        self._slots.mark(low)
        self._show_summary(cover)
        if not self._is_compacted(cover):
            self._void_after((first - 1, 1))

    def _is_compacted(self, cover: Cover) -> bool:
        """Return whether this only records a compaction by the provider: nothing that is sent changes."""
        index = self._active_compaction() if cover.edit.policy == PROVIDER else None
        return index is not None and self._slots[index].position > cover.last

    def _show_summary(self, cover: Cover) -> None:
        if not isinstance(cover.edit, Summarize):
            return
        message, tokens, size = self._summary(cover.edit.text)
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
        runs: list[tuple[int, int]] = []
        kept: list[SlotState] = []
        for slot in self._slots:
            if slot.span is not None:
                continue
            if runs and runs[-1][1] == slot.position - 1:
                runs[-1] = (runs[-1][0], slot.position)
            else:
                runs.append((slot.position, slot.position))
            if slot.edits or slot.pins or slot.renewed or slot.stale or slot.is_late:
                kept.append(
                    SlotState(slot.position, list(slot.edits), slot.pins, slot.renewed, slot.stale, slot.is_late)
                )
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
        for cover in projection._hidden.topmost():
            projection._show_summary(cover)
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
