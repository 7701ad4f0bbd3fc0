"""Visible messages: what a projection holds and shows, without the edits that change it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence

from .compactions import compaction_edit, is_active
from .edits import CALLER, INTERRUPTED, NOT_OFFERED, Hide, Path, Replace, Span, Summarize, Target, Task, ends_of
from .hidden_ranges import HiddenRanges
from .legalize import Legalizer
from .messages import Message, ToolCall
from .originals import ReadOriginal
from .profiles import Profile
from .rendering import apply_edits
from .slot_list import SlotList
from .slots import Counter, Slot
from .snapshots import Cover, Facts, Row
from .stamps import Stamp
from .system_messages import last_prompt
from .view import Entry

__all__ = ["VisibleMessages"]


class VisibleMessages:
    """The visible messages of a conversation under one profile and one text counter, and what hides the others."""

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
        self.facts: Facts = Facts()
        self.tasks: dict[str, Task] = {}
        """The newest task of each policy."""
        self._interrupted_at = 0  # position of the newest message when a call was last shown without its answer
        self._hidden_late: set[int] = set()  # positions of hidden answers that are late, also when they come back
        self.position: int = 0
        """Position of the newest message."""
        self.number = 0
        """Number of the newest edit."""

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

    @property
    def interrupted(self) -> int:
        """The newest model call that was shown a call without its answer; 0 if there was none."""
        task = self.tasks.get(INTERRUPTED)
        return task.turn if task else 0

    @property
    def offers_expand(self) -> bool:
        """Return whether the newest model call got texts that name the tool `expand`, as far as there are any."""
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

    def erased_tokens(self) -> int:
        """Return the tokens that this view lacks because messages, or texts that were made of them, were erased."""
        return sum(slot.erased_tokens(self._profile, self._count) for slot in self._slots)

    def withheld(self) -> tuple[Entry, ...]:
        """Return empty entries for the messages with retention that show nothing now."""
        held = (self._slots.by_id[id].withheld(self._profile, self._count) for id in self._slots.retained)
        return tuple(entry for entry in held if entry)

    @property
    def has_terms(self) -> bool:
        """Return whether a visible message may have a lease, or a retention of its parts."""
        return self._slots.has_leases or bool(self._slots.retained)

    def covers(self) -> list[Cover]:
        """Return the hidden and summarized ranges, oldest first, without those inside a newer one."""
        return self._hidden.topmost()

    def holes_of(self, number: int) -> frozenset[int]:
        """Return the positions that stay visible in the range that this edit hides or summarizes, if it is known."""
        return frozenset(hole for cover in self._hidden.numbered(frozenset({number})) for hole in cover.holes)

    def summaries_of(self, positions: Sequence[int]) -> tuple[int, ...]:
        """Return the numbers of the known edits that summarize a message at one of these ascending positions."""

        def has_one(cover: Cover) -> bool:
            inside = positions[bisect_left(positions, cover.first) : bisect_right(positions, cover.last)]
            return any(position not in cover.holes for position in inside)

        covers = (cover for cover in self._hidden.covers if isinstance(cover.edit, Summarize))
        return tuple(cover.number for cover in covers if has_one(cover))

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
        """Return the calls of the newest reply, answered or not; none if a summary stands for what came after them."""
        newest = (slot for slot in reversed(self._slots) if slot.message.role == "assistant" and slot.span is None)
        slot = next(newest, None)
        return () if slot is None or self.is_summarized_after(slot.position) else slot.message.calls

    def is_summarized_after(self, position: int) -> bool:
        """Return whether a summary stands for messages after this position."""
        return any(cover.last > position and isinstance(cover.edit, Summarize) for cover in self._hidden.covers)

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
        if position != self.last_input(self.position if tip is None else tip):
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
        if not path or slot.position != self.last_input(self.position if tip is None else tip):
            return False
        return not apply_edits(slot.message, (*slot.edits, (0, edit))).message.has_content

    def last_input(self, tip: int) -> int:
        """Return the position of the last user input up to `tip`; 0 if none is shown."""
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
        begin, end = ends_of(named)
        first, last = self._position_of(begin, positions or {}), self._position_of(end, positions or {})
        return None if first is None or last is None or first > last else (first, last)

    def _position_of(self, id: str, where: Mapping[str, int]) -> int | None:
        slot = self._slots.by_id.get(id)
        if slot:
            return slot.position
        if id in where:
            return where[id]
        return self._hidden.position_of(id)

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
