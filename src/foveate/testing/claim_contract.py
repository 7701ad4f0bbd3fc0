"""What every store must do with claims of conversations, and with what is said in the name of an owner, as tests.

A part of `StoreContract`.
"""

from __future__ import annotations

from threading import Thread

import pytest
from msgspec import structs

from ..core.messages import user
from ..core.runs import Claim
from ..errors import BadSetting, ConversationBusy
from ..ports import Head, Store
from .base_contract import BaseContract
from .rows import chain
from .run_contract import run_of, step_of
from .turn_contract import saying

__all__ = ["ClaimContract"]


class ClaimContract(BaseContract):
    """One at a time is at work, and nobody else says anything in its name."""

    def test_a_claim_is_had_by_one_at_a_time(self, store: Store) -> None:
        head = store.open("acme", "one")
        assert store.claim(head, "a") == Claim("a", 1)
        assert store.claim(head, "b") == Claim("a", 1)
        assert store.claim(head, "a") == Claim("a", 2)
        store = self._again(store)
        assert (store.beat(head, "a"), store.beat(head, "b")) == (True, False)
        assert store.claim(head, "b") == Claim("a", 3)
        store.release(head, "b")
        assert store.claim(head, "b") == Claim("a", 3)
        store.release(head, "a")
        assert (store.beat(head, "a"), store.beat(head, "b")) == (False, False)
        assert store.claim(head, "b") == Claim("b", 1)

    def test_a_claim_is_taken_over_only_where_its_owner_gave_no_sign_of_life_since(self, store: Store) -> None:
        head = store.open("acme", "one")
        old = store.claim(head, "a")
        store.beat(head, "a")
        assert store.claim(head, "b", old) == Claim("a", 2)
        assert store.claim(head, "b", Claim("c", 2)) == Claim("a", 2)
        store.put_run(head, run_of("r1"), owner="a")
        assert store.claim(head, "b", Claim("a", 2)) == Claim("a", 3)
        assert store.claim(head, "b", Claim("a", 3)) == Claim("b", 4)
        assert store.claim(head, "a", Claim("a", 3)) == Claim("b", 4)

    def test_who_is_not_at_work_keeps_nothing_under_its_name(self, store: Store) -> None:
        """The fence: one that was taken for dead, and is not, can neither begin a step nor end one."""
        head = store.open("acme", "one")
        with pytest.raises(ConversationBusy, match="no claim") as gone:
            store.put_step(head, step_of("r1", 1), owner="a")
        assert gone.value.owner == ""
        claim = store.claim(head, "a")
        store.put_run(head, run_of("r1"), owner="a")
        store.put_step(head, step_of("r1", 1), owner="a")
        now = Claim("a", claim.beats + 2)  # Whatever it keeps is a sign of life.
        assert store.claim(head, "c") == now
        store.claim(head, "b", now)
        with pytest.raises(ConversationBusy, match="taken over") as lost:
            store.put_step(head, step_of("r1", 2), owner="a")
        assert lost.value.owner == "b"
        with pytest.raises(ConversationBusy):
            store.put_run(head, structs.replace(run_of("r1"), state="failed"), owner="a")
        store.put_step(head, step_of("r1", 3), owner="b")
        store.put_step(head, step_of("r1", 4))  # Who names nobody asks for no claim: an import.
        assert store.runs(head) == [run_of("r1")]
        assert [step.number for step in store.steps(head, "r1")] == [1, 3, 4]

    def test_who_is_not_at_work_says_nothing_under_its_name(self, store: Store) -> None:
        """The same for messages: what comes late is refused before anything of it is there, wherever the tip is."""
        old = head = store.open("acme", "one")

        def say(head: Head, text: str, owner: str) -> Head:
            if text.startswith("in turn"):
                return store.extend(head, saying(text), owner=owner).head
            return store.append(head, chain([user(text)], head), owner=owner)

        def check_refused(match: str, owner: str) -> None:
            for text in ("late", "in turn, late"):
                for one in (old, head):
                    with pytest.raises(ConversationBusy, match=match) as told:
                        say(one, text, "a")
                    assert told.value.owner == owner

        check_refused("no claim", "")
        claim = store.claim(head, "a")
        for text in ("first", "in turn, second"):
            head = say(head, text, "a")
        behind = structs.replace(old, position=1, tip=store.messages(head, 1, 1)[0].id)
        behind = structs.replace(behind, seal=store.messages(head, 1, 1)[0].seal)
        head = say(behind, "in turn, third", "a")  # Which somebody else's messages came before.
        now = Claim("a", claim.beats + 3)  # Whatever it says is a sign of life.
        assert store.claim(head, "b", Claim("a", now.beats - 1)) == now
        assert store.claim(head, "b", now).owner == "b"
        check_refused("taken over", "b")
        head = say(head, "by b", "b")
        head = say(head, "in turn, by nobody", "")  # Who names nobody asks for no claim: a user.
        store.release(head, "b")
        check_refused("no claim", "")
        assert store.open("acme", "one") == head
        texts = [row.body.decode() for row in store.messages(head, 1, 9)]
        expected = ["first", "in turn, second", "in turn, third", "by b", "in turn, by nobody"]
        assert [any(f'"{want}"' in text for text in texts) for want in expected] == [True] * len(texts)
        assert store.verify(head) == []

    def test_once_it_is_taken_over_not_one_more_message_of_the_former_owner_is_there(self, store: Store) -> None:
        def work(head: Head, kept: list[str]) -> None:
            for number in range(1, 31):
                try:
                    head = store.extend(head, saying(f"message {number}"), owner="a").head
                except ConversationBusy:
                    return
                kept.append(head.tip)

        for n in range(5):
            head, kept = store.open("acme", f"c{n}"), list[str]()
            claim = store.claim(head, "a")
            thread = Thread(target=work, args=(head, kept))
            thread.start()
            while claim.owner != "b":
                claim = store.claim(head, "b", claim)
            seen = store.open("acme", f"c{n}")
            thread.join()
            assert store.open("acme", f"c{n}") == seen
            assert [row.id for row in store.messages(seen, 1, 99)] == kept

    def test_once_it_is_taken_over_not_one_more_step_of_the_former_owner_is_kept(self, store: Store) -> None:
        """However close the two come to each other: who took over reads all that there will ever be."""

        def work(head: Head, kept: list[int]) -> None:
            for number in range(1, 31):
                try:
                    store.put_step(head, step_of("r1", number), owner="a")
                except ConversationBusy:
                    return
                kept.append(number)

        for n in range(5):
            head, kept = store.open("acme", f"c{n}"), list[int]()
            claim = store.claim(head, "a")
            thread = Thread(target=work, args=(head, kept))
            thread.start()
            while claim.owner != "b":
                claim = store.claim(head, "b", claim)
            seen = [step.number for step in store.steps(head, "r1")]
            thread.join()
            assert [step.number for step in store.steps(head, "r1")] == seen == kept

    def test_each_branch_is_claimed_by_itself(self, store: Store) -> None:
        head = store.open("acme", "one")
        head = store.append(head, chain([user("hi")], head))
        fork, other = store.fork(head, "two", 1, 0), store.open("zeta", "one")
        for owner, branch in (("a", head), ("b", fork), ("c", other)):
            assert store.claim(branch, owner) == Claim(owner, 1)
        store.rename("acme", {"one": "uno"})
        assert store.claim(store.open("acme", "uno"), "d") == Claim("a", 1)

    def test_a_claim_changes_nothing_of_the_conversation(self, store: Store) -> None:
        head = store.open("acme", "one")
        store.claim(head, "a")
        assert store.open("acme", "one") == head
        head = store.append(head, chain([user("hi")], head))
        assert store.claim(head, "a").owner == "a"
        assert store.verify(head) == []

    @pytest.mark.parametrize("owner", ["", "a\0b", "half \ud83d", "x" * 501])
    def test_an_owner_that_no_database_can_keep_is_refused(self, store: Store, owner: str) -> None:
        head = store.open("acme", "one")
        with pytest.raises(BadSetting):
            store.claim(head, owner)
        with pytest.raises(BadSetting):
            store.release(head, owner)
        assert store.claim(head, "a") == Claim("a", 1)

    def test_of_threads_that_claim_at_once_one_has_it(self, store: Store) -> None:
        head, won = store.open("acme", "one"), []

        def work(owner: str) -> None:
            for _ in range(10):
                if store.claim(head, owner).owner == owner:
                    store.put_step(head, step_of(owner, 1), owner=owner)
                    won.append(owner)
                    won.append(owner)
                    store.release(head, owner)

        threads = [Thread(target=work, args=(f"t{number}",)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert won[::2] == won[1::2]
        assert won
