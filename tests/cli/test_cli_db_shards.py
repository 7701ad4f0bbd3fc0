"""`foveate db shards` prints the calls that spread the tables over a Citus cluster, and asks nothing of a database."""

from __future__ import annotations

import pytest

pytest.importorskip("psycopg", reason="psycopg is not installed (the extra `postgres`)")

from foveate.stores.postgres.shards import distributing


def test_the_calls_are_printed_for_the_schema_of_the_url(run) -> None:
    url = "postgresql://ann:secret@nowhere.example/chats?schema=foveate"
    code, out, err = run("db", "shards", "--store", url, "--count", "64")
    assert (code, out.splitlines(), err) == (0, distributing("foveate", 64), "")


def test_without_a_schema_and_a_number_citus_chooses(run) -> None:
    code, out, _ = run("db", "shards", "--store", "postgresql://nowhere.example/chats")
    first, second, *_ = out.splitlines()
    assert (code, first) == (0, "SELECT create_distributed_table('conversation', 'root', colocate_with => 'none');")
    assert second == "SELECT create_distributed_table('tree', 'root', colocate_with => 'conversation');"


@pytest.mark.parametrize(
    ("store", "count", "says"),
    [
        ("sqlite:///chat.db", "8", "Only PostgreSQL tables can be distributed"),
        ("postgresql://nowhere.example/chats", "0", "--count must be a number of shards from 1 to 32,000, not 0."),
        ("postgresql://ann:se#cret@nowhere.example/chats", "8", "cannot be read"),
    ],
)
def test_what_cannot_be_is_refused(run, store: str, count: str, says: str) -> None:
    code, out, err = run("db", "shards", "--store", store, "--count", count)
    assert (code, out) == (2, "")
    assert says in err
    assert "cret" not in err
