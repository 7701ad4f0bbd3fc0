"""A server with fsync that is stopped, killed or suspended: no acknowledged write is lost or doubled."""

from __future__ import annotations

import contextlib
import os
import signal
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from foveate.ports import append

pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")

import psycopg
from leaders import TOLD, Leaders, check
from postgres_schemas import alone, emptied, execute, named, taken_apart
from short_waits import impatient
from store_states import state, states_along_the_way
from test_postgres_failures import hooked, settled
from test_store_failures import run
from waiting import until

from foveate import open_conversation
from foveate.core.messages import user
from foveate.errors import StoreError
from foveate.stores.postgres import PostgresStore
from foveate.testing.rows import chain

pytestmark = pytest.mark.slow


def without_pause(attempt: int) -> None:
    """Replace the pause before the next attempt."""


@pytest.fixture
def server(postgres: Any) -> Iterator[Any]:
    """Start a server for this test only."""
    server = type(postgres).shared(Path(postgres.folder).with_name(f"foveate-postgres-own-{uuid.uuid4().hex[:8]}"))
    yield server
    server.release()


# --------------------------------------------------------------------------------------------------- crashes under load


def test_stopped_and_killed_server_loses_and_doubles_nothing(server: Any) -> None:
    """Four processes, three in one conversation, all compacting; they continue without opening it again."""
    url = server.url() + "?wait=60"
    PostgresStore(url).close()
    assert [execute(server.url(), f"SHOW {name}") for name in ("fsync", "synchronous_commit", "full_page_writes")] == [
        [("on",)],
        [("on",)],
        [("on",)],
    ]
    with Leaders(url, ["one", "one", "one", "two"], 40) as leaders:
        for share, end in ((0.2, server.crash), (0.4, server.kill), (0.6, server.crash)):
            leaders.until(share)
            end()
            server.start()
        leaders.end()
        assert check(url, leaders) == {"one": 120, "two": 40}
        assert set(leaders.told()) <= TOLD


# ---------------------------------------------------------------------------------------------- a process of the server


def ending(url: str, n: int) -> tuple[type[psycopg.Connection[Any]], dict[str, int]]:
    """Return connections whose server process ends before the n-th statement, counted together."""
    count = {"statements": 0, "armed": 0}

    def hook(connection: psycopg.Connection[Any], operation: Callable[[], Any], query: Any) -> Any:
        if count["armed"]:
            count["statements"] += 1
            if count["statements"] == n:
                execute(url, f"SELECT pg_terminate_backend({connection.info.backend_pid}, 60000)")
        return operation()

    return hooked(hook), count


def check_every_end(url: str, step: int, first: int = 1) -> int:
    along, n, told = states_along_the_way(), first, 0
    while True:
        emptied(alone(url))
        connection, count = ending(url, n)
        with PostgresStore(named(url), connection=connection, pause=without_pause) as store:
            count["armed"] = 1
            done = run(store)
            count["armed"] = 0
            held = settled(store)
        if count["statements"] < n:
            break
        told += done < len(along) - 1
        assert held in along[done : done + 2], f"after the end at statement {n}"
        n += step
    assert (done, n > 50) == (len(along) - 1, True)
    return told


def test_backend_terminated_at_some_statement_is_replaced(postgres_url: str) -> None:
    """Every way to change a store: appending, committing, forking, snapshots, erasing and more."""
    PostgresStore(postgres_url).close()
    check_every_end(postgres_url, step=71, first=7)


def test_backend_terminated_at_any_statement_is_replaced(postgres_url: str) -> None:
    PostgresStore(postgres_url).close()
    assert (
        check_every_end(postgres_url, step=9) > 0
    )  # Some ended at COMMIT: their outcome is unknown, and reported as such.


# ------------------------------------------------------------------------------------------------ one that stands still


def stopped(url: str) -> Callable[[], None]:
    """Stop the server processes of this test's store; return a function that continues them."""
    found = execute(url, f"SELECT pid FROM pg_stat_activity WHERE application_name = '{taken_apart(url)[1]}'")
    pids = [int(str(pid)) for (pid,) in found]
    assert pids
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
    except PermissionError:
        pytest.skip("this user may not stop the server's processes")

    def go_on() -> None:
        while pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pids.pop(), signal.SIGCONT)

    return go_on


def test_hanging_server_is_abandoned_and_nothing_is_written(postgres_url: str) -> None:
    with PostgresStore(named(postgres_url) + "&wait=60") as store:
        chat = open_conversation("one", store=store, policy="off", window=32_000)
        tip = chat.append("hi")[-1]
        go_on = stopped(postgres_url)
        try:
            with (
                impatient(store, answer=0.8),
                pytest.raises(StoreError, match=r"has not answered for 0\.8 s\. It hangs.* Nothing was written"),
            ):
                chat.append("ho", after=tip)
        finally:
            go_on()
        second = chat.append("ho", after=tip)
        assert ([row.id for row in chat.history()], chat.journal.verify()) == ([tip, *second], [])


def test_server_hanging_at_commit_gives_one_copy_after_a_retry(
    postgres_url: str,
) -> None:
    going: list[Callable[[], None]] = []
    armed: list[bool] = []

    def hook(connection: psycopg.Connection[Any], operation: Callable[[], Any], query: Any) -> Any:
        if query == b"COMMIT" and armed:
            armed.clear()
            going.append(stopped(postgres_url))
        return operation()

    # Only the wait for a row may be short here: there are no other writers.
    url = named(postgres_url) + "&wait=60&options=-c%20lock_timeout%3D600"
    with PostgresStore(url, connection=hooked(hook), pause=without_pause) as store:
        chat = open_conversation("one", store=store, policy="off", window=32_000)
        tip = chat.append("hi")[-1]
        armed.append(True)
        try:
            with (
                impatient(store, answer=0.8),
                pytest.raises(StoreError, match=r"has not answered.* not known whether this was written"),
            ):
                chat.append("ho", after=tip)
            with pytest.raises(
                StoreError, match="held the same row"
            ):  # It may still be written: no other writer overtakes it.
                chat.append("ho", after=tip)
            assert len(chat.history()) == 1
        finally:
            going[0]()
        second: list[str] = []

        def is_said() -> bool:
            with contextlib.suppress(StoreError):
                second.extend(chat.append("ho", after=tip))
            return bool(second)

        until(is_said)  # Once the server has done what was sent to it before.
        assert ([row.id for row in chat.history()], chat.journal.verify()) == ([tip, *second], [])


def test_server_that_never_answers_is_reported(server: Any) -> None:
    with PostgresStore(server.url()) as store:
        head = store.open("acme", "one")
        server.pause()
        try:
            with pytest.raises(StoreError, match=r"cannot be reached .*timeout expired.*does not answer"):
                PostgresStore(server.url() + "?connect_timeout=2")
        finally:
            server.resume()
        assert append(store, head, chain([user("hi")], head)).position == 1
    with PostgresStore(server.url()) as store:
        assert state(store)["one"][0].position == 1
