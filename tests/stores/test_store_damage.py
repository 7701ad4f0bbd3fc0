"""A damaged database: verify reports each damage with its place, and reading raises an error."""

from __future__ import annotations

import sqlite3
import string
from pathlib import Path
from random import Random

import pytest
from msgspec import structs

from foveate.core import ids, wire
from foveate.core.edits import Hide, Target
from foveate.core.messages import user
from foveate.errors import Damaged, StoreError
from foveate.ports import Finding, Head, append
from foveate.stores.codec import pack
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain, record_after
from foveate.testing.run_contract import run_of, step_of
from foveate.testing.store_contract import talk


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return SqliteStore(tmp_path / "chat.db", synchronous="normal")


@pytest.fixture
def head(store: SqliteStore) -> Head:
    """Write twenty messages, the eighth with a large body stored apart, and three records, the second of two edits."""
    head = store.open("acme", "one")
    noise = "".join(Random(7).choices(string.ascii_letters, k=9000))
    head = append(store, head, chain([*talk(7), user(noise), *talk(12)], head))
    for edits in (1, 2, 1):
        head = store.commit(head, *record_after(head, *[Hide(Target(head.tip))] * edits))
    store.save_snapshot(head, 10, 1, b"a view")
    assert store.verify(head) == []
    return head


def damage(store: SqliteStore, statement: str, *values: object) -> None:
    connection = sqlite3.connect(store._driver.place)
    with connection:
        changed = connection.execute(statement, values).rowcount
    connection.close()
    assert changed > 0


def wheres(findings: list[Finding]) -> list[str]:
    return [finding.where for finding in findings]


@pytest.mark.parametrize("position", [1, 5, 20])
@pytest.mark.parametrize("at", [0, 2, 12])
def test_byte_of_a_body_that_flipped(store: SqliteStore, head: Head, position: int, at: int) -> None:
    """Byte 1 of a frame of zstd has a bit without a meaning."""
    body = stored(store, "body", position)
    damage(store, "UPDATE message SET body = ? WHERE position = ?", flipped(body, at), position)
    assert wheres(store.verify(head)) == [f"message {position}"]
    with pytest.raises(Damaged, match=f"Message {position} of 'one' of the tenant 'acme' is damaged"):
        store.messages(head, 1, 20)
    with pytest.raises(Damaged, match=f"Message {position} of 'one' of the tenant 'acme' is damaged"):
        store.get_many(head, [position])
    others = [*range(1, position), *range(position + 1, 21)]
    assert [row.position for row in store.get_many(head, others)] == others


def test_byte_of_a_large_body_that_flipped(store: SqliteStore, head: Head) -> None:
    (body,) = rows(store, "SELECT body FROM body")[0]
    damage(store, "UPDATE body SET body = ?", flipped(body, 3000))
    assert wheres(store.verify(head)) == ["message 8"]
    with pytest.raises(Damaged, match="Message 8"):
        store.get_many(head, [8])


def test_body_exchanged_for_another_that_reads_well(store: SqliteStore, head: Head) -> None:
    damage(store, "UPDATE message SET body = ? WHERE position = 9", pack(wire.encode_message(user("never said"))))
    problem = "its id does not follow from its body and the message before it"
    assert store.verify(head) == [Finding("message 9", problem)]
    with pytest.raises(Damaged, match=problem):
        store.get_many(head, [9])


@pytest.mark.parametrize(
    ("statement", "where"),
    [
        ("DELETE FROM message WHERE position = 1", "message 1"),
        ("DELETE FROM message WHERE position = 7", "message 7"),
        ("DELETE FROM message WHERE position BETWEEN 4 AND 8", "messages 4-8"),
        ("DELETE FROM message WHERE position > 18", "messages 19-20"),
        ("DELETE FROM body", "message 8"),
        ("UPDATE message SET body = NULL WHERE position = 7", "message 7"),
        ("UPDATE message SET body = x'' WHERE position = 7", "message 7"),
        ("UPDATE message SET body = x'63' || body WHERE position = 7", "message 7"),
        ("UPDATE message SET body_hash = zeroblob(20) WHERE position = 8", "message 8"),
        ("UPDATE message SET id = 'text' WHERE position = 7", "message 7"),
        ("UPDATE record SET id = 7 WHERE first = 2", "record 2"),
        ("UPDATE message SET id = zeroblob(20) WHERE position = 7", "message 7"),
        ("UPDATE message SET seal = zeroblob(20) WHERE position = 7", "message 7"),
        ("UPDATE message SET stamp = x'00' WHERE position = 7", "message 7"),
        ("DELETE FROM record WHERE first = 1", "edit 1"),
        ("DELETE FROM record WHERE first = 2", "edits 2-3"),
        ("DELETE FROM record WHERE first = 4", "edit 4"),
        ("UPDATE record SET id = zeroblob(20) WHERE first = 2", "record 2"),
        ("UPDATE record SET body = x'00' WHERE first = 2", "record 2"),
        ("UPDATE branch SET tip = zeroblob(20)", "head"),
        ("UPDATE branch SET seal = zeroblob(20)", "head"),
        ("UPDATE branch SET record = zeroblob(20)", "head"),
        ("UPDATE branch SET lineage = 'x'", "head"),
        ("DELETE FROM branch", "head"),
        ("UPDATE branch SET position = 22", "messages 21-22"),
        ("UPDATE branch SET number = 6", "edits 5-6"),
        ("UPDATE branch SET erased = 1", "head"),
        ("DELETE FROM conversation", "name"),
        ("UPDATE conversation SET branch = 9", "name"),
        ("UPDATE snapshot SET body = x'00'", "snapshot"),
        ("UPDATE snapshot SET hash = zeroblob(20)", "snapshot"),
    ],
)
def test_each_damage_is_one_finding_at_its_place(store: SqliteStore, head: Head, statement: str, where: str) -> None:
    damage(store, statement)
    now = head
    if "branch SET" in statement and "lineage" not in statement:
        now = store.open("acme", "one")
    assert wheres(store.verify(now)) == [where]


def test_stamp_that_was_changed(store: SqliteStore, head: Head) -> None:
    stamp = store.get_many(head, [12])[0].stamp
    damage(store, "UPDATE message SET stamp = ? WHERE position = 12", wire.encode_stamp(structs.replace(stamp, turn=1)))
    assert store.verify(head) == [Finding("message 12", "its stamp does not match its seal")]
    with pytest.raises(Damaged, match="Message 12 of 'one' of the tenant 'acme' is damaged: its stamp"):
        store.messages(head, 12, 12)


def test_record_that_was_changed(store: SqliteStore, head: Head) -> None:
    _, record = store.records(head)[1]
    changed = pack(wire.encode_record(structs.replace(record, author="nobody")))
    damage(store, "UPDATE record SET body = ? WHERE first = 2", changed)
    assert store.verify(head) == [
        Finding("record 2", "its id does not follow from its content and the record before it")
    ]
    with pytest.raises(Damaged, match="Record 2"):
        store.records(head, after=1)
    assert [record.first for _, record in store.records(head, after=3)] == [4]


@pytest.mark.parametrize("after", [0, 1])
def test_missing_records_are_reported_on_reading(store: SqliteStore, head: Head, after: int) -> None:
    damage(store, "DELETE FROM record WHERE first >= 2")
    with pytest.raises(Damaged, match="Edit 2 of 'one' of the tenant 'acme' is damaged: its record is missing"):
        store.records(head, after)


def test_missing_messages_are_reported_on_reading(store: SqliteStore, head: Head) -> None:
    damage(store, "DELETE FROM message WHERE position = 7")
    with pytest.raises(Damaged, match="Message 7 of 'one' of the tenant 'acme' is damaged: it is missing"):
        store.messages(head, 5, 20)
    with pytest.raises(Damaged, match="Message 7 of 'one' of the tenant 'acme' is damaged: it is missing"):
        store.fork(head, "two", 7, 0)
    assert store.names("acme") == ["one"]


def test_rows_beyond_the_head_are_reported(store: SqliteStore, head: Head) -> None:
    """A store must never leave a part of an unacknowledged write."""
    damage(store, "UPDATE branch SET position = 19, number = 3")
    assert wheres(store.verify(store.open("acme", "one"))) == ["head", "head", "head", "message 20", "record 4"]


def test_damage_in_what_a_fork_shares_is_found_from_the_fork_too(store: SqliteStore, head: Head) -> None:
    fork = store.fork(head, "two", 10, 1)
    fork = append(store, fork, chain(talk(4), fork))
    damage(store, "DELETE FROM message WHERE position = 7")
    damage(store, "UPDATE message SET seal = zeroblob(20) WHERE position = 12 AND branch = ?", fork.branch)
    assert wheres(store.verify(fork)) == ["message 7", "message 12"]
    assert wheres(store.verify(head)) == ["message 7"]


def test_all_damages_are_reported(store: SqliteStore, head: Head) -> None:
    for statement in (
        "UPDATE message SET body = x'00' WHERE position = 3",
        "DELETE FROM message WHERE position = 5",
        "UPDATE message SET stamp = x'c0' WHERE position = 6",
        "UPDATE message SET seal = zeroblob(20) WHERE position = 20",
        "DELETE FROM record WHERE first = 2",
    ):
        damage(store, statement)
    results = wheres(store.verify(head))
    assert results == ["message 3", "message 5", "message 6", "message 20", "edits 2-3"]


def test_head_off_the_chain_is_reported(store: SqliteStore, head: Head) -> None:
    made_up = structs.replace(head, tip=ids.body_hash(b"x"), record=ids.body_hash(b"y"))
    assert wheres(store.verify(made_up)) == ["head", "head"]


def test_damaged_snapshot_is_not_used(store: SqliteStore, head: Head) -> None:
    assert store.snapshot(head) == (10, 1, b"a view")
    damage(store, "UPDATE snapshot SET body = ?", pack(b"another view"))
    assert store.snapshot(head) is None


def test_name_without_a_branch_is_reported_on_opening(store: SqliteStore, head: Head) -> None:
    damage(store, "DELETE FROM branch")
    with pytest.raises(Damaged, match="leads to a branch that is gone"):
        store.open("acme", "one")


def test_file_with_overwritten_pages_is_reported(store: SqliteStore, head: Head) -> None:
    store.close()
    path = Path(store._driver.place)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"damaged|not a SQLite database"):
        SqliteStore(path)


def test_any_flipped_bit_is_reported_or_unused(store: SqliteStore, head: Head, tmp_path: Path) -> None:
    rows, records = store.messages(head, 1, 20), store.records(head)
    store.close()
    intact = Path(store._driver.place).read_bytes()
    used = [at for at, byte in enumerate(intact) if byte and at >= 100]  # Empty tables are mostly empty pages.
    random, silent, reported = Random(11), 0, 0
    for _ in range(120):
        content, at = bytearray(intact), random.choice(used)
        content[at] ^= 1 << random.randrange(8)
        path = tmp_path / "flipped.db"
        path.write_bytes(content)
        try:
            with SqliteStore(path, synchronous="normal") as flipped:
                if flipped.verify(head):
                    reported += 1
                else:
                    silent += 1
                    assert (flipped.messages(head, 1, 20), flipped.records(head)) == (rows, records)
        except StoreError:
            reported += 1
    assert reported > 10
    assert silent > 10


def test_damaged_run_is_reported_on_reading(store: SqliteStore, head: Head) -> None:
    """Runs are not hashed: a readable one is accepted. The conversation is not affected."""
    store.put_run(head, run_of("r1"))
    for number in (1, 2):
        store.put_step(head, step_of("r1", number))
    for statement in (
        "UPDATE step SET output = x'63' || output WHERE number = 2",
        "UPDATE step SET output = 'text' WHERE number = 2",
        "UPDATE step SET state = 'Done' WHERE number = 2",
        "UPDATE step SET turn = 'one' WHERE number = 2",
    ):
        store.put_step(head, step_of("r1", 2))
        damage(store, statement)
        with pytest.raises(Damaged, match="Step 2 of run 'r1' of 'one' of the tenant 'acme' is damaged"):
            store.steps(head, "r1")
        assert store.steps(head, "r1", after=2) == []
    damage(store, "UPDATE run SET reasoning = x'00'")
    with pytest.raises(Damaged, match="Run 'r1' of 'one' of the tenant 'acme' is damaged"):
        store.runs(head)
    store.put_run(head, run_of("r1"))
    assert store.runs(head) == [run_of("r1")]
    assert store.verify(head) == []


def rows(store: SqliteStore, statement: str, *values: object) -> list[tuple[bytes, ...]]:
    connection = sqlite3.connect(store._driver.place)
    results = connection.execute(statement, values).fetchall()
    connection.close()
    return results


def stored(store: SqliteStore, column: str, position: int) -> bytes:
    return rows(store, f"SELECT {column} FROM message WHERE position = ?", position)[0][0]


def flipped(body: bytes, at: int) -> bytes:
    return body[:at] + bytes([body[at] ^ 0x10]) + body[at + 1 :]
