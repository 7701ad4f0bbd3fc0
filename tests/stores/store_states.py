"""The contents of a store as one value, and the scenario of the failure tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from foveate.core import wire
from foveate.core.catalog import Action, Binding, Prompt
from foveate.core.edits import Hide, Target
from foveate.core.ids import body_hash
from foveate.core.messages import user
from foveate.errors import ConflictError
from foveate.ports import Database, Head, append
from foveate.stores.memory import MemoryStore
from foveate.testing.rows import chain, record_after
from foveate.testing.run_contract import run_of, step_of
from foveate.testing.store_contract import talk

Step = Callable[[Database, dict[str, Head]], None]


def state(store: Database, tenant: str = "acme") -> dict[str, Any]:
    """Return all readable data of a tenant's conversations, by name, and of its catalog. Fails if verify finds
    anything.
    """
    found: dict[str, Any] = {}
    for name in store.names(tenant):
        head = store.open(tenant, name, create=False)
        findings = store.verify(head)
        assert findings == [], findings
        rows = store.messages(head, 1, head.position)
        assert store.get_many(head, range(1, head.position + 1)) == rows
        assert store.locate(head, [row.id for row in rows]) == {row.id: row.position for row in rows}
        runs = [(run, store.steps(head, run.id)) for run in store.runs(head)]
        found[name] = (head, rows, store.records(head), store.snapshot(head), runs)
    found[""] = (store.actions(tenant), store.bindings(tenant), store.prompts(tenant))  # No conversation has this name.
    return found


def scenario() -> list[Step]:
    """Yield every way to change a store, one operation a step, each with the heads that the earlier steps returned."""

    def opening(store: Database, heads: dict[str, Head]) -> None:
        heads["one"] = store.open("acme", "one")

    def appending(store: Database, heads: dict[str, Head]) -> None:
        heads["one"] = append(store, heads["one"], chain(talk(4, f"at {heads['one'].position}"), heads["one"]))

    def committing(store: Database, heads: dict[str, Head]) -> None:
        heads["one"] = store.commit(heads["one"], *record_after(heads["one"]))

    def forking(store: Database, heads: dict[str, Head]) -> None:
        heads["two"] = store.fork(heads["one"], "two", 3, 1)

    def appending_to_the_fork(store: Database, heads: dict[str, Head]) -> None:
        heads["two"] = append(store, heads["two"], chain([user("own")], heads["two"]))

    def repointing(store: Database, heads: dict[str, Head]) -> None:
        heads["one"] = store.repoint(heads["one"], 6, 0, "before")

    def renaming(store: Database, heads: dict[str, Head]) -> None:
        store.rename("acme", {"two": "second", "before": "former"})

    def saving(store: Database, heads: dict[str, Head]) -> None:
        store.save_snapshot(heads["one"], 2, 0, b"seen" * 50)

    def running(store: Database, heads: dict[str, Head]) -> None:
        store.put_run(heads["one"], run_of("r1"))

    def ending(store: Database, heads: dict[str, Head]) -> None:
        store.put_run(heads["one"], structs.replace(run_of("r1"), state="done"))

    def stepping(store: Database, heads: dict[str, Head]) -> None:
        store.put_step(heads["one"], step_of("r1", 1))

    def claiming(store: Database, heads: dict[str, Head]) -> None:
        assert store.acquire_lock(heads["one"], "me").owner == "me"

    def stepping_at_work(store: Database, heads: dict[str, Head]) -> None:
        store.put_step(heads["one"], step_of("r1", 2), owner="me")

    def releasing(store: Database, heads: dict[str, Head]) -> None:
        store.release_lock(heads["one"], "me")

    def prompting(store: Database, heads: dict[str, Head]) -> None:
        store.put_prompt("acme", Prompt("short", "{{ text }}"))

    def acting(store: Database, heads: dict[str, Head]) -> None:
        store.put_action("acme", Action("look", default_compact_prompt="short"))

    def binding(store: Database, heads: dict[str, Head]) -> None:
        store.put_binding("acme", Binding("me", "look", 3, "compact", "summary", None, "short"))

    def unbinding(store: Database, heads: dict[str, Head]) -> None:
        store.drop_binding("acme", "me", "look")

    def unacting(store: Database, heads: dict[str, Head]) -> None:
        store.drop_action("acme", "look")

    def unprompting(store: Database, heads: dict[str, Head]) -> None:
        store.drop_prompt("acme", "short")

    def being_refused(store: Database, heads: dict[str, Head]) -> None:
        stale = structs.replace(heads["one"], position=0, tip="", seal="", number=0, record="")
        with pytest.raises(ConflictError):
            append(store, stale, chain([user("late")], stale))

    def extending(store: Database, heads: dict[str, Head]) -> None:
        heads["one"] = store.extend(heads["one"], lambda tail: chain([user("in turn")], tail.head)).head

    def extending_late(store: Database, heads: dict[str, Head]) -> None:
        late = structs.replace(heads["one"], position=0, tip="", seal="", number=0, record="")
        said = [user("behind"), user("others " + "".join(map(chr, range(300, 9000))))]
        heads["one"] = store.extend(late, lambda tail: chain(said, tail.head)).head

    def erasing(store: Database, heads: dict[str, Head]) -> None:
        store.erase(heads["one"], [(2, 3)], runs=True, who="me", reason="asked for", time=7)

    def releasing_originals(store: Database, heads: dict[str, Head]) -> None:
        head, outline = heads["one"], wire.encode_message(user("[released]"))
        edit = Hide(Target(head.tip), keeps_original=False, released=body_hash(outline))
        heads["one"] = store.release(head, *record_after(head, edit), {head.position: outline})

    return [
        opening,
        running,
        appending,
        stepping,
        claiming,
        stepping_at_work,
        releasing,
        committing,
        being_refused,
        extending,
        extending_late,
        appending,
        forking,
        appending_to_the_fork,
        saving,
        repointing,
        appending,
        ending,
        committing,
        saving,
        prompting,
        acting,
        binding,
        unbinding,
        unacting,
        unprompting,
        renaming,
        releasing_originals,
        erasing,
    ]


def states_along_the_way() -> list[dict[str, Any]]:
    """Return the contents of a store before the scenario and after each step."""
    store, heads = MemoryStore(), dict[str, Head]()
    found = [state(store)]
    for step in scenario():
        step(store, heads)
        found.append(state(store))
    return found
