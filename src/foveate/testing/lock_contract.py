"""Tests of the capability `Locks`, and of writes in the name of an owner."""

from __future__ import annotations

from threading import Thread

import pytest
from msgspec import structs

from ..core.messages import user
from ..core.runs import LockHolder
from ..errors import BadSetting, ConversationBusy
from ..ports import Database, Head, append
from .base_contract import BaseContract
from .rows import chain
from .run_contract import run_of, step_of
from .turn_contract import rows_with

__all__ = ["LockContract"]


class LockContract(BaseContract):
    """One owner at a time, and no writes in its name by others."""

    def test_lock_has_one_owner_at_a_time(self, store: Database) -> None:
        head = store.open("acme", "one")
        assert store.acquire_lock(head, "a") == LockHolder("a", 1)
        assert store.acquire_lock(head, "b") == LockHolder("a", 1)
        assert store.acquire_lock(head, "a") == LockHolder("a", 2)
        store = self._again(store)
        assert (store.heartbeat(head, "a"), store.heartbeat(head, "b")) == (True, False)
        assert store.acquire_lock(head, "b") == LockHolder("a", 3)
        store.release_lock(head, "b")
        assert store.acquire_lock(head, "b") == LockHolder("a", 3)
        store.release_lock(head, "a")
        assert (store.heartbeat(head, "a"), store.heartbeat(head, "b")) == (False, False)
        assert store.acquire_lock(head, "b") == LockHolder("b", 1)

    def test_lock_is_taken_over_only_without_a_new_heartbeat(self, store: Database) -> None:
        head = store.open("acme", "one")
        old = store.acquire_lock(head, "a")
        store.heartbeat(head, "a")
        assert store.acquire_lock(head, "b", old) == LockHolder("a", 2)
        assert store.acquire_lock(head, "b", LockHolder("c", 2)) == LockHolder("a", 2)
        store.put_run(head, run_of("r1"), owner="a")
        assert store.acquire_lock(head, "b", LockHolder("a", 2)) == LockHolder("a", 3)
        assert store.acquire_lock(head, "b", LockHolder("a", 3)) == LockHolder("b", 4)
        assert store.acquire_lock(head, "a", LockHolder("a", 3)) == LockHolder("b", 4)

    def test_owner_without_the_lock_stores_no_run(self, store: Database) -> None:
        """A former owner that is not dead can neither begin nor end a step."""
        head = store.open("acme", "one")
        with pytest.raises(ConversationBusy, match="lost the lock") as gone:
            store.put_step(head, step_of("r1", 1), owner="a")
        assert gone.value.owner == ""
        holder = store.acquire_lock(head, "a")
        store.put_run(head, run_of("r1"), owner="a")
        store.put_step(head, step_of("r1", 1), owner="a")
        now = LockHolder("a", holder.heartbeats + 2)  # Each write is a heartbeat.
        assert store.acquire_lock(head, "c") == now
        store.acquire_lock(head, "b", now)
        with pytest.raises(ConversationBusy, match="taken over") as lost:
            store.put_step(head, step_of("r1", 2), owner="a")
        assert lost.value.owner == "b"
        with pytest.raises(ConversationBusy):
            store.put_run(head, structs.replace(run_of("r1"), state="failed"), owner="a")
        store.put_step(head, step_of("r1", 3), owner="b")
        store.put_step(head, step_of("r1", 4))  # Writes without an owner need no lock: an import.
        assert store.runs(head) == [run_of("r1")]
        assert [step.number for step in store.steps(head, "r1")] == [1, 3, 4]

    def test_owner_without_the_lock_appends_nothing(self, store: Database) -> None:
        """A late message is refused before it is stored, at any tip."""
        old = head = store.open("acme", "one")

        def say(head: Head, text: str, owner: str) -> Head:
            if text.startswith("in turn"):
                return store.extend(head, rows_with(text), owner=owner).head
            return append(store, head, chain([user(text)], head), owner=owner)

        def check_refused(match: str, owner: str) -> None:
            for text in ("late", "in turn, late"):
                for one in (old, head):
                    with pytest.raises(ConversationBusy, match=match) as caught:
                        say(one, text, "a")
                    assert caught.value.owner == owner

        check_refused("lost the lock", "")
        holder = store.acquire_lock(head, "a")
        for text in ("first", "in turn, second"):
            head = say(head, text, "a")
        behind = structs.replace(old, position=1, tip=store.messages(head, 1, 1)[0].id)
        behind = structs.replace(behind, seal=store.messages(head, 1, 1)[0].seal)
        head = say(behind, "in turn, third", "a")  # After messages of another writer.
        now = LockHolder("a", holder.heartbeats + 3)  # Each message is a heartbeat.
        assert store.acquire_lock(head, "b", LockHolder("a", now.heartbeats - 1)) == now
        assert store.acquire_lock(head, "b", now).owner == "b"
        check_refused("taken over", "b")
        head = say(head, "by b", "b")
        head = say(head, "in turn, without an owner", "")  # Writes without an owner need no lock: a user.
        store.release_lock(head, "b")
        check_refused("lost the lock", "")
        assert store.open("acme", "one") == head
        texts = [row.body.decode() for row in store.messages(head, 1, 9)]
        expected = ["first", "in turn, second", "in turn, third", "by b", "in turn, without an owner"]
        assert [any(f'"{want}"' in text for text in texts) for want in expected] == [True] * len(texts)
        assert store.verify(head) == []

    def test_former_lock_owner_appends_nothing_more(self, store: Database) -> None:
        def work(head: Head, kept: list[str]) -> None:
            for number in range(1, 31):
                try:
                    head = store.extend(head, rows_with(f"message {number}"), owner="a").head
                except ConversationBusy:
                    return
                kept.append(head.tip)

        for n in range(5):
            head, kept = store.open("acme", f"c{n}"), list[str]()
            holder = store.acquire_lock(head, "a")
            thread = Thread(target=work, args=(head, kept))
            thread.start()
            while holder.owner != "b":
                holder = store.acquire_lock(head, "b", holder)
            seen = store.open("acme", f"c{n}")
            thread.join()
            assert store.open("acme", f"c{n}") == seen
            assert [row.id for row in store.messages(seen, 1, 99)] == kept

    def test_former_lock_owner_stores_no_more_steps(self, store: Database) -> None:
        """At any interleaving the new owner reads every step that the former owner stores."""

        def work(head: Head, kept: list[int]) -> None:
            for number in range(1, 31):
                try:
                    store.put_step(head, step_of("r1", number), owner="a")
                except ConversationBusy:
                    return
                kept.append(number)

        for n in range(5):
            head, kept = store.open("acme", f"c{n}"), list[int]()
            holder = store.acquire_lock(head, "a")
            thread = Thread(target=work, args=(head, kept))
            thread.start()
            while holder.owner != "b":
                holder = store.acquire_lock(head, "b", holder)
            seen = [step.number for step in store.steps(head, "r1")]
            thread.join()
            assert [step.number for step in store.steps(head, "r1")] == seen == kept

    def test_each_branch_has_its_own_lock(self, store: Database) -> None:
        head = store.open("acme", "one")
        head = append(store, head, chain([user("hi")], head))
        fork, other = store.fork(head, "two", 1, 0), store.open("zeta", "one")
        for owner, branch in (("a", head), ("b", fork), ("c", other)):
            assert store.acquire_lock(branch, owner) == LockHolder(owner, 1)
        store.rename("acme", {"one": "uno"})
        assert store.acquire_lock(store.open("acme", "uno"), "d") == LockHolder("a", 1)

    def test_lock_changes_nothing_in_the_conversation(self, store: Database) -> None:
        head = store.open("acme", "one")
        store.acquire_lock(head, "a")
        assert store.open("acme", "one") == head
        head = append(store, head, chain([user("hi")], head))
        assert store.acquire_lock(head, "a").owner == "a"
        assert store.verify(head) == []

    @pytest.mark.parametrize("owner", ["", "a\0b", "half \ud83d", "x" * 501])
    def test_owner_that_no_database_accepts_is_refused(self, store: Database, owner: str) -> None:
        head = store.open("acme", "one")
        with pytest.raises(BadSetting):
            store.acquire_lock(head, owner)
        with pytest.raises(BadSetting):
            store.release_lock(head, owner)
        assert store.acquire_lock(head, "a") == LockHolder("a", 1)

    def test_one_of_many_threads_gets_the_lock(self, store: Database) -> None:
        head, won = store.open("acme", "one"), []

        def work(owner: str) -> None:
            for _ in range(10):
                if store.acquire_lock(head, owner).owner == owner:
                    store.put_step(head, step_of(owner, 1), owner=owner)
                    won.append(owner)
                    won.append(owner)
                    store.release_lock(head, owner)

        threads = [Thread(target=work, args=(f"t{number}",)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert won[::2] == won[1::2]
        assert won
