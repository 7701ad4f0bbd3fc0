"""PostgreSQL databases of older versions are opened, migrated, and read unchanged.

Each file is a dump (`make_golden_postgres.py`): two conversations, the second a fork of the first; a run with a step,
and a catalog if that version had one. No version with a PostgreSQL store ended at schema 1, 2 or 3; these files hold
the contents of the SQLite files in the tables of these migrations.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from foveate.ports import append

pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")

import psycopg
from make_golden import BOUND, LONG, OUTPUT
from make_golden_postgres import SCHEMA
from postgres_schemas import execute, taken_apart

from foveate.core import wire
from foveate.core.catalog import Action
from foveate.core.messages import user
from foveate.core.runs import AgentRun
from foveate.stores.postgres import PostgresStore
from foveate.stores.sql.migrate import migrations
from foveate.testing.rows import chain

FILES = sorted(path.stem for path in (Path(__file__).parent / "golden").glob("postgres_*.sql"))


def loaded(url: str, name: str) -> str:
    """Return the URL of a schema with the contents of a golden file."""
    server, schema = taken_apart(url)
    text = (Path(__file__).parent / "golden" / f"{name}.sql").read_text("utf-8")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(text.replace(f"{SCHEMA}.", f"{schema}.").encode())
    return url


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_database_that_an_older_foveate_made_is_opened_and_goes_on(postgres_url: str, name: str) -> None:
    schema = int(name.split("_")[1])
    with PostgresStore(loaded(postgres_url, name)) as store:
        one, two = store.open("acme", "one", create=False), store.open("acme", "two", create=False)
        assert (store.verify(one), store.verify(two)) == ([], [])
        assert [wire.decode_message(row.body).text for row in store.messages(one, 1, 9)] == ["rain?", "No, wind.", LONG]
        assert wire.decode_message(store.messages(two, 3, 3)[0].body).text == "and here?"
        assert [record.first for _, record in store.records(one)] == [1]
        assert store.snapshot(one) == (2, 0, b"a view")
        assert [found.position for found in store.search(one, "wind")] == [2]
        assert [found.position for found in store.search(two, "here")] == [3]
        assert [run.id for run in store.runs(two)] == (["r1"] if schema >= 3 else [])
        assert [step.output for step in store.steps(two, "r1")] == ([OUTPUT] if schema >= 3 else [])
        assert store.bindings("acme") == ([BOUND] if schema >= 4 else [])
        store.put_run(one, AgentRun("r2", "me", "one"))
        store.put_action("acme", Action("look"))
        one = append(store, one, chain([user("more")], one))
        assert (store.verify(one), store.find_residue(one)) == ([], (0, []))
    ran = execute(postgres_url, "SELECT version, name, checksum FROM migration ORDER BY version")
    assert ran == [(one.version, one.name, one.checksum) for one in migrations("postgres")]


def test_every_schema_version_has_a_golden_file() -> None:
    newest = len(migrations("postgres"))
    assert set(FILES) >= {*(f"postgres_{number}" for number in range(1, newest + 1)), f"postgres_{newest}_parted"}


@pytest.mark.parametrize("version", ["postgres_5", "postgres_9", "postgres_9_parted"])
def test_words_that_an_older_foveate_indexed_are_gone_with_its_index(postgres_url: str, version: str) -> None:
    url = loaded(postgres_url, version)
    assert execute(url, "SELECT count(*) FROM said") == [(3,)]
    PostgresStore(url).close()
    assert execute(url, "SELECT count(*) FROM said") == [(0,)]
    assert execute(url, "SELECT count(*) FROM indexed") == [(0,)]
    assert execute(url, "SELECT count(*) FROM tree WHERE root = 0") == [(0,)]
    with PostgresStore(url) as store:
        assert [found.position for found in store.search(store.open("acme", "one"), "wind")] == [2]
    assert execute(url, "SELECT tenant, branch, bucket, first, last FROM said") == [("acme", 1, -1, 1, 3)]
