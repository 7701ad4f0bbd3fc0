"""The conversations that an MCP server may read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Protocol

from ..conversation import Conversation
from ..errors import BadSetting, NoSuchConversation
from ..open import Options, open_conversation, open_store
from ..stores import readable, without_password

__all__ = ["Source", "StoredConversations"]


class Source(Protocol):
    """Some conversations. A server reads these and no others."""

    @property
    def has_views(self) -> bool:
        """Whether foveate makes what the model sees: then there is a status, and messages may be pinned and erased."""
        ...

    def names(self) -> Sequence[str]:
        """Return the names of the conversations. The first one counts where a call names none."""
        ...

    def open(self, name: str) -> AbstractContextManager[Conversation]:
        """Open a conversation. Raises NoSuchConversation if it is not one of `names`."""
        ...


class StoredConversations:
    """Conversations in a store, of one tenant."""

    has_views = True
    """Whether views exist: True."""

    def __init__(
        self, url: str, names: Sequence[str] = (), *, all_names: bool = False, tenant: str = "", window: int = 200_000
    ) -> None:
        """`names`: the conversations; `all_names`: all of the tenant instead. `window`: tokens of the client's model.

        Raises BadSetting if neither or both are given, and NoSuchConversation.
        """
        if names and all_names:
            raise BadSetting("All conversations are chosen, and some are named. Leave out the one or the other.")
        if not names and not all_names:
            raise BadSetting(
                "No conversation is named. Name those that the server may read, or serve all: --all, or all_names=True."
            )
        self._url, self._tenant, self._window = readable(url), tenant, window
        self._names = tuple(dict.fromkeys(names))
        with closing(open_store(self._url)) as store:
            known = set(store.names(tenant))
        for name in self._names:
            if name not in known:
                raise NoSuchConversation(name, without_password(url))

    def names(self) -> Sequence[str]:
        """Return the names of the conversations."""
        if self._names:
            return self._names
        with closing(open_store(self._url)) as store:
            return store.names(self._tenant)

    @contextmanager
    def open(self, name: str) -> Iterator[Conversation]:
        """Return a conversation."""
        with closing(open_store(self._url)) as store:
            if name not in (self._names or store.names(self._tenant)):
                raise NoSuchConversation(name, "this server; list_conversations lists those that it may read")
            # `off`: reading plans and writes nothing. `expand`: the texts name handles, as in the newest request.
            yield open_conversation(
                name,
                store=store,
                policy="off",
                window=self._window,
                expand=True,
                options=Options(tenant=self._tenant),
            )
