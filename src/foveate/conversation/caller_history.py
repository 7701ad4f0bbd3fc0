"""The history as a caller's own list of messages shows it, and the comparison with the next list.

The whole list comes with every call. Items equal to those of the last list are recognised without being read again.
Other messages are compared by what they say (`core.message_keys`). A list lacks what only foveate added: the additions
of plugins, and the calls of `expand` that it answered itself, with their results.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from ..core import ids, wire
from ..core.edits import CALLER, Edit, Hide, Record, Replace, Restore, Span, Summarize, Target, ends_of
from ..core.enrich import has_additions, own_message
from ..core.message_keys import message_key
from ..core.messages import Media, Message, Part, Reasoning, Role, Text, ToolCall, ToolResult
from ..core.rendering import apply_edits
from ..core.view import ListPlace
from ..errors import BadMessage
from ..ports import StoredMessage
from .list_items import (
    Item,
    Known,
    NewList,
    Read,
    ReadMessage,
    Spot,
    Traits,
    copied,
    error_in_list,
    is_plain,
    is_same,
    same_beginning,
    traits_of,
)

__all__ = ["CallerHistory"]

_ERASED_ROLES: Mapping[str, Role] = {"system": "system", "assistant": "assistant", "tool": "tool"}
"""Roles of erased messages, by their origin; all others are of the user."""
P = TypeVar("P", bound=Part)
_NO_TRAITS: Mapping[int, Traits] = {}


class _Reply(NamedTuple):
    """A reply, as lists may show it."""

    number: int
    """Its index among the known messages."""
    message: Message
    continued: tuple[Part, ...] = ()
    """The parts that lists show of the replies right before it, which only called `expand`."""

    @property
    def continues_thoughts(self) -> bool:
        """Return whether lists show only reasoning of the replies before it."""
        return bool(self.continued) and all(isinstance(part, Reasoning) for part in self.continued)

    def shown(self, known: Known) -> tuple[Part, ...]:
        """Return its parts without the calls that foveate answered."""
        return tuple(
            part for part in self.message.parts if not (isinstance(part, ToolCall) and part.call_id in known.answered)
        )


class CallerHistory:
    """The messages of one branch of a conversation that the caller's list shows, in order."""

    def __init__(self, load: Callable[[int], Message]) -> None:
        """`load`: returns the message at a position, as it is stored."""
        self.position, self.number = 0, 0
        """The newest message and edit that are known here."""
        self.tip = ""
        """Id of that message."""
        self.tokens = 0
        """Tokens of the messages that the caller did not remove, each once, without those that only show an original
        again.
        """
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
        self.cut_keys: dict[bytes, list[int]] = {}
        """Indices of replies, by the keys that lists may show for them.

        Such a key leaves out the calls that foveate answered. A proxy continues a reply that had only such calls with
        the next one, so it has one message for both.
        """
        self.answered: dict[bytes, frozenset[str]] = {}
        """Ids of the calls that foveate answered, by the key of the reply."""
        self.caller_ids: dict[str, int] = {}
        """Indices of messages, by the caller's ids."""
        self._erased: dict[str, bytes] = {}  # keys of erased messages, by the hash of the body
        self._reply: _Reply | None = None  # the newest one
        self._callers_edits: dict[int, list[tuple[int, Edit]]] = {}  # by index
        self._span: tuple[int, int] | None = None  # positions that the caller's newest Hide covers
        self.is_edited = False
        """Whether the journal has edits that do not repeat what the caller did to its list."""
        self.copies: dict[str, list[str]] = {}
        """Ids of the messages that show an original again, by its id."""
        self.items: list[Item] = []
        """The items of the last list."""
        self._values: list[object] = []  # the caller's values of these items
        self._shown: list[int] = []  # indices of the messages that they show
        self.first_open = 0
        """Index of a message before which the caller removed all but system messages."""
        self._asked: dict[str, int] = {}  # the newest message with each call, before `_asked_until`
        self._asked_until = 0
        self._is_tangled = False  # whether some items are in another order than the messages
        self.places: Mapping[int, ListPlace] = {}
        """The places of messages in the last list, by position."""

    # ------------------------------------------------------------------------------------------------------- the past

    def has(self, id: str) -> bool:
        """Return whether a row with this id is known."""
        return id in self._places

    @property
    def newest_reply(self) -> str:
        """The text of the newest reply; "" if there is none."""
        return self._reply.message.text if self._reply else ""

    def add_rows(
        self, rows: Iterable[tuple[StoredMessage, Message]], read: Mapping[int, Traits] = _NO_TRAITS
    ) -> list[int]:
        """Add stored messages after the known ones; return the indices of those that lists show.

        `read`: the traits of messages that were just read from a list, by identity.
        """
        added: list[int] = []
        for row, body in rows:
            self.position, self.tip = row.position, row.id
            tokens = 0 if row.stamp.expanded else row.stamp.tokens
            self.tokens += tokens
            self._ids.append(row.id)
            self._places[row.id] = row.position
            own = own_message(body, row.stamp)
            if own is None:
                self._owners.append(len(self.known) - 1)
                if self.known:
                    self.known[-1].tokens += tokens
                if row.stamp.expanded and row.stamp.expanded.shows_original:
                    self.copies.setdefault(row.stamp.expanded.message, []).append(row.id)
                if body.result is not None and row.stamp.expanded:
                    self._answer(body.result.call_id)
                continue
            traits, is_erased = read.get(id(own)) or traits_of(own, row.stamp.key), not row.body
            if is_erased:
                role = _ERASED_ROLES.get(row.stamp.origin, "user")
                traits = traits._replace(key=b"erased" + row.body_hash.encode(), role=role)
                self._erased[row.body_hash] = traits.key
            elif row.is_released and own is body:  # The list has the original, and the store only its hash.
                traits = traits._replace(key=b"released" + row.body_hash.encode())
                self._erased[row.body_hash] = traits.key
            index = len(self.known)
            known = Known(row.position, row.id, traits, is_erased=is_erased)
            known.is_recognized = traits.role == "user" and not has_additions(row.stamp)
            known.tokens = tokens
            self.known.append(known)
            self._owners.append(index)
            self.keys.add(traits.key)
            if traits.id:
                self.caller_ids[traits.id] = index
            if traits.role == "system":
                self.systems.append(index)
            if traits.role == "assistant":
                before = self._reply
                self._reply = _Reply(index, own)
                if before is not None and before.number == index - 1 and self.known[index - 1].is_optional:
                    self._reply = _Reply(index, own, (*before.continued, *before.shown(self.known[before.number])))
                    self._note_cut(self._reply)
                    # Without a text before it, only reasoning tells whether a list joins it with others.
                    self.known[index].is_continuation = self._reply.continues_thoughts
            added.append(index)
        return added

    def _answer(self, call_id: str) -> None:
        """Note that foveate answered a call of the newest reply."""
        reply = self._reply
        if reply is None or call_id not in self.known[reply.number].traits.calls:
            return
        known = self.known[reply.number]
        known.answered |= {call_id}
        known.is_optional = not any(isinstance(part, ToolCall) for part in reply.shown(known))
        self._note_cut(reply)
        self.answered[known.traits.key] = self.answered.get(known.traits.key, frozenset()) | known.answered

    def _note_cut(self, reply: _Reply) -> None:
        """Note the keys that lists may show for a reply: alone, and as the end of some of those that it continues.

        A reply of which lists show nothing adds nothing to those before it: their texts may be said again later.
        """
        shown = reply.shown(self.known[reply.number])
        for count in range(len(reply.continued) + 1 if shown else 1):
            parts = (*reply.continued[len(reply.continued) - count :], *shown)
            indices = self.cut_keys.setdefault(message_key(Message("assistant", parts, reply.message.name)), [])
            if reply.number not in indices:
                indices.append(reply.number)

    def add_record(self, record: Record) -> bool:
        """Note a record of the journal. Return whether it repeats what the caller did to its list."""
        self.number = record.last
        if record.author not in (CALLER, "discard"):  # An undo lasts until the list changes.
            self.is_edited |= any(isinstance(edit, Hide | Replace | Summarize | Restore) for edit in record.edits)
            return False
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
        return True

    def _set_hidden(self, target: Target | Span, is_hidden: bool) -> None:
        first, last = ends_of(target)
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
        begin, end = self._index_at(start), self._index_at(high + 1)
        for index in range(begin, end):
            known = self.known[index]
            if known.is_hidden != is_hidden:
                self.tokens -= known.tokens if is_hidden else -known.tokens
            known.is_hidden = is_hidden
            if not is_hidden and index in self._callers_edits:  # An edit of the whole message ends with it.
                self._set_edits(index, [])

        if not is_hidden:
            self.first_open = min(self.first_open, begin)
        while self.first_open < len(self.known) and (
            self.known[self.first_open].is_hidden or self.known[self.first_open].traits.role == "system"
        ):
            self.first_open += 1

    def _set_edits(self, index: int, edits: list[tuple[int, Edit]]) -> None:
        known = self.known[index]
        known.edits = tuple(number for number, _ in edits)
        self._callers_edits[index] = edits
        message = apply_edits(self._load(known.position), edits).message
        if not edits:
            del self._callers_edits[index]
        known.traits = traits_of(message, known.traits.id)
        self.keys.add(known.traits.key)

    def joined(self, traits: Traits) -> list[int]:
        """Return the indices of the replies that a list has as one, in order; [] if they are not known.

        Some clients join a reply that only has calls to the one before it.
        """
        for index in range(self._asked_until, len(self.known)):
            self._asked.update(dict.fromkeys(self.known[index].traits.calls, index))
        self._asked_until = len(self.known)
        indices = sorted({self._asked.get(call_id, -1) for call_id in traits.calls})
        if len(indices) < 2 or indices[0] < self.first_open:
            return []
        if any(known.is_hidden or known.edits or known.is_erased for known in map(self.known.__getitem__, indices)):
            return []
        replies = [_Reply(index, self._load(self.known[index].position)) for index in indices]
        parts = [part for reply in replies for part in reply.shown(self.known[reply.number])]
        return indices if message_key(Message("assistant", tuple(parts))) == traits.key else []

    def edits_of(self, index: int) -> list[Edit]:
        """Return the edits by which a message shows what the caller's list has in its place."""
        return [edit for _, edit in self._callers_edits.get(index, ())]

    def _index_at(self, position: int) -> int:
        return bisect_left(self.known, position, key=lambda known: known.position)

    # -------------------------------------------------------------------------------------------------- the next list

    def forget_list(self) -> None:
        """Read the next list from its beginning."""
        for index in self._shown:
            self.known[index].item = -1
        self.items, self._values, self._shown, self.places = [], [], [], {}
        self._is_tangled = False

    def read(self, values: Sequence[object], places: Sequence[range] | None, read: Read) -> NewList:
        """Read the items that the last list did not have. `places`: their indices in it; None: one for each."""
        last = self._values
        known = same_beginning(last, values)
        if known == len(last) and known and not is_plain(values[known - 1]):
            known -= 1  # A program may still add to its newest object.
        if self._is_tangled and known < len(last):
            known = 0
        fresh: list[Item] = []
        kept: list[object] = []
        messages: dict[int, list[ReadMessage]] = {}
        cursor, looks = known, 4 * len(last) + 64
        for number in range(known, len(values)):
            value, found = values[number], None
            place = places[number] if places is not None else range(number, number + 1)
            for at in range(cursor, min(len(last) - 1, cursor + looks)):
                looks -= 1
                if is_same(last[at], value):
                    found, cursor = at, at + 1
                    break
            if found is not None:
                fresh.append(Item(place, self.items[found].traits))
                kept.append(last[found])
                continue
            try:
                messages[number] = read(value)
            except BadMessage as error:
                raise error_in_list(error, place.start) from error
            fresh.append(Item(place, self._all_traits(messages[number])))
            kept.append(value)
        # Copied after all were read: some may be malformed.
        return NewList(known, fresh, [copied(value) for value in kept], messages, read)

    def _all_traits(self, messages: Sequence[ReadMessage]) -> tuple[Traits, ...]:
        traits = [traits_of(message, facts.key) for message, facts in messages]
        if self._erased:
            for number, (message, _) in enumerate(messages):
                for form in (message, _bare(message)):
                    if key := self._erased.get(ids.body_hash(wire.encode_message(form))):
                        traits[number] = traits[number]._replace(key=key)
                        break
        return tuple(traits)

    def accept(self, new: NewList, shown: Sequence[tuple[int, Spot]], absent: Sequence[int]) -> None:
        """Take over the list once its changes are stored. `shown`: the messages and where the list shows them.

        `absent`: messages that the list lacks, but that stay.
        """
        goes_on = new.known == len(self.items)
        kept = self._shown
        if not goes_on:
            kept = [index for index in kept if self.known[index].item < new.known]
            for index in self._shown:
                if self.known[index].item >= new.known:
                    self.known[index].item = -1
        self.items[new.known :] = new.fresh
        self._values[new.known :] = new.values
        for index in absent:
            self.known[index].is_absent = True
        order: list[tuple[int, int, int]] = []
        for index, spot in shown:
            known = self.known[index]
            if spot.traits.id and not known.traits.id:  # The reply was recorded before the list brought it.
                known.traits = known.traits._replace(id=spot.traits.id)
                self.caller_ids[spot.traits.id] = index
            known.item, known.part, known.is_absent = spot.item, spot.part, False
            known.is_cut = spot.is_cut or known.is_continuation
            if known.traits.role != "system":
                order.append((spot.item, spot.part, index))
        self._shown = [*kept, *(index for index, _ in shown)]
        order.sort()
        self._is_tangled = self._is_tangled and new.known > 0
        end, at = self.items[new.known - 1].end if new.known else 0, 0
        for number in range(new.known, len(self.items)):
            while at < len(order) and order[at][0] == number:
                self._is_tangled |= order[at][2] < end
                end, at = max(end, order[at][2] + 1), at + 1
            self.items[number].end = end
        places = dict(self.places) if goes_on else {}
        for index in (index for index, _ in shown) if goes_on else self._shown:
            known = self.known[index]
            if not known.is_cut and not known.is_hidden and not known.is_erased:
                item = self.items[known.item]
                places[known.position] = ListPlace(item.places, known.part, len(item.traits), bool(known.edits))
        self.places = places

    def last_row(self, index: int) -> int:
        """Return the position of the last row that belongs to a message: additions of plugins, results of `expand`."""
        return self.known[index + 1].position - 1 if index + 1 < len(self.known) else self.position

    def runs_of(
        self, indices: Sequence[int], shown: Set[int] | None = None, *, listed: Container[int] = ()
    ) -> list[tuple[str, str]]:
        """Return the ids of the first and the last row of each range of these messages, ascending.

        A range includes the rows that belong to its messages, and replies next to them that only call `expand`, if the
        list lacks them: those directly before a reply, and those behind a message that no reply continues. `listed`:
        indices of the messages that the list has. `shown`: the positions that the view shows. A range then also
        includes the messages inside and next to it that are hidden already, so that a window is one range.
        """
        hidden = set(indices)

        def is_out(position: int, *, with_optional: bool = False) -> bool:
            owner = self._owners[position - 1]
            if owner < 0:
                return False
            known = self.known[owner]
            if owner in hidden or (with_optional and known.is_optional and known.item < 0 and owner not in listed):
                return True
            return shown is not None and known.is_hidden and position not in shown

        ranges: list[tuple[int, int]] = []
        for index in sorted(hidden):
            first = last = self.known[index].position
            if ranges and first <= ranges[-1][1]:
                continue
            is_reply = self.known[index].traits.role == "assistant"
            while (
                first > 1 and is_out(first - 1, with_optional=is_reply) and not (ranges and first - 1 <= ranges[-1][1])
            ):
                first -= 1
                span = self._span
                if shown and span and span[1] == first and not any(span[0] <= position < first for position in shown):
                    first = span[0]
            while last < len(self._owners) and is_out(last + 1):
                last += 1
            end = last
            while end < len(self._owners) and is_out(end + 1, with_optional=True):
                end += 1
            if end == len(self._owners) or self.known[self._owners[end]].traits.role != "assistant":
                last = end
            ranges.append((first, last))
        return [(self._ids[first - 1], self._ids[last - 1]) for first, last in ranges]


def _bare(message: Message) -> Message:
    """Return the message without unknown fields, such as a program adds when it writes its list again."""

    def bare(part: P) -> P:
        return replace(part, extra=None) if isinstance(part, Text | Media | Reasoning | ToolCall | ToolResult) else part

    parts = [
        replace(bare(part), content=tuple(map(bare, part.content))) if isinstance(part, ToolResult) else bare(part)
        for part in message.parts
    ]
    return replace(message, parts=tuple(parts), extra=None)
