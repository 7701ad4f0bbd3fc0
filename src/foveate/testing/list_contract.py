"""Tests of the capability `Lists`: a page of conversations, the newest first."""

from __future__ import annotations

from ..core.messages import user
from ..ports import Database, Head, Listed, append
from .base_contract import BaseContract
from .rows import chain, record_after

__all__ = ["ListContract"]


def _at(store: Database, name: str, *times: int) -> Head:
    """Create a conversation with a message at each of these times."""
    head = store.open("acme", name)
    for time in times:
        rows = chain([user(f"at {time}")], head, time=time - 1000 * (head.position + 1))
        head = append(store, head, rows)
    return head


class ListContract(BaseContract):
    """Tests of `recent`."""

    def test_conversations_are_listed_newest_first(self, store: Database) -> None:
        _at(store, "old", 3_000)
        _at(store, "new", 1_000, 9_000)
        _at(store, "empty")
        head = _at(store, "middle", 5_000)
        record, id = record_after(head)
        store.commit(head, record, id)
        store.open("zeta", "theirs")
        store = self._again(store)
        expected = [Listed("new", 2, 0, 9_000), Listed("middle", 1, record.last, 5_000), Listed("old", 1, 0, 3_000)]
        assert store.recent("acme") == ([*expected, Listed("empty", 0, 0, 0)], 4)
        assert store.recent("acme", first=1, limit=2) == (expected[1:], 4)
        assert store.recent("acme", first=9) == ([], 4)
        assert store.recent("none") == ([], 0)

    def test_list_has_only_names_with_all_words(self, store: Database) -> None:
        for time, name in enumerate(["Fix Login", "login/tests", "50% off_er", "Über Login", "a\\b"], 1):
            _at(store, name, time)

        def named(*words: str) -> list[str]:
            listed, total = store.recent("acme", words=words)
            assert len(listed) == total
            return [one.name for one in listed]

        assert named("LOGIN") == ["Über Login", "login/tests", "Fix Login"]
        assert named("login", "fix") == ["Fix Login"]
        assert named("Über") == ["Über Login"]
        assert named("%", "_") == ["50% off_er"]
        assert named("\\") == ["a\\b"]
        assert named("log_n") == named("zzz") == []

    def test_fork_has_the_time_of_its_newest_message(self, store: Database) -> None:
        head = _at(store, "one", 1_000, 2_000, 3_000)
        store.fork(head, "fork", 2, 0)
        store.fork(head, "empty", 0, 0)
        store.repoint(head, 1, 0, "one~1")
        times = {one.name: one.time for one in store.recent("acme")[0]}
        assert times == {"one~1": 3_000, "fork": 2_000, "one": 1_000, "empty": 0}

    def test_list_follows_a_rename(self, store: Database) -> None:
        _at(store, "one", 1_000)
        store.rename("acme", {"one": "two"})
        assert store.recent("acme") == ([Listed("two", 1, 0, 1_000)], 1)
