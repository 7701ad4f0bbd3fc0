"""Tests of the capability `Audits`."""

from __future__ import annotations

import pytest
from msgspec import structs

from ..core.messages import user
from ..core.runs import AgentRun, AgentRunStep
from ..errors import StoreError
from ..ports import Database, append
from .base_contract import BaseContract
from .rows import chain, record_after

__all__ = ["AuditContract"]


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
        told = []
        for number, one in enumerate(store.census()):
            told.append(one)
            head = store.open("acme", f"later {number}") if number < 3 else store.open("acme", "name 1")
            append(store, head, chain([user("meanwhile")], head))
        assert {one.name for one in before} <= {structs.asdict(one).get("name") for one in told}

    def test_closed_store_takes_no_census(self, store: Database) -> None:
        store.open("acme", "one")
        store.close()
        with pytest.raises(StoreError, match="closed"):
            store.tenants()
        with pytest.raises(StoreError, match="closed"):
            list(store.census())
