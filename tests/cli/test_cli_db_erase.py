"""`foveate db`: erase, verify --erased and vacuum."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

import foveate
from foveate import open_store
from foveate.cli.options import command_line
from foveate.core.edits import Replace, Target
from foveate.core.messages import Text, user
from foveate.core.runs import AgentRun
from foveate.ports import append
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain, record_after


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Create a database with a conversation of three messages, a fork of it, and one of another tenant."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOVEATE_STORE", "sqlite:///chat.db")
    with SqliteStore("chat.db") as store:
        head = store.open("", "one")
        head = append(store, head, chain([user("a"), user("the kumquat"), user("c")], head))
        head = store.commit(head, *record_after(head, Replace(Target(head.tip, (0,)), (Text("the c"),))))
        store.put_run(head, AgentRun("r1", "me", "one", "the kumq…"))
        store.fork(head, "two", 2, 0)
        theirs = store.open("zeta", "theirs")
        append(store, theirs, chain([user("the kumquat")], theirs))
    return tmp_path


def has_text(name: str, tenant: str = "") -> list[bool]:
    """Return for each message whether it still has a text."""
    with SqliteStore("chat.db") as store:
        return [bool(row.body) for row in store.messages(store.open(tenant, name), 1, 9)]


def test_message_is_erased_verified_and_vacuumed(db, here):
    output = db("erase", "one", "m2", "--reason", "asked for", "--who", "ann", "--yes")
    assert output == "1 message erased, and 1 run derived from them. Now run: foveate db vacuum\n"
    assert (has_text("one"), has_text("two"), has_text("theirs", "zeta")) == (
        [True, False, True],
        [True, False],
        [True],
    )
    assert db("verify", "--erased") == "2 messages erased.\n3 conversations of 2 tenants verified: all is well.\n"
    assert db("vacuum") == "The database is vacuumed.\n"
    with SqliteStore("chat.db") as store:
        (done,) = store.erasures(store.open("", "two"))
        assert (done.who, done.reason, done.handles, done.time > 0) == ("ann", "asked for", "m2", True)
    assert db("erase", "one", "m2", "--yes") == "There was nothing left to erase.\n"


def test_erase_without_yes_erases_nothing(refused):
    assert refused("erase", "one", "m2-m3") == (
        "2 of the 3 messages of one would be erased permanently. Repeat the command with --yes to erase them."
    )
    assert (
        refused("erase", "one")
        == "3 of the 3 messages of one would be erased permanently. Repeat the command with --yes to erase them."
    )
    assert refused("erase", "--everything") == (
        "All messages of 2 conversations would be erased permanently. Repeat the command with --yes to erase them."
    )
    assert has_text("one") == [True] * 3


def test_erase_names_the_sub_agents_that_it_would_erase(refused):
    with SqliteStore("chat.db") as store:
        store.put_run(store.open("", "one"), AgentRun("r", "clerk", "one", "some task"))
        store.open("", "one/r/2")
    assert refused("erase", "one") == (
        "3 of the 3 messages of one, and all of 1 conversation of sub-agents, would be erased permanently. "
        "Repeat the command with --yes to erase them."
    )


def test_erase_counts_a_message_once(refused):
    output = refused("erase", "one", "m1-m2", "2", "m1")
    assert (
        output == "2 of the 3 messages of one would be erased permanently. Repeat the command with --yes to erase them."
    )


@pytest.mark.parametrize("yes", [(), ("--yes",)])
def test_erase_of_an_unknown_tenant_is_refused(refused, yes):
    output = refused("erase", "--everything", "--tenant", "zetta", *yes)
    assert output == "This tenant has no conversations. foveate db tenants lists the tenants."


def test_erase_takes_a_conversation_or_a_tenant(db):
    db("erase", "two", "--yes")
    assert (has_text("one"), has_text("two")) == ([False, False, True], [False, False])
    output = db("erase", "--everything", "--yes", "--json")
    assert [(one["name"], one["messages"], one["edits"]) for one in map(json.loads, output.splitlines())] == [
        ("one", 1, 1)
    ]
    assert (has_text("one"), has_text("theirs", "zeta")) == ([False] * 3, [True])
    assert db("verify", "--erased") == "5 messages erased.\n3 conversations of 2 tenants verified: all is well.\n"


def test_erase_checks_all_handles_first(refused):
    assert "has messages m1 to m3" in refused("erase", "one", "m1", "m4", "--yes")
    assert "only whole messages can be erased: m1." in refused("erase", "one", "m2", "m1.1", "--yes")
    assert "A handle looks like" in refused("erase", "one", "second", "--yes")
    with SqliteStore("chat.db") as store:
        store.open("", "empty")
    assert "This conversation has no messages." in refused("erase", "empty", "m1", "--yes")
    assert "nobody" in refused("erase", "nobody", "--yes")
    assert refused("erase", "--yes").startswith("Name a conversation to erase, or use --everything")
    assert refused("erase", "one", "--everything", "--yes").startswith("Name a conversation to erase")
    assert has_text("one") == [True] * 3


def test_verify_reports_text_derived_from_erased_messages(db):
    db("erase", "one", "m2", "--yes")
    with SqliteStore("chat.db") as store:
        head = store.open("", "one")
        id = store.messages(head, 2, 2)[0].id
        store.commit(head, *record_after(head, Replace(Target(id, (0,)), (Text("a kumquat"),))))
    assert db("verify", "one", "--erased", code=1) == (
        "one: record 2: it holds a text made of what was erased\n"
        "1 message erased.\n"
        "1 conversation verified: something is wrong with 1.\n"
    )
    assert db("verify", "one") == "1 conversation verified: all is well.\n"


def test_preview_reads_a_store_that_cannot_be_written(db, refused, here, monkeypatch):
    """For a superuser all files are writable, so the answer is replaced."""
    opened: list[str] = []
    monkeypatch.setattr(os, "access", lambda path, mode, **_: mode != os.W_OK)
    monkeypatch.setattr(foveate.open, "open_store", lambda url: opened.append(url) or open_store(url))
    assert "would be erased permanently" in refused("erase", "one", "m2")
    assert "Nothing to erase in 2 conversations" in db("age", "--older", "all=0 turns")
    assert opened == ["sqlite:///chat.db?read_only=on"] * 2


def test_erase_names_the_given_store_in_its_advice(db, here, monkeypatch):
    monkeypatch.delenv("FOVEATE_STORE")
    Path("chat.db").rename("a chat.db")
    output = db("erase", "one", "m2", "--yes", "--store", "a chat.db")
    advised = output.partition("Now run: ")[2]
    assert advised == "foveate db vacuum --store 'a chat.db'\n"
    assert db(*shlex.split(advised)[2:]) == "The database is vacuumed.\n"


def test_erase_hides_the_password_in_its_advice():
    assert command_line("db", "vacuum", store="postgresql://ann:secret@h/d") == (
        "foveate db vacuum --store 'postgresql://ann:***@h/d'"
    )


def test_vacuum_makes_the_file_smaller(db, here):
    with SqliteStore("chat.db") as store:
        head = store.open("", "big")
        append(store, head, chain([user(" ".join(str(n * n * k) for n in range(9000))) for k in range(1, 9)], head))
    before = Path("chat.db").stat().st_size
    db("erase", "big", "--yes")
    db("vacuum")
    assert Path("chat.db").stat().st_size < before / 2
