"""The sources of an inspector: what it lists, and the conversations of stores."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct

from ..conversation import Conversation
from ..core.profiles import window_of
from ..errors import BadSetting, FoveateError, NoSuchConversation, StoreError
from ..models.known import format_of_model
from ..open import Options, open_conversation, open_store
from ..ports import Database, Head, Store, StoredMessage, complete
from ..stores import place_of, readable, without_password

__all__ = ["Item", "Listing", "Preparing", "Source", "Sources", "StoreSource", "by_key", "open_stored"]

T = TypeVar("T")
_MAX_OPEN: Final = 16
"""Conversations of a source that stay in memory."""
_NEWEST: Final = 20
"""Newest messages in which the model of a conversation is looked for."""


class Item(Struct, frozen=True):
    """One conversation of a list."""

    name: str
    """Its name in the source."""
    title: str = ""
    """Text to show in place of the name."""
    group: str = ""
    """The project or folder that it belongs to; "" for none."""
    time: int = 0
    """Last activity in milliseconds since 1970; 0 if it is not known."""
    messages: int | None = None
    """Number of its messages; None if they were not read yet."""
    size: int | None = None
    """Bytes of its file; None if it is no file."""


class Listing(Struct, frozen=True):
    """A page of a list."""

    rows: tuple[Item, ...]
    """The conversations of the page."""
    total: int
    """Number of conversations that fit the query."""


class Preparing(Exception):
    """A conversation is being read for the first time. `share`: how much of it is done, from 0 to 1."""

    def __init__(self, name: str, share: float) -> None:
        super().__init__(f"{name} is being read.")
        self.name, self.share = name, share


class Source(Protocol):
    """Some conversations that the inspector shows."""

    key: str
    """Its name in addresses."""
    title: str
    """Its name for people."""
    note: str
    """A sentence about all of its conversations; "" for none."""
    is_read_only: bool
    """Whether no conversation of it can be changed."""

    def list(self, query: str, first: int, limit: int) -> Listing:
        """Return conversations whose names contain all words of `query`, newest first, from number `first` on."""
        ...

    def open(self, name: str) -> AbstractContextManager[Conversation]:
        """Open a conversation to read it, without a policy. Raises NoSuchConversation and Preparing."""
        ...

    def is_known(self, name: str) -> bool:
        """Return whether `open` gives the conversation at once."""
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
        title: str = "",
        is_read_only: bool = False,
    ) -> None:
        """`store`: a URL, or a Store, which stays open. `is_read_only`: a SQLite file is opened for reading.

        A SQLite file that this process cannot write is opened for reading in any case.
        """
        if isinstance(store, str):
            store = readable(store, always=is_read_only)
            is_read_only = is_read_only or place_of(store).is_read_only
        self.key, self.is_read_only = "store", is_read_only
        self.title = title or (_title(store) if isinstance(store, str) else "Conversations")
        self.note = ""
        self._place, self._tenant = store, tenant
        self._store: Database | None = None
        self._lock = threading.Lock()
        self._open: OrderedDict[str, Conversation] = OrderedDict()

    def list(self, query: str, first: int, limit: int) -> Listing:
        words = query.split()[:8]
        listed, total = self._use(lambda store: store.recent(self._tenant, words=words, first=first, limit=limit))
        return Listing(tuple(Item(row.name, time=row.time, messages=row.messages) for row in listed), total)

    @contextmanager
    def open(self, name: str) -> Iterator[Conversation]:
        yield self._use(lambda store: self._conversation(store, name))

    def _conversation(self, store: Database, name: str) -> Conversation:
        head = store.open(self._tenant, name, create=False)
        with self._lock:
            chat = self._open.pop(name, None)
        if chat is None or chat._session.head.root != head.root:
            chat = open_stored(store, head)
        else:
            chat.refresh()
        with self._lock:
            chat = self._open.setdefault(name, chat)  # Another thread may have opened it meanwhile.
            self._open.move_to_end(name)
            while len(self._open) > _MAX_OPEN:
                self._open.popitem(last=False)
        return chat

    def is_known(self, name: str) -> bool:
        return True

    def close(self) -> None:
        if isinstance(self._place, str) and self._store is not None:
            self._store.close()

    def _use(self, ask: Callable[[Database], T]) -> T:
        """Return what `ask` reads. If the store fails, ask once more: its file may have been replaced."""
        store = self._database()
        try:
            return ask(store)
        except NoSuchConversation:
            raise
        except StoreError:
            if not self._opens_again(store):
                raise
            return ask(self._database())

    def _database(self) -> Database:
        with self._lock:
            if self._store is None:
                self._store = open_store(self._place) if isinstance(self._place, str) else complete(self._place)
            return self._store

    def _opens_again(self, failed: Database) -> bool:
        """Open the SQLite file of a store that failed, and forget its conversations. Return whether this succeeds."""
        with self._lock:
            if self._store is not failed:  # Another thread has opened it.
                return True
            if not isinstance(self._place, str) or not _is_file(self._place):
                return False
            try:
                self._store = open_store(self._place)
            except FoveateError:
                return False
            self._open.clear()
        failed.close()
        return True


def _is_file(url: str) -> bool:
    """Return whether a URL names a SQLite file that has content. To open another one for writing would create it."""
    place = place_of(url)
    try:
        return place.kind == "sqlite" and Path(place.path).expanduser().stat().st_size > 0
    except OSError:
        return False


def open_stored(store: Database, head: Head) -> Conversation:
    """Open a stored conversation to read it, without a policy.

    Format, window, counter and prices are those of the model of the newest replies, if they name one.
    """
    rows = store.messages(head, max(1, head.position - _NEWEST + 1), head.position)
    model = next((row.stamp.model for row in reversed(rows) if row.stamp.model), "")
    spoken = format_of_model(model) if model else None
    settings: dict[str, Any] = {"format": spoken or _format_of(rows), "model": model or None}
    if model and (window := window_of(model)) is not None:
        settings["window"] = window
    try:
        return _open_to_read(store, head, settings)
    except BadSetting:  # The model does not speak this format, or does not have this window, any more.
        return _open_to_read(store, head, {"format": _format_of(rows)})


def _open_to_read(store: Database, head: Head, settings: dict[str, Any]) -> Conversation:
    # The texts name handles, as in the newest request.
    return open_conversation(
        head.name, store=store, policy="off", expand=True, options=Options(tenant=head.tenant), **settings
    )


def _format_of(rows: Sequence[StoredMessage]) -> str:
    """Return the format of messages without a known model, by what only Anthropic's have; else the usual one."""
    own = (b'"toolu_', b'"signature"', b'"cache_control"')
    return "anthropic" if any(mark in row.body for row in rows for mark in own) else "openai"


def _title(url: str) -> str:
    place = place_of(url)
    if place.kind != "sqlite":
        return without_password(url)
    home = f"{Path.home()}{os.sep}"
    return f"~{os.sep}{place.path.removeprefix(home)}" if place.path.startswith(home) else place.path


def by_key(sources: Sequence[Source]) -> Sources:
    """Return sources by their keys; a key that is taken gets a number."""
    found: Sources = {}
    for source in sources:
        key, at = source.key, 2
        while source.key in found:
            source.key, at = f"{key}-{at}", at + 1
        found[source.key] = source
    return found
