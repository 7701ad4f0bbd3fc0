"""A third store starts with the twelve methods of `Store`."""

from __future__ import annotations

from typing import Any

import pytest
from dict_store import DictStore

from foveate import open_conversation
from foveate.core.messages import assistant, user
from foveate.errors import BadSetting
from foveate.ports import Store, complete
from foveate.stores.memory import MemoryStore
from foveate.testing.store_contract import StoreContract


class TestDictStore(StoreContract):
    def make_store(self) -> Store:
        return DictStore()


def test_a_store_has_twelve_methods() -> None:
    methods = {name for name, value in vars(Store).items() if callable(value) and not name.startswith("_")}
    assert len(methods) == 12
    assert methods == {name for name in vars(DictStore) if not name.startswith("_")}


def test_a_conversation_runs_on_twelve_methods() -> None:
    store = DictStore()
    with open_conversation("one", store=store, window=2_000, policy="keep-last-2", format="openai") as chat:
        for n in range(6):
            chat.append(user(f"Question {n}? " * 20))
            chat.prepare()
            chat.record(assistant(f"Answer {n}. " * 20))
        assert "Question 5" in str(chat.prompt(system="Be brief.")["messages"])
        fork = chat.fork("two")
        fork.append("Otherwise?")
    with open_conversation("one", store=store, window=2_000, format="openai") as chat:
        assert len(chat.history()) == 12
        assert chat.journal.verify() == []
    assert store.names("") == ["one", "two"]


@pytest.mark.parametrize(
    ("use", "capability"),
    [
        (lambda store, head: store.search(head, "word"), "Searches"),
        (lambda store, head: store.erase(head, [(1, 1)]), "Erases"),
        (lambda store, head: store.acquire_lock(head, "me"), "Locks"),
    ],
)
def test_a_missing_capability_is_reported_with_advice(use: Any, capability: str) -> None:
    store = complete(DictStore())
    with pytest.raises(BadSetting, match=rf"DictStore has no method .* ports\.{capability}\. Add it to DictStore"):
        use(store, store.open("", "one"))
    with pytest.raises(AttributeError):
        store.no_such_method  # noqa: B018


def test_a_store_with_all_capabilities_is_used_as_it_is() -> None:
    store = MemoryStore()
    assert complete(store) is store
