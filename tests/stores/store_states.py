"""What a store holds, as one value to compare, and the scenario that the tests of failures run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from foveate.core.messages import user
from foveate.errors import TipMoved
from foveate.ports import Head, Store
from foveate.testing.rows import chain, record_after
from foveate.testing.store_contract import talk

Step = Callable[[Store, dict[str, Head]], None]


def state(store: Store, tenant: str = "acme") -> dict[str, Any]:
    """Everything that can be read of a tenant's conversations, by name. Fails where verify finds anything."""
    found: dict[str, Any] = {}
    for name in store.names(tenant):
        head = store.open(tenant, name, create=False)
        assert store.verify(head) == []
        rows = store.messages(head, 1, head.position)
        assert store.pick(head, range(1, head.position + 1)) == rows
        assert store.locate(head, [row.id for row in rows]) == {row.id: row.position for row in rows}
        found[name] = (head, rows, store.records(head), store.snapshot(head))
    return found


def scenario() -> list[Step]:
    """Every way to change a store, one operation a step, each with the heads that the steps before it got back."""

    def opening(store: Store, heads: dict[str, Head]) -> None:
        heads["one"] = store.open("acme", "one")

    def appending(store: Store, heads: dict[str, Head]) -> None:
        heads["one"] = store.append(heads["one"], chain(talk(4, f"at {heads['one'].position}"), heads["one"]))

    def committing(store: Store, heads: dict[str, Head]) -> None:
        heads["one"] = store.commit(heads["one"], *record_after(heads["one"]))

    def forking(store: Store, heads: dict[str, Head]) -> None:
        heads["two"] = store.fork(heads["one"], "two", 3, 1)

    def appending_to_the_fork(store: Store, heads: dict[str, Head]) -> None:
        heads["two"] = store.append(heads["two"], chain([user("own")], heads["two"]))

    def repointing(store: Store, heads: dict[str, Head]) -> None:
        heads["one"] = store.repoint(heads["one"], 6, 0, "before")

    def saving(store: Store, heads: dict[str, Head]) -> None:
        store.save_snapshot(heads["one"], 2, 0, b"seen" * 50)

    def being_refused(store: Store, heads: dict[str, Head]) -> None:
        stale = structs.replace(heads["one"], tip="ab" * 20)
        with pytest.raises(TipMoved):
            store.append(stale, chain([user("late")], stale))

    return [
        opening,
        appending,
        committing,
        being_refused,
        appending,
        forking,
        appending_to_the_fork,
        saving,
        repointing,
        appending,
        committing,
        saving,
    ]
