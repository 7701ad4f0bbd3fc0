"""The cost of a conversation: bytes on disk, and work that grows with the request and not with the history."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from foveate.core import wire
from foveate.core.messages import Message, ToolCall, assistant, tool_result, user
from foveate.ports import append
from foveate.stores.sql import statements
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain


def message(line: dict[str, Any]) -> Message:
    """Return a line of a recorded chat without the fields that do not affect its size."""
    content = line.get("content") or ""
    text = content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
    calls = [
        ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in line.get("tool_calls") or ()
    ]
    match line["role"]:
        case "tool":
            return tool_result(line["tool_call_id"], text)
        case "assistant":
            return assistant(text, *calls)
        case _:
            return user(text)


def recorded(transcripts: Path, least: int, most: int) -> list[Message]:
    """Return the recorded messages whose JSON has `least` to `most` bytes."""
    messages = []
    for path in sorted((transcripts / "neutral").glob("*/*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            sample = message(json.loads(line))
            if least <= len(wire.encode_message(sample)) <= most:
                messages.append(sample)
    return messages


def bytes_per_byte(path: Path, messages: list[Message]) -> float:
    """Return the growth of a file for each byte of JSON, appended one message at a time."""
    with SqliteStore(path, synchronous="normal") as store:
        head = store.open("default", "one")
    empty = path.stat().st_size
    with SqliteStore(path, synchronous="normal") as store:
        for row in chain(messages, head):
            head = append(store, head, [row])
    return (path.stat().st_size - empty) / sum(len(wire.encode_message(one)) for one in messages)


def test_empty_database_file_is_small(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "chat.db") as store:
        store.open("default", "one")
    assert (tmp_path / "chat.db").stat().st_size < 160_000


def test_small_messages_take_little_more_than_their_json(transcripts: Path, tmp_path: Path) -> None:
    """F36."""
    messages = recorded(transcripts, 250, 400)[:2000]
    assert len(messages) == 2000
    assert bytes_per_byte(tmp_path / "chat.db", messages) < 1.12


def test_long_results_take_about_half_of_their_json(transcripts: Path, tmp_path: Path) -> None:
    """F36."""
    messages = recorded(transcripts, 3500, 4500)
    assert len(messages) > 200
    assert bytes_per_byte(tmp_path / "chat.db", messages) < 0.58


def test_body_said_many_times_is_kept_once(tmp_path: Path) -> None:
    long = user(" ".join(str(n * n) for n in range(20_000)))
    assert bytes_per_byte(tmp_path / "one.db", [long]) > 10 * bytes_per_byte(tmp_path / "many.db", [long] * 50)


def test_fork_copies_nothing(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with SqliteStore(path, synchronous="normal") as store:
        head = store.open("acme", "one")
        head = append(store, head, chain([user(f"line {n} " * 40) for n in range(2000)], head))
        for n in range(100):
            store.fork(head, f"fork {n}", 1000 + n, 0)
        connection = sqlite3.connect(path)
        assert connection.execute("SELECT COUNT(*) FROM message").fetchone() == (2000,)
        connection.close()


STATEMENTS = {
    name: text
    for name, text in [*vars(statements).items(), ("locate", statements.locate(3))]
    if isinstance(text, str) and text.split()[:1] and text.split()[0] in ("SELECT", "INSERT", "UPDATE", "DELETE")
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("size") / "chat.db"
    SqliteStore(path).close()
    return path


WHOLE = {"MIGRATIONS", "TREES_WITH_BODIES"}
"""Statements about the whole database: at its opening, and of a vacuum."""


@pytest.mark.parametrize("name", sorted(STATEMENTS.keys() - WHOLE))
def test_no_statement_looks_at_more_rows_than_it_needs(database: Path, name: str) -> None:
    connection = sqlite3.connect(database)
    text = STATEMENTS[name]
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", (1,) * text.count("?"))]
    connection.close()
    assert not [step for step in plan if step.startswith("SCAN")]


@pytest.mark.parametrize("name", sorted(STATEMENTS.keys() - WHOLE - {"ADD_MIGRATION", "NAMES"}))
def test_every_statement_begins_at_a_tenant_and_a_root(name: str) -> None:
    """So each uses one shard. Only the names of a tenant are on many."""
    text = STATEMENTS[name].replace("message.", "")
    assert "(tenant, root" in text or "tenant = ? AND root = ?" in text


def test_every_key_begins_with_a_tenant_and_a_root(database: Path) -> None:
    connection = sqlite3.connect(database)
    keys = {
        f"{table}.{index[1]}": [row[2] for row in connection.execute(f"PRAGMA index_info({index[1]})")][:2]
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for index in connection.execute(f"PRAGMA index_list({table})").fetchall()
        if table != "migration"
    }
    connection.close()
    assert len(keys) == 18
    assert set(map(tuple, keys.values())) == {("tenant", "root")}
