"""Conversion of slots to entries, so that the view as a whole is legal.

A provider requires that every call is answered once, directly after its message, and under a unique id. So this module
takes slots in *units*: an assistant's message and the messages up to the next one. In a unit the answers come first. A
call without an answer gets a stand-in. An answer becomes a user's note in its own place if it cannot follow its call:
it came after the next model call, it is a second answer, or its call is not visible. Nothing is dropped, and a visible
entry never moves: recorded turns decide whether an answer is late, not the messages that follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .ids import ERASED
from .messages import Message, Text, ToolCall, ToolResult
from .profiles import Profile
from .rendering import Counter, Slot, reshape
from .view import Entry

__all__ = ["ANSWER_ERASED", "MAX_CALL_ID", "NO_ANSWER", "OPENING", "Legalizer"]

NO_ANSWER = "[No result: the call was interrupted, or its result is not shown.]"
"""The model reads this text if a call has no answer."""

ANSWER_ERASED = "the answer of this call was erased"
"""The reason of a call whose answer has no content left."""

OPENING = "[The conversation goes on from here.]"
"""The user's note before a view that would begin with the assistant."""

MAX_CALL_ID = 64
"""Longest call id that OpenAI accepts. Ids of providers are never longer."""

_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]")


class Legalizer:
    """The legal order of a list of slots, kept while the list grows at its end."""

    def __init__(self, profile: Profile, count: Counter) -> None:
        self._profile = profile
        self._count = count
        self._entries: list[Entry] = []
        self._units: list[tuple[int, int, set[str]]] = []  # index of the first slot, index of the first entry, call ids
        self._taken: set[str] = set()  # call ids in the units before the last one
        self._fresh: set[str] = set()  # call ids in the last unit
        self._opener: Entry | None = None

    def copy(self) -> Legalizer:
        """Return an independent copy."""
        twin = Legalizer(self._profile, self._count)
        twin._entries, twin._units = list(self._entries), list(self._units)
        twin._taken, twin._fresh = set(self._taken), set(self._fresh)
        if twin._units:  # Only the last unit's ids are changed in place.
            twin._units[-1] = (*twin._units[-1][:2], twin._fresh)
        return twin

    def entries(self, slots: Sequence[Slot], since: int) -> tuple[Entry, ...]:
        """Return all entries of `slots`. The slots before index `since` did not change since the last call."""
        self._forget(since)
        start = self._units[-1][0] if self._units else 0
        for unit in _units(slots, start):
            if self._units and self._units[-1][0] == unit:
                self._reopen_last()
            else:
                self._taken |= self._fresh
                self._fresh = set()
                self._units.append((unit, len(self._entries), self._fresh))
            end = next((i for i in range(unit + 1, len(slots)) if _opens(slots[i])), len(slots))
            self._entries.extend(self._unit_entries(slots[unit:end]))
        return self._opened_by_user()

    def _opened_by_user(self) -> tuple[Entry, ...]:
        """Return the entries, after a user's note if the provider requires a user first and the view has none."""
        first = next((i for i, entry in enumerate(self._entries) if entry.message.role != "system"), None)
        if not self._profile.user_first or first is None or self._entries[first].message.role != "assistant":
            return tuple(self._entries)
        if self._opener is None or self._opener.stamp is not self._entries[first].stamp:
            message = Message("user", (Text(OPENING),))
            bare = Entry(0, "", message, None, self._entries[first].stamp, "stand-in")
            self._opener = reshape(bare, message, "the first message must be a user's", self._count)
        return (*self._entries[:first], self._opener, *self._entries[first:])

    def _forget(self, since: int) -> None:
        """Drop every unit that begins at slot `since` or later. The unit before becomes the last one."""
        while self._units and self._units[-1][0] >= since:
            del self._entries[self._units.pop()[1] :]
            self._fresh = self._units[-1][2] if self._units else set()
            self._taken -= self._fresh

    def _reopen_last(self) -> None:
        del self._entries[self._units[-1][1] :]
        self._fresh.clear()

    def _unit_entries(self, unit: Sequence[Slot]) -> Iterable[Entry]:
        head, followers = (unit[0], unit[1:]) if _opens(unit[0]) else (None, unit)
        opening = head.entry(self._profile, self._count) if head else None
        waiting: dict[str, list[str]] = {}  # original call id -> visible call ids
        if head and opening and opening.message.calls:
            opening, waiting = self._with_own_ids(head, opening)
        answers: list[Entry] = []
        rest: list[Entry] = []
        for slot in followers:
            entry = slot.entry(self._profile, self._count)
            if entry is None:
                continue
            result = entry.message.result
            if result is None:
                rest.append(entry)
            elif head and waiting.get(result.call_id) and slot.stamp.turn == head.stamp.turn:
                call_id = waiting[result.call_id].pop(0)
                answers.append(self._as_answer(slot, entry, result, call_id, moved=bool(rest)))
            else:
                rest.append(self._as_note(slot, entry, result, known=self._is_shown(result.call_id)))
        if head and opening:
            yield opening
            yield from answers
            erased = sum(slot.is_erased_result and slot.stamp.turn == head.stamp.turn for slot in followers)
            unanswered = [call_id for ids in waiting.values() for call_id in ids]
            for i, call_id in enumerate(unanswered):  # Answers usually come in the order of the calls.
                yield self._stand_in(head, opening, call_id, is_erased=i < erased)
        yield from rest

    def _with_own_ids(self, slot: Slot, entry: Entry) -> tuple[Entry, dict[str, list[str]]]:
        """Return the assistant's entry with a unique id for every call, and the map of original to visible ids."""
        waiting: dict[str, list[str]] = {}
        own: dict[int, ToolCall] = {}
        for i, part in enumerate(entry.message.parts):
            if not isinstance(part, ToolCall):
                continue
            call_id = self._own_id(part.call_id, f"{entry.position}_{i}")
            self._fresh.add(call_id)
            waiting.setdefault(part.call_id, []).append(call_id)
            if call_id != part.call_id:
                own[i] = ToolCall(call_id, part.name, part.arguments, part.extra)
        if not own:
            return entry, waiting
        parts = tuple(own.get(i, part) for i, part in enumerate(entry.message.parts))
        message = Message(entry.message.role, parts, entry.message.name, entry.message.extra)
        why, form = "a call id was empty, used before or malformed", ("calls", *(own[i].call_id for i in own))
        return slot.cached_entry(form, lambda: reshape(entry, message, why, self._count)), waiting

    def _own_id(self, call_id: str, place: str) -> str:
        own = self._plain(call_id)
        if not own or len(own) > MAX_CALL_ID or self._is_shown(own):
            # The place makes the id unique, not a running number, so the id does not depend on earlier calls.
            own = f"{own[: MAX_CALL_ID // 2] or 'call'}_{place}"
        while self._is_shown(own):  # An original id looks like a generated one.
            own += "_"
        return own

    def _plain(self, call_id: str) -> str:
        return _NOT_PLAIN.sub("_", call_id) if self._profile.plain_call_ids else call_id

    def _is_shown(self, call_id: str) -> bool:
        plain = self._plain(call_id)
        return plain in self._taken or plain in self._fresh

    def _as_answer(self, slot: Slot, entry: Entry, result: ToolResult, call_id: str, *, moved: bool) -> Entry:
        if result.call_id != call_id:
            renamed = ToolResult(call_id, result.content, result.state, result.name, result.extra)
            message, why = Message("tool", (renamed,)), "its call is shown under another id"
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
        message = Message("user", (Text(head), *result.content))
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


def _units(slots: Sequence[Slot], start: int) -> Iterable[int]:
    """Yield the indices at which units begin, from the unit that begins at `start`."""
    if start < len(slots):
        yield start
        yield from (i for i in range(start + 1, len(slots)) if _opens(slots[i]))
