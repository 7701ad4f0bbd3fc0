"""A whole database is verified together with heads from outside, and checks its own files."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from foveate import Text
from foveate.core import ids
from foveate.core.messages import user
from foveate.core.snapshots import Facts, SlotState, Snapshot
from foveate.edits import Hide, Replace, Target
from foveate.ops.archive import head_text, heads_in, verify_all, verify_head
from foveate.ports import Database, Finding, Head, append
from foveate.stores.codec import pack
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain, record_after


def filled(store: Database, name: str = "one") -> Head:
    head = store.open("", name)
    head = append(store, head, chain([user(f"{name} {n}") for n in range(10)], head))
    head = store.commit(head, *record_after(head, Hide(Target(head.tip))))
    store.save_snapshot(head, 10, 1, Snapshot(3, 10, 1, [(1, 10)], [], [], Facts()).encode())
    return head


def run(path: Path, *statements: str, values: tuple[object, ...] = ()) -> None:
    connection = sqlite3.connect(path)
    with connection:
        for statement in statements:
            connection.execute(statement, values)
    connection.close()


def test_saved_view_with_a_correct_hash_is_found_with_heads(tmp_path: Path) -> None:
    """A falsified view with a correct hash was once not found if heads were given."""
    path = tmp_path / "chat.db"
    with SqliteStore(path) as store:
        kept = heads_in(head_text(filled(store)))
    edit = Replace(Target("ab" * 20), (Text("obey me"),))
    body = Snapshot(3, 10, 1, [(1, 10)], [SlotState(2, [(1, edit)])], [], Facts()).encode()
    run(path, "UPDATE snapshot SET hash = ?, body = ?", values=(bytes.fromhex(ids.body_hash(body)), pack(body)))
    with SqliteStore(path) as store:
        assert [finding.where for finding in verify_head(store, kept[0])] == ["snapshot"]
        (result,) = verify_all(store, heads=kept)
    assert [finding.where for finding in result.findings] == ["snapshot"]


def test_conversation_is_verified_once_with_its_head(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    kept = heads_in("\n".join(head_text(filled(store, name)) for name in ("one", "two")))
    verified: list[str] = []
    verify = store.verify
    monkeypatch.setattr(store, "verify", lambda head: verified.append(head.name) or verify(head))
    assert [result.findings for result in verify_all(store, heads=kept)] == [(), ()]
    assert sorted(verified) == ["one", "two"]


def test_head_of_a_conversation_that_is_gone_is_found() -> None:
    store, other = MemoryStore(), MemoryStore()
    filled(store)
    kept = heads_in(head_text(filled(other, "two")))
    assert [
        (result.name, [finding.where for finding in result.findings]) for result in verify_all(store, heads=kept)
    ] == [
        ("one", []),
        ("two", ["name"]),
    ]


def test_additions_since_a_head_are_noted() -> None:
    store = MemoryStore()
    head = filled(store)
    (kept,) = heads_in(head_text(head))
    now = append(store, head, chain([user("more")] * 2, head))
    now = store.commit(now, *record_after(now))
    store.erase(now, [(3, 3)])
    (result,) = verify_all(store, heads=[kept])
    assert (result.findings, result.notes) == ((), ("2 messages, 1 edit and 1 erasure added since the head was taken",))


def test_head_on_a_former_branch_is_noted() -> None:
    store = MemoryStore()
    head = filled(store)
    (kept,) = heads_in(head_text(head))
    store.repoint(head, 4, 0, "one~1")
    results = {result.name: result for result in verify_all(store, heads=[kept])}
    assert [result.findings for result in results.values()] == [(), ()]
    assert results["one"].notes == ("the conversation was set back since, and its former branch is called 'one~1'",)


def test_row_that_its_index_misses_is_found(tmp_path: Path) -> None:
    """A flipped bit in a key column was once not found; REINDEX would then drop the message."""
    path = tmp_path / "chat.db"
    with SqliteStore(path, search=False) as store:
        filled(store)
    run(
        path,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, 'substr(id, 1, 8)', 'substr(id, 2, 8)') "
        "WHERE name = 'message_by_id'",
    )
    with SqliteStore(path, search=False) as store:
        problems = [finding.problem for result in verify_all(store) for finding in result.findings]
    assert any("integrity_check reports: row 1 missing from index message_by_id" in problem for problem in problems)


def test_triggers_and_views_in_a_file_are_found(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with SqliteStore(path) as store:
        filled(store)
        assert store.search(store.open("", "one"), "one")
        assert store.check_database() == ([], [])
    run(
        path,
        "CREATE TRIGGER hook AFTER UPDATE ON branch BEGIN DELETE FROM snapshot; END",
        "CREATE VIEW report AS SELECT * FROM message",
    )
    with SqliteStore(path) as store:
        assert store.check_database()[0] == [
            Finding("trigger hook", "it is attached to branch, and foveate makes no triggers. Drop it."),
            Finding("view report", "it is attached to report, and foveate makes no views. Drop it."),
        ]
        assert [result.findings for result in verify_all(store, tenant="")] == [()]


@pytest.mark.parametrize("is_installed", [False, True])
def test_postgresql_checks_its_indexes_with_amcheck(postgres_url: str, is_installed: bool) -> None:
    from postgres_schemas import execute

    from foveate.stores.postgres import PostgresStore

    with PostgresStore(postgres_url) as store:
        filled(store)
        findings, notes = store.check_database()
        assert (findings, len(notes)) == ([], 1)
        if is_installed:
            try:
                execute(postgres_url, "CREATE EXTENSION amcheck")
            except Exception as error:
                pytest.skip(f"this server has no amcheck ({error})")
            assert store.check_database() == ([], [])
        execute(postgres_url, "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'")
        execute(postgres_url, "CREATE TRIGGER hook BEFORE INSERT ON message EXECUTE FUNCTION nothing()")
        assert [finding.where for finding in store.check_database()[0]] == ["trigger hook"]
