"""Erasing in a SQLite file: no byte is left in the file or its log, and planted bytes are found."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from foveate.core import wire
from foveate.core.messages import user
from foveate.errors import StoreError
from foveate.ports import Finding, append
from foveate.stores.codec import pack
from foveate.stores.postings import PackedPiece, PackedRun, gather, pack_run
from foveate.stores.sql import search as sql_search
from foveate.stores.sql import words as sql_words
from foveate.stores.sqlite import SqliteStore
from foveate.testing.erase_contract import WORD, create_derived, everything
from foveate.testing.rows import chain


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(tmp_path / "chat.db") as store:
        yield store


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


def test_vacuum_removes_every_erased_byte(store: SqliteStore, tmp_path: Path) -> None:
    """Bodies are packed, so search for pieces of the stored bytes, and for the plain word."""
    head, _, _ = create_derived(store)
    packed = [pack(row.body) for row in store.get_many(head, [3, 5, 6])]
    packed += [pack(wire.encode_record(record)) for _, record in store.records(head)[:2]]
    before = bytes_of(tmp_path)
    store.erase(head, [(3, 3)])
    store.vacuum()
    after = bytes_of(tmp_path)
    kept_forms = [pack(wire.encode_record(record)) for _, record in store.records(store.open("acme", "one"))]
    pieces = [WORD.encode(), *(piece_without(one, kept_forms) for one in packed)]
    assert [piece in before for piece in pieces] == [True] * 6
    assert [piece in after for piece in pieces] == [False] * 6
    kept = pack(store.messages(head, 7, 7)[0].body)
    assert kept in after


def piece_without(packed: bytes, others: list[bytes]) -> bytes:
    """Return the first 12 bytes in a row that none of the others contains."""
    pieces = (packed[at : at + 12] for at in range(2, len(packed) - 11))
    return next(piece for piece in pieces if not any(piece in other for other in others))


def keys_in(path: Path) -> set[str]:
    """Return every key of the word index."""
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT bucket, first, body FROM said").fetchall()
    connection.close()
    keys = [PackedRun(first, body).keys() for bucket, first, body in rows if bucket >= 0]
    pieces = [PackedPiece(first, body) for bucket, first, body in rows if bucket < 0]
    return set().union(*keys, *(line for piece in pieces for line in piece.messages()))


@pytest.mark.parametrize("count", [0, 2 * sql_words.BLOCK])
def test_no_word_is_left_in_the_index_before_a_vacuum(store: SqliteStore, tmp_path: Path, count: int) -> None:
    head, _, _ = create_derived(store)
    head = append(store, head, chain([user(f"more {n}") for n in range(count)], head))
    store.search(head, "bye")
    assert WORD in keys_in(tmp_path / "chat.db")
    store.erase(head, [(3, 3)])
    keys = keys_in(tmp_path / "chat.db")
    assert WORD not in keys
    assert {"bye", "appl"} <= keys
    assert store.find_residue(store.open("acme", "one")) == (3, [])


def test_words_that_were_cut_in_another_way_are_taken_out_with_all_others(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words that were indexed differently cannot be removed one by one; the index is rebuilt."""
    head = store.open("acme", "one")
    head = append(store, head, chain([user(f"one {WORD}"), user("another")], head))
    add = sql_search.add_words
    with monkeypatch.context() as patched:
        patched.setattr(
            sql_search,
            "add_words",
            lambda session, branch, rows, *rest, **more: add(
                session, branch, [(at, {f"{key}x" for key in keys}) for at, keys in rows], *rest, **more
            ),
        )
        assert store.search(head, f"{WORD}x")[0].position == 1
    store.erase(head, [(1, 1)])
    assert store.search(head, f"{WORD}x") == []
    assert [found.position for found in store.search(head, "another")] == [2]
    assert store.find_residue(head) == (1, [])


@pytest.mark.parametrize("change", ["UPDATE indexed SET version = 1", "UPDATE said SET body = x'00' WHERE branch = 1"])
def test_index_that_cannot_be_changed_is_dropped(store: SqliteStore, tmp_path: Path, change: str) -> None:
    head, _, _ = create_derived(store)
    store.search(head, "bye")
    with sqlite3.connect(tmp_path / "chat.db") as connection:
        assert connection.execute(change).rowcount > 0
    connection.close()
    store.erase(head, [(3, 3)])
    assert WORD not in keys_in(tmp_path / "chat.db")
    assert store.find_residue(store.open("acme", "one")) == (3, [])
    assert store.search(store.open("acme", "one"), "bye") != []


def test_word_that_was_left_in_the_index_is_found(store: SqliteStore, tmp_path: Path) -> None:
    head, _, _ = create_derived(store)
    store.erase(head, [(3, 3)])
    with sqlite3.connect(tmp_path / "chat.db") as connection:
        body = pack_run(gather(3, [(3, [WORD])]))
        connection.execute("INSERT INTO said VALUES ('acme', ?, 1, 63, 3, 3, ?)", (head.root, body))
    connection.close()
    problem = "it was erased, and the index of words still has words of it"
    assert store.find_residue(head) == (3, [Finding("message 3", problem)])


def test_words_indexed_by_another_process_are_removed(store: SqliteStore, tmp_path: Path) -> None:
    head, _, _ = create_derived(store)
    with SqliteStore(tmp_path / "chat.db", search=False) as other:
        with pytest.raises(StoreError, match="opened without it"):
            other.erase(head, [(3, 3)])
        assert WORD in everything(store, head)
        assert store.erasures(head) == []


def test_file_that_is_read_by_others_says_that_its_log_is_still_there(store: SqliteStore, tmp_path: Path) -> None:
    head, _, _ = create_derived(store)
    reader = sqlite3.connect(tmp_path / "chat.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM branch").fetchall()
    store.erase(head, [(3, 3)])
    store.close()
    with (
        SqliteStore(tmp_path / "chat.db", wait=0.1) as again,
        pytest.raises(StoreError, match="read by another connection"),
    ):
        again.vacuum()
    reader.close()
    with SqliteStore(tmp_path / "chat.db") as again:
        again.vacuum()
    assert WORD.encode() not in bytes_of(tmp_path)


def test_body_without_a_message_goes_with_a_vacuum(store: SqliteStore, tmp_path: Path) -> None:
    head, _, _ = create_derived(store)
    with sqlite3.connect(tmp_path / "chat.db") as connection:
        connection.execute("INSERT INTO body VALUES ('acme', ?, x'00', x'00')", (head.root,))
    connection.close()
    store.vacuum()
    with sqlite3.connect(tmp_path / "chat.db") as connection:
        assert connection.execute("SELECT count(*) FROM body WHERE hash = x'00'").fetchone() == (0,)
    connection.close()
    assert structs.replace(head) == store.open("acme", "one")
