"""Tests of forks."""

from __future__ import annotations

from ..core.edits import Hide, Target
from ..ports import Database, Head, append
from .base_contract import BaseContract, talk
from .rows import chain, record_after

__all__ = ["ForkContract"]


class ForkContract(BaseContract):
    """Tests of `fork`."""

    def test_fork_shares_what_came_before_and_nothing_after(self, store: Database) -> None:
        head, rows = self._talk(store, 9)
        records = []
        for _ in range(3):
            record, id = record_after(head)
            records.append((id, record))
            head = store.commit(head, record, id)
        fork = store.fork(head, "two", 5, 2)
        assert fork == Head("acme", "two", head.root, fork.branch, 5, rows[4].id, rows[4].seal, 2, records[1][0])
        assert fork.branch != head.branch
        own = chain(talk(3, "sport"), fork)
        fork = append(store, fork, own)
        record, id = record_after(fork, Hide(Target(own[0].id)))
        fork = store.commit(fork, record, id)
        head = append(store, head, chain(talk(1, "art"), head))

        store = self._again(store)
        assert store.open("acme", "one") == head
        assert store.open("acme", "two") == fork
        assert store.messages(fork, 1, 99) == rows[:5] + own
        assert store.messages(fork, 5, 6) == [rows[4], own[0]]
        assert store.get_many(fork, [8, 1, 6]) == [rows[0], own[0], own[2]]
        assert store.records(fork) == [*records[:2], (id, record)]
        assert store.records(fork, after=1) == [records[1], (id, record)]
        assert store.locate(fork, [rows[4].id, rows[5].id, own[1].id]) == {rows[4].id: 5, own[1].id: 7}
        assert store.locate(head, [rows[5].id, own[1].id]) == {rows[5].id: 6}
        assert store.names("acme") == ["one", "two"]
        assert store.verify(head) == store.verify(fork) == []

    def test_fork_of_a_fork_of_a_fork_reads_through_all_of_them(self, store: Database) -> None:
        head, expected = self._talk(store, 6)
        for depth, position in enumerate([5, 7, 2, 4, 6, 0, 1, 3]):
            position = min(position, head.position)
            head = store.fork(head, f"fork {depth}", position, 0)
            own = chain(talk(4, f"depth {depth}"), head)
            head, expected = append(store, head, own), expected[:position] + own
            assert store.messages(head, 1, 99) == expected
            assert store.locate(head, [row.id for row in expected]) == {row.id: row.position for row in expected}
            assert store.verify(head) == []

    def test_same_words_after_the_same_past_may_be_said_on_two_branches(self, store: Database) -> None:
        """F32: both branches have a message of the same id, and each finds its own."""
        head, rows = self._talk(store, 4)
        fork = store.fork(head, "two", 2, 0)
        again = chain(talk(4)[2:], fork)
        fork = append(store, fork, again)
        assert [row.id for row in again] == [row.id for row in rows[2:]]
        assert store.locate(fork, [rows[3].id]) == store.locate(head, [rows[3].id]) == {rows[3].id: 4}

    def test_fork_begins_anywhere_from_nothing_to_the_tip(self, store: Database) -> None:
        head, rows = self._talk(store, 3)
        head = store.commit(head, *record_after(head))
        assert store.messages(store.fork(head, "at nothing", 0, 0), 1, 9) == []
        at_tip = store.fork(head, "at the tip", 3, 1)
        assert (at_tip.tip, at_tip.seal, at_tip.record) == (head.tip, head.seal, head.record)
        assert store.messages(at_tip, 1, 9) == rows
