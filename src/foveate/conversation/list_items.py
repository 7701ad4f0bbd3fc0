"""Messages and items of a caller's list, as comparisons with the history see them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from ..core.message_keys import message_key
from ..core.messages import Message, Role
from ..errors import BadMessage
from .append import NO_OWN_FACTS, OwnFacts

__all__ = [
    "Item",
    "Known",
    "NewList",
    "Read",
    "ReadMessage",
    "Spot",
    "Traits",
    "copied",
    "error_in_list",
    "is_plain",
    "is_same",
    "item_ranges",
    "quotes",
    "same_beginning",
    "traits_of",
]

_COMPARED = dict, list, tuple, str, bytes, Message, Struct
"""Types of items that are compared by value. Other objects are recognised by their identity."""


class ReadMessage(NamedTuple):
    """A message that was read from another form, and its own facts."""

    message: Message
    facts: OwnFacts = NO_OWN_FACTS


Read = Callable[[object], list[ReadMessage]]
"""Reads the messages in one item of a list."""


class Traits(NamedTuple):
    """The facts of a message that comparisons need."""

    key: bytes
    role: Role
    call_id: str
    """The call that a result answers; "" for other messages."""
    calls: tuple[str, ...]
    """Ids of its calls."""
    id: str = ""
    """The caller's id of the message."""


def quotes(text: str, reply: str) -> bool:
    """Return whether a text has at least half of the lines of a reply, such as a summary that the caller asked for.

    A reply counts with five or more lines of at least 20 characters: shorter ones occur by chance.
    """
    lines = [line for line in map(str.strip, reply.splitlines()) if len(line) >= 20]
    return len(lines) >= 5 and sum(line in text for line in lines) * 2 >= len(lines)


def traits_of(message: Message, id: str) -> Traits:
    result = message.result
    calls = tuple(call.call_id for call in message.calls)
    return Traits(message_key(message), message.role, result.call_id if result else "", calls, id)


class Known:
    """A message of the history that lists show."""

    __slots__ = (
        "answered",
        "edits",
        "id",
        "is_absent",
        "is_continuation",
        "is_cut",
        "is_erased",
        "is_hidden",
        "is_optional",
        "is_recognized",
        "item",
        "part",
        "position",
        "tokens",
        "traits",
    )

    def __init__(self, position: int, id: str, traits: Traits, *, is_erased: bool) -> None:
        self.position, self.id, self.traits, self.is_erased = position, id, traits, is_erased
        self.tokens = 0
        """Its tokens, with those of the rows that belong to it."""
        self.answered: frozenset[str] = frozenset()
        """Ids of its calls that foveate answered itself."""
        self.is_optional = False
        """Whether foveate answered all its calls, so that a list may lack it."""
        self.is_continuation = False
        """Whether a list may show it with the reasoning of the replies before it, which looks the same."""
        self.is_recognized = True
        """Whether lists have it with the bytes that were stored: once erased, its hash recognizes it, else its role."""
        self.is_hidden = False
        """Whether the caller removed it."""
        self.is_absent = False
        """Whether the last list lacked it, although the caller did not remove it."""
        self.edits: tuple[int, ...] = ()
        """Numbers of the edits that repeat what the caller changed in it."""
        self.item, self.part = -1, 0
        """Index of the item of the last list that shows it; -1: none. Index of the message in the item."""
        self.is_cut = False
        """Whether that list may show it in another form: without the calls that foveate answered, or joined."""

    def says(self, spot: Spot) -> bool:
        """Return whether this message was appended for a message of a list."""
        return self.traits[:4] == spot.traits[:4]

    @property
    def may_lack(self) -> bool:
        """Return whether a list without it says nothing."""
        return self.is_optional or self.is_absent or self.is_erased


class Item:
    """An item of the last list."""

    __slots__ = ("end", "places", "traits")

    def __init__(self, places: range, traits: tuple[Traits, ...]) -> None:
        self.places, self.traits = places, traits
        """Its indices in the caller's list: several if a format needs several items for one message."""
        self.end = 0
        """Index of the first message that is known to come after it."""


class Spot(NamedTuple):
    """A message of a list."""

    item: int
    """Index of its item."""
    part: int
    """Index of the message in the item."""
    traits: Traits
    is_cut: bool = False
    """Whether it is a reply without the calls that foveate answered."""


class NewList(NamedTuple):
    """A list that was read."""

    known: int
    """How many of its items the last list began with."""
    fresh: list[Item]
    """The other items."""
    values: list[object]
    """Their values, copied."""
    messages: dict[int, list[ReadMessage]]
    """Their messages, by the index of the item, as far as they were read again."""
    read: Read

    def message(self, item: int, part: int) -> ReadMessage:
        """Return the message at these indices."""
        if item not in self.messages:
            self.messages[item] = self.read(self.values[item - self.known])
        return self.messages[item][part]

    def all_messages(self) -> list[ReadMessage]:
        """Return the messages of all items but those that the last list began with."""
        for item, value in enumerate(self.values, self.known):
            if item not in self.messages:
                self.messages[item] = self.read(value)
        return [message for item in range(len(self.values)) for message in self.messages[self.known + item]]


def item_ranges(messages: Sequence[object], groups: Sequence[object]) -> list[range]:
    """Return the indices of the caller's items that form each item which a format reads."""
    ranges: list[range] = []
    at = 0
    for group in groups:
        is_one = at < len(messages) and group is messages[at]
        count = len(group["output"]) if isinstance(group, Mapping) and not is_one else 1
        ranges.append(range(at, at + count))
        at += count
    return ranges


def error_in_list(error: BadMessage, index: int) -> BadMessage:
    """Return the error for a malformed item, with its place in the caller's list."""
    return BadMessage(f"Item {index + 1} of the list: {error}")


def same_beginning(old: Sequence[object], new: Sequence[object]) -> int:
    """Return how many values are the same at the beginning of both."""
    try:
        if old == list(new[: len(old)]):  # Compares equal objects by identity first.
            return len(old)
    except Exception:  # Some objects cannot be compared.
        pass
    count = 0
    for before, now in zip(old, new, strict=False):
        if not is_same(before, now):
            break
        count += 1
    return count


def is_same(old: object, new: object) -> bool:
    return old is new or (is_plain(new) and type(old) is type(new) and old == new)


def is_plain(value: object) -> bool:
    """Return whether values of this type are compared, and do not change unnoticed."""
    return isinstance(value, _COMPARED)


def copied(value: object) -> object:
    """Return a copy of JSON values, which the caller may change in place."""
    if type(value) is dict:
        return {key: copied(inner) for key, inner in value.items()}
    if type(value) is list:
        return [copied(inner) for inner in value]
    return tuple(map(copied, value)) if type(value) is tuple else value
