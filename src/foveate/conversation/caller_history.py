"""The history as a caller's own list of messages shows it, and the comparison with the next list.

The whole list comes with every call. Items equal to those of the last list are recognised without being read again.
Other messages are compared by what they say (`core.message_keys`). A list lacks what only foveate added: the additions
of plugins, and the calls of `expand` that it answered itself, with their results.
"""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from msgspec import Struct

from ..core import ids, wire
from ..core.edits import CALLER, Edit, Hide, Record, Replace, Restore, Span, Target
from ..core.enrich import own_message
from ..core.message_keys import message_key
from ..core.messages import Message, Role, ToolCall
from ..core.rendering import apply_edits
from ..core.view import Given
from ..ports import StoredMessage
from .append import NO_OWN_FACTS, OwnFacts

__all__ = ["CallerHistory", "Item", "Known", "ListedItem", "NewList", "Read", "ReadMessage", "Said", "Spot"]

_COMPARED = dict, list, tuple, str, bytes, Message, Struct
"""Types of items that are compared by value. Other objects are recognised by their identity."""


class ReadMessage(NamedTuple):
    """A message that was read from another form, and its own facts."""

    message: Message
    facts: OwnFacts = NO_OWN_FACTS


Read = Callable[[object], list[ReadMessage]]
"""Reads the messages in one item of a list."""


class ListedItem(NamedTuple):
    """One item of a list, or several that form one message together."""

    value: object
    places: range
    """Indices in the caller's list."""


class Said(NamedTuple):
    """The facts of a message that comparisons need."""

    key: bytes
    role: Role
    call_id: str
    """The call that a result answers; "" for other messages."""
    calls: tuple[str, ...]
    """Ids of its calls."""
    id: str = ""
    """The caller's id of the message."""


def _said(message: Message, id: str = "") -> Said:
    result = message.result
    calls = tuple(call.call_id for call in message.calls)
    return Said(message_key(message), message.role, result.call_id if result else "", calls, id)


class Known:
    """A message of the history that lists show."""

    __slots__ = (
        "answered",
        "edits",
        "id",
        "is_absent",
        "is_cut",
        "is_erased",
        "is_hidden",
        "is_optional",
        "item",
        "part",
        "position",
        "said",
    )

    def __init__(self, position: int, id: str, said: Said, *, is_erased: bool) -> None:
        self.position, self.id, self.said, self.is_erased = position, id, said, is_erased
        self.answered: frozenset[str] = frozenset()
        """Ids of its calls that foveate answered itself."""
        self.is_optional = False
        """Whether foveate answered all its calls, so that a list may lack it."""
        self.is_hidden = False
        """Whether the caller removed it."""
        self.is_absent = False
        """Whether the last list lacked it, although the caller did not remove it."""
        self.edits: tuple[int, ...] = ()
        """Numbers of the edits that repeat what the caller changed in it."""
        self.item, self.part = -1, 0
        """Index of the item of the last list that shows it; -1: none. Index of the message in the item."""
        self.is_cut = False
        """Whether that list shows it without the calls that foveate answered."""

    @property
    def may_lack(self) -> bool:
        """Return whether a list without it says nothing."""
        return self.is_optional or self.is_absent or self.is_erased


class Item:
    """An item of the last list."""

    __slots__ = ("end", "places", "said", "value")

    def __init__(self, value: object, places: range, said: tuple[Said, ...]) -> None:
        self.value, self.places, self.said = value, places, said
        self.end = 0
        """Index of the first message that is known to come after it."""


class Spot(NamedTuple):
    """A message of a list."""

    item: int
    """Index of its item."""
    part: int
    """Index of the message in the item."""
    said: Said
    is_cut: bool = False
    """Whether it is a reply without the calls that foveate answered."""


class NewList(NamedTuple):
    """A list that was read."""

    known: int
    """How many of its items the last list began with."""
    fresh: list[Item]
    """The other items."""
    messages: dict[int, list[ReadMessage]]
    """Their messages, by the index of the item, as far as they were read again."""
    read: Read

    def message(self, item: int, part: int) -> ReadMessage:
        """Return the message at these indices."""
        if item not in self.messages:
            self.messages[item] = self.read(self.fresh[item - self.known].value)
        return self.messages[item][part]


class CallerHistory:
    """The messages of one branch of a conversation that the caller's list shows, in order."""

    def __init__(self, load: Callable[[int], Message]) -> None:
        """`load`: returns the message at a position, as it is stored."""
        self.position, self.number = 0, 0
        """The newest message and edit that are known here."""
        self.tip = ""
        """Id of that message."""
        self._load = load
        self.known: list[Known] = []
        """The messages that lists show, in order."""
        self._ids: list[str] = []  # of all rows, by position - 1
        self._owners: list[int] = []  # index of the known message that each row belongs to, by position - 1
        self._places: dict[str, int] = {}  # positions, by id
        self.systems: list[int] = []
        """Indices of the system messages among them."""
        self.keys: set[bytes] = set()
        """All keys that they have or had."""
        self.cut_keys: dict[bytes, bytes] = {}
        """Keys of replies, by their keys without the calls that foveate answered."""
        self.answered: dict[bytes, frozenset[str]] = {}
        """Ids of the calls that foveate answered, by the key of the reply."""
        self.caller_ids: dict[str, int] = {}
        """Indices of messages, by the caller's ids."""
        self._erased: dict[str, bytes] = {}  # keys of erased messages, by the hash of the body
        self._reply: tuple[int, Message] | None = None  # the newest reply
        self._callers_edits: dict[int, list[tuple[int, Edit]]] = {}  # by index
        self._span: tuple[int, int] | None = None  # positions that the caller's newest Hide covers
        self.items: list[Item] = []
        """The items of the last list."""
        self._is_tangled = False  # whether some items are in another order than the messages
        self.places: Mapping[int, Given] = {}
        """The places of messages in the last list, by position."""

    # ------------------------------------------------------------------------------------------------------- the past

    def add_rows(self, rows: Iterable[tuple[StoredMessage, Message]]) -> list[int]:
        """Add stored messages after the known ones; return the indices of those that lists show."""
        added: list[int] = []
        for row, body in rows:
            self.position, self.tip = row.position, row.id
            self._ids.append(row.id)
            self._places[row.id] = row.position
            own = own_message(body, row.stamp)
            if own is None:
                self._owners.append(len(self.known) - 1)
                if body.result is not None and row.stamp.expanded:
                    self._answer(body.result.call_id)
                continue
            said, is_erased = _said(own, row.stamp.key), not row.body
            if is_erased:
                role: Role = {"system": "system", "assistant": "assistant", "tool": "tool"}.get(  # type: ignore[assignment]
                    row.stamp.origin, "user"
                )
                said = said._replace(key=b"erased" + row.body_hash.encode(), role=role)
                self._erased[row.body_hash] = said.key
            index = len(self.known)
            self.known.append(Known(row.position, row.id, said, is_erased=is_erased))
            self._owners.append(index)
            self.keys.add(said.key)
            if said.id:
                self.caller_ids[said.id] = index
            if said.role == "system":
                self.systems.append(index)
            if said.role == "assistant":
                self._reply = index, own
            added.append(index)
        return added

    def _answer(self, call_id: str) -> None:
        """Note that foveate answered a call of the newest reply."""
        if self._reply is None or call_id not in self.known[self._reply[0]].said.calls:
            return
        index, message = self._reply
        known = self.known[index]
        known.answered |= {call_id}
        rest = tuple(
            part for part in message.parts if not (isinstance(part, ToolCall) and part.call_id in known.answered)
        )
        known.is_optional = not any(isinstance(part, ToolCall) for part in rest)
        key = message_key(Message(message.role, rest, message.name))
        self.cut_keys[key] = known.said.key
        self.answered[known.said.key] = self.answered.get(known.said.key, frozenset()) | known.answered

    def add_record(self, record: Record) -> None:
        """Note a record of the journal."""
        self.number = record.last
        if record.author not in (CALLER, "discard"):  # An undo lasts until the list changes.
            return
        for number, edit in record.numbered():
            match edit:
                case Hide(target=target):
                    self._set_hidden(target, True)
                case Restore(targets=targets, edits=numbers):
                    for target in targets:
                        self._set_hidden(target, False)
                    for cancelled in numbers:
                        for index in [
                            index for index, edits in self._callers_edits.items() if cancelled in dict(edits)
                        ]:
                            self._set_edits(
                                index, [pair for pair in self._callers_edits[index] if pair[0] != cancelled]
                            )
                case Replace(target=target) if target.message in self._places:
                    index = self._owners[self._places[target.message] - 1]
                    self._set_edits(index, [*self._callers_edits.get(index, ()), (number, edit)])
                case _:
                    pass

    def _set_hidden(self, target: Target | Span, is_hidden: bool) -> None:
        first, last = (target.first, target.last) if isinstance(target, Span) else (target.message, target.message)
        if first not in self._places or last not in self._places:
            return
        low, high = self._places[first], self._places[last]
        start = low
        if is_hidden:
            if self._span is not None and self._span[0] == low and self._span[1] <= high:
                start = self._span[1] + 1  # A window that moves on hides its former messages again.
            self._span = low, high
        else:
            self._span = None
        for index in range(self._index_at(start), self._index_at(high + 1)):
            self.known[index].is_hidden = is_hidden
            if not is_hidden and index in self._callers_edits:  # An edit of the whole message ends with it.
                self._set_edits(index, [])

    def _set_edits(self, index: int, edits: list[tuple[int, Edit]]) -> None:
        known = self.known[index]
        known.edits = tuple(number for number, _ in edits)
        self._callers_edits[index] = edits
        message = apply_edits(self._load(known.position), edits).message
        if not edits:
            del self._callers_edits[index]
        known.said = _said(message, known.said.id)
        self.keys.add(known.said.key)

    def _index_at(self, position: int) -> int:
        return bisect_left(self.known, position, key=lambda known: known.position)

    # -------------------------------------------------------------------------------------------------- the next list

    def read(self, items: Sequence[ListedItem], read: Read) -> NewList:
        """Read the items that the last list did not have."""
        known = 0
        for old, item in zip(self.items, items, strict=False):
            if not _is_same(old.value, item.value) or (known == len(self.items) - 1 and not _is_plain(item.value)):
                break
            known += 1
        if self._is_tangled and known < len(self.items):
            known = 0
        fresh: list[Item] = []
        messages: dict[int, list[ReadMessage]] = {}
        cursor, looks = known, 4 * len(self.items) + 64
        for number, item in enumerate(items[known:], known):
            found = None
            for at in range(cursor, min(len(self.items), cursor + looks)):
                looks -= 1
                if at < len(self.items) - 1 and _is_same(self.items[at].value, item.value):
                    found, cursor = self.items[at], at + 1
                    break
            if found is not None:
                fresh.append(Item(found.value, item.places, found.said))
                continue
            messages[number] = read(item.value)
            fresh.append(Item(item.value, item.places, self._said_all(messages[number])))
        for made in fresh:  # After all were read: some may be malformed.
            if isinstance(made.value, dict | list | tuple):
                made.value = copy.deepcopy(made.value)
        return NewList(known, fresh, messages, read)

    def _said_all(self, messages: Sequence[ReadMessage]) -> tuple[Said, ...]:
        said = [_said(message, facts.key) for message, facts in messages]
        if self._erased:
            for number, (message, _) in enumerate(messages):
                key = self._erased.get(ids.body_hash(wire.encode_message(message)))
                said[number] = said[number]._replace(key=key) if key else said[number]
        return tuple(said)

    def accept(self, new: NewList, shown: Sequence[tuple[int, Spot]], absent: Sequence[int]) -> None:
        """Take over the list once its changes are stored. `shown`: the messages and where the list shows them.

        `absent`: messages that the list lacks, but that stay.
        """
        places = dict(self.places) if new.known == len(self.items) else None
        for known in self.known if places is None else ():
            if known.item >= new.known:
                known.item = -1
        self.items = [*self.items[: new.known], *new.fresh]
        for index in absent:
            self.known[index].is_absent = True
        order: list[tuple[int, int, int]] = []
        for index, spot in shown:
            known = self.known[index]
            known.item, known.part, known.is_absent, known.is_cut = spot.item, spot.part, False, spot.is_cut
            if known.said.role != "system":
                order.append((spot.item, spot.part, index))
        order.sort()
        self._is_tangled = self._is_tangled and new.known == len(self.items) - len(new.fresh) and new.known > 0
        end, at = self.items[new.known - 1].end if new.known else 0, 0
        for number in range(new.known, len(self.items)):
            while at < len(order) and order[at][0] == number:
                self._is_tangled |= order[at][2] < end
                end, at = max(end, order[at][2] + 1), at + 1
            self.items[number].end = end
        changed = [index for index, _ in shown] if places is not None else range(len(self.known))
        places = {} if places is None else places
        for index in changed:
            known = self.known[index]
            if known.item >= 0 and not known.is_cut and not known.is_hidden and not known.is_erased:
                item = self.items[known.item]
                places[known.position] = Given(item.places, known.part, len(item.said), bool(known.edits))
        self.places = places

    def runs_of(self, indices: Sequence[int], shown: Set[int] | None = None) -> list[tuple[str, str]]:
        """Return the ids of the first and the last row of each range of these messages, ascending.

        A range includes the rows that belong to its messages. `shown`: the positions that the view shows. A range then
        also includes the messages inside and next to it that are hidden already, so that a window is one range.
        """
        hidden = set(indices)

        def is_out(position: int, *, with_optional: bool = False) -> bool:
            owner = self._owners[position - 1]
            if owner < 0:
                return False
            known = self.known[owner]
            if owner in hidden or (with_optional and known.is_optional and known.item < 0):
                return True
            return shown is not None and known.is_hidden and position not in shown

        ranges: list[tuple[int, int]] = []
        for index in sorted(hidden):
            first = last = self.known[index].position
            if ranges and first <= ranges[-1][1]:
                continue
            is_reply = self.known[index].said.role == "assistant"
            while (
                first > 1 and is_out(first - 1, with_optional=is_reply) and not (ranges and first - 1 <= ranges[-1][1])
            ):
                first -= 1
                span = self._span
                if shown and span and span[1] == first and not any(span[0] <= position < first for position in shown):
                    first = span[0]
            while last < len(self._owners) and is_out(last + 1):
                last += 1
            ranges.append((first, last))
        return [(self._ids[first - 1], self._ids[last - 1]) for first, last in ranges]


def _is_same(old: object, new: object) -> bool:
    if old is new and not isinstance(new, dict | list):
        return True
    return _is_plain(new) and type(old) is type(new) and old == new


def _is_plain(value: object) -> bool:
    return isinstance(value, _COMPARED)
