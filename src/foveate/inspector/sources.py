"""Where the inspector finds conversations: stores, recordings, and the sessions of clients on this computer."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol

from msgspec import Struct

from ..conversation import Conversation
from ..open import Options, open_conversation, open_store
from ..ports import Database, Store, complete
from ..stores import place_of, without_password

__all__ = ["Listed", "Listing", "Source", "Sources", "StoreSource", "by_key"]

_MAX_OPEN: Final = 16
"""Conversations of a source that stay in memory."""


class Listed(Struct, frozen=True):
    """One conversation of a list."""

    name: str
    title: str = ""
    """Text to show in place of the name."""
    group: str = ""
    """Heading under which it stands, such as a project."""
    time: int = 0
    """Last activity in milliseconds since 1970; 0 if unknown."""


class Listing(Struct, frozen=True):
    """A page of a list."""

    rows: tuple[Listed, ...]
    total: int
    """Number of conversations that fit the query."""


class Source(Protocol):
    """Some conversations that the inspector shows."""

    key: str
    """Its name in addresses."""
    title: str
    """Its name for people."""
    is_read_only: bool
    """Whether no conversation of it can be changed for good."""

    def list(self, query: str, first: int, limit: int) -> Listing:
        """Return conversations whose names contain all words of `query`, newest first, from number `first` on."""
        ...

    def open(self, name: str, *, policy: str = "off") -> AbstractContextManager[Conversation]:
        """Open a conversation. Raises NoSuchConversation."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...


Sources = dict[str, Source]
"""Sources by key, in the order of the page."""


class StoreSource:
    """The conversations of one tenant in a store."""

    def __init__(
        self,
        store: str | Store,
        *,
        tenant: str = "",
        key: str = "store",
        title: str = "",
        is_read_only: bool = False,
    ) -> None:
        self.key, self.is_read_only = key, is_read_only
        self.title = title or (_title(store) if isinstance(store, str) else "Conversations")
        self._url, self._tenant = store, tenant
        self._store: Database | None = None
        self._lock = threading.Lock()
        self._open: OrderedDict[tuple[str, str], Conversation] = OrderedDict()

    def list(self, query: str, first: int, limit: int) -> Listing:
        words = query.lower().split()
        names = [name for name in self._database().names(self._tenant) if all(word in name.lower() for word in words)]
        return Listing(tuple(Listed(name) for name in names[first : first + limit]), len(names))

    @contextmanager
    def open(self, name: str, *, policy: str = "off") -> Iterator[Conversation]:
        store = self._database()
        with self._lock:
            chat = self._open.pop((name, policy), None)
            if chat is None:
                store.open(self._tenant, name, create=False)
                chat = open_conversation(
                    name, store=store, policy=policy, window=200_000, expand=True, options=Options(tenant=self._tenant)
                )
            self._open[name, policy] = chat
            while len(self._open) > _MAX_OPEN:
                self._open.popitem(last=False)
        chat.refresh()
        yield chat

    def close(self) -> None:
        if isinstance(self._url, str) and self._store is not None:
            self._store.close()

    def _database(self) -> Database:
        with self._lock:
            if self._store is None:
                self._store = open_store(self._url) if isinstance(self._url, str) else complete(self._url)
            return self._store


def _title(url: str) -> str:
    place = place_of(url)
    return place.path if place.kind == "sqlite" else without_password(url)


def by_key(sources: Sequence[Source]) -> Sources:
    """Return sources by their keys; a key that is taken gets a number."""
    found: Sources = {}
    for source in sources:
        key, at = source.key, 2
        while source.key in found:
            source.key, at = f"{key}-{at}", at + 1
        found[source.key] = source
    return found
