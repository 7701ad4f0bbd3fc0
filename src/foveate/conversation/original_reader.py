"""Originals that views do not show, read from the store when they are needed."""

from __future__ import annotations

from collections import OrderedDict

from ..core.caches import register
from ..core.messages import Message
from ..errors import StoreError
from ..ports import Database, Head
from .loading import row_of

__all__ = ["OriginalReader"]

_ORIGINALS_MAX = 262_144
"""Bytes of originals that are cached after they were read."""


class OriginalReader:
    """Reads originals that views do not show, and caches the newest, so that one turn reads few of them twice.

    It refers to the store, and not to the conversation: entries, which refer to it, must not be part of a cycle.
    """

    def __init__(self, store: Database) -> None:
        self.head: Head
        """The branch that is read, at a position after the messages that are asked for."""
        self._store = store
        self._known: OrderedDict[str, tuple[Message, int]] = OrderedDict()
        self._size = 0
        register(self)

    def __call__(self, position: int, id: str, /) -> Message:
        """Return the message at a position; an empty message if it is erased. Raises StoreError."""
        known = self._known.get(id)
        if known is not None:
            return known[0]
        rows = [row for row in self._store.get_many(self.head, [position]) if row.id == id]
        if not rows:
            raise StoreError(f"The original of m{position} is not in {self.head.name!r}. Read the conversation again.")
        message, size = row_of(rows[0]).message, len(rows[0].body)
        if size <= _ORIGINALS_MAX:
            self._known[id], self._size = (message, size), self._size + size
        while self._size > _ORIGINALS_MAX and self._known:
            self._size -= self._known.popitem(last=False)[1][1]
        return message

    def cache_clear(self) -> None:
        """Forget all messages, after some were erased."""
        self._known.clear()
        self._size = 0
