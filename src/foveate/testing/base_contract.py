"""The base of all store contracts: a new store for each test, and a sample conversation."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..core.messages import Message, ToolCall, assistant, tool_result, user
from ..ports import Database, Head, Store, StoredMessage, append, complete
from .rows import chain

__all__ = ["BaseContract", "talk"]


def talk(count: int, topic: str = "weather") -> list[Message]:
    """Return `count` messages: questions, calls and results, every seventh of them long."""
    messages: list[Message] = []
    while len(messages) < count:
        n = len(messages)
        messages += [
            user(f"{topic}, question {n}?"),
            assistant("Let me look.", ToolCall(f"call_{n}", "look", f'{{"n":{n}}}')),
            tool_result(f"call_{n}", " ".join(f"{topic}-{n * k % 7919:x}" for k in range(2000 if n % 7 == 0 else 9))),
        ]
    return messages[:count]


class BaseContract:
    """Creates a store for each test."""

    def make_store(self) -> Store:
        """Return a new, empty store."""
        raise NotImplementedError

    def reopen(self, store: Store) -> Store:
        """Close a store and open it again, if it keeps its contents."""
        return store

    @pytest.fixture
    def store(self) -> Iterator[Database]:
        self._made = [complete(self.make_store())]
        yield self._made[0]
        for store in self._made:
            store.close()

    def _again(self, store: Database) -> Database:
        self._made.append(complete(self.reopen(store)))
        return self._made[-1]

    def _talk(self, store: Database, count: int) -> tuple[Head, list[StoredMessage]]:
        """Create a conversation `one` of `count` messages; return its head and its rows."""
        head = store.open("acme", "one")
        rows = chain(talk(count), head)
        return append(store, head, rows), rows
