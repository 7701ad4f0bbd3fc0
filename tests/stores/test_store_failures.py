"""After any failure the store is as before or after the operation, never in between."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from store_states import scenario, state, states_along_the_way
from sweeps import STEP, by_thirds

from foveate.core.messages import user
from foveate.errors import StoreError
from foveate.ports import Database, Head, append
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing.faults import Countdown, failing_connection, failing_store
from foveate.testing.rows import chain


def run(store: Database) -> int:
    """Return the number of steps before the first failure."""
    heads: dict[str, Head] = {}
    for done, step in enumerate(scenario()):
        try:
            step(store, heads)
        except StoreError:
            return done
    return len(scenario())


@pytest.mark.parametrize("after", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["before", "after"])
@by_thirds
def test_any_failed_statement_leaves_nothing_half_written(tmp_path: Path, after: bool, n: int) -> None:
    """F30."""
    along, template = states_along_the_way(), tmp_path / "made.db"
    SqliteStore(template).close()
    while True:
        path, countdown = shutil.copy(template, tmp_path / f"{n}.db"), Countdown(after=after)
        with SqliteStore(path, synchronous="normal", connection=failing_connection(countdown)) as store:
            countdown.start(n)
            done = run(store)
            if not countdown.is_used_up:
                break
            head = store.open("acme", "later")  # The failure is over: the same store goes on.
            append(store, head, chain([user("still here")], head))
        with SqliteStore(path, synchronous="normal") as store:
            held = state(store)
        held.pop("later")
        assert held in along[done : done + 2], f"after statement {n} failed"
        n += STEP
    assert done == len(scenario())
    assert n > 50


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_next_open_creates_the_file_after_any_failed_statement(tmp_path: Path, after: bool) -> None:
    """F30."""
    for n in range(1, 99):
        path, countdown = tmp_path / f"{n}.db", Countdown(n, after=after)
        try:
            SqliteStore(path, synchronous="normal", connection=failing_connection(countdown)).close()
        except StoreError:
            pass
        else:
            break
        with SqliteStore(path, synchronous="normal") as store:
            assert store.verify(store.open("acme", "one")) == []
    assert 15 < n < 99


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_any_failed_operation_leaves_the_state_before_or_after(after: bool) -> None:
    along = states_along_the_way()
    for n in range(1, len(scenario()) + 1):
        store = MemoryStore()
        done = run(failing_store(store, Countdown(n, after=after)))
        assert done in (n - 1, len(scenario()))  # To the end where the call was refused anyway: it had no effect.
        assert state(store) == along[min(done + after, len(scenario()))]
    assert run(failing_store(MemoryStore(), Countdown())) == len(scenario())


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (sqlite3.SQLITE_FULL, "disk of .* is full"),
        (sqlite3.SQLITE_READONLY, "be able to write to the file"),
        (sqlite3.SQLITE_CORRUPT, "restore a backup"),
        (sqlite3.SQLITE_IOERR, "see whether the last write took place"),
    ],
)
def test_error_of_sqlite_says_what_to_do(tmp_path: Path, code: int, says: str) -> None:
    countdown = Countdown()
    with SqliteStore(tmp_path / "a.db", connection=failing_connection(countdown, code)) as store:
        store.open("acme", "one")
        countdown.start(1)
        with pytest.raises(StoreError, match=says) as failure:
            store.open("acme", "two")
        assert isinstance(failure.value.__cause__, sqlite3.Error)
        assert store.names("acme") == ["one"]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_failed_statement_of_a_search_loses_nothing(tmp_path: Path, after: bool) -> None:
    template, n = tmp_path / "made.db", 0
    with SqliteStore(template, synchronous="normal") as store:
        head = store.open("acme", "one")
        head = append(store, head, chain([user(f"rain {n}") for n in range(5)], head))
    while True:
        n += 1
        path, countdown = shutil.copy(template, tmp_path / f"{n}.db"), Countdown(after=after)
        with SqliteStore(path, synchronous="normal", connection=failing_connection(countdown)) as store:
            countdown.start(n)
            try:
                results = store.search(head, "rain wind")
            except StoreError:
                results = store.search(head, "rain wind")  # The failure is over: the same store goes on.
            assert [one.position for one in results] == [5, 4, 3, 2, 1], f"after statement {n} failed"
            if not countdown.is_used_up:
                break
            assert store.verify(head) == []
    assert n > 20
