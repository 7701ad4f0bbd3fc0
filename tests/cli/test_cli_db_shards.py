"""`foveate db shards` prints the SQL for a Citus cluster without opening a database."""

from __future__ import annotations

import pytest

pytest.importorskip("psycopg", reason="psycopg is not installed (the extra `postgres`)")

from foveate.stores.postgres.dialect import distributing


def test_shards_prints_calls_for_the_schema_of_the_url(run) -> None:
    url = "postgresql://ann:secret@nowhere.example/chats?schema=foveate"
    code, out, err = run("db", "shards", "--store", url, "--count", "64")
    assert (code, out.splitlines(), err) == (0, distributing("foveate", 64), "")


def test_shards_without_a_count_lets_citus_choose(run) -> None:
    code, out, _ = run("db", "shards", "--store", "postgresql://nowhere.example/chats")
    first, second, *_ = out.splitlines()
    assert (code, first) == (0, "SELECT create_distributed_table('conversation', 'root', colocate_with => 'none');")
    assert second == "SELECT create_distributed_table('tree', 'root', colocate_with => 'conversation');"


@pytest.mark.parametrize(
    ("store", "count", "expected"),
    [
        ("sqlite:///chat.db", "8", "Only PostgreSQL tables can be distributed"),
        ("postgresql://nowhere.example/chats", "0", "--count must be a number of shards from 1 to 32,000, not 0."),
        ("postgresql://ann:se#cret@nowhere.example/chats", "8", "cannot be parsed"),
    ],
)
def test_wrong_arguments_are_refused(run, store: str, count: str, expected: str) -> None:
    code, out, err = run("db", "shards", "--store", store, "--count", count)
    assert (code, out) == (2, "")
    assert expected in err
    assert "cret" not in err
