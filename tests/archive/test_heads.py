"""Falsified histories are detected: by the chains alone, or with a head that was stored elsewhere.

Each falsification uses plain SQL, as someone could who may write to the database and knows its format.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from foveate.core.edits import Hide, Target
from foveate.core.messages import user
from foveate.errors import BadSetting
from foveate.ops.archive import SavedHead, export_archive, head_text, heads_in, import_archive, verify_head
from foveate.ports import Head, append
from foveate.stores.memory import MemoryStore
from foveate.stores.sql import SqlStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain, record_after
from foveate.testing.store_contract import talk

Run = Callable[[str], object]


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[SqlStore, Run]]:
    """Yield a store, and a function that runs SQL on its file from outside."""
    if request.param == "sqlite":
        with SqliteStore(tmp_path / "chat.db", synchronous="normal") as store:

            def run(statement: str) -> None:
                connection = sqlite3.connect(tmp_path / "chat.db")
                with connection:
                    assert connection.execute(statement).rowcount > 0
                connection.close()

            yield store, run
        return
    url = request.getfixturevalue("postgres_url")
    from postgres_schemas import execute

    from foveate.stores.postgres import PostgresStore

    with PostgresStore(url) as store:
        yield store, lambda statement: execute(url, statement)


@pytest.fixture
def store(database: tuple[SqlStore, Run]) -> SqlStore:
    return database[0]


@pytest.fixture
def run(database: tuple[SqlStore, Run]) -> Run:
    return database[1]


def filled(store: Any, name: str = "one", topic: str = "weather") -> Head:
    """Write ten messages and four records."""
    head = store.open("acme", name)
    head = append(store, head, chain(talk(10, topic), head))
    for number in range(4):
        head = store.commit(head, *record_after(head, Hide(Target(head.tip), reason=f"{topic} {number}")))
    return head


COLUMNS = "tenant, root, branch, {}, id, seal, stamp, body_hash, body"
HERE = "tenant, root, branch, 11, id, seal, stamp, body_hash, body"

FALSIFIED = {
    "a message dropped": ["DELETE FROM message WHERE position = 4"],
    "the last message dropped": ["DELETE FROM message WHERE position = 10"],
    "a message dropped and the rest moved up": [
        "DELETE FROM message WHERE position = 4",
        "UPDATE message SET position = -position WHERE position > 4",
        "UPDATE message SET position = -position - 1 WHERE position < 0",
        "UPDATE branch SET position = 9",
    ],
    "two messages exchanged": [
        "UPDATE message SET position = -5 WHERE position = 5",
        "UPDATE message SET position = 5 WHERE position = 8",
        "UPDATE message SET position = 8 WHERE position = -5",
    ],
    "a message replayed": [
        f"INSERT INTO message ({COLUMNS.format('position')}) SELECT {HERE} FROM message WHERE position = 5",
        "UPDATE branch SET position = 11",
    ],
    "a message inserted": [
        "UPDATE message SET position = -position WHERE position > 6",
        "UPDATE message SET position = 1 - position WHERE position < 0",
        f"INSERT INTO message ({COLUMNS.format('position')}) SELECT {HERE.replace('11', '7')} FROM message "
        f"WHERE position = 2",
        "UPDATE branch SET position = 11",
    ],
    "a message in place of another": [
        "UPDATE message SET body = (SELECT m.body FROM message m WHERE m.position = 2), body_hash = NULL "
        "WHERE position = 5"
    ],
    "a stamp in place of another": [
        "UPDATE message SET stamp = (SELECT m.stamp FROM message m WHERE m.position = 2) WHERE position = 5"
    ],
    "an edit dropped": ["DELETE FROM record WHERE first = 2"],
    "the last edit dropped": ["DELETE FROM record WHERE first = 4"],
    "two edits exchanged": [
        "UPDATE record SET first = -1 WHERE first = 2",
        "UPDATE record SET first = 2 WHERE first = 3",
        "UPDATE record SET first = 3 WHERE first = -1",
    ],
    "an edit replayed": [
        "INSERT INTO record (tenant, root, branch, first, id, body) "
        "SELECT tenant, root, branch, 5, id, body FROM record WHERE first = 2",
        "UPDATE branch SET number = 5",
    ],
    "an edit in place of another": [
        "UPDATE record SET body = (SELECT r.body FROM record r WHERE r.first = 1) WHERE first = 3"
    ],
    "a tip set back": ["UPDATE branch SET position = 9"],
    "a journal set back": ["UPDATE branch SET number = 3"],
}


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)], indirect=True)
@pytest.mark.parametrize("kind", FALSIFIED)
def test_falsification_is_found_without_a_head(store: SqlStore, run: Run, kind: str) -> None:
    head = filled(store)
    assert store.verify(head) == []
    for statement in FALSIFIED[kind]:
        run(statement)
    assert store.verify(store.open("acme", "one")) != []
    assert verify_head(store, head) != []


ROLLED_BACK = [
    "UPDATE branch SET position = 7, tip = (SELECT id FROM message WHERE position = 7), "
    "seal = (SELECT seal FROM message WHERE position = 7)",
    "DELETE FROM message WHERE position > 7",
]


def test_history_that_was_cut_well_needs_a_head_to_be_found(store: SqlStore, run: Run) -> None:
    head = filled(store)
    for statement in ROLLED_BACK:
        run(statement)
    now = store.open("acme", "one")
    assert (store.verify(now), now.position) == ([], 7)
    (found,) = verify_head(store, head)
    assert found.problem == "the head given knows 10 messages and 4 edits; there are 7 and 4"


def test_journal_that_was_cut_well_needs_a_head_to_be_found(store: SqlStore, run: Run) -> None:
    head = filled(store)
    run("UPDATE branch SET number = 2, record = (SELECT id FROM record WHERE first = 2)")
    run("DELETE FROM record WHERE first > 2")
    assert store.verify(store.open("acme", "one")) == []
    assert [finding.where for finding in verify_head(store, head)] == ["head"]


def test_rewritten_history_is_found_only_with_a_head(store: SqlStore, run: Run) -> None:
    """The history was cut and continued by foveate itself, so that every chain is valid."""
    head = filled(store)
    for statement in ROLLED_BACK:
        run(statement)
    now = store.open("acme", "one")
    now = append(store, now, chain(talk(6, "something else"), now))
    assert store.verify(now) == []
    (found,) = verify_head(store, head)
    assert found.problem == "the head given, with message 10 as its tip, is not on this conversation's chain"


def test_file_that_was_put_back_is_found(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with SqliteStore(path) as store:
        filled(store)
    before = path.read_bytes()
    with SqliteStore(path) as store:
        head = store.open("acme", "one")
        head = append(store, head, chain(talk(2), head))
    for log in tmp_path.glob("chat.db-*"):
        log.unlink()
    path.write_bytes(before)
    with SqliteStore(path) as store:
        assert store.verify(store.open("acme", "one")) == []
        assert [finding.where for finding in verify_head(store, head)] == ["head"]


def test_two_conversations_that_were_exchanged_are_found(store: SqlStore, run: Run) -> None:
    """The names in the rows of both are exchanged, so that only the content differs."""
    one, two = filled(store), filled(store, "two", "sport")
    for head, name in ((one, "-"), (two, "one"), (replace(two, name="-"), "two")):
        root = one.root if head.name in ("one", "-") else two.root
        run(f"UPDATE branch SET name = '{name}' WHERE root = {root}")
    run(f"UPDATE conversation SET home = {two.root} WHERE name = 'one'")
    run(f"UPDATE conversation SET home = {one.root} WHERE name = 'two'")
    assert store.verify(store.open("acme", "one")) == []
    assert store.open("acme", "one").root == two.root
    for head in (one, two):
        assert len(verify_head(store, head)) == 2


def test_name_that_was_led_to_another_conversation_is_found(store: SqlStore, run: Run) -> None:
    one, two = filled(store), filled(store, "two", "sport")
    run(f"UPDATE conversation SET home = {two.root} WHERE name = 'one'")
    assert verify_head(store, one) != []


def test_conversation_that_is_gone_is_found(store: SqlStore, run: Run) -> None:
    head = filled(store)
    run("DELETE FROM conversation")
    assert [str(finding.problem) for finding in verify_head(store, head)] == ["there is no conversation 'one' any more"]


# ------------------------------------------------------------------------------------------------- what is no damage


def test_history_that_went_on_runs_through_its_head(store: SqlStore) -> None:
    head = filled(store)
    now = append(store, head, chain(talk(3), head))
    store.commit(now, *record_after(now))
    assert verify_head(store, head) == []


def test_history_left_by_a_fork_keeps_its_head(store: SqlStore) -> None:
    head = filled(store)
    now = store.repoint(head, 4, 1, "one~1")
    append(store, now, chain(talk(9, "another course"), now))
    assert verify_head(store, head) == []


def test_history_that_was_imported_runs_through_its_head(tmp_path: Path) -> None:
    first, second = MemoryStore(), MemoryStore()
    head = filled(first)
    export_archive(first, tmp_path / "a.jsonl", tenant="acme")
    import_archive(second, tmp_path / "a.jsonl")
    assert verify_head(second, head) == []


def test_head_is_a_line_of_text(store: SqlStore) -> None:
    head = filled(store)
    text = head_text(head, time=1_790_000_000_000)
    (kept,) = heads_in(f"\n{text}\n")
    ends = head.position, head.tip, head.seal, head.number, head.record
    assert kept == SavedHead(1, "acme", "one", head.root, *ends, 1_790_000_000_000)
    assert verify_head(store, kept) == []
    assert heads_in(f"{text}\n{text}") == [kept, kept]


def test_head_escapes_control_and_direction_characters_of_a_name() -> None:
    """Printed raw, they would control the terminal, or reverse the text that follows."""
    name = "no\u202edrow\x9b31m\u2028\x7f\x1b[31m"
    text = head_text(Head("", name, 1, 1))
    assert text.isascii()
    assert text.isprintable()
    assert [head.name for head in heads_in(text)] == [name]


@pytest.mark.parametrize("text", ["", "\n", "no head", "{}", '{"is":"head"}', "[1]"])
def test_line_that_is_no_head_is_refused(text: str) -> None:
    with pytest.raises(BadSetting, match=r"no head"):
        heads_in(text)


def test_head_of_a_later_version_is_refused() -> None:
    with pytest.raises(BadSetting, match="version 2; known: 1"):
        heads_in(head_text(Head("", "one", 1, 1)).replace('"version":1', '"version":2'))


def test_empty_conversation_has_a_head_too(store: SqlStore) -> None:
    head = store.open("acme", "empty")
    assert verify_head(store, head) == []
    append(store, head, chain([user("hello")], head))
    assert verify_head(store, head) == []
