"""What every part of the contract of stores stands on: a store of its own for each test, and something said in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..core.messages import Message, ToolCall, assistant, tool_result, user
from ..ports import Database, Head, StoredMessage, append
from .rows import chain

__all__ = ["BaseContract", "talk"]


def talk(count: int, topic: str = "weather") -> list[Message]:
    """A conversation of `count` messages: questions, calls and their results, every seventh of them long."""
    said: list[Message] = []
    while len(said) < count:
        n = len(said)
        said += [
            user(f"{topic}, question {n}?"),
            assistant("Let me look.", ToolCall(f"call_{n}", "look", f'{{"n":{n}}}')),
            tool_result(f"call_{n}", " ".join(f"{topic}-{n * k % 7919:x}" for k in range(2000 if n % 7 == 0 else 9))),
        ]
    return said[:count]


class BaseContract:
    """A store for each test. A part of `StoreContract`, where its tests are."""

    def make_store(self) -> Database:
        """A new, empty store."""
        raise NotImplementedError

    def reopen(self, store: Database) -> Database:
        """The same store, closed and opened again, if it keeps anything when it is closed."""
        return store

    @pytest.fixture
    def store(self) -> Iterator[Database]:
        self._made = [self.make_store()]
        yield self._made[0]
        for store in self._made:
            store.close()

    def _again(self, store: Database) -> Database:
        self._made.append(self.reopen(store))
        return self._made[-1]

    def _talk(self, store: Database, count: int) -> tuple[Head, list[StoredMessage]]:
        """A conversation `one` of `count` messages, and its rows."""
        head = store.open("acme", "one")
        rows = chain(talk(count), head)
        return append(store, head, rows), rows
