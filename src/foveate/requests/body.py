"""The body of a request, read once for all who look at it.

A client sends its whole list with each request, and most of it came with the request before. A list that begins with
the bytes of an earlier one is read from there on only.
"""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from itertools import repeat
from secrets import token_hex
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from ..core.caches import register
from .apis import SERVER_STATE, Api, state_in
from .cache_marks import MARK_KEY

__all__ = ["ListMemory", "RequestBody"]

_FIELDS = msgspec.json.Decoder(dict[str, Raw])
_LIST = msgspec.json.Decoder(list[Raw])
_BEGINNING: Final = 1_000
"""Bytes at the beginning of bodies by which lists are looked up. Shorter bodies are read whole."""
_REFERENCE_MAX: Final = 200
"""Bytes of an item that may refer to one of the provider's."""
_OTHER_SPELLING: Final = "system_instruction"
_TYPED: Final = re.compile(rb'"type"\s*:\s*"').search
_ALIKE_MAX: Final = 16
"""Lists with one such beginning that are remembered."""
_LISTS_MAX: Final = 200
"""Lists that are remembered: as many as `Conversations` keeps open, which hold most of their items too."""
_BYTES_MAX: Final = 500_000_000
"""Bytes of the lists that are remembered. The newest one may be larger."""
_NO_VALUES: Final[list[Any]] = []
_NOTHING: Final[dict[int, Any]] = {}
T = TypeVar("T")


class _KnownList:
    """The list of messages in an earlier body."""

    __slots__ = ("_gaps", "_places", "derived", "fields", "head", "items", "marked", "separator", "size", "values")

    def __init__(
        self, head: bytes, separator: bytes, items: list[bytes], before: _KnownList | None = None, count: int = 0
    ) -> None:
        """`before`: a list with the same head and separator, and with the same first `count` items."""
        self.head, self.separator, self.items = head, separator, items
        """The body before its first item, the bytes between two items, and the items."""
        self._places: list[int] = [] if before is None else before._places[:count]  # where items begin in the body
        place = self._places[-1] + len(items[count - 1]) + len(separator) if self._places else len(head)
        for item in items[count:]:
            self._places.append(place)
            place += len(item) + len(separator)
        self.size = place
        """Bytes of the body up to its last item."""
        self._gaps = [place - len(separator) for place in self._places[1:]]  # where items end in it
        self.derived: dict[int, Any] = {}
        """Values that were derived from items, by their places."""
        self.values = _NO_VALUES
        """The decoded items, if a request needed them."""
        self.fields: dict[str, tuple[bytes, Any]] = {}
        """Fields next to the list that a request needed, as they came and decoded."""
        self.marked: list[int] | None = None
        """The places of items with marks for a cache, if a request needed them."""

    def common(self, content: bytes) -> tuple[int, int]:
        """Return how many items the list of another body begins with too, and where they end in it."""
        if not content.startswith(self.head):
            return 0, 0
        # Most requests have all items, so those behind a difference may be looked at in vain.
        same_items = [*map(content.startswith, self.items, self._places), False].index(False)
        same_gaps = [*map(content.startswith, repeat(self.separator), self._gaps), False].index(False)
        count = min(same_items, same_gaps + 1)
        return count, self._places[count - 1] + len(self.items[count - 1]) if count else len(self.head)


class ListMemory:
    """The lists of messages that came lately. Several threads may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = self._size = 0
        self._lists: OrderedDict[tuple[str, str, bytes], list[_KnownList]] = OrderedDict()
        """Lists by owner, format, and the beginnings of their bodies; the newest of each at the end."""
        register(self)

    def cache_clear(self) -> None:
        """Forget all lists."""
        with self._lock:
            self._lists.clear()
            self._count = self._size = 0

    def _find(self, key: tuple[str, str, bytes], content: bytes) -> tuple[_KnownList | None, int, int]:
        """Return the list that has most items in common with that of a body, how many, and where they end."""
        with self._lock:
            alike = list(self._lists.get(key, ()))
        best: tuple[_KnownList | None, int, int] = None, 0, 0
        for known in reversed(alike):
            count, end = known.common(content)
            if count > best[1]:
                best = known, count, end
            if count * 2 > len(known.items):
                break
        return best

    def _keep(self, key: tuple[str, str, bytes], known: _KnownList, before: _KnownList | None) -> None:
        """Remember a list, in the place of `before`."""
        with self._lock:
            alike = self._lists.setdefault(key, [])
            self._lists.move_to_end(key)
            if before is not None and before in alike:
                self._drop(key, alike.index(before))
            alike.append(known)
            self._count += 1
            self._size += known.size
            self._lists[key] = alike
            if len(alike) > _ALIKE_MAX:
                self._drop(key, 0)
            while self._count > 1 and (self._count > _LISTS_MAX or self._size > _BYTES_MAX):
                self._drop(next(iter(self._lists)), 0)

    def _drop(self, key: tuple[str, str, bytes], place: int) -> None:
        alike = self._lists[key]
        self._size -= alike.pop(place).size
        self._count -= 1
        if not alike:
            del self._lists[key]


class RequestBody:
    """A JSON object, whose values are decoded only by those who need them."""

    def __init__(self, api: Api, content: bytes, memory: ListMemory | None = None, owner: str = "") -> None:
        """`memory`: remembers the list for later bodies of the same owner.

        Raises MsgspecError (a ValueError) if `content` is no JSON object.
        """
        self.content = content
        """The bytes as they came."""
        self.around: dict[str, Raw] = {}
        """The values of the body by key, not decoded, if an object in it holds the fields (`Api.inside`)."""
        self._api = api
        self._known: _KnownList | None = None  # the list of an earlier body that begins as this one
        self._count = 0  # items that both have
        self._own: _KnownList | None = None  # this list, for later bodies
        read = None
        if memory is not None and len(content) >= _BEGINNING:
            key = owner, api.format, content[:_BEGINNING]
            self._known, self._count, end = memory._find(key, content)
            read = self._rest(end)
        self.fields: dict[str, Raw] = self._read(content) if read is None else read
        """The values by key, not decoded. In the place of the list of messages, there may be a part: see `items`."""
        if read is None:
            self._known, self._count = None, 0
        if memory is not None and len(content) >= _BEGINNING:
            self._own = self._as_known()
            if self._own is not None:
                is_continued = self._known is not None and self._count * 2 > len(self._known.items)
                memory._keep(key, self._own, self._known if is_continued else None)

    def _read(self, content: bytes) -> dict[str, Raw]:
        """Return the values by key, not decoded."""
        fields = _FIELDS.decode(content)
        if not self._api.inside:
            return fields
        self.around = fields
        return _FIELDS.decode(fields.get(self._api.inside, b"{}"))

    def _rest(self, end: int) -> dict[str, Raw] | None:
        """Return the values by key, with only the items behind the known ones; None if the body must be read whole.

        `end`: where the known items end. A mark that no client knows stands in their place. If it is the first item of
        the list afterwards, the reader was in this list there, and not in another one that has the same bytes.
        """
        if self._known is None:
            return None
        mark = f'"{token_hex(16)}"'.encode()
        try:
            fields = self._read(b"".join((self._known.head, mark, self.content[end:])))
            rest = _LIST.decode(fields[self._api.messages])
        except (msgspec.MsgspecError, KeyError):
            return None
        if not rest or bytes(rest[0]) != mark:
            return None
        self.items = [*self._known.items[: self._count], *map(bytes, rest[1:])]
        return fields

    @cached_property
    def items(self) -> list[bytes] | None:
        """The items of the list of messages, not decoded; None if a text stands in its place.

        Raises KeyError if there are no messages, and MsgspecError if they are neither a list nor a text.
        """
        raw = self.fields[self._api.messages]
        return None if bytes(memoryview(raw)[:1]) == b'"' else [bytes(item) for item in _LIST.decode(raw)]

    @property
    def system_key(self) -> str:
        """The key of the system prompt; "" if it stands among the messages. Google takes two spellings."""
        is_other = self._api.format == "gemini" and _OTHER_SPELLING in self.fields
        return _OTHER_SPELLING if is_other else self._api.system

    @property
    def model(self) -> str:
        """The name of the model as the client wrote it; "" if there is none."""
        if (raw := self.around.get("model")) is not None:
            return str(json.loads(bytes(raw)) or "")
        return self._api.model or str(self.value("model") or "")

    @property
    def is_stream(self) -> bool:
        """Whether the client wants a stream."""
        return self.value("stream") is True if self._api.is_stream is None else self._api.is_stream

    @cached_property
    def state(self) -> str:
        """The field or item that lets the provider keep a part of the history, such as `conversation=`; "" for none."""
        # References are short, and the other items of a list with them have a role or another type.
        short = [item for item in self.items or () if len(item) < _REFERENCE_MAX and b'"role"' not in item]
        maybe = [json.loads(item) for item in short if b"item_reference" in item or _TYPED(item) is None]
        return state_in({key: self.value(key) for key in SERVER_STATE}, maybe)

    def value(self, key: str) -> Any:
        """Return the value of a field, decoded; None if there is none. Do not change it."""
        if (raw := self.fields.get(key)) is None:
            return None
        content = bytes(raw)
        known = self._known.fields.get(key) if self._known is not None else None
        pair = known if known is not None and known[0] == content else (content, json.loads(content))
        if self._own is not None:
            self._own.fields[key] = pair
        return pair[1]

    @property
    def values(self) -> list[Any]:
        """The items of the list, decoded. Do not change them."""
        items = self.items or []
        known = self._known.values[: self._count] if self._known is not None else []
        values = known + [json.loads(item) for item in items[len(known) :]]
        if self._own is not None:
            self._own.values = values
        return values

    def derive(self, place: int, make: Callable[[bytes], T]) -> T:
        """Return what `make` returns for the item at this place. All calls need the same `make`."""
        items = self.items
        assert items is not None, "there is no list"
        before = self._known.derived if self._known is not None and place < self._count else _NOTHING
        value: T = before[place] if place in before else make(items[place])
        if self._own is not None:
            self._own.derived[place] = value
        return value

    @property
    def marked(self) -> list[int]:
        """The places of the items that have a mark for Anthropic's cache."""
        items, start, marked = self.items or [], 0, list[int]()
        if self._known is not None and self._known.marked is not None:
            start, marked = self._count, [place for place in self._known.marked if place < self._count]
        marked += [place for place in range(start, len(items)) if MARK_KEY in items[place]]
        if self._own is not None:
            self._own.marked = marked
        return marked

    def _as_known(self) -> _KnownList | None:
        """Return this list for later bodies; None if there is none."""
        try:
            items = self.items
        except (msgspec.MsgspecError, KeyError):
            return None
        if not items:
            return None
        if self._known is not None:
            return _KnownList(self._known.head, self._known.separator, items, self._known, self._count)
        start = self.content.find(items[0])
        separator = end = start + len(items[0])
        if len(items) > 1:
            while self.content[end : end + 1] in (b" ", b"\t", b"\n", b"\r", b","):
                end += 1
        return _KnownList(self.content[:start], self.content[separator:end] or b",", items)
