"""Keys of the messages in a client's list and in a stored conversation, and the newest message that both have.

A pair of messages that follow each other marks a place. A reply that a model wrote in the conversation marks it for
certain: no other conversation has it, but for a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from hashlib import blake2b
from typing import NamedTuple

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ..core import wire
from ..core.edits import CALLER, Edit, Record, Replace, Restore
from ..core.message_keys import message_key
from ..core.messages import Message, Text
from ..core.rendering import apply_edits
from ..formats import get_format
from ..ports import Format, StoredMessage
from ..requests import Api, RequestBody

__all__ = [
    "Key",
    "KeyMemory",
    "Match",
    "SentList",
    "StoredKey",
    "caller_edits",
    "key_of",
    "match",
    "pair_key",
    "stored_keys",
]

_REMEMBERED_MAX = 20_000
"""Messages whose keys are remembered: about 10 MB."""
START = b""
"""The key before the first message."""


class Key(NamedTuple):
    """A message, for comparisons."""

    key: bytes
    is_reply: bool
    is_result: bool


class KeyMemory:
    """Keys of stored messages that were read lately. Several threads may use it."""

    def __init__(self) -> None:
        self._keys: dict[object, tuple[Key, ...]] = {}

    def keys(self, name: object, make: Callable[[], Iterable[Key]]) -> tuple[Key, ...]:
        """Return the keys of what has this name; `make` makes them the first time."""
        known = self._keys.get(name)
        if known is None:
            known = tuple(make())
            if len(self._keys) >= _REMEMBERED_MAX:
                self._keys.clear()
            self._keys[name] = known
        return known


class StoredKey(NamedTuple):
    """A stored message, for comparisons."""

    key: Key
    is_recorded: bool
    """Whether a model wrote it in this conversation."""
    body: bytes
    """The message, as it is stored."""

    @property
    def text(self) -> str:
        """The text of a reply; "" for other messages."""
        return _text_of(wire.decode_message(self.body)) if self.key.is_reply else ""


class Match(NamedTuple):
    """The newest message that a list and a conversation both have."""

    after: int
    """Number of messages that follow it in the list."""
    is_certain: bool
    """Whether the list has no newer reply."""


def key_of(message: Message) -> Key:
    """Return the key. Clients trim the texts of replies, so white space does not count in them."""
    is_reply = message.role == "assistant"
    if is_reply:
        parts = (
            Text(" ".join(part.text.split()), part.extra) if isinstance(part, Text) else part for part in message.parts
        )
        message = replace(message, parts=tuple(parts))
    return Key(message_key(message), is_reply, message.result is not None)


def pair_key(before: bytes, key: bytes) -> bytes:
    """Return the key of two messages that follow each other."""
    return before + key


class SentList:
    """The list of messages in a request. Its ends are read first, and the rest only if that is necessary."""

    def __init__(self, api: Api, body: RequestBody) -> None:
        """Raises MsgspecError if the messages are neither a list nor a text."""
        self._format, self._body = _reader_of(api.format), body
        self._items: Sequence[bytes | Raw] = [body.fields[api.messages]] if body.items is None else body.items

    def __len__(self) -> int:
        """Number of items."""
        return len(self._items)

    def beginning(self) -> list[Key]:
        """Return the messages before the first reply to a user, without those of the system. Raises BadMessage."""
        keys: list[Key] = []
        for place in range(len(self._items)):
            for key in self._read(place, place + 1):
                if key.is_reply and keys:
                    return keys
                keys.append(key)
        return keys

    def end(self, count: int) -> list[Key]:
        """Return the messages in the last `count` items, without those of the system. Raises BadMessage."""
        keys = self._read(max(0, len(self._items) - count), len(self._items))
        if count < len(self._items):
            while keys and keys[0].is_reply:  # Its beginning may be missing.
                del keys[0]
        return keys

    def first_text(self) -> str:
        """Return the text of the first message that is not the system's."""
        for item in self._items:
            for message in self._messages([item]):
                if message.role != "system":
                    return _text_of(message)
        return ""

    def _read(self, first: int, end: int) -> list[Key]:
        items = self._items[first:end]
        if self._body.items is None or self._format.group(items) is not items:  # Several items form one message.
            return self._keys(items)
        return [key for place in range(first, end) for key in self._body.derive(place, self._keys_of_item)]

    def _keys_of_item(self, item: bytes) -> list[Key]:
        return self._keys([item])

    def _keys(self, items: Sequence[bytes | Raw]) -> list[Key]:
        return [key_of(message) for message in self._messages(items) if message.role != "system"]

    def _messages(self, items: Sequence[bytes | Raw]) -> list[Message]:
        values = self._format.group([msgspec.json.decode(item) for item in items])
        return [message for value in values for message in self._format.parse(value)]


@cache
def _reader_of(format: str) -> Format:
    """Return a format that reads the items of all lists. It learns nothing from them."""
    reader = get_format(format)
    reader.learn(Message("assistant", ()))  # Answers in pieces are recognized wherever a conversation has replies.
    return reader


def caller_edits(records: Iterable[Record]) -> dict[str, list[tuple[int, Edit]]]:
    """Return the numbered edits by which messages show what a client made of them in its list, by id of the message."""
    edits: dict[str, list[tuple[int, Edit]]] = {}
    for record in records:
        if record.author != CALLER:
            continue
        for number, edit in record.numbered():
            match edit:
                case Replace(target=target):
                    edits.setdefault(target.message, []).append((number, edit))
                case Restore(edits=numbers) if numbers:
                    edits = {id: [pair for pair in pairs if pair[0] not in numbers] for id, pairs in edits.items()}
                case _:
                    pass
    return edits


def stored_keys(
    rows: Sequence[StoredMessage], memory: KeyMemory, edits: Mapping[str, Sequence[tuple[int, Edit]]] = {}
) -> list[StoredKey]:
    """Return the keys of stored messages that are neither the system's nor erased. `edits`: those to apply."""
    keys: list[StoredKey] = []
    for row in rows:
        if not row.body:
            continue
        is_recorded = row.stamp.usage is not None or row.stamp.stop is not None
        own = tuple(edits.get(row.id, ()))
        name = row.id, row.is_released, *(number for number, _ in own)
        for key in memory.keys(name, partial(_keys_of_body, row.body, own)):
            keys.append(StoredKey(key, is_recorded, row.body))
    return keys


def _keys_of_body(body: bytes, edits: Sequence[tuple[int, Edit]]) -> list[Key]:
    message = apply_edits(wire.decode_message(body), edits).message
    return [key_of(message)] if message.role != "system" else []


def _text_of(message: Message) -> str:
    return "\n".join(part.text for part in message.parts if isinstance(part, Text))


def match(sent: Sequence[Key], stored: Sequence[StoredKey], *, is_whole: bool, is_start: bool) -> Match | None:
    """Return the newest message that the ends of a list and of a conversation have in common.

    A recorded reply counts, and the newest message that is no reply: the list goes on from there. `is_whole`: `sent` is
    the whole list. `is_start`: `stored` begins with the first message of the conversation.
    """
    places: dict[bytes, int] = {}
    before = START if is_whole else None
    for after, key in zip(range(len(sent) - 1, -1, -1), sent, strict=True):
        if before is not None:
            places[pair_key(before, key.key)] = after
        if key.is_result:  # It has the id of its call.
            places[key.key] = after
        before = key.key
    newest_reply = next((after for after, key in enumerate(reversed(sent)) if key.is_reply), len(sent))
    common = _common(places, stored, is_start=is_start)
    return Match(min(common), min(common) <= newest_reply < len(sent)) if common else None


def _common(places: Mapping[bytes, int], stored: Sequence[StoredKey], *, is_start: bool) -> list[int]:
    """Return the places of messages that show that the list belongs to the conversation."""
    found: list[int] = []
    last_turn = _last_turn(places, stored)
    for number, row in enumerate(stored):
        before = stored[number - 1] if number else None
        if before is not None:
            pair = places.get(pair_key(before.key.key, row.key.key))
        else:
            pair = places.get(pair_key(START, row.key.key)) if is_start else None
        is_proof = row.is_recorded or (before is not None and before.is_recorded)
        if pair is not None and (is_proof or (number == last_turn and before is not None)):
            found.append(pair)
        elif number == last_turn and row.key.is_result and row.key.key in places:
            found.append(places[row.key.key])
    return found


def _last_turn(places: Mapping[bytes, int], stored: Sequence[StoredKey]) -> int:
    """Return the number of the newest message that is no reply; -1 if there is none.

    A result that the list lacks, behind a recorded reply, answers a call inside of an answer: no list has it.
    """
    for number in range(len(stored) - 1, -1, -1):
        key = stored[number].key
        if key.is_result and key.key not in places:
            asked = next((row for row in reversed(stored[:number]) if not row.key.is_result), None)
            if asked is not None and asked.is_recorded:
                continue
        if not key.is_reply:
            return number
    return -1


def digest_of(texts: Sequence[bytes]) -> str:
    """Return 24 hexadecimal digits for these values."""
    hash = blake2b(digest_size=12, person=b"foveate proxy 2")
    for text in texts:
        hash.update(len(text).to_bytes(8, "big") + text)
    return hash.hexdigest()
