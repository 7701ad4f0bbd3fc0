"""What every store must do, as tests. A store is done when it passes them.

    class TestMyStore(StoreContract):
        def make_store(self) -> Store:
            return MyStore(...)

Each test makes a store of its own. A store that outlives its process says so by `reopen`, and is then closed and opened
again wherever that may make a difference.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator
from random import Random
from threading import Barrier, Thread

import pytest
from msgspec import structs

from ..core.edits import Hide, Replace, Target
from ..core.messages import Message, Text, ToolCall, assistant, tool_result, user
from ..errors import BadInput, BadSetting, NoSuchConversation, StalePlan, StoreError, TipMoved, WentBack
from ..ports import Appended, Head, Store
from .age_contract import AgeContract
from .census_contract import CensusContract
from .erase_contract import EraseContract
from .rows import after, chain, erased, record_after
from .run_contract import RunContract
from .search_contract import SearchContract
from .tree_contract import TreeContract
from .turn_contract import TurnContract

__all__ = ["StoreContract", "talk"]


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


class StoreContract(
    SearchContract, RunContract, TreeContract, EraseContract, AgeContract, CensusContract, TurnContract
):
    """Subclass it in a test module, give it `make_store`, and pytest runs every test below on that store."""

    def make_store(self) -> Store:
        """A new, empty store."""
        raise NotImplementedError

    def reopen(self, store: Store) -> Store:
        """The same store, closed and opened again, if it keeps anything when it is closed."""
        return store

    @pytest.fixture
    def store(self) -> Iterator[Store]:
        self._made = [self.make_store()]
        yield self._made[0]
        for store in self._made:
            store.close()

    # --------------------------------------------------------------------------------------------------- opening

    def test_a_new_conversation_is_empty(self, store: Store) -> None:
        head = store.open("acme", "one")
        assert head == Head("acme", "one", head.root, head.branch)
        assert 0 < head.root < 2**63
        assert store.messages(head, 1, 10) == []
        assert store.records(head) == []
        assert store.snapshot(head) is None
        assert store.verify(head) == []

    def test_opening_again_gives_the_same_head(self, store: Store) -> None:
        assert store.open("acme", "one") == store.open("acme", "one") == store.open("acme", "one", create=False)

    def test_what_is_not_there_is_not_made_unless_asked_for(self, store: Store) -> None:
        with pytest.raises(NoSuchConversation, match="nobody"):
            store.open("acme", "nobody", create=False)
        assert store.names("acme") == []

    def test_names_are_sorted_and_each_tenant_sees_its_own(self, store: Store) -> None:
        for tenant, name in [("acme", "b"), ("acme", "a"), ("zeta", "a"), ("", "ü")]:
            store.open(tenant, name)
        assert [store.names(tenant) for tenant in ("acme", "zeta", "", "none")] == [["a", "b"], ["a"], ["ü"], []]

    def test_tenants_do_not_share_a_conversation_of_the_same_name(self, store: Store) -> None:
        ours, theirs = store.open("acme", "one"), store.open("zeta", "one")
        ours = store.append(ours, chain(talk(2), ours))
        assert store.open("zeta", "one") == theirs
        assert ours.root != theirs.root

    @pytest.mark.parametrize("name", ["", "a\0b", "half \ud83d", "x" * 501])
    def test_a_name_that_no_database_can_keep_is_refused(self, store: Store, name: str) -> None:
        with pytest.raises(BadSetting):
            store.open("acme", name)

    def test_a_head_of_another_store_is_refused(self, store: Store) -> None:
        store.open("acme", "one")
        stranger = Head("acme", "two", 77, 1)
        with pytest.raises(NoSuchConversation):
            store.messages(stranger, 1, 2)
        with pytest.raises(NoSuchConversation):
            store.append(stranger, chain(talk(1), stranger))
        with pytest.raises(NoSuchConversation):
            store.commit(stranger, *record_after(stranger))
        with pytest.raises(NoSuchConversation):
            store.save_snapshot(stranger, 0, 0, b"")

    # ------------------------------------------------------------------------------------------------- appending

    def test_what_was_appended_is_read_back_as_it_was(self, store: Store) -> None:
        head = store.open("acme", "one")
        rows = chain(talk(30), head)
        head = self._append(store, head, rows[:1], rows[1:20], rows[20:])
        store = self._again(store)
        assert store.open("acme", "one") == head == after(store.open("acme", "one"), rows)
        assert store.messages(head, 1, 30) == rows
        assert store.verify(head) == []

    @pytest.mark.parametrize(
        ("first", "last", "there"), [(4, 6, [4, 5, 6]), (-3, 2, [1, 2]), (9, 99, [9, 10]), (11, 20, []), (6, 4, [])]
    )
    def test_a_range_is_clipped_to_what_there_is(self, store: Store, first: int, last: int, there: list[int]) -> None:
        head, rows = self._talk(store, 10)
        assert store.messages(head, first, last) == [rows[position - 1] for position in there]

    def test_a_head_reads_no_further_than_it_reaches(self, store: Store) -> None:
        """So what a reader computes from its head does not depend on who else is writing."""
        old, rows = self._talk(store, 4)
        new = store.commit(store.append(old, chain(talk(3), old)), *record_after(old))
        assert store.messages(old, 1, 99) == rows
        assert store.pick(old, [4, 5]) == rows[3:]
        assert store.locate(old, [new.tip]) == {}
        assert store.records(old) == []

    def test_messages_are_picked_once_each_and_in_order(self, store: Store) -> None:
        head, rows = self._talk(store, 10)
        assert store.pick(head, [7, 2, 3, 7, 0, 11, -1]) == [rows[1], rows[2], rows[6]]
        assert store.pick(head, []) == []

    def test_messages_are_located_by_id(self, store: Store) -> None:
        head, rows = self._talk(store, 250)
        assert store.locate(head, [rows[6].id, "ab" * 20, rows[0].id]) == {rows[6].id: 7, rows[0].id: 1}
        assert store.locate(head, [row.id for row in rows]) == {row.id: row.position for row in rows}
        assert store.locate(head, []) == {}
        assert store.locate(head, ["", "m7", "no id at all", rows[6].id[:39], rows[6].id.upper(), "é"]) == {}

    def test_appending_nothing_changes_nothing(self, store: Store) -> None:
        head, _ = self._talk(store, 3)
        assert store.append(head, []) == head

    def test_a_message_said_twice_is_kept_twice(self, store: Store) -> None:
        head = store.open("acme", "one")
        long = user("again and again " * 3000)
        rows = chain([long, long, long], head)
        head = store.append(head, rows)
        assert store.messages(head, 1, 3) == rows
        assert len({row.id for row in rows}) == 3

    @pytest.mark.parametrize(
        "text", ["", "\0", "\u2028\ud7ff\U0001f600", "\\\"'`;--", " ", "é" * 5000], ids=lambda text: ascii(text[:8])
    )
    def test_any_text_survives(self, store: Store, text: str) -> None:
        head = store.open("acme", "one")
        rows = chain([user(text), tool_result("c", text)], head)
        head = store.append(head, rows)
        assert self._again(store).messages(head, 1, 2) == rows

    def test_bodies_of_every_size_survive(self, store: Store) -> None:
        head = store.open("acme", "one")
        noise = "".join(Random(7).choices(string.ascii_letters, k=2**16))
        rows = chain([user(noise[: 2**size]) for size in range(17)], head)
        head = store.append(head, rows)
        store = self._again(store)
        assert store.messages(head, 1, 99) == rows
        assert store.verify(head) == []

    def test_an_erased_body_is_read_and_verified_without_it(self, store: Store) -> None:
        head = store.open("acme", "one")
        rows = chain([*talk(5), user("secret " * 9000), *talk(2)], head)
        rows = [erased(row) if row.position in (2, 6) else row for row in rows]
        head = store.append(head, rows)
        store = self._again(store)
        assert store.messages(head, 1, 99) == rows
        assert store.verify(head) == []

    def test_a_row_that_breaks_the_chain_is_refused_whole(self, store: Store) -> None:
        head, _ = self._talk(store, 2)
        good = chain(talk(3), head)
        broken = [
            structs.replace(good[1], position=7),
            structs.replace(good[1], body=good[0].body),
            structs.replace(good[1], body_hash=good[0].body_hash, body=b""),
            structs.replace(good[1], body_hash="no hash", body=b""),
            structs.replace(good[1], id=good[0].id),
            structs.replace(good[1], seal=good[0].seal),
            structs.replace(good[1], stamp=structs.replace(good[1].stamp, turn=99)),
        ]
        for row in broken:
            with pytest.raises(BadInput, match="Message 4"):
                store.append(head, [good[0], row, good[2]])
        assert store.open("acme", "one") == head
        assert store.verify(head) == []

    # ----------------------------------------------------------------------------------- optimistic concurrency

    def test_the_second_writer_at_a_tip_is_refused_and_nothing_is_written(self, store: Store) -> None:
        head, rows = self._talk(store, 3)
        first = chain([user("mine")], head)
        now = store.append(head, first)
        for late in ([user("late")], [user("mine")]):
            with pytest.raises(TipMoved, match="4 messages"):
                store.append(head, chain(late, head))
        with pytest.raises(TipMoved):
            store.append(head, [])
        assert store.open("acme", "one") == now
        assert store.messages(now, 1, 99) == rows + first

    def test_the_second_plan_is_refused_and_nothing_is_written(self, store: Store) -> None:
        """F35: two processes plan at once; the later plan does not know what the earlier one hid."""
        head, _ = self._talk(store, 3)
        record, id = record_after(head)
        now = store.commit(head, record, id)
        other = Hide(Target("cd" * 20))
        with pytest.raises(StalePlan, match="journal has 1 edits"):
            store.commit(head, *record_after(head, other))
        assert store.open("acme", "one") == now
        assert store.records(now) == [(id, record)]

    def test_a_head_beyond_what_the_store_holds_is_told_that_the_store_went_back(self, store: Store) -> None:
        """It was acknowledged by a server that failed over, or before an older backup took its place."""
        head, rows = self._talk(store, 3)
        lost = chain([user("lost")], head)
        ahead = after(head, lost)
        told: list[Callable[[], object]] = [
            lambda: store.append(ahead, chain([user("next")], ahead)),
            lambda: store.messages(ahead, 1, 4),
            lambda: store.records(ahead),
            lambda: store.locate(ahead, [rows[0].id]),
            lambda: store.fork(ahead, "two", 2, 0),
            lambda: store.repoint(ahead, 2, 0, "before"),
            lambda: store.snapshot(ahead),
        ]
        for ask in told:
            with pytest.raises(WentBack, match=r"4 messages and 0 edits .* there are 3 and 0") as one:
                ask()
            assert (one.value.known, one.value.now) == ((4, 0), (3, 0))
        planned = structs.replace(head, number=1, record="cd" * 20)
        with pytest.raises(WentBack, match="3 messages and 1 edits"):
            store.commit(planned, *record_after(planned))
        assert [finding.where for finding in store.verify(ahead)] == ["head"]
        assert (store.open("acme", "one"), store.names("acme")) == (head, ["one"])

    def test_messages_appended_by_others_do_not_make_a_plan_stale(self, store: Store) -> None:
        """F31: what arrives during a compaction stays, and the compaction too."""
        head, rows = self._talk(store, 3)
        more = chain([user("meanwhile")], head)
        store.append(head, more)
        record, id = record_after(head)
        now = store.commit(head, record, id)
        assert now == structs.replace(after(head, more), number=1, record=id)
        assert store.messages(now, 1, 99) == rows + more

    def test_a_plan_committed_by_others_does_not_refuse_a_message(self, store: Store) -> None:
        head, _ = self._talk(store, 3)
        record, id = record_after(head)
        store.commit(head, record, id)
        more = chain([user("meanwhile")], head)
        assert store.append(head, more) == structs.replace(after(head, more), number=1, record=id)

    def test_of_many_threads_at_one_tip_one_wins(self, store: Store) -> None:
        head, rows = self._talk(store, 3)
        start = Barrier(6)
        outcomes: list[Head | TipMoved] = []

        def write(number: int) -> None:
            start.wait()
            try:
                outcomes.append(store.append(head, chain([user(f"writer {number}")], head)))
            except TipMoved as error:
                outcomes.append(error)

        self._run(write, 6)
        won = [outcome for outcome in outcomes if isinstance(outcome, Head)]
        assert (len(outcomes), len(won)) == (6, 1)
        assert store.open("acme", "one") == won[0]
        assert store.messages(won[0], 1, 3) == rows

    def test_threads_that_retry_lose_nothing(self, store: Store) -> None:
        store.open("acme", "one")

        def write(number: int) -> None:
            for turn in range(5):
                while True:
                    head = store.open("acme", "one")
                    try:
                        store.append(head, chain([user(f"{number}.{turn}")], head))
                        break
                    except TipMoved:
                        continue

        self._run(write, 4)
        head = store.open("acme", "one")
        said = [row.body.decode().split('"text":"')[1].split('"')[0] for row in store.messages(head, 1, 99)]
        assert sorted(said) == sorted(f"{number}.{turn}" for number in range(4) for turn in range(5))
        assert store.verify(head) == []

    # ---------------------------------------------------------------------------------------------- the journal

    def test_records_are_read_back_as_they_were(self, store: Store) -> None:
        head, rows = self._talk(store, 9)
        made = []
        for size in (1, 3, 1, 300):
            edits = [Replace(Target(rows[n % 9].id, (0,)), (Text(f"short {n}"),), "test", "why") for n in range(size)]
            record, id = record_after(head, *edits)
            made.append((id, record))
            head = store.commit(head, record, id)
            assert (head.number, head.record) == (record.last, id)
        store = self._again(store)
        assert store.open("acme", "one") == head
        assert store.records(head) == made
        assert store.records(head, after=1) == made[1:]
        assert store.records(head, after=2) == made[2:]
        assert store.records(head, after=5) == made[3:]
        assert store.records(head, after=6) == []
        assert store.records(head, after=9999) == []
        assert store.verify(head) == []

    def test_a_record_that_breaks_the_chain_is_refused(self, store: Store) -> None:
        head, _ = self._talk(store, 2)
        head = store.commit(head, *record_after(head))
        record, id = record_after(head)
        with pytest.raises(BadInput, match="next number is 2"):
            store.commit(head, structs.replace(record, first=3), id)
        with pytest.raises(BadInput, match="its id"):
            store.commit(head, record, "ab" * 20)
        with pytest.raises(BadInput, match="no edit"):
            store.commit(head, structs.replace(record, edits=()), id)
        assert store.open("acme", "one") == head

    # --------------------------------------------------------------------------------------- forks and branches

    def test_a_fork_shares_what_came_before_and_nothing_after(self, store: Store) -> None:
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
        fork = store.append(fork, own)
        record, id = record_after(fork, Hide(Target(own[0].id)))
        fork = store.commit(fork, record, id)
        head = store.append(head, chain(talk(1, "art"), head))

        store = self._again(store)
        assert store.open("acme", "one") == head
        assert store.open("acme", "two") == fork
        assert store.messages(fork, 1, 99) == rows[:5] + own
        assert store.messages(fork, 5, 6) == [rows[4], own[0]]
        assert store.pick(fork, [8, 1, 6]) == [rows[0], own[0], own[2]]
        assert store.records(fork) == [*records[:2], (id, record)]
        assert store.records(fork, after=1) == [records[1], (id, record)]
        assert store.locate(fork, [rows[4].id, rows[5].id, own[1].id]) == {rows[4].id: 5, own[1].id: 7}
        assert store.locate(head, [rows[5].id, own[1].id]) == {rows[5].id: 6}
        assert store.names("acme") == ["one", "two"]
        assert store.verify(head) == store.verify(fork) == []

    def test_a_fork_of_a_fork_of_a_fork_reads_through_all_of_them(self, store: Store) -> None:
        head, expected = self._talk(store, 6)
        for depth, position in enumerate([5, 7, 2, 4, 6, 0, 1, 3]):
            position = min(position, head.position)
            head = store.fork(head, f"fork {depth}", position, 0)
            own = chain(talk(4, f"depth {depth}"), head)
            head, expected = store.append(head, own), expected[:position] + own
            assert store.messages(head, 1, 99) == expected
            assert store.locate(head, [row.id for row in expected]) == {row.id: row.position for row in expected}
            assert store.verify(head) == []

    def test_the_same_words_after_the_same_past_may_be_said_on_two_branches(self, store: Store) -> None:
        """F32: both branches hold a message of the same id, and each finds its own."""
        head, rows = self._talk(store, 4)
        fork = store.fork(head, "two", 2, 0)
        again = chain(talk(4)[2:], fork)
        fork = store.append(fork, again)
        assert [row.id for row in again] == [row.id for row in rows[2:]]
        assert store.locate(fork, [rows[3].id]) == store.locate(head, [rows[3].id]) == {rows[3].id: 4}

    def test_a_fork_begins_anywhere_from_nothing_to_the_tip(self, store: Store) -> None:
        head, rows = self._talk(store, 3)
        head = store.commit(head, *record_after(head))
        assert store.messages(store.fork(head, "at nothing", 0, 0), 1, 9) == []
        at_tip = store.fork(head, "at the tip", 3, 1)
        assert (at_tip.tip, at_tip.seal, at_tip.record) == (head.tip, head.seal, head.record)
        assert store.messages(at_tip, 1, 9) == rows

    def test_a_fork_ends_where_a_record_ends(self, store: Store) -> None:
        head, _ = self._talk(store, 3)
        head = store.commit(head, *record_after(head, *[Hide(Target(head.tip))] * 3))
        with pytest.raises(BadSetting, match="middle of a record"):
            store.fork(head, "two", 3, 2)
        with pytest.raises(BadSetting, match="middle of a record"):
            store.repoint(head, 3, 2, "kept")
        assert store.names("acme") == ["one"]

    @pytest.mark.parametrize(("position", "number"), [(4, 0), (-1, 0), (3, 2), (3, -1)])
    def test_a_fork_at_what_is_not_there_is_refused(self, store: Store, position: int, number: int) -> None:
        head, _ = self._talk(store, 3)
        head = store.commit(head, *record_after(head))
        with pytest.raises(BadSetting, match="there is no point"):
            store.fork(head, "two", position, number)
        with pytest.raises(BadSetting, match="there is no point"):
            store.repoint(head, position, number, "kept")
        with pytest.raises(BadSetting, match="there is no point"):
            store.save_snapshot(head, position, number, b"")

    def test_a_name_that_is_taken_is_refused_and_nothing_is_made(self, store: Store) -> None:
        head, _ = self._talk(store, 3)
        other = store.open("acme", "two")
        for taken in ("two", "one"):
            with pytest.raises(BadSetting, match="already is a conversation"):
                store.fork(head, taken, 1, 0)
            with pytest.raises(BadSetting, match="already is a conversation"):
                store.repoint(head, 1, 0, taken)
        assert (store.open("acme", "one"), store.open("acme", "two")) == (head, other)
        assert store.fork(head, "three", 1, 0).branch == head.branch + 1

    def test_repointing_moves_the_name_and_keeps_what_was_there(self, store: Store) -> None:
        head, rows = self._talk(store, 6)
        head = store.commit(head, *record_after(head))
        moved = store.repoint(head, 4, 0, "before")
        assert moved == Head("acme", "one", head.root, moved.branch, 4, rows[3].id, rows[3].seal)
        own = chain(talk(2, "sport"), moved)
        moved = store.append(moved, own)
        store = self._again(store)
        assert store.open("acme", "one") == moved
        assert store.messages(moved, 1, 99) == rows[:4] + own
        kept = store.open("acme", "before", create=False)
        assert kept == structs.replace(head, name="before")
        assert store.messages(kept, 1, 99) == rows
        kept = store.append(kept, chain(talk(1, "art"), kept))
        assert store.names("acme") == ["before", "one"]
        assert store.verify(moved) == store.verify(kept) == []

    def test_a_writer_that_missed_a_repointing_is_refused(self, store: Store) -> None:
        head, rows = self._talk(store, 4)
        store.repoint(head, 2, 0, "before")
        with pytest.raises(TipMoved, match="moved to another branch"):
            store.append(head, chain([user("late")], head))
        with pytest.raises(StalePlan, match="moved to another branch"):
            store.commit(head, *record_after(head))
        with pytest.raises(TipMoved, match="moved to another branch"):
            store.repoint(head, 1, 0, "again")
        assert store.messages(head, 1, 99) == rows
        assert store.messages(store.open("acme", "before"), 1, 99) == rows
        assert store.names("acme") == ["before", "one"]

    def test_repointing_from_a_head_that_is_not_current_is_refused(self, store: Store) -> None:
        head, _ = self._talk(store, 4)
        store.append(head, chain([user("more")], head))
        with pytest.raises(TipMoved, match="5 messages"):
            store.repoint(head, 2, 0, "before")
        head = store.open("acme", "one")
        store.commit(head, *record_after(head))
        with pytest.raises(StalePlan, match="journal has 1 edits"):
            store.repoint(head, 2, 0, "before")
        assert store.names("acme") == ["one"]

    def test_repointing_again_and_again_keeps_every_branch(self, store: Store) -> None:
        head, rows = self._talk(store, 3)
        for turn in range(8):
            head = store.repoint(head, 2, 0, f"try {turn}")
            head = store.append(head, chain([user(f"again {turn}")], head))
        assert store.messages(head, 1, 2) == rows[:2]
        said = [store.messages(store.open("acme", f"try {turn}"), 3, 9)[0].body for turn in range(8)]
        assert said == [rows[2].body, *(chain([user(f"again {turn}")])[0].body for turn in range(7))]
        assert store.verify(head) == []

    # ------------------------------------------------------------------------------------------------ snapshots

    def test_a_snapshot_replaces_the_one_before(self, store: Store) -> None:
        head, _ = self._talk(store, 5)
        head = store.commit(head, *record_after(head))
        store.save_snapshot(head, 3, 0, b"early")
        store.save_snapshot(head, 5, 1, b"late" * 5000)
        store = self._again(store)
        assert store.snapshot(head) == (5, 1, b"late" * 5000)

    def test_a_snapshot_later_than_the_head_is_not_used(self, store: Store) -> None:
        old, _ = self._talk(store, 3)
        new = store.append(old, chain(talk(2), old))
        store.save_snapshot(new, 4, 0, b"at four")
        assert (store.snapshot(old), store.snapshot(new)) == (None, (4, 0, b"at four"))
        newer = store.commit(new, *record_after(new))
        store.save_snapshot(newer, 5, 1, b"with an edit")
        assert (store.snapshot(new), store.snapshot(newer)) == (None, (5, 1, b"with an edit"))

    def test_a_fork_uses_the_snapshot_it_came_by_until_it_has_its_own(self, store: Store) -> None:
        head, _ = self._talk(store, 6)
        store.save_snapshot(head, 4, 0, b"of one")
        near, far = store.fork(head, "near", 5, 0), store.fork(head, "far", 3, 0)
        assert (store.snapshot(near), store.snapshot(far)) == ((4, 0, b"of one"), None)
        deeper = store.fork(near, "deeper", 4, 0)
        assert store.snapshot(deeper) == (4, 0, b"of one")
        store.save_snapshot(near, 5, 0, b"of near")
        assert store.snapshot(near) == (5, 0, b"of near")
        assert store.snapshot(head) == (4, 0, b"of one")

    # --------------------------------------------------------------------------------------------------- closing

    def test_a_closed_store_says_so(self, store: Store) -> None:
        head, _ = self._talk(store, 1)
        store.close()
        store.close()
        with pytest.raises(StoreError, match="closed"):
            store.append(head, chain([user("more")], head))
        with pytest.raises(StoreError, match="closed"):
            store.messages(head, 1, 1)

    # --------------------------------------------------------------------------------------------------- helpers

    def _again(self, store: Store) -> Store:
        self._made.append(self.reopen(store))
        return self._made[-1]

    def _talk(self, store: Store, count: int) -> tuple[Head, list[Appended]]:
        """A conversation `one` of `count` messages, and its rows."""
        head = store.open("acme", "one")
        rows = chain(talk(count), head)
        return store.append(head, rows), rows

    def _append(self, store: Store, head: Head, *batches: list[Appended]) -> Head:
        for rows in batches:
            expected = after(head, rows)
            head = store.append(head, rows)
            assert head == expected
        return head

    def _run(self, work: object, count: int) -> None:
        threads = [Thread(target=work, args=(number,)) for number in range(count)]  # type: ignore[arg-type]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
