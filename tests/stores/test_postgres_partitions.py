"""Tables in hash partitions on a real server: their creation, and turns that use one partition."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from foveate.ports import append

pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")

import psycopg
from postgres_schemas import execute, taken_apart
from shard_rules import problems
from shard_turns import Asked, Recording, other_work, turns

from foveate.core.messages import user
from foveate.errors import BadSetting
from foveate.ops.archive import export_archive, import_archive
from foveate.stores.postgres import PostgresDriver, PostgresStore
from foveate.stores.postgres.dialect import PARTITIONS_MAX, laid_out, name_of, rewritten
from foveate.stores.sql import SqlStore
from foveate.stores.sql.migrate import TABLES, bring_up_to_date, migrations
from foveate.testing.rows import chain

pytestmark = pytest.mark.slow

PART = re.compile(r"\b(\w+)_p(\d\d)\b")


def test_every_statement_of_a_turn_goes_into_one_partition(postgres_url: str) -> None:
    driver = Recording(PostgresDriver(f"{postgres_url}&partitions=16"))
    with SqlStore(driver) as store, driver.hearing() as asked:
        turns(store)
        for work in other_work(store).values():
            work()
    asked = [one for one in asked if not one.statement.startswith("SET LOCAL")]
    assert {one.statement: found for one in asked if (found := problems(one.statement))} == {}
    server, schema = taken_apart(postgres_url)
    with psycopg.connect(server, autocommit=True, options=f"-c search_path={schema}") as connection:
        plans = {one.statement: plan_of(connection, one) for one in asked}
    touched = {statement: {number for _, number in PART.findall(plan)} for statement, plan in plans.items()}
    assert {statement: numbers for statement, numbers in touched.items() if len(numbers) > 1} == {}
    # An INSERT goes where its one root leads to, which its plan does not say (test_shard_statements.py).
    silent = [statement for statement, numbers in touched.items() if not numbers]
    assert [statement for statement in silent if not statement.strip().startswith("INSERT")] == []
    assert len(plans) > 50


def test_whole_tenant_is_looked_for_in_all_of_them(postgres_url: str) -> None:
    """Shows that the test above can fail."""
    PostgresStore(f"{postgres_url}&partitions=4").close()
    server, schema = taken_apart(postgres_url)
    with psycopg.connect(server, autocommit=True, options=f"-c search_path={schema}") as connection:
        plan = plan_of(connection, Asked(1, "SELECT name FROM conversation WHERE tenant = ?", ("acme",)))
    assert len({number for _, number in PART.findall(plan)}) == 4


def plan_of(connection: psycopg.Connection[Any], asked: Asked) -> str:
    text = b"EXPLAIN (COSTS OFF) " + rewritten(asked.statement).text
    return "\n".join(line for (line,) in connection.execute(text, asked.values))


# ------------------------------------------------------------------------------------------------ how many there are


def test_how_many_there_are_is_settled_when_tables_are_made(postgres_url: str) -> None:
    with PostgresStore(f"{postgres_url}&partitions=3") as store:
        head = store.open("acme", "one")
    with PostgresStore(postgres_url) as store:
        assert store.open("acme", "one", create=False) == head
    PostgresStore(f"{postgres_url}&partitions=3").close()
    with pytest.raises(BadSetting, match=r"have 3 partitions each, and the URL says partitions=4.*foveate db export"):
        PostgresStore(f"{postgres_url}&partitions=4")


def test_whole_tables_are_not_parted_afterwards(postgres_url: str) -> None:
    PostgresStore(postgres_url).close()
    with pytest.raises(BadSetting, match=r"have no partitions, and the URL says partitions=4"):
        PostgresStore(f"{postgres_url}&partitions=4")


def test_table_of_a_later_migration_has_the_same_partitions(postgres_url: str) -> None:
    known = migrations("postgres")
    for url, upto in ((f"{postgres_url}&partitions=3", known[:3]), (postgres_url, known)):
        driver = PostgresDriver(url)
        bring_up_to_date(driver, lambda: 1, upto)
        driver.close()
    assert parts(postgres_url) == {table: [f"{table}_p00", f"{table}_p01", f"{table}_p02"] for table in TABLES}


def test_statement_that_makes_a_table_makes_its_partitions() -> None:
    made = "CREATE TABLE note (\n    tenant TEXT NOT NULL,\n    root BIGINT NOT NULL\n)"
    assert laid_out(made, 2) == [
        f"{made} PARTITION BY HASH (root)",
        "CREATE TABLE note_p00 PARTITION OF note FOR VALUES WITH (MODULUS 2, REMAINDER 0)",
        "CREATE TABLE note_p01 PARTITION OF note FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
    ]
    said = "ALTER TABLE note REPLICA IDENTITY FULL"
    assert laid_out(said, 2) == [said, said.replace("note", "note_p00"), said.replace("note", "note_p01")]
    others = ("CREATE INDEX a ON note (root)", "CREATE TABLE alone (name TEXT)", "ALTER TABLE note ADD COLUMN b TEXT")
    assert [laid_out(one, 2) for one in others] == [[one] for one in others]
    assert laid_out(made, 0) == [made]


def test_names_of_many_partitions_sort_as_their_numbers() -> None:
    assert [name_of("message", 7, parts) for parts in (8, 100, 101)] == ["message_p07", "message_p07", "message_p007"]


def test_server_as_it_is_installed_has_room_for_the_most_partitions(postgres_url: str) -> None:
    with PostgresStore(f"{postgres_url}&partitions={PARTITIONS_MAX}") as store:
        head = store.open("acme", "one")
        head = append(store, head, chain([user("rain")], head))
        assert (store.verify(head), len(store.search(head, "rain")), store.names("acme")) == ([], 1, ["one"])
    assert {len(found) for found in parts(postgres_url).values()} == {PARTITIONS_MAX}


def parts(url: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for table, part in execute(
        url, "SELECT inhparent::regclass::text, inhrelid::regclass::text FROM pg_inherits ORDER BY 2"
    ):
        if table in TABLES:
            found.setdefault(str(table), []).append(str(part))
    return found


# ---------------------------------------------------------------------------------------------------- life and death


def test_vacuum_leaves_no_byte_of_what_was_erased_in_any_partition(postgres_url: str) -> None:
    text = "pomegranate " + random.Random(1).randbytes(20_000).hex()  # Not to be compressed into less than a page.
    with PostgresStore(f"{postgres_url}&partitions=3") as store:
        for name in ("one", "two", "three", "four"):
            head = store.open("acme", name)
            head = append(store, head, chain([user(text)], head))
            store.search(head, "pomegranate")
            store.erase(head, [(1, 1)])
            assert store.find_residue(store.open("acme", name)) == (1, [])
        before = size(postgres_url)
        store.vacuum()
        assert (size(postgres_url) < before, store.verify(store.open("acme", "one"))) == (True, [])
    for table in TABLES:
        assert execute(postgres_url, f"SELECT count(*) FROM {table} WHERE {table}::text LIKE '%pomegranate%'") == [(0,)]


def size(url: str) -> int:
    return int(
        str(
            execute(
                url,
                "SELECT sum(pg_relation_size(oid)) FROM pg_class WHERE relnamespace = current_schema()::regnamespace",
            )[0][0]
        )
    )


def test_conversations_move_from_whole_tables_into_partitions(postgres: Any, postgres_url: str, tmp_path: Path) -> None:
    execute(postgres_url, f"CREATE SCHEMA {taken_apart(postgres_url)[1]}_parted")
    parted = f"{postgres_url}_parted&partitions=4"
    with PostgresStore(postgres_url) as here, PostgresStore(parted) as there:
        turns(here)
        export_archive(here, tmp_path / "all.jsonl", tenant="acme")
        import_archive(there, tmp_path / "all.jsonl")
        for name in here.names("acme"):
            one, other = here.open("acme", name), there.open("acme", name, create=False)
            assert (one.tip, one.seal, one.record) == (other.tip, other.seal, other.record)
            assert (there.verify(other), there.messages(other, 1, 99)) == ([], here.messages(one, 1, 99))


def test_jobs_run_next_to_partitioned_tables(postgres_url: str) -> None:
    pytest.importorskip("procrastinate", reason="procrastinate is not installed (the extra `worker`)")
    from foveate.ops.worker import Worker, enqueue, job_states

    url = f"{postgres_url}&partitions=2"
    with PostgresStore(url) as store:
        head = store.open("", "notes")
        append(store, head, chain([user("a pomegranate"), user("an apple")], head))
    enqueue(url, "notes", "erase", handle="m1")
    enqueue(url, "", "vacuum")
    with Worker(url, summarizer="digest", window=10_000) as worker:
        worker.run(once=True)
    assert [job.state for job in job_states(url)] == ["done", "done"]
    with PostgresStore(postgres_url) as store:
        head = store.open("", "notes")
        assert ([row.body == b"" for row in store.messages(head, 1, 2)], store.verify(head)) == ([True, False], [])
