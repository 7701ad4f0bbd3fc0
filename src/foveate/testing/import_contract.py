"""Tests of the capabilities `Imports` and `Audits`."""

from __future__ import annotations

import pytest
from msgspec import structs

from ..core import ids, wire
from ..core.edits import Hide, Record, Target
from ..core.messages import user
from ..core.runs import AgentRun, AgentRunStep
from ..core.stamps import Stamp
from ..errors import BadInput, BadSetting, ConflictError, NoSuchConversation, StoreError
from ..ports import Database, Erasure, StoredMessage, append
from .base_contract import BaseContract
from .rows import chain, record_after

__all__ = ["AuditContract", "ImportContract"]


class ImportContract:
    """Tests of `rename`, `commit_all`, `discard`, and of chains without redacted forms."""

    def test_renamed_conversation_is_the_same(self, store: Database) -> None:
        head = store.open("acme", "one")
        head = append(store, head, chain([user("said")], head))
        fork = store.fork(head, "two", 1, 0)
        other = store.open("zeta", "one")
        store.rename("acme", {"one": "uno", "two": "due"})
        uno, due = structs.replace(head, name="uno"), structs.replace(fork, name="due")
        assert store.names("acme") == ["due", "uno"]
        assert [store.open("acme", name, create=False) for name in ("uno", "due")] == [uno, due]
        assert store.open("zeta", "one") == other
        assert store.verify(uno) == store.verify(due) == []
        assert append(store, uno, chain([user("more")], uno)).position == 2
        with pytest.raises(ConflictError, match="'uno'"):
            append(store, head, chain([user("late")], head))
        assert store.open("acme", "one").position == 0

    @pytest.mark.parametrize(
        ("names", "error"),
        [
            ({"one": "two"}, BadSetting),
            ({"one": "one"}, BadSetting),
            ({"one": "three", "two": "three"}, BadSetting),
            ({"one": "two", "two": "one"}, BadSetting),
            ({"one": ""}, BadSetting),
            ({"one": "three", "nobody": "four"}, NoSuchConversation),
            ({"one": "three", "two": "x" * 501}, BadSetting),
        ],
    )
    def test_names_that_cannot_be_given_leave_all_as_it_was(
        self, store: Database, names: dict[str, str], error: type[StoreError]
    ) -> None:
        heads = [store.open("acme", name) for name in ("one", "two")]
        with pytest.raises(error):
            store.rename("acme", names)
        assert store.names("acme") == ["one", "two"]
        assert [store.open("acme", name) for name in ("one", "two")] == heads

    def test_records_committed_together_equal_single_ones(self, store: Database) -> None:
        one, two = store.open("acme", "one"), store.open("acme", "two")
        one, two = (append(store, head, chain([user("said"), user("more")], head)) for head in (one, two))
        made, before = [], two
        for size in (1, 3, 2):
            record, id = record_after(one, *[Hide(Target(one.tip), reason=f"{size}")] * size)
            made.append((id, record))
            one = store.commit(one, record, id)
        assert store.commit_all(two, []) == two
        two = store.commit_all(two, made[:2])
        assert (two.position, two.tip, two.number, two.record) == (2, one.tip, 4, made[1][0])
        two = store.commit_all(two, made[2:])
        assert store.records(two) == store.records(one) == made
        assert store.open("acme", "two") == two
        with pytest.raises(ConflictError):
            store.commit_all(before, made)
        with pytest.raises(BadInput, match="its first edit is numbered 5, and the next number is 2"):
            store.commit_all(before, [made[0], made[2]])
        assert store.records(two) == made
        assert store.verify(two) == []

    def test_tree_of_unfinished_conversations_is_taken_away_with_all_in_it(self, store: Database) -> None:
        other = store.open("acme", "one")
        other = append(store, other, chain([user(f"{n} " * 4000) for n in range(3)], other))
        head = store.open("acme", "~half 1")
        head = append(store, head, chain([user(f"{n} " * 4000) for n in range(3)], head))
        head = store.commit(head, *record_after(head))
        store.save_snapshot(head, 3, 1, b"a view")
        fork = store.fork(head, "~half 2", 2, 0)
        store.put_run(head, AgentRun("r", "me", "~half 1"))
        store.put_step(head, AgentRunStep("r", 1, "action"))
        store.add_erasure(head, Erasure(1))
        assert [store.search(one, "2") != [] for one in (store.open("acme", "~half 1"), other)] == [True, True]
        before = list(store.census()), store.names("acme")
        for prefix in ("~half 1", "", "~importing"):
            with pytest.raises(BadSetting, match="Nothing was deleted"):
                store.discard(fork, prefix)
        assert (list(store.census()), store.names("acme")) == before
        store.discard(fork, "~half")
        assert (list(store.census()), store.names("acme")) == ([other], ["one"])
        assert store.search(other, "2") != []
        with pytest.raises(NoSuchConversation):
            store.discard(fork, "~half")
        assert store.open("acme", "~half 1").position == 0
        assert store.verify(store.open("acme", "~half 1")) == store.verify(other) == []

    def test_links_from_before_there_were_outlines_are_taken_and_verified(self, store: Database) -> None:
        """Imports bring such chains: other ids would be another history."""
        head = store.open("acme", "one")
        (row,) = chain([user("said")], head)
        stamp = Stamp(1, 2, 3, "user", metadata='{"ticket":7}')
        head = append(store, head, [_early(row, stamp)])
        record = Record(1, (Hide(Target(head.tip), reason="to have an edit"),), 1, 1, head.tip, 1)
        head = store.commit(head, record, ids.legacy_record_id("", wire.encode_record(record)))
        assert store.messages(head, 1, 1) == [_early(row, stamp)]
        assert store.records(head) == [(head.record, record)]
        assert store.verify(head) == []


def _early(row: StoredMessage, stamp: Stamp) -> StoredMessage:
    return structs.replace(row, stamp=stamp, seal=ids.seal("", row.id, wire.encode_stamp(stamp)))


class AuditContract(BaseContract):
    """Tests of `tenants` and `census`."""

    def test_empty_store_has_an_empty_census(self, store: Database) -> None:
        assert (store.tenants(), list(store.census())) == ({}, [])

    def test_all_tenants_with_conversations_are_listed(self, store: Database) -> None:
        for tenant, name in (("zeta", "one"), ("", "one"), ("acme", "two"), ("acme", "one"), ("Émile", "one")):
            store.open(tenant, name)
        assert list(self._again(store).tenants().items()) == [("", 1), ("acme", 2), ("zeta", 1), ("Émile", 1)]

    def test_census_lists_every_conversation_once(self, store: Database) -> None:
        """Forks, changed names, runs and erasures all belong to a conversation."""
        for tenant in ("acme", ""):
            head = store.open(tenant, "one")
            head = append(store, head, chain([user(f"{n} " * 4000) for n in range(6)], head))
            head = store.commit(head, *record_after(head))
            store.save_snapshot(head, 6, 1, b"a view")
            store.fork(head, "two", 3, 0)
            store.repoint(head, 4, 1, "one~1")
            store.rename(tenant, {"two": "due"})
            store.open(tenant, "two")
            store.put_run(head, AgentRun("r", "me", "one"))
            store.put_step(head, AgentRunStep("r", 1, "action", output="done"))
            store.erase(store.open(tenant, "one"), [(2, 2)])
            store.search(store.open(tenant, "one"), "4")
        store = self._again(store)
        names = ["due", "one", "one~1", "two"]
        of = {tenant: [store.open(tenant, name, create=False) for name in names] for tenant in ("acme", "")}
        assert sorted(store.census("acme"), key=str) == sorted(of["acme"], key=str)
        assert sorted(store.census(""), key=str) == sorted(of[""], key=str)
        assert sorted(store.census(), key=str) == sorted(of["acme"] + of[""], key=str)
        assert list(store.census("nobody")) == []
        assert [store.verify(one) for heads in of.values() for one in heads] == [[]] * 8

    def test_census_of_many_conversations_is_complete(self, store: Database) -> None:
        expected = [store.open(f"tenant {n % 3}", f"name {n}") for n in range(12)]
        expected += [store.fork(expected[0], f"fork {n}", 0, 0) for n in range(9)]
        assert sorted(store.census(), key=str) == sorted(expected, key=str)
        mine = [one for one in expected if one.tenant == "tenant 1"]
        assert sorted(store.census("tenant 1"), key=str) == sorted(mine, key=str)

    def test_others_may_write_while_a_census_is_taken(self, store: Database) -> None:
        before = [store.open("acme", f"name {n}") for n in range(5)]
        listed = []
        for number, one in enumerate(store.census()):
            listed.append(one)
            head = store.open("acme", f"later {number}") if number < 3 else store.open("acme", "name 1")
            append(store, head, chain([user("meanwhile")], head))
        assert {one.name for one in before} <= {structs.asdict(one).get("name") for one in listed}

    def test_closed_store_takes_no_census(self, store: Database) -> None:
        store.open("acme", "one")
        store.close()
        with pytest.raises(StoreError, match="closed"):
            store.tenants()
        with pytest.raises(StoreError, match="closed"):
            list(store.census())
