"""Queries as people and models write them find the message that they mean, the same in every store."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from search_queries import QUERIES, TARGETS, chatter

from foveate.core.messages import user
from foveate.ports import Database, Head, SearchHit, append
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain

TEXTS = [*TARGETS, *chatter(700)]
random.Random(3).shuffle(TEXTS)


def filled(store: Database) -> Head:
    head = store.open("acme", "one")
    return append(store, head, chain(map(user, TEXTS), head))


def answers(store: Database) -> dict[str, list[SearchHit]]:
    head = filled(store)
    return {query: store.search(head, query, 5) for query, _ in QUERIES}


@pytest.fixture(scope="module")
def expected() -> dict[str, list[SearchHit]]:
    return answers(MemoryStore())


def test_queries_find_what_they_mean(expected: dict[str, list[SearchHit]]) -> None:
    """Without stems, parts of names and typing errors, it was 42 of 78."""
    missed = [
        query for query, target in QUERIES if TEXTS.index(target) + 1 not in [hit.position for hit in expected[query]]
    ]
    assert len(QUERIES) >= 60
    assert len(missed) <= len(QUERIES) // 20, missed


def test_sqlite_finds_the_same_as_memory(expected: dict[str, list[SearchHit]], tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "chat.db", synchronous="normal") as store:
        assert answers(store) == expected


@pytest.mark.slow
def test_postgresql_finds_the_same_as_memory(expected: dict[str, list[SearchHit]], postgres_url: Any) -> None:
    from foveate.stores.postgres import PostgresStore

    with PostgresStore(postgres_url) as store:
        assert answers(store) == expected


def test_word_with_two_typing_errors_needs_eight_letters(tmp_path: Path) -> None:
    store = MemoryStore()
    head = store.open("acme", "one")
    head = append(store, head, chain([user("connection"), user("cache"), user("log")], head))
    asked = ("conectoin", "cahce", "cahhce", "lgo", "onnection", "cnonection")
    assert [[hit.position for hit in store.search(head, word)] for word in asked] == [[1], [2], [], [], [], [1]]
