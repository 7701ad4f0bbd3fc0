"""The places of system messages in a view, and the user's note before a view that would begin with the assistant.

System messages at the beginning of a history are its system prompt. Later ones are instructions in the middle of the
conversation. Providers differ in where they take these (`Profile.system_places`). If such a message has no legal place,
this module moves it behind the user's messages of the same model call, puts a note before it, closes it with a stand-in
for the reply, or shows it as a user's note itself. It removes none, and what an earlier call was sent stays in place:
turns decide, not the messages that follow.

Source of the places: Anthropic's documentation of mid-conversation system messages, and the errors of its API, as of
November 2026. Consecutive system messages count as one there.
"""

from __future__ import annotations

from collections.abc import Sequence

from .compactions import begins_compacted
from .messages import Message, Opaque, Role, Text
from .profiles import Profile
from .rendering import is_directive
from .slots import Counter, Slot, reshape
from .view import Entry

__all__ = [
    "NO_REPLY",
    "OPENING",
    "SYSTEM_NOTE",
    "SystemMessages",
    "ends_in_server_result",
    "last_prompt",
    "position_of",
    "sent_role",
    "stand_in",
]

OPENING = "[The conversation goes on from here.]"
"""The user's note before a view that would begin with the assistant, or before an instruction without a place."""

NO_REPLY = "[No reply: the call was interrupted, or its reply is not shown.]"
"""The assistant's message between an instruction and the user's messages that came after the next model call."""

SYSTEM_NOTE = "[System note]\n"
"""Begins a system message that the provider reads as a user's note."""

_FIRST = "the first message must be a user's"
_MOVED = "a system message must not be followed by a user's"
_UNPLACED = "a system message must follow a user's message"
_UNANSWERED = "a user's message must not follow a system message that was sent before"
_DEMOTED = "the provider takes no system message in the middle"


def last_prompt(slots: Sequence[Slot]) -> int:
    """Return the position of the last system prompt at the beginning of the history; 0 if there is none."""
    position = 0
    for slot in slots:
        if slot.message.role != "system" or slot.position != position + 1:
            break
        position = slot.position
    return position


def sent_role(entry: Entry) -> Role:
    """Return the role in which the provider gets an entry: of a system message that is shown as a note, the user's."""
    return "user" if entry.kind == "note" else entry.message.role


def ends_in_server_result(message: Message) -> bool:
    """Return whether an assistant's message ends with the result of a server tool."""
    last = message.parts[-1] if message.parts else None
    return message.role == "assistant" and isinstance(last, Opaque) and last.kind.endswith("_tool_result")


def stand_in(entry: Entry, text: str, why: str, count: Counter) -> Entry:
    """Return a message of the library before an entry: OPENING of the user, or NO_REPLY of the assistant."""
    message = Message("assistant" if text is NO_REPLY else "user", (Text(text),))
    return reshape(Entry(0, "", message, None, entry.stamp, "stand-in"), message, why, count)


def position_of(entries: Sequence[Entry], index: int) -> int:
    """Return the position of an entry; of a stand-in between two messages, that of the entry behind it."""
    last = len(entries) - 1
    while entries[index].is_between and index < last:
        index += 1
    return entries[index].position


class SystemMessages:
    """Puts the system messages of a view into legal places, and keeps what it made for the next view."""

    def __init__(self, profile: Profile, count: Counter) -> None:
        self._profile, self._count = profile, count
        self._later: list[int] = []  # indices of the instructions in the middle
        self._made: dict[tuple[Entry, str], Entry] = {}  # by the entry and the reason

    def copy(self) -> SystemMessages:
        """Return an independent copy. The entries stay shared, because they never change."""
        twin = SystemMessages(self._profile, self._count)
        twin._later, twin._made = list(self._later), self._made
        return twin

    def forget(self, size: int) -> None:
        """Forget the entries from index `size` on."""
        while self._later and self._later[-1] >= size:
            self._later.pop()

    def read(self, entries: Sequence[Entry], start: int, prompt: int) -> None:
        """Note the entries from index `start` on. `prompt`: position of the last system prompt at the beginning."""
        if self._profile.system_places == "any":
            return
        for index in range(start, len(entries)):
            if entries[index].message.role == "system" and entries[index].position > prompt:
                self._later.append(index)

    def placed(self, entries: Sequence[Entry], prompt: int) -> tuple[Entry, ...]:
        """Return the entries in legal places. Entries that stay as they are remain the same objects."""
        if len(self._made) > 4 * len(self._later) + 64:
            self._made = {}
        if self._later and self._profile.system_places == "first":
            entries = list(entries)
            for index in self._later:
                entries[index] = self._as_note(entries[index])
        elif self._later:
            entries = self._in_runs(entries, prompt)
        if self._profile.user_first:
            first = next((i for i, entry in enumerate(entries) if not self._is_prompt(entry, prompt)), None)
            if first is not None and _needs_user(entries[first].message):
                return (*entries[:first], self._stand_in(entries[first], OPENING, _FIRST), *entries[first:])
        return tuple(entries)

    def _is_prompt(self, entry: Entry, prompt: int) -> bool:
        """Return whether an entry may come before the first user's message."""
        is_anywhere = self._profile.system_places == "any" or self._is_directive(entry)
        return entry.message.role == "system" and (entry.position <= prompt or is_anywhere)

    def _in_runs(self, entries: Sequence[Entry], prompt: int) -> list[Entry]:
        """Return the entries with each instruction in a legal place between the same two replies."""
        placed: list[Entry] = []
        done = 0
        for index in self._later:
            if index < done:
                continue
            start = end = index
            while start > done and _is_in_run(entries[start - 1], prompt):
                start -= 1
            while end < len(entries) and _is_in_run(entries[end], prompt):
                end += 1
            placed += entries[done:start]
            placed += self._placed_run(entries[start - 1] if start else None, entries[start:end])
            done = end
        return [*placed, *entries[done:]]

    def _placed_run(self, before: Entry | None, run: Sequence[Entry]) -> list[Entry]:
        """Return the messages between two replies in legal places. `before`: the entry before them."""
        placed: list[Entry] = []
        waiting: list[Entry] = []  # system messages with the same place, or that wait for the user's messages
        anchor = before
        for entry in run:
            if entry.message.role == "system":
                waiting.append(entry)
                continue
            sent = [other for other in waiting if other.stamp.turn < entry.stamp.turn]
            if not all(self._is_directive(other) for other in sent):
                placed += [*self._section(sent, anchor), self._stand_in(entry, NO_REPLY, _UNANSWERED)]
                waiting = [other for other in waiting if other not in sent]
            placed += [other for other in waiting if self._is_directive(other)]
            waiting = [self._moved(other) for other in waiting if not self._is_directive(other)]
            placed.append(entry)
            anchor = entry
        return placed + self._section(waiting, anchor)

    def _section(self, systems: Sequence[Entry], anchor: Entry | None) -> list[Entry]:
        """Return consecutive system messages, with a note before the first instruction unless `anchor` allows it.

        Messages that only change settings stay before the note, because an earlier call may have been sent them.
        """
        first = next((i for i, entry in enumerate(systems) if not self._is_directive(entry)), None)
        if first is None or (anchor is not None and _may_precede(anchor)):
            return list(systems)
        return [*systems[:first], self._stand_in(systems[first], OPENING, _UNPLACED), *systems[first:]]

    def _is_directive(self, entry: Entry) -> bool:
        return is_directive(entry.message, self._profile)

    def _moved(self, entry: Entry) -> Entry:
        if entry.legalized == _MOVED:
            return entry
        key = (entry, _MOVED)
        if key not in self._made:
            self._made[key] = reshape(entry, entry.message, _MOVED, self._count)
        return self._made[key]

    def _as_note(self, entry: Entry) -> Entry:
        """Return the entry as a user's note. It keeps the role of its message, which protects it from policies."""
        key = (entry, _DEMOTED)
        if key not in self._made:
            message = entry.message
            texts = [i for i, part in enumerate(message.parts) if isinstance(part, Text)]
            parts = list(message.parts)
            head = parts.pop(texts[0]) if texts else Text("")
            assert isinstance(head, Text)
            note = Text((SYSTEM_NOTE + head.text).rstrip("\n"), head.extra)
            shown = Message("system", (note, *parts), message.name, message.extra)
            self._made[key] = reshape(entry, shown, _DEMOTED, self._count, kind="note")
        return self._made[key]

    def _stand_in(self, entry: Entry, text: str, why: str) -> Entry:
        """Return a message of this module before an entry."""
        key = (entry, why)
        if key not in self._made:
            self._made[key] = stand_in(entry, text, why, self._count)
        return self._made[key]


def _needs_user(message: Message) -> bool:
    """Return whether a user's message must come before this one. A compaction may come first."""
    return message.role == "assistant" and not begins_compacted(message)


def _may_precede(entry: Entry) -> bool:
    """Return whether a system message may follow an entry that is no system message."""
    return entry.message.role in ("user", "tool") or ends_in_server_result(entry.message)


def _is_in_run(entry: Entry, prompt: int) -> bool:
    """Return whether an entry is between two replies, and no system prompt at the beginning."""
    return entry.message.role != "assistant" and not (entry.message.role == "system" and entry.position <= prompt)
