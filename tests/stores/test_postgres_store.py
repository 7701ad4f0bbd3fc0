"""The PostgreSQL store keeps the contract of all stores."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from foveate.ports import append

pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")

import psycopg
from postgres_schemas import emptied, execute

from foveate.core.messages import user
from foveate.stores.postgres import PostgresStore
from foveate.stores.sql.migrate import TABLES
from foveate.testing.rows import chain
from foveate.testing.store_contract import DatabaseContract


def new_schema(postgres: Any) -> str:
    name = f"t{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{postgres.url()}?schema={name}"


@pytest.fixture(scope="module")
def reused(postgres: Any) -> str:
    """Return the URL of a schema that the tests of this module use one after the other."""
    return new_schema(postgres)


@pytest.fixture(scope="module")
def parted(postgres: Any) -> str:
    """Return the same with partitioned tables."""
    return f"{new_schema(postgres)}&partitions=5"


class TestPostgresStore(DatabaseContract):
    @pytest.fixture(autouse=True)
    def schema(self, reused: str) -> None:
        self.url = emptied(reused)

    def make_store(self) -> PostgresStore:
        return PostgresStore(self.url)

    def reopen(self, store: Any) -> PostgresStore:
        store.close()
        return PostgresStore(self.url)

    def test_nothing_stands_in_a_row_from_the_words_into_their_humps(self, store: PostgresStore) -> None:
        head = store.open("acme", "one")
        head = append(store, head, chain([user("call fooBar")], head))
        results = {query: len(store.search(head, f'"{query}"')) for query in ("call foobar", "foo bar", "foobar foo")}
        assert results == {"call foobar": 1, "foo bar": 1, "foobar foo": 0}


@pytest.mark.slow
class TestPostgresStoreInPartitions(TestPostgresStore):
    @pytest.fixture(autouse=True)
    def schema(self, parted: str) -> None:
        self.url = emptied(parted)

    def test_tables_have_the_partitions_of_the_url(self, store: PostgresStore) -> None:
        results = execute(self.url, "SELECT inhparent::regclass::text, count(*) FROM pg_inherits GROUP BY 1")
        parted = {name: number for name, number in results if name in TABLES}
        assert parted == dict.fromkeys(TABLES, 5)
