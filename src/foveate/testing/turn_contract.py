"""Tests of concurrent writers that use `extend`, and of the capability `SavesViews`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Barrier, Thread

import pytest
from msgspec import structs

from ..core.messages import user
from ..errors import BadInput, NoSuchConversation, StoreRolledBack
from ..ports import Changes, Database, Head, StoredMessage, append
from .base_contract import BaseContract, talk
from .rows import after, chain, record_after

__all__ = ["TurnContract", "ViewContract"]


def rows_with(*texts: str, seen: list[Changes] | None = None) -> Callable[[Changes], list[StoredMessage]]:
    """Return a function that makes rows with these texts after any tip, and records its arguments in `seen`."""

    def make(tail: Changes) -> list[StoredMessage]:
        if seen is not None:
            seen.append(tail)
        return chain(map(user, texts), tail.head)

    return make


def contents_of(tail: Changes) -> tuple[Head, list[StoredMessage], list[object]]:
    """Return all parts of some changes as one value, after a check of their newest stamp."""
    rows = tail.rows()
    assert tail.newest() == (rows[-1].stamp if rows else None)
    return tail.head, rows, list(tail.records())


class TurnContract:
    """Tests of `extend` and `changes`."""

    def test_extend_follows_the_rows_of_other_writers(self, store: Database) -> None:
        old = store.open("acme", "one")
        first = chain([user("a"), user("b")], old)
        record = record_after(old)
        now = store.commit(append(store, old, first), *record)
        seen: list[Changes] = []
        tail = store.extend(old, rows_with("c", "d", seen=seen))
        mine = chain([user("c"), user("d")], now)
        assert contents_of(seen[-1]) == (now, first, [record[::-1]])
        assert contents_of(tail) == (after(now, mine), first + mine, [record[::-1]])
        assert store.open("acme", "one") == tail.head
        assert store.messages(tail.head, 1, 9) == first + mine
        assert store.verify(tail.head) == []

    def test_extend_without_other_writers_passes_an_empty_tail(self, store: Database) -> None:
        head = store.open("acme", "one")
        for n in range(3):
            seen: list[Changes] = []
            tail = store.extend(head, rows_with(f"said {n}", seen=seen))
            mine = chain([user(f"said {n}")], head)
            assert [contents_of(one) for one in seen] == [(head, [], [])] * len(seen)
            assert contents_of(tail) == (after(head, mine), mine, [])
            head = tail.head

    def test_tail_includes_records_of_others_without_messages(self, store: Database) -> None:
        old = store.open("acme", "one")
        head = append(store, old, chain([user("a")], old))
        record = record_after(head)
        now = store.commit(head, *record)
        tail = store.extend(head, rows_with("b"))
        assert contents_of(tail) == (after(now, chain([user("b")], now)), chain([user("b")], now), [record[::-1]])

    def test_extending_by_nothing_writes_nothing(self, store: Database) -> None:
        old = store.open("acme", "one")
        first = chain([user("a")], old)
        now = append(store, old, first)
        assert contents_of(store.extend(old, rows_with())) == (now, first, [])
        assert store.open("acme", "one") == now

    def test_rows_that_do_not_follow_are_refused_and_nothing_is_written(self, store: Database) -> None:
        old = store.open("acme", "one")
        now = append(store, old, chain([user("a")], old))
        with pytest.raises(BadInput, match="Nothing was written"):
            store.extend(old, lambda tail: chain([user("b")], old))  # After any tip.
        with pytest.raises(BadInput, match="Nothing was written"):
            store.extend(now, lambda tail: chain([user("b")], old))
        assert store.open("acme", "one") == now

    def test_error_while_making_rows_writes_nothing(self, store: Database) -> None:
        old = store.open("acme", "one")
        now = append(store, old, chain([user("a")], old))

        def refuse(tail: Changes) -> Sequence[StoredMessage]:
            if tail.rows():
                raise ZeroDivisionError
            return chain([user("b")], tail.head)

        with pytest.raises(ZeroDivisionError):
            store.extend(old, refuse)
        assert store.open("acme", "one") == now
        assert store.extend(now, rows_with("b")).head.position == 2

    def test_tail_is_what_is_there_beyond_a_head(self, store: Database) -> None:
        old = store.open("acme", "one")
        assert contents_of(store.changes(old)) == (old, [], [])
        rows = chain([user(f"{n}" * 3000) for n in range(5)], old)
        head = append(store, old, rows)
        records = [record_after(head)]
        head = store.commit(head, *records[0])
        middle = head
        records.append(record_after(head))
        head = store.commit(head, *records[1])
        assert contents_of(store.changes(old)) == (head, rows, [record[::-1] for record in records])
        third = structs.replace(old, position=3, tip=rows[2].id, seal=rows[2].seal)
        assert contents_of(store.changes(third)) == (head, rows[3:], [record[::-1] for record in records])
        assert contents_of(store.changes(middle)) == (head, [], [records[1][::-1]])
        fork = store.fork(head, "two", 2, 0)
        assert contents_of(store.changes(fork)) == (fork, [], [])
        tail = store.extend(fork, rows_with("own"))
        assert contents_of(store.changes(fork)) == contents_of(tail) == (tail.head, chain([user("own")], fork), [])

    def test_head_off_its_branch_is_reported(self, store: Database) -> None:
        """The store lost messages, and others appended since: their messages do not follow this head."""
        old = store.open("acme", "one")
        now = append(store, old, chain([user("a"), user("b")], old))
        now = store.commit(now, *record_after(now))
        other = chain([user("lost")], old)
        lost = after(old, other)
        further = structs.replace(now, position=3, tip="ab" * 20)
        unseen = structs.replace(now, record="ab" * 20)
        for gone in (lost, further, structs.replace(now, tip="ab" * 20), unseen, structs.replace(unseen, number=2)):
            with pytest.raises(StoreRolledBack):
                store.changes(gone)
        for gone in (lost, further, structs.replace(now, tip="ab" * 20), unseen, structs.replace(unseen, number=2)):
            with pytest.raises(StoreRolledBack):
                store.extend(gone, rows_with("c"))
        unerased = structs.replace(now, erased=1)
        for gone in (unseen, structs.replace(unseen, number=2), unerased):  # At a position where a message would fit.
            with pytest.raises(StoreRolledBack):
                append(store, gone, chain([user("c")], gone))
            with pytest.raises(StoreRolledBack):
                store.extend(gone, rows_with("c"))
        # At a number where an edit would fit.
        for gone in (structs.replace(lost, number=1, record=now.record), further):
            with pytest.raises(StoreRolledBack):
                store.commit(gone, *record_after(gone))
        with pytest.raises(StoreRolledBack):
            store.changes(unerased)
        assert store.open("acme", "one") == now

    def test_tail_of_what_has_no_name_is_refused(self, store: Database) -> None:
        with pytest.raises(NoSuchConversation):
            store.changes(Head("acme", "nobody", 77, 1))
        with pytest.raises(NoSuchConversation):
            store.extend(Head("acme", "nobody", 77, 1), rows_with("a"))

    def test_threads_that_extend_at_once_all_get_through_at_the_first_try(self, store: Database) -> None:
        begun = store.open("acme", "one")
        start = Barrier(6)
        failed: list[Exception] = []

        def write(number: int) -> None:
            head = begun
            start.wait()
            try:
                for turn in range(8):
                    tail = store.extend(head, rows_with(f"{number}.{turn}"))
                    assert tail.rows()[-1].position == tail.head.position > head.position
                    head = tail.head
            except Exception as error:
                failed.append(error)

        threads = [Thread(target=write, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        tail = store.changes(begun)
        said = [row.body.decode().split('"text":"')[1].split('"')[0] for row in tail.rows()]
        for number in range(6):
            assert [text for text in said if text.startswith(f"{number}.")] == [f"{number}.{n}" for n in range(8)]
        assert (len(said), store.verify(tail.head)) == (48, [])


class ViewContract(BaseContract):
    """Saved views are found again, and never later than the head."""

    def test_snapshot_replaces_the_one_before(self, store: Database) -> None:
        head, _ = self._talk(store, 5)
        head = store.commit(head, *record_after(head))
        store.save_snapshot(head, 3, 0, b"early")
        store.save_snapshot(head, 5, 1, b"late" * 5000)
        store = self._again(store)
        assert store.snapshot(head) == (5, 1, b"late" * 5000)

    def test_snapshot_later_than_the_head_is_not_used(self, store: Database) -> None:
        old, _ = self._talk(store, 3)
        new = append(store, old, chain(talk(2), old))
        store.save_snapshot(new, 4, 0, b"at four")
        assert (store.snapshot(old), store.snapshot(new)) == (None, (4, 0, b"at four"))
        newer = store.commit(new, *record_after(new))
        store.save_snapshot(newer, 5, 1, b"with an edit")
        assert (store.snapshot(new), store.snapshot(newer)) == (None, (5, 1, b"with an edit"))

    def test_fork_uses_the_snapshot_it_came_by_until_it_has_its_own(self, store: Database) -> None:
        head, _ = self._talk(store, 6)
        store.save_snapshot(head, 4, 0, b"of one")
        near, far = store.fork(head, "near", 5, 0), store.fork(head, "far", 3, 0)
        assert (store.snapshot(near), store.snapshot(far)) == ((4, 0, b"of one"), None)
        deeper = store.fork(near, "deeper", 4, 0)
        assert store.snapshot(deeper) == (4, 0, b"of one")
        store.save_snapshot(near, 5, 0, b"of near")
        assert store.snapshot(near) == (5, 0, b"of near")
        assert store.snapshot(head) == (4, 0, b"of one")

    def test_saved_view_is_read_with_its_snapshot(self, store: Database) -> None:
        head, _ = self._talk(store, 5)
        store.save_snapshot(head, 3, 0, b"early", [b"one", b"two" * 5000])
        store = self._again(store)
        assert list(store.saved_view(head, 3, 0)) == [b"one", b"two" * 5000]
        assert (list(store.saved_view(head, 4, 0)), list(store.saved_view(head, 3, 1))) == ([], [])
        store.save_snapshot(head, 5, 0, b"late", [b"three"])
        assert (list(store.saved_view(head, 3, 0)), list(store.saved_view(head, 5, 0))) == ([], [b"three"])
        store.save_snapshot(head, 5, 0, b"again")
        assert list(store.saved_view(head, 5, 0)) == []

    def test_fork_uses_the_saved_view_it_came_by(self, store: Database) -> None:
        head, _ = self._talk(store, 6)
        store.save_snapshot(head, 4, 0, b"of one", [b"a view"])
        near = store.fork(head, "near", 5, 0)
        assert list(store.saved_view(near, 4, 0)) == [b"a view"]
        store.save_snapshot(near, 5, 0, b"of near", [b"near"])
        assert (list(store.saved_view(near, 5, 0)), list(store.saved_view(head, 5, 0))) == ([b"near"], [])

    def test_snapshot_of_another_store_is_refused(self, store: Database) -> None:
        with pytest.raises(NoSuchConversation):
            store.save_snapshot(Head("acme", "two", 77, 1), 0, 0, b"")
