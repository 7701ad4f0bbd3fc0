"""Tests of forks, and of the capability `Rewinds`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from ..core.edits import Hide, Target
from ..core.messages import user
from ..errors import BadSetting, ConflictError, NoSuchConversation, StoreRolledBack
from ..ports import Branch, Database, Head, append
from .base_contract import BaseContract, talk
from .rows import after, chain, record_after
from .turn_contract import contents_of, rows_with

__all__ = ["ForkContract", "RewindContract"]


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


class RewindContract(BaseContract):
    """A conversation is set back to an earlier point, and its forks are listed."""

    def test_head_beyond_the_store_raises_store_rolled_back(self, store: Database) -> None:
        """A server that failed over had acknowledged it, or an older backup was restored."""
        head, rows = self._talk(store, 3)
        lost = chain([user("lost")], head)
        ahead = after(head, lost)
        calls: list[Callable[[], object]] = [
            lambda: append(store, ahead, chain([user("next")], ahead)),
            lambda: store.messages(ahead, 1, 4),
            lambda: store.records(ahead),
            lambda: store.locate(ahead, [rows[0].id]),
            lambda: store.fork(ahead, "two", 2, 0),
            lambda: store.repoint(ahead, 2, 0, "before"),
            lambda: store.snapshot(ahead),
        ]
        for ask in calls:
            with pytest.raises(StoreRolledBack, match=r"4 messages and 0 edits .* it holds 3 and 0") as one:
                ask()
            assert (one.value.known, one.value.now) == ((4, 0), (3, 0))
        planned = structs.replace(head, number=1, record="cd" * 20)
        with pytest.raises(StoreRolledBack, match="3 messages and 1 edits"):
            store.commit(planned, *record_after(planned))
        assert [finding.where for finding in store.verify(ahead)] == ["head"]
        assert (store.open("acme", "one"), store.names("acme")) == (head, ["one"])

    def test_fork_ends_where_a_record_ends(self, store: Database) -> None:
        head, _ = self._talk(store, 3)
        head = store.commit(head, *record_after(head, *[Hide(Target(head.tip))] * 3))
        with pytest.raises(BadSetting, match="middle of a record"):
            store.fork(head, "two", 3, 2)
        with pytest.raises(BadSetting, match="middle of a record"):
            store.repoint(head, 3, 2, "kept")
        assert store.names("acme") == ["one"]

    @pytest.mark.parametrize(("position", "number"), [(4, 0), (-1, 0), (3, 2), (3, -1)])
    def test_fork_at_what_is_not_there_is_refused(self, store: Database, position: int, number: int) -> None:
        head, _ = self._talk(store, 3)
        head = store.commit(head, *record_after(head))
        with pytest.raises(BadSetting, match="there is no point"):
            store.fork(head, "two", position, number)
        with pytest.raises(BadSetting, match="there is no point"):
            store.repoint(head, position, number, "kept")
        with pytest.raises(BadSetting, match="there is no point"):
            store.save_snapshot(head, position, number, b"")

    def test_name_that_is_taken_is_refused_and_nothing_is_made(self, store: Database) -> None:
        head, _ = self._talk(store, 3)
        other = store.open("acme", "two")
        for taken in ("two", "one"):
            with pytest.raises(BadSetting, match="already is a conversation"):
                store.fork(head, taken, 1, 0)
            with pytest.raises(BadSetting, match="already is a conversation"):
                store.repoint(head, 1, 0, taken)
        assert (store.open("acme", "one"), store.open("acme", "two")) == (head, other)
        assert store.fork(head, "three", 1, 0).branch == head.branch + 1

    def test_repointing_moves_the_name_and_keeps_what_was_there(self, store: Database) -> None:
        head, rows = self._talk(store, 6)
        head = store.commit(head, *record_after(head))
        moved = store.repoint(head, 4, 0, "before")
        assert moved == Head("acme", "one", head.root, moved.branch, 4, rows[3].id, rows[3].seal)
        own = chain(talk(2, "sport"), moved)
        moved = append(store, moved, own)
        store = self._again(store)
        assert store.open("acme", "one") == moved
        assert store.messages(moved, 1, 99) == rows[:4] + own
        kept = store.open("acme", "before", create=False)
        assert kept == structs.replace(head, name="before")
        assert store.messages(kept, 1, 99) == rows
        kept = append(store, kept, chain(talk(1, "art"), kept))
        assert store.names("acme") == ["before", "one"]
        assert store.verify(moved) == store.verify(kept) == []

    def test_writer_that_missed_a_repointing_is_refused(self, store: Database) -> None:
        head, rows = self._talk(store, 4)
        store.repoint(head, 2, 0, "before")
        with pytest.raises(ConflictError, match="moved to another branch"):
            append(store, head, chain([user("late")], head))
        with pytest.raises(ConflictError, match="moved to another branch"):
            store.commit(head, *record_after(head))
        with pytest.raises(ConflictError, match="moved to another branch"):
            store.repoint(head, 1, 0, "again")
        assert store.messages(head, 1, 99) == rows
        assert store.messages(store.open("acme", "before"), 1, 99) == rows
        assert store.names("acme") == ["before", "one"]

    def test_repointing_from_a_head_that_is_not_current_is_refused(self, store: Database) -> None:
        head, _ = self._talk(store, 4)
        append(store, head, chain([user("more")], head))
        with pytest.raises(ConflictError, match="5 messages"):
            store.repoint(head, 2, 0, "before")
        head = store.open("acme", "one")
        store.commit(head, *record_after(head))
        with pytest.raises(ConflictError, match="journal has 1 edits"):
            store.repoint(head, 2, 0, "before")
        assert store.names("acme") == ["one"]

    def test_repointing_again_and_again_keeps_every_branch(self, store: Database) -> None:
        head, rows = self._talk(store, 3)
        for turn in range(8):
            head = store.repoint(head, 2, 0, f"try {turn}")
            head = append(store, head, chain([user(f"again {turn}")], head))
        assert store.messages(head, 1, 2) == rows[:2]
        said = [store.messages(store.open("acme", f"try {turn}"), 3, 9)[0].body for turn in range(8)]
        assert said == [rows[2].body, *(chain([user(f"again {turn}")])[0].body for turn in range(7))]
        assert store.verify(head) == []

    def test_extend_after_a_missed_repointing_raises(self, store: Database) -> None:
        old = store.open("acme", "one")
        head = append(store, old, chain([user("a"), user("b")], old))
        moved = store.repoint(head, 1, 0, "before")
        for late in (old, head):
            with pytest.raises(ConflictError, match="moved to another branch"):
                store.extend(late, rows_with("c"))
            assert contents_of(store.changes(late)) == (moved, [], [])
        assert store.extend(moved, rows_with("c")).head.position == 2

    def test_conversation_without_forks_is_the_only_branch(self, store: Database) -> None:
        head = store.open("acme", "one")
        store.open("acme", "other")
        store.open("zeta", "one")
        assert store.branches(head) == [Branch(head)]

    def test_every_fork_names_its_fork_point(self, store: Database) -> None:
        head = store.open("acme", "one")
        head = append(store, head, chain([user(str(n)) for n in range(6)], head))
        for _ in range(2):
            head = store.commit(head, *record_after(head))
        two = store.fork(head, "two", 4, 1)
        two = append(store, two, chain([user("own")], two))
        three = store.fork(two, "three", 2, 0)
        now = store.repoint(head, 5, 2, "one~1")
        kept = structs.replace(head, name="one~1")
        expected = [
            Branch(kept),
            Branch(two, head.branch, 4, 1),
            Branch(three, two.branch, 2, 0),
            Branch(now, head.branch, 5, 2),
        ]
        for one in (head, two, three, now):
            assert store.branches(one) == expected

    def test_branches_of_nothing_are_refused(self, store: Database) -> None:
        with pytest.raises(NoSuchConversation):
            store.branches(Head("acme", "one", 7, 1))
