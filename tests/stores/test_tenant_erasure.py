"""Erasing a whole conversation, or all of a tenant, in batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from foveate.agents.limits import sub_conversation
from foveate.core.ids import ERASED
from foveate.core.messages import user
from foveate.core.runs import AgentRun
from foveate.errors import BadSetting, NoSuchConversation, StoreError
from foveate.ops import retention as erasing_all
from foveate.ops.archive import export_archive
from foveate.ops.retention import age_tenant, erase_conversation, erase_tenant
from foveate.ports import Database, append
from foveate.stores.memory import MemoryStore
from foveate.testing.faults import Countdown, failing_store
from foveate.testing.rows import chain


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Database:
    """Return a conversation of seven messages with a run, a fork that shares four and has two, and one of another
    tenant.
    """
    monkeypatch.setattr(erasing_all, "_MESSAGES", 3)
    store = MemoryStore()
    head = store.open("acme", "one")
    head = append(store, head, chain([user(f"word{n}") for n in range(7)], head))
    store.put_run(head, AgentRun("r", "me", "one", "some task"))
    fork = store.fork(head, "fork", 4, 0)
    append(store, fork, chain([user("own"), user("words")], fork))
    store.open("acme", "empty")
    theirs = store.open("zeta", "theirs")
    append(store, theirs, chain([user("theirs")], theirs))
    return store


def all_text(store: Database, name: str, tenant: str = "acme") -> str:
    """Return a sign for each message: x if it has content."""
    head = store.open(tenant, name, create=False)
    return "".join("x" if row.body else "-" for row in store.messages(head, 1, head.position))


def test_conversation_is_erased_in_pieces_and_its_forks_keep_their_own(store: Database) -> None:
    done = erase_conversation(store, "one", tenant="acme", reason="closed", who="ann", clock=lambda: 9)
    assert [(one.number, one.handles, one.messages, one.runs) for one in done] == [
        (1, "m1-m3", 3, 0),
        (2, "m4-m6", 3, 0),
        (3, "m7", 1, 1),
    ]
    assert {(one.time, one.who, one.reason) for one in done} == {(9, "ann", "closed")}
    assert (all_text(store, "one"), all_text(store, "fork"), all_text(store, "theirs", "zeta")) == (
        "-------",
        "----xx",
        "x",
    )
    assert store.runs(store.open("acme", "one"))[0].task == ERASED
    assert erase_conversation(store, "one", tenant="acme") == []


def test_sub_agents_are_erased_with_their_conversation(store: Database) -> None:
    """Their tasks and answers repeat its texts. Other children stay: a program may have named them."""
    for name in ("one/r/2", "one/r/2/q/1", "one/r1/2", "one/notes", "one"):
        head = store.open("acme", name)
        append(store, head, chain([user("word0")], head))
    store.put_run(store.open("acme", "one/r/2"), AgentRun("q", "sub", "one/r/2", "word0", parent="r/2"))
    done = erase_conversation(store, "one", tenant="acme")
    assert [one.name for one in done if one.name != "one"] == ["one/r/2", "one/r/2/q/1"]
    assert [all_text(store, name) for name in ("one/r/2", "one/r/2/q/1", "one/r1/2", "one/notes")] == [*"--xx"]
    assert store.runs(store.open("acme", "one/r/2"))[0].task == ERASED
    assert erase_conversation(store, "one", tenant="acme") == []


@pytest.mark.parametrize("run", ["2026/11/30", "a~b", "r" * 200])
def test_sub_agents_of_a_run_with_any_id_are_erased(store: Database, run: str) -> None:
    """The name of a sub-agent has the id of the run in a form that names may have (`child_name`)."""
    name = sub_conversation("one", run, 2)
    head = store.open("acme", name)
    append(store, head, chain([user("word0")], head))
    store.put_run(store.open("acme", "one"), AgentRun(run, "me", "one", "some task"))
    erase_conversation(store, "one", tenant="acme")
    assert all_text(store, name) == "-"


def test_conversation_whose_sub_agents_would_have_too_long_names_is_erased(store: Database) -> None:
    name = "n" * 490
    head = store.open("acme", name)
    head = append(store, head, chain([user("word0")], head))
    store.put_run(head, AgentRun("r", "me", name, "some task"))
    assert [erasure.name for erasure in erase_conversation(store, name, tenant="acme")] == [name]


def test_interrupted_writer_begins_again(store: Database) -> None:
    for n in range(1, 40):
        countdown = Countdown(n)
        try:
            erase_conversation(failing_store(store, countdown), "one", tenant="acme")
        except StoreError:
            assert store.verify(store.open("acme", "one")) == []
        if all_text(store, "one") == "-------" and not countdown.is_used_up:
            break
    assert (all_text(store, "one"), all_text(store, "fork")) == ("-------", "----xx")
    assert store.find_residue(store.open("acme", "one")) == (7, [])


def test_message_appended_meanwhile_is_erased_too(store: Database) -> None:
    class Busy(MemoryStore):
        """A store in which others append during an erasure."""

        left = 4

        def erase(self, head, spans, **options):  # type: ignore[no-untyped-def]
            if self.left:
                self.left -= 1
                now = self.open(head.tenant, head.name)
                append(self, now, chain([user("meanwhile")], now))
            return super().erase(head, spans, **options)

    busy = Busy()
    busy.open("acme", "one")
    erase_conversation(busy, "one", tenant="acme")
    assert all_text(busy, "one") == "----"


def test_all_of_a_tenant(store: Database) -> None:
    done = erase_tenant(store, "acme", clock=lambda: 9)
    assert {name: sum(one.messages for one in some) for name, some in done.items()} == {
        "empty": 0,
        "fork": 6,
        "one": 3,
    }
    assert (all_text(store, "one"), all_text(store, "fork"), all_text(store, "theirs", "zeta")) == (
        "-------",
        "------",
        "x",
    )
    assert erase_tenant(store, "nobody") == {}


def test_conversation_that_is_not_there(store: Database) -> None:
    with pytest.raises(NoSuchConversation):
        erase_conversation(store, "nobody", tenant="acme")
    assert "nobody" not in store.names("acme")


def test_tenant_that_is_no_string_is_refused(store: Database, tmp_path: Path) -> None:
    """An erasure and an archive of no conversation would look like success."""
    archive = tmp_path / "all.jsonl"
    archive.write_text("kept")
    nothing: Any = None
    for call in (
        lambda: erase_tenant(store, nothing),
        lambda: list(age_tenant(store, {"all": "1 days"}, nothing)),
        lambda: export_archive(store, archive, tenant=nothing, overwrite=True),
        lambda: erase_conversation(store, nothing, tenant="acme"),
    ):
        with pytest.raises(BadSetting, match="of a conversation must be a string, not None"):
            call()
    assert archive.read_text() == "kept"
