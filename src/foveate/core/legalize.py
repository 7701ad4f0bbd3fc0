"""Conversion of slots to entries, so that the view as a whole is legal.

A provider requires that every call is answered once, directly after its message, and under a unique id. So this module
takes slots in *units*: an assistant's message and the messages up to the next one. In a unit the answers come first. A
call without an answer gets a stand-in. An answer becomes a user's note in its own place if it cannot follow its call:
it came after the next model call, it is a second answer, or its call is not visible. Nothing is dropped, and a visible
entry never moves: recorded turns, and records of the stand-ins that were sent, decide whether an answer is late, not
the messages that follow. Only instructions may move, before they are sent (`system_messages.py`).

Server tools: a use may wait for its result while only assistant's messages and results of calls follow, as after a
pause. If another message follows, a stand-in closes the use. A result whose use is not visible is left out. Gemini does
not continue paused turns: there a use waits for consecutive messages of the assistant only.

If the provider limits the calls of one message, the others follow in messages of their own, each with its answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from itertools import chain, pairwise
from typing import NamedTuple

from .alternation import alternate
from .ids import ERASED
from .messages import Message, Reasoning, Text, ToolCall, ToolResult
from .profiles import Profile
from .readable import in_message
from .rendering import trim_end
from .saved_views import Refer, SavedLegality, SavedMark
from .server_tools import ServerBlock, closing_result, pair_key, server_blocks
from .slots import Counter, Slot, reshape
from .system_messages import OPENING, SystemMessages, last_prompt, stand_in
from .view import OWN_ID, Entry

__all__ = ["ANSWER_ERASED", "NO_ANSWER", "Legalizer"]

NO_ANSWER = "[No result: the call was interrupted, or its result is not shown.]"
"""The model reads this text if a call has no answer."""

ANSWER_ERASED = "the answer of this call was erased"
"""The reason of a call whose answer has no content left."""

_UNPAIRED = "a server tool's result without its use, or a use without an id of its own, is refused"

_PARTED = "a message of the model must not directly follow a summary of the role assistant"

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]")

OpenUses = dict[str, tuple[Slot, ServerBlock]]
"""Uses of server tools without a result so far, by key, each with the slot of its message. Replaced, never changed."""


_STEP = 4
"""Slots between two marks, at least."""


class _Mark(NamedTuple):
    """The begin of a unit, to which the legalizer can return."""

    slot: int
    """Index of its first slot."""
    entry: int
    """Index of its first entry."""
    open_uses: OpenUses
    """Uses of server tools that have no result before the unit."""
    call_ids: tuple[str, ...] = ()
    """Ids of the calls and of the uses of server tools up to the next mark. Set when that is made."""


class Legalizer:
    """The legal order of a list of slots, kept while the list grows at its end."""

    def __init__(self, profile: Profile, count: Counter) -> None:
        self._profile = profile
        self._count = count
        self._entries: list[Entry] = []
        self._marks: list[_Mark] = []  # some units, from the first on
        self._last: _Mark | None = None  # the last unit
        self._taken: set[str] = set()  # call ids in the units before the last one
        self._marked: list[str] = []  # those since the newest mark
        self._fresh: set[str] = set()  # call ids in the last unit
        self._open_uses: OpenUses = {}  # after the last unit
        self._systems = SystemMessages(profile, count)

    def copy(self) -> Legalizer:
        """Return an independent copy."""
        twin = Legalizer(self._profile, self._count)
        twin._entries, twin._marks, twin._last = list(self._entries), list(self._marks), self._last
        twin._taken, twin._marked, twin._fresh = set(self._taken), list(self._marked), set(self._fresh)
        twin._open_uses = self._open_uses
        twin._systems = self._systems.copy()
        return twin

    def saved(self, refer: Refer, places: Mapping[int, int]) -> SavedLegality | None:
        """Return the legal order before the last unit, to be saved; None if there is none.

        `refer`: returns the reference to an entry. `places`: index of each slot, by its identity. Raises KeyError for
        others.
        """

        def mark(unit: _Mark) -> SavedMark:
            uses = tuple((key, places[id(slot)], block) for key, (slot, block) in unit.open_uses.items())
            # Of the newest mark, they may be those of a state before an edit. `_marked` has the ids that count.
            return SavedMark(unit.slot, unit.entry, uses, () if unit is self._marks[-1] else unit.call_ids)

        if self._last is None:
            return None
        order = tuple([refer(entry) for entry in self._entries[: self._last.entry]])
        return SavedLegality(order, tuple(map(mark, self._marks)), mark(self._last), tuple(self._marked))

    def restore(self, saved: SavedLegality, slots: Sequence[Slot], entries: Sequence[Entry]) -> None:
        """Continue with the legal order that was saved. `entries`: those of the slots, in the same order."""

        def unit(mark: SavedMark) -> _Mark:
            uses = {key: (slots[place], block) for key, place, block in mark.open_uses}
            return _Mark(mark.slot, mark.entry, uses, mark.call_ids)

        self._entries = list(entries)
        self._marks, self._last, self._marked = [unit(mark) for mark in saved.marks], unit(saved.last), [*saved.marked]
        self._taken = {id for mark in saved.marks for id in mark.call_ids} | set(saved.marked)
        self._fresh, self._open_uses = set(), self._last.open_uses
        self._systems = SystemMessages(self._profile, self._count)
        self._systems.read(self._entries, 0, last_prompt(slots))

    def entries(self, slots: Sequence[Slot], since: int) -> tuple[Entry, ...]:
        """Return all entries of `slots`. The slots before index `since` did not change since the last call."""
        self._forget(since)
        self._systems.forget(len(self._entries))
        prompt = last_prompt(slots)
        start = self._last.slot if self._last else 0
        for unit, end in pairwise(chain(_units(slots, start), (len(slots),))):
            if self._last and self._last.slot == unit:
                self._reopen(self._last)
            else:
                self._begin(unit)
            known = len(self._entries)
            before = self._entries[-1] if known else None
            self._systems.forget(known)
            self._entries.extend(self._unit_entries(slots[unit:end], before))
            self._systems.read(self._entries, known, prompt)
        closed = [self._closed_use(key) for key, (_, use) in self._open_uses.items() if not use.may_wait]
        placed = self._systems.placed([*self._entries, *closed] if closed else self._entries, prompt)
        return alternate(placed, self._count) if self._profile.alternates else placed

    def _forget(self, since: int) -> None:
        """Return to the newest mark before slot `since` if the last unit does not begin before it."""
        if self._last is None or self._last.slot < since:
            return
        self._taken.difference_update(self._marked)
        while self._marks[-1].slot >= since and len(self._marks) > 1:
            self._marks.pop()
            self._taken.difference_update(self._marks[-1].call_ids)
        self._marked.clear()
        self._last = self._marks[-1]
        self._reopen(self._last)

    def _begin(self, unit: int) -> None:
        """Begin a unit at this slot."""
        self._taken |= self._fresh
        self._marked += self._fresh
        self._fresh.clear()
        self._last = _Mark(unit, len(self._entries), self._open_uses)
        if self._marks and unit - self._marks[-1].slot < _STEP:
            return
        if self._marks:
            self._marks[-1] = self._marks[-1]._replace(call_ids=tuple(self._marked))
            self._marked.clear()
        self._marks.append(self._last)

    def _reopen(self, unit: _Mark) -> None:
        del self._entries[unit.entry :]
        self._open_uses = unit.open_uses
        self._fresh.clear()

    def _unit_entries(self, unit: Sequence[Slot], before: Entry | None) -> Iterable[Entry]:
        """Yield the entries of a unit. `before`: the entry before them."""
        head, followers = (unit[0], unit[1:]) if _opens(unit[0]) else (None, unit)
        opening = head.entry(self._profile, self._count) if head else None
        waiting: dict[str, list[str]] = {}  # original call id -> visible call ids
        if head and opening and opening.kind == "summary":
            yield from self._closed_uses()
        elif head and opening:
            if self._open_uses and opening.message.calls:
                yield from self._closed_before(opening.message)
            opening, waiting = self._opening(head, opening)
        answers: list[Entry] = []
        rest: list[Entry] = []
        for slot in followers:
            entry = slot.entry(self._profile, self._count)
            if entry is None:
                continue
            result = entry.message.result
            if result is None:
                rest.append(entry)
            elif head and _is_timely(slot, head) and (visible := _waiting_for(result, head.message, waiting)):
                call_id = visible.pop(0)
                answers.append(self._as_answer(slot, entry, result, call_id, moved=bool(rest)))
            else:
                rest.append(self._as_note(slot, entry, result, known=self._is_shown(result.call_id)))
        if head and opening:
            if before and self._needs_user_between(before, opening):
                yield self._user_between(head, opening)
            erased = sum(slot.is_erased_result and _is_timely(slot, head) for slot in followers)
            unanswered = [call_id for ids in waiting.values() for call_id in ids]
            for message in self._split(head, opening):
                ids = {call.call_id for call in message.message.calls}
                yield message
                yield from (
                    answer for answer in answers if answer.message.result and answer.message.result.call_id in ids
                )
                for call_id in unanswered:  # Answers usually come in the order of the calls.
                    if call_id in ids:
                        yield self._stand_in(head, opening, call_id, is_erased=erased > 0)
                        erased -= 1
        if rest:
            yield from self._closed_uses()
        yield from rest

    def _opening(self, slot: Slot, entry: Entry) -> tuple[Entry | None, dict[str, list[str]]]:
        """Return the assistant's entry with a unique id for every call and without unpaired blocks of server tools, and
        the map of original to visible call ids.
        """
        waiting: dict[str, list[str]] = {}
        own: dict[int, ToolCall] = {}
        unpaired = self._unpaired(slot, entry.message)
        is_bare = not (unpaired or entry.legalized)
        for i, part in enumerate(entry.message.parts):
            if not isinstance(part, ToolCall):
                continue
            call_id = self._own_id(part.call_id, f"{entry.position}_{i}")
            is_bare &= call_id == part.call_id or self._is_bare(part)
            self._fresh.add(call_id)
            waiting.setdefault(part.call_id, []).append(call_id)
            if call_id != part.call_id:
                own[i] = ToolCall(call_id, part.name, part.arguments, part.extra)
        if not own and not unpaired:
            return entry, waiting
        parts = [own.get(i, part) for i, part in enumerate(entry.message.parts) if i not in unpaired]
        if all(isinstance(part, Reasoning) for part in parts):
            return None, waiting
        trim_end(parts, self._profile)  # A block that is left out may have followed a text.
        message = Message(entry.message.role, tuple(parts), entry.message.name, entry.message.extra)
        why = "a call id was empty, used before, too long or malformed" if own else _UNPAIRED
        why = OWN_ID if is_bare else why
        form = ("calls", *(own[i].call_id for i in own), *map(str, sorted(unpaired)))
        return slot.cached_entry(form, lambda: reshape(entry, message, why, self._count)), waiting

    def _unpaired(self, slot: Slot, message: Message) -> set[int]:
        """Return the indices of the blocks of server tools that cannot be sent, and follow the open uses.

        These are results without an open use before them, uses without an id or with one that was used before, and
        uses that no result can follow.
        """
        unpaired: set[int] = set()
        opened: dict[str, int] = {}
        open_uses = self._open_uses
        for index, block in server_blocks(message):
            key = pair_key(block, f"{slot.position}.{index}", open_uses)
            if key and not block.is_use:
                open_uses = {open_key: use for open_key, use in open_uses.items() if open_key != key}
            elif not key or (block.id and (not self._is_plain(block.id) or self._is_shown(block.id))):
                unpaired.add(index)
            else:
                self._fresh.add(key)
                open_uses = {**open_uses, key: (slot, block)}
                opened[key] = index
        if message.calls:  # Results of calls must follow directly, so that no stand-in can close these uses.
            lone = {key for key in opened if key in open_uses and not open_uses[key][1].may_wait}
            if lone:
                unpaired.update(opened[key] for key in lone)
                open_uses = {key: use for key, use in open_uses.items() if key not in lone}
        self._open_uses = open_uses
        return unpaired

    def _closed_before(self, message: Message) -> Iterable[Entry]:
        """Yield results for the open uses that cannot wait for the results of this message's calls."""
        waiting = {key for key, (_, use) in self._open_uses.items() if not use.may_wait}
        if not waiting:
            return
        for index, block in server_blocks(message):
            if not block.is_use:
                waiting.discard(pair_key(block, str(index), self._open_uses))
        for key in [key for key in self._open_uses if key in waiting]:
            yield self._closed_use(key)
        self._open_uses = {key: use for key, use in self._open_uses.items() if key not in waiting}

    def _closed_uses(self) -> Iterable[Entry]:
        """Yield a result for each open use of a server tool: the turn ends, and no other result can follow."""
        for key in self._open_uses:
            yield self._closed_use(key)
        self._open_uses = {}

    def _needs_user_between(self, summary: Entry, opening: Entry) -> bool:
        """Return whether a user's note must part a summary of the role assistant from the model's own message.

        The provider reads consecutive messages of the assistant as one, and reasoning must begin it. A message that
        came after the summary was made answers a request that ended with the summary, so that nothing may part them.
        """
        is_by_assistant = summary.kind == "summary" and summary.message.role == "assistant"
        follows = opening.kind == "message" and opening.position <= summary.seen
        return self._profile.user_first and is_by_assistant and follows

    def _user_between(self, slot: Slot, opening: Entry) -> Entry:
        return slot.cached_entry(("between",), lambda: stand_in(opening, OPENING, _PARTED, self._count))

    def _closed_use(self, key: str) -> Entry:
        """Return a stand-in for the result of an open use."""
        slot, use = self._open_uses[key]
        message = Message("assistant", (closing_result(use, NO_ANSWER),))
        bare = Entry(slot.position, slot.id, message, None, slot.stamp, "stand-in", last=slot.position)
        why = "a server tool's use without a result is refused"
        return slot.cached_entry(("use", key), partial(reshape, bare, message, why, self._count))

    def _split(self, slot: Slot, opening: Entry) -> Iterable[Entry]:
        """Yield the assistant's entry, with further entries for the calls above the provider's limit for a message."""
        most, calls = self._profile.max_calls, opening.message.calls
        if not most or len(calls) <= most:
            yield opening
            return
        why = f"more than {most} calls in one message are refused"
        first = set(calls[:most])
        parts = tuple(part for part in opening.message.parts if not isinstance(part, ToolCall) or part in first)
        ids = tuple(call.call_id for call in calls)
        message = Message(opening.message.role, parts, opening.message.name, opening.message.extra)
        yield slot.cached_entry(
            ("first", opening.legalized, *ids), partial(reshape, opening, message, why, self._count)
        )
        for start in range(most, len(calls), most):
            message = Message(opening.message.role, calls[start : start + most], opening.message.name)
            bare = Entry(opening.position, opening.id, message, None, opening.stamp, "continuation", last=opening.last)
            form = ("further", str(start), *ids)
            yield slot.cached_entry(form, partial(reshape, bare, message, why, self._count))

    def _own_id(self, call_id: str, place: str) -> str:
        if self._profile.call_id_size:
            return self._sized_id(call_id, place)
        own, most = self._plain(call_id), self._profile.max_call_id
        if not own or len(own) > most or self._is_shown(own):
            # The place makes the id unique, not a running number, so the id does not depend on earlier calls.
            own = f"{own[: most // 2] or 'call'}_{place}"
        while self._is_shown(own):  # An original id looks like a generated one.
            own += "_"
        return own

    def _sized_id(self, call_id: str, place: str) -> str:
        """Return an id of the size that the provider requires: the call's own if it has it, and is not shown yet."""
        own, key = call_id, f"{call_id} {place}"
        while self._is_shown(own) or not self._profile.takes_id(own):
            own = blake2b(key.encode("utf-8", "surrogatepass")).hexdigest()[: self._profile.call_id_size]
            key += "_"
        return own

    def _is_bare(self, part: ToolCall | ToolResult) -> bool:
        """Return whether a call or its result has no id, so that the one in the view stays out of requests."""
        return self._profile.calls_without_ids and part.call_id == part.name

    def _plain(self, call_id: str) -> str:
        return _NOT_PLAIN.sub("_", call_id) if self._profile.plain_call_ids else call_id

    def _is_plain(self, call_id: str) -> bool:
        return bool(call_id) and self._plain(call_id) == call_id

    def _is_shown(self, call_id: str) -> bool:
        plain = self._plain(call_id)
        return plain in self._taken or plain in self._fresh

    def _as_answer(self, slot: Slot, entry: Entry, result: ToolResult, call_id: str, *, moved: bool) -> Entry:
        if result.call_id != call_id:
            renamed = ToolResult(call_id, result.content, result.state, result.name, result.extra)
            message, why = Message("tool", (renamed,)), "its call is shown under another id"
            why = OWN_ID if self._is_bare(result) and not entry.legalized else why
            return slot.cached_entry(("answer", call_id), lambda: reshape(entry, message, why, self._count))
        if moved and not entry.legalized:
            why = "an answer must directly follow its call"
            return slot.cached_entry(("moved",), lambda: reshape(entry, entry.message, why, self._count))
        return entry

    def _as_note(self, slot: Slot, entry: Entry, result: ToolResult, *, known: bool) -> Entry:
        tool = f" of {entry.tool}" if entry.tool else ""
        about = f"call {result.call_id}{tool}" if result.call_id else f"a call{tool}"
        head = f"[Result for {about}, which came late]" if known else f"[Result for {about}, which is not shown]"
        why = "it came late, or its call was answered already" if known else "its call is not shown"
        content = [each for part in result.content for each in in_message(part)]
        message = Message("user", (Text(head), *content))
        return slot.cached_entry(("note", head), lambda: reshape(entry, message, why, self._count, kind="note"))

    def _stand_in(self, slot: Slot, opening: Entry, call_id: str, *, is_erased: bool) -> Entry:
        message = Message("tool", (ToolResult(call_id, (Text(NO_ANSWER),), "interrupted"),))
        why = "a call without an answer is refused"
        if is_erased:
            message, why = Message("tool", (ToolResult(call_id, (Text(ERASED),)),)), ANSWER_ERASED
        bare = Entry(opening.position, opening.id, message, None, opening.stamp, "stand-in", last=opening.position)
        return slot.cached_entry(("stand-in", why, call_id), lambda: reshape(bare, message, why, self._count))


def _opens(slot: Slot) -> bool:
    """Return whether a unit begins here: at every message of the assistant and at every summary."""
    return slot.message.role == "assistant" or slot.span is not None


def _is_timely(slot: Slot, head: Slot) -> bool:
    """Return whether an answer came before any request without it. `head`: the message with its call."""
    return slot.stamp.turn == head.stamp.turn and not slot.is_late


def _waiting_for(result: ToolResult, opening: Message, waiting: dict[str, list[str]]) -> list[str]:
    """Return the visible ids of the calls that this result can answer.

    A result or a call without an id has the tool's name as its id. Such a result answers the first call of the tool,
    and such a call takes the first result of it, also if only the other one has an id.
    """
    if result.call_id in waiting:
        return waiting[result.call_id]
    named = (
        waiting[call.call_id]
        for call in opening.calls
        if call.name == result.name and result.name in (call.call_id, result.call_id) and call.call_id in waiting
    )
    return next((ids for ids in named if ids), [])


def _units(slots: Sequence[Slot], start: int) -> Iterable[int]:
    """Yield the indices at which units begin, from the unit that begins at `start`."""
    if start < len(slots):
        yield start
        yield from (i for i in range(start + 1, len(slots)) if _opens(slots[i]))
