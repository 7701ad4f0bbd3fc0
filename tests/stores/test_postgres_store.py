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
from foveate.stores.postgres.words import PostgresWords
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


def test_conversations_with_equal_index_keys_stay_separate(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is a hash: among very many branches some share one."""
    monkeypatch.setattr(PostgresWords, "place", lambda *given: 7)
    with PostgresStore(postgres_url) as store:
        heads = {}
        for tenant, name, text in (("acme", "one", "rain"), ("acme", "two", "rain and wind"), ("other", "one", "rain")):
            head = store.open(tenant, name)
            heads[tenant, name] = append(store, head, chain([user(text)] * (len(heads) + 1), head))
        fork = store.fork(heads["acme", "two"], "three", 1, 0)
        fork = append(store, fork, chain([user("rain, here")], fork))
        results = [[one.position for one in store.search(head, "rain")] for head in (*heads.values(), fork)]
        assert results == [[1], [2, 1], [3, 2, 1], [2, 1]]
        assert execute(postgres_url, "SELECT DISTINCT place FROM said") == [(7,)]
        store.erase(heads["acme", "one"], [(1, 1)])
        assert store.find_residue(store.open("acme", "one")) == (1, [])
        assert [one.position for one in store.search(store.open("acme", "one"), "rain")] == []
        assert [one.position for one in store.search(store.open("other", "one"), "rain")] == [3, 2, 1]
