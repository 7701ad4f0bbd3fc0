"""Query plans: the server finds rows by their key, whatever its statistics are.

A planner without statistics, or one that takes tenant and root for independent, estimates one message in a tree. It
must not read a whole tree for one row for that reason.
"""

from __future__ import annotations

from typing import Any

import pytest

from foveate.ports import append

pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")

import psycopg

from foveate.core.messages import user
from foveate.ports import Head
from foveate.stores.postgres import PostgresStore
from foveate.stores.postgres.dialect import rewritten
from foveate.stores.sql import statements as sql
from foveate.testing.rows import chain


@pytest.mark.parametrize("is_counted", [False, True])
def test_rows_are_found_by_their_keys(postgres_url: str, is_counted: bool) -> None:
    with PostgresStore(postgres_url) as store:
        for number in range(12 if is_counted else 1):
            head = store.open(f"tenant {number}", "one")
            head = append(store, head, chain([user(f"rain {n} " + "wind " * (n % 3)) for n in range(150)], head))
        store.search(head, "rain")
    branch = tree(head)
    with psycopg.connect(postgres_url.partition("?")[0], autocommit=True) as connection:
        connection.execute(f"SET search_path = {postgres_url.partition('schema=')[2]}".encode())
        if is_counted:
            connection.execute("ANALYZE message, body, branch, record, said")
        connection.execute("SET enable_seqscan = off")  # Which is right for tables as small as these.
        plans = {
            name: plan_of(connection, statement, values)
            for name, statement, values in (
                ("link", sql.LINK, (*branch, 40, 40)),
                ("messages", sql.MESSAGES, (*branch[:2], *branch, 40, 60)),
                ("words", sql.WORDS, (*branch, 3, 40, 140)),
                ("newest words", sql.NEWEST_WORDS, (*branch, -1)),
                ("branch", sql.BRANCH, branch),
                ("records", sql.RECORDS, (*branch, 1, 5)),
            )
        }
    for name, plan in plans.items():
        table = {"branch": "branch", "records": "record", "words": "said", "newest words": "said"}.get(name, "message")
        assert f"{table}_pkey" in plan, plan
        assert "message_by_id" not in plan, plan
    assert "(hash = message.body_hash)" in plans["messages"].partition("body_pkey")[2], plans["messages"]


def tree(head: Head) -> tuple[str, int, int]:
    return head.tenant, head.root, head.branch


def plan_of(connection: psycopg.Connection[Any], statement: str, values: tuple[Any, ...]) -> str:
    text = b"EXPLAIN (COSTS OFF) " + rewritten(statement).text
    return "\n".join(line for (line,) in connection.execute(text, values))
