"""Tests of `ports.Store` and of its capabilities, for every store.

    class TestMyStore(StoreContract):
        def make_store(self) -> Store:
            return MyStore(...)

`StoreContract` tests the twelve methods of `Store`. Add the contract of each capability that your store has, such as
`SearchContract`; `DatabaseContract` has all. A store that outlives its process also defines `reopen`; it is then closed
and opened again wherever that may make a difference.
"""

from __future__ import annotations

import pytest

from ..core.messages import user
from ..errors import BadSetting, NoSuchConversation, StoreError
from ..ports import Database, Head, append
from .age_contract import AgeContract
from .append_contract import AppendContract
from .base_contract import talk
from .catalog_contract import CatalogContract
from .erase_contract import EraseContract
from .import_contract import AuditContract, ImportContract
from .list_contract import ListContract
from .lock_contract import LockContract
from .race_contract import RaceContract
from .release_contract import ReleaseContract
from .rewind_contract import ForkContract, RewindContract
from .rows import chain, record_after
from .run_contract import RunContract
from .search_contract import SearchContract
from .turn_contract import TurnContract, ViewContract

__all__ = ["DatabaseContract", "StoreContract", "talk"]


class StoreContract(AppendContract, RaceContract, ForkContract, TurnContract):
    """The tests of `ports.Store`. Subclass it in a test module, define `make_store`, and run pytest."""

    def test_new_conversation_is_empty(self, store: Database) -> None:
        head = store.open("acme", "one")
        assert head == Head("acme", "one", head.root, head.branch)
        assert 0 < head.root < 2**63
        assert store.messages(head, 1, 10) == []
        assert store.records(head) == []
        assert store.snapshot(head) is None
        assert store.verify(head) == []

    def test_opening_again_gives_the_same_head(self, store: Database) -> None:
        assert store.open("acme", "one") == store.open("acme", "one") == store.open("acme", "one", create=False)

    def test_missing_database_is_created_only_on_request(self, store: Database) -> None:
        with pytest.raises(NoSuchConversation, match="nobody"):
            store.open("acme", "nobody", create=False)
        assert store.names("acme") == []

    def test_names_are_sorted_and_each_tenant_sees_its_own(self, store: Database) -> None:
        for tenant, name in [("acme", "b"), ("acme", "a"), ("zeta", "a"), ("", "ü")]:
            store.open(tenant, name)
        assert [store.names(tenant) for tenant in ("acme", "zeta", "", "none")] == [["a", "b"], ["a"], ["ü"], []]

    def test_tenants_do_not_share_a_conversation_of_the_same_name(self, store: Database) -> None:
        ours, theirs = store.open("acme", "one"), store.open("zeta", "one")
        ours = append(store, ours, chain(talk(2), ours))
        assert store.open("zeta", "one") == theirs
        assert ours.root != theirs.root

    @pytest.mark.parametrize("name", ["", "a\0b", "half \ud83d", "x" * 501])
    def test_name_that_no_database_can_keep_is_refused(self, store: Database, name: str) -> None:
        with pytest.raises(BadSetting):
            store.open("acme", name)

    def test_head_of_another_store_is_refused(self, store: Database) -> None:
        store.open("acme", "one")
        stranger = Head("acme", "two", 77, 1)
        with pytest.raises(NoSuchConversation):
            store.messages(stranger, 1, 2)
        with pytest.raises(NoSuchConversation):
            append(store, stranger, chain(talk(1), stranger))
        with pytest.raises(NoSuchConversation):
            store.commit(stranger, *record_after(stranger))

    def test_closed_store_says_so(self, store: Database) -> None:
        head, _ = self._talk(store, 1)
        store.close()
        store.close()
        with pytest.raises(StoreError, match="closed"):
            append(store, head, chain([user("more")], head))
        with pytest.raises(StoreError, match="closed"):
            store.messages(head, 1, 1)


class DatabaseContract(
    StoreContract,
    ViewContract,
    RewindContract,
    ListContract,
    SearchContract,
    RunContract,
    LockContract,
    EraseContract,
    ReleaseContract,
    AgeContract,
    AuditContract,
    ImportContract,
    CatalogContract,
):
    """The tests of `ports.Database`: a store with all capabilities."""
