"""Tests of the capability `SavesViews`."""

from __future__ import annotations

import pytest

from ..errors import NoSuchConversation
from ..ports import Database, Head, append
from .base_contract import BaseContract, talk
from .rows import chain, record_after

__all__ = ["ViewContract"]


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

    def test_snapshot_of_another_store_is_refused(self, store: Database) -> None:
        with pytest.raises(NoSuchConversation):
            store.save_snapshot(Head("acme", "two", 77, 1), 0, 0, b"")
