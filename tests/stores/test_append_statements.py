"""An append of the only writer runs two statements; one behind another writer's edit returns the edit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from foveate import open_store
from foveate.stores.sql import SqlStore
from foveate.stores.sql import statements as sql
from foveate.stores.sql.driver import Row, Session
from foveate.testing.rows import chain, record_after
from foveate.testing.store_contract import talk


class Listening:
    """A session that remembers its statements."""

    def __init__(self, session: Session, heard: list[str]) -> None:
        self._session, self._heard = session, heard

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        self._heard.append(statement)
        return self._session.rows(statement, values)

    def ask(self, *queries: tuple[str, Sequence[Any]]) -> list[list[Row]]:
        self._heard += [statement for statement, _ in queries]
        return self._session.ask(*queries)

    def change(self, *queries: tuple[str, Sequence[Any]]) -> tuple[int, list[list[Row]]]:
        self._heard += [statement for statement, _ in queries]
        return self._session.change(*queries)

    def each(self, statement: str, many: Sequence[Sequence[Any]]) -> None:
        self._heard.append(statement)
        self._session.each(statement, many)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlStore]:
    is_sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path}/chat.db" if is_sqlite else str(request.getfixturevalue("postgres_url"))
    with open_store(url) as store:
        yield store


@pytest.fixture
def heard(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements of the writes of this store."""
    heard: list[str] = []
    write = store._driver.write
    monkeypatch.setattr(store._driver, "write", lambda work: write(lambda session: work(Listening(session, heard))))
    return heard


@pytest.mark.parametrize("count", [1, 3])
def test_append_of_the_only_writer_runs_two_statements(store: SqlStore, heard: list[str], count: int) -> None:
    head = store.open("acme", "one")
    heard.clear()
    head = store.extend(head, lambda changes: chain(talk(count), changes.head)).head
    assert heard == [sql.ADVANCE, sql.ADD_MESSAGE]
    heard.clear()
    head = store.commit(head, *record_after(head))
    head = store.extend(head, lambda changes: chain(talk(count), changes.head)).head
    assert heard == [sql.COMMIT, sql.ADD_RECORD, sql.ADVANCE, sql.ADD_MESSAGE]
    assert (store.open("acme", "one"), store.verify(head)) == (head, [])


def test_append_as_owner_runs_one_more_statement(store: SqlStore, heard: list[str]) -> None:
    head = store.open("acme", "one")
    store.acquire_lock(head, "worker")
    heard.clear()
    store.extend(head, lambda changes: chain(talk(1), changes.head), owner="worker")
    assert heard == [sql.HEARTBEAT, sql.ADVANCE, sql.ADD_MESSAGE]


def test_append_behind_an_edit_of_another_returns_the_edit(store: SqlStore, heard: list[str]) -> None:
    first = store.open("acme", "one")
    before = store.extend(first, lambda changes: chain(talk(2), changes.head)).head
    record, id = record_after(before)
    edited = store.commit(before, record, id)
    heard.clear()
    changes = store.extend(before, lambda changes: chain(talk(1), changes.head))
    assert heard[0] == sql.ADVANCE
    assert heard[-1] == sql.ADD_MESSAGE
    assert [row.position for row in changes.rows()] == [before.position + 1]
    assert changes.records() == [(id, record)]
    assert (changes.head.number, changes.head.record) == (edited.number, edited.record)
    assert (store.open("acme", "one"), store.verify(changes.head)) == (changes.head, [])
    heard.clear()
    store.extend(changes.head, lambda changes: chain(talk(1), changes.head))
    assert heard == [sql.ADVANCE, sql.ADD_MESSAGE]  # No other writer appended, so the branch is not locked first.
