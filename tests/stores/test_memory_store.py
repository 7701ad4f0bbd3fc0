"""The memory store keeps the contract of all stores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from foveate import open_conversation
from foveate.ports import Database
from foveate.stores.memory import MemoryStore
from foveate.testing.store_contract import DatabaseContract


class TestMemoryStore(DatabaseContract):
    def make_store(self) -> Database:
        return MemoryStore()


class NotRead(list[Any]):
    """A list that is searched, and never read from its beginning to its end."""

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("the whole journal is read")


def test_an_append_does_not_read_the_whole_journal():
    """An append took 3 times as long after 1,000 edits."""
    store = MemoryStore()
    chat = open_conversation("c", store=store, window=10_000, policy="none")
    chat.append("one")
    for _ in range(3):
        chat.pin("m1")
        chat.unpin("m1")
    for branch in store._branches.values():
        branch.journal = NotRead(branch.journal)
    chat.append("two")
    assert len(chat.history()) == 2
