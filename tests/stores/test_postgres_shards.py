"""A store whose rows are on two shards keeps the contract of all stores, and a turn needs one of them.

The shards are schemas of one server, with no row in common. Citus itself could not be had (docs/reference/citus.md).
"""

from __future__ import annotations

import uuid
from typing import Any

import pytest

pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")

import psycopg
from postgres_schemas import emptied, execute
from shard_driver import ShardDriver, create_shards, shards_of
from shard_turns import other_work, turns

from foveate import Conversation, open_conversation
from foveate.core.messages import user
from foveate.open import grouped
from foveate.stores.sql import SqlStore
from foveate.testing.store_contract import DatabaseContract

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shards(postgres: Any) -> str:
    """Return the URL of a coordinator, with two shards that the tests of this module use one after the other."""
    name = f"t{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    url = f"{postgres.url()}?schema={name}"
    create_shards(url)
    return url


@pytest.fixture
def url(shards: str) -> str:
    for shard in shards_of(shards):
        emptied(shard)
    return shards


def test_transactions_of_turns_touch_one_shard(url: str) -> None:
    driver = ShardDriver(url)
    with SqlStore(driver) as store:
        with driver.hearing() as touched:
            turns(store)
        assert max(map(len, touched)) == 1
        assert set().union(*touched) == {0, 1}  # Two conversations and an agent, spread over both.
        several = {}
        for name, work in other_work(store).items():
            with driver.hearing() as touched:
                work()
            several[name] = max(map(len, touched))
    rare = {name for name, shards in several.items() if shards > 1}
    assert rare <= {"fork", "repoint", "rename"}


def test_conversations_are_spread_over_the_shards(url: str) -> None:
    with SqlStore(ShardDriver(url)) as store:
        for number in range(40):
            with talk(number, store) as chat:
                chat.append(user(f"question {number}"))
        assert len(store.names("acme")) == 40
    counts = [execute(shard, "SELECT count(*) FROM message")[0][0] for shard in shards_of(url)]
    assert sum(counts) == 40
    assert min(counts) > 8
    with SqlStore(ShardDriver(url)) as store, talk(7, store) as chat:
        assert chat.history()[0].message.text == "question 7"
        assert chat.journal.verify() == []


def talk(number: int, store: SqlStore) -> Conversation:
    return open_conversation(f"talk {number}", **grouped({"store": store, "tenant": "acme", "window": 10_000}))


class TestStoreOnShards(DatabaseContract):
    @pytest.fixture(autouse=True)
    def empty(self, url: str) -> None:
        self.url = url

    def make_store(self) -> Any:
        return SqlStore(ShardDriver(self.url))

    def reopen(self, store: Any) -> Any:
        store.close()
        return SqlStore(ShardDriver(self.url))
