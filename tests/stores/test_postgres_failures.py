"""After any failure on the way to a PostgreSQL server, the store is as before or after the operation."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from foveate.ports import append

pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")

import psycopg
from postgres_schemas import alone, emptied, execute, named, taken_apart
from short_waits import impatient
from store_states import state, states_along_the_way
from test_store_failures import run
from waiting import until

from foveate import open_async_conversation, open_conversation
from foveate.core.messages import user
from foveate.errors import ConflictError, StoreError
from foveate.stores.postgres import PostgresStore
from foveate.testing.faults import Countdown
from foveate.testing.rows import chain, record_after

pytestmark = pytest.mark.slow


def without_pause(attempt: int) -> None:
    """Replace the pause before the next attempt."""


def hooked(hook: Callable[[psycopg.Connection[Any], Callable[[], Any], Any], Any]) -> type[psycopg.Connection[Any]]:
    """Return a class of connections whose statements go through `hook(connection, operation, statement)`."""

    class Cursor(psycopg.Cursor[Any]):
        def execute(self, query: Any, *arguments: Any, **keywords: Any) -> Any:
            return hook(self.connection, lambda: super(Cursor, self).execute(query, *arguments, **keywords), query)

        def executemany(self, query: Any, *arguments: Any, **keywords: Any) -> Any:
            return hook(self.connection, lambda: super(Cursor, self).executemany(query, *arguments, **keywords), query)

    class Connection(psycopg.Connection[Any]):
        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            super().__init__(*arguments, **keywords)
            self.cursor_factory = Cursor

    return Connection


def failing(countdown: Countdown) -> type[psycopg.Connection[Any]]:
    """Return connections whose n-th statement fails, counted together."""
    return hooked(
        lambda connection, operation, query: countdown.run(operation, lambda: psycopg.InternalError("made to fail"))
    )


def cutting(countdown: Countdown) -> type[psycopg.Connection[Any]]:
    """Return connections that are cut at the n-th statement, counted together."""

    def hook(connection: psycopg.Connection[Any], operation: Callable[[], Any], query: Any) -> Any:
        def failure() -> Exception:
            connection.close()
            return psycopg.OperationalError("server closed the connection unexpectedly")

        return countdown.run(operation, failure)

    return hooked(hook)


# ------------------------------------------------------------------------------------------------ the n-th statement


def check_every_statement(url: str, after: bool, step: int) -> None:
    along, n = states_along_the_way(), 1
    while True:
        emptied(url)
        countdown = Countdown(after=after)
        with PostgresStore(url, connection=failing(countdown), pause=without_pause) as store:
            countdown.start(n)
            done = run(store)
            if not countdown.is_used_up:
                break
            head = store.open("acme", "later")  # The failure is over: the same store goes on.
            append(store, head, chain([user("still here")], head))
            held = state(store)
        held.pop("later")
        assert held in along[done : done + 2], f"after statement {n} failed"
        n += step
    assert done == len(along) - 1
    assert n > 50


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_any_failed_statement_leaves_nothing_half_written(postgres_url: str, after: bool) -> None:
    """F30."""
    PostgresStore(postgres_url).close()
    check_every_statement(postgres_url, after, step=17)


@pytest.mark.parametrize(("after", "step"), [(False, 1), (True, 3)], ids=["before", "after"])
def test_cut_at_every_single_statement(postgres_url: str, after: bool, step: int) -> None:
    """F30. SQLite does it at every statement in both ways."""
    PostgresStore(postgres_url).close()
    check_every_statement(postgres_url, after, step=step)


def settled(store: PostgresStore) -> dict[str, Any]:
    """Read the state when the server has finished the requests before a cut."""
    for _ in range(50):
        with contextlib.suppress(AssertionError):
            held = state(store)
            if state(store) == held:
                return held
    return state(store)


def check_every_cut(url: str, step: int) -> None:
    """A cut before the commit is retried; a later one is reported."""
    along, n, told = states_along_the_way(), 1, 0
    while True:
        emptied(alone(url))
        countdown = Countdown(after=True)
        with PostgresStore(named(url), connection=cutting(countdown), pause=without_pause) as store:
            countdown.start(n)
            try:
                done = run(store)
            finally:
                used_up, _ = countdown.is_used_up, countdown.start(0)
            held = settled(store)
        if not used_up:
            break
        told += done < len(along) - 1
        assert held in along[done : done + 2], f"after the cut at statement {n}"
        n += step
    assert (done, n > 50, told > 0) == (len(along) - 1, True, True)


def test_cut_connection_leaves_nothing_half_written(postgres_url: str) -> None:
    PostgresStore(postgres_url).close()
    check_every_cut(postgres_url, step=3)


def test_next_opening_creates_a_schema_whose_creation_failed(postgres: Any) -> None:
    for n in range(1, 99, 9):
        name = f"t{uuid.uuid4().hex[:12]}"
        execute(postgres.url(), f"CREATE SCHEMA {name}")
        url = f"{postgres.url()}?schema={name}"
        try:
            PostgresStore(url, connection=failing(Countdown(n))).close()
        except StoreError:
            pass
        else:
            break
        with PostgresStore(url) as store:
            assert store.verify(store.open("acme", "one")) == []
    assert 15 < n < 98


# -------------------------------------------------------------------------------------------------- cuts and conflicts


def cut_all(url: str) -> None:
    """End every connection of the store of this `named` URL, as an administrator may at any time."""
    name = taken_apart(url)[1]
    execute(url, f"SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = '{name}'")


def test_idle_connections_that_were_cut_are_replaced(postgres_url: str) -> None:
    with PostgresStore(named(postgres_url), pause=without_pause) as store:
        head = store.open("acme", "one")
        for n in range(3):
            cut_all(postgres_url)
            head = append(store, head, chain([user(f"hi {n}")], head))
            cut_all(postgres_url)
            assert store.messages(head, 1, 9)[-1].body == chain([user(f"hi {n}")])[0].body
        assert head.position == 3


def test_write_that_is_cut_before_it_commits_is_done_again(postgres_url: str) -> None:
    with PostgresStore(named(postgres_url), pause=without_pause) as store:
        attempts = []

        def work(session: Any) -> None:
            attempts.append(len(attempts))
            session.rows("INSERT INTO tree (tenant, root, branches) VALUES (?, ?, ?)", ("cut", 7, len(attempts)))
            if len(attempts) == 1:
                cut_all(postgres_url)
            session.rows("SELECT 1")  # Any statement that is waited for tells that the connection is gone.

        store._driver.write(work)
        assert attempts == [0, 1]
        assert execute(postgres_url, "SELECT branches FROM tree WHERE tenant = 'cut'") == [(2,)]


def test_work_that_is_cut_again_and_again_is_given_up(postgres_url: str) -> None:
    with PostgresStore(named(postgres_url), pause=without_pause) as store:
        pauses = 0

        def work(session: Any) -> None:
            nonlocal pauses
            pauses += 1
            cut_all(postgres_url)
            session.rows("SELECT 1")

        with pytest.raises(StoreError, match="was lost again and again"):
            store._driver.read(work)
        assert pauses == 3
        assert store.names("acme") == []


def test_connection_lost_during_commit_reports_an_unknown_outcome(postgres_url: str) -> None:
    def hook(connection: psycopg.Connection[Any], operation: Callable[[], Any], query: Any) -> Any:
        if query != b"COMMIT" or not armed:
            return operation()
        armed.clear()
        done = operation()
        connection._pipeline.sync()  # type: ignore[union-attr]  # It reached the server; the answer is what is lost.
        connection.close()
        return done

    armed: list[bool] = []
    with PostgresStore(postgres_url, connection=hooked(hook), pause=without_pause) as store:
        head = store.open("acme", "one")
        rows = chain([user("hi")], head)
        armed.append(True)
        with pytest.raises(StoreError, match=r"not known whether this was written: all of it, or nothing"):
            append(store, head, rows)
        with pytest.raises(ConflictError):
            append(store, head, rows)
        assert store.messages(store.open("acme", "one"), 1, 9) == rows
        # A caller repeats the append after the same tip.
        chat = open_conversation("two", store=store, policy="off")
        first = chat.append("hi")
        armed.append(True)
        with pytest.raises(StoreError, match="not known"):
            chat.append("ho", after=first[-1])
        second = chat.append("ho", after=first[-1])
        assert [row.id for row in chat.history(1, 9)] == [*first, *second]


def test_shutdown_right_after_a_commit_has_an_unknown_outcome(postgres_url: str) -> None:
    """The server commits and ends. psycopg raises an error of the pipeline in its place, on an open connection."""

    class Connection(psycopg.Connection[Any]):
        @contextlib.contextmanager
        def pipeline(self) -> Iterator[psycopg.Pipeline]:
            with super().pipeline() as pipeline:
                yield pipeline
            if armed:
                armed.clear()
                try:
                    raise psycopg.errors.AdminShutdown("terminating connection due to administrator command")
                finally:
                    raise psycopg.OperationalError("cannot exit pipeline mode while busy")

    armed: list[bool] = []
    with PostgresStore(postgres_url, connection=Connection, pause=without_pause) as store:
        head = store.open("acme", "one")
        rows = chain([user("hi")], head)
        armed.append(True)
        with pytest.raises(StoreError, match=r"committing \(terminating connection.*not known whether"):
            append(store, head, rows)
        assert store.messages(store.open("acme", "one"), 1, 9) == rows


@pytest.mark.parametrize("state", ["40001", "40P01", "23505"])
def test_collision_is_retried_a_bounded_number_of_times(postgres_url: str, state: str) -> None:
    pauses: list[int] = []
    with PostgresStore(postgres_url, pause=pauses.append) as store:
        tries = 0

        def work(session: Any, failures: int) -> int:
            nonlocal tries
            tries += 1
            session.rows("INSERT INTO tree (tenant, root, branches) VALUES ('', ?, 1)", (tries,))
            if tries <= failures:
                session.rows(f"DO 'BEGIN RAISE EXCEPTION SQLSTATE ''{state}''; END'")
            return tries

        assert store._driver.write(lambda session: work(session, 3)) == 4
        assert pauses == [1, 2, 3]
        assert execute(postgres_url, "SELECT root FROM tree") == [(4,)]
        tries = 0
        with pytest.raises(StoreError, match=r"too busy .*Nothing was written"):
            store._driver.write(lambda session: work(session, 99))
        assert tries == 12


def test_read_sees_one_state_during_writes(postgres_url: str) -> None:
    with PostgresStore(postgres_url) as store:
        names = "SELECT name FROM conversation WHERE tenant = ?"

        def work(session: Any) -> list[Any]:
            before = session.rows(names, ("acme",))
            store.open("acme", "two")
            return [before, session.rows(names, ("acme",))]

        store.open("acme", "one")
        assert store._driver.read(work) == [[("one",)], [("one",)]]
        assert store.names("acme") == ["one", "two"]


@pytest.mark.parametrize("and_goes_on", [False, True])
def test_work_that_swallows_a_database_error_is_not_committed(postgres_url: str, and_goes_on: bool) -> None:
    """PostgreSQL answers a COMMIT of a failed transaction with ROLLBACK, and without an error."""
    with PostgresStore(postgres_url) as store:

        def work(session: Any) -> None:
            session.rows("INSERT INTO tree (tenant, root, branches) VALUES ('acme', 1, 1)")
            with contextlib.suppress(psycopg.Error):
                session.rows("SELECT 1 / 0")
            if and_goes_on:
                with contextlib.suppress(psycopg.Error):
                    session._connection._pipeline.sync()

        with pytest.raises(StoreError, match="rolled back a transaction"):
            store._driver.write(work)
        assert execute(postgres_url, "SELECT * FROM tree") == []
        assert store.open("acme", "one").position == 0


def test_refusal_leaves_the_connection_as_it_was(postgres_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """Otherwise the pool would reset the connection, and warn."""
    with PostgresStore(postgres_url + "&pool=1") as store:
        head = store.open("acme", "one")
        append(store, head, chain([user("hi")], head))
        with pytest.raises(ConflictError):
            append(store, head, chain([user("ho")], head))
        assert store.open("acme", "one").position == 1
    assert caplog.records == []


def test_simultaneous_creation_gives_one_conversation(postgres_url: str) -> None:
    """Another process creates it between the lookup and the creation."""
    with PostgresStore(postgres_url) as ours, PostgresStore(postgres_url) as theirs:
        begun: list[Any] = []

        def hook(connection: Any, operation: Callable[[], Any], query: Any) -> Any:
            if "INSERT INTO tree" in str(query) and not begun:
                begun.append(theirs.open("acme", "one"))
            return operation()

        with PostgresStore(postgres_url, connection=hooked(hook)) as late:
            assert late.open("acme", "one") == begun[0] == ours.open("acme", "one")


# ------------------------------------------------------------------------------------------------- restarts and asyncio


def own_server(tmp_path_factory: pytest.TempPathFactory, postgres: Any) -> Any:
    """Start a server for this test only, so that it may crash."""
    return type(postgres).shared(Path(postgres.folder).with_name(f"foveate-postgres-own-{uuid.uuid4().hex[:8]}"))


def test_acknowledged_data_survives_crash_and_restart(tmp_path_factory: pytest.TempPathFactory, postgres: Any) -> None:
    server = own_server(tmp_path_factory, postgres)
    with PostgresStore(server.url() + "?wait=60") as store:
        head = store.open("acme", "one")
        for n in range(3):
            for number in range(20):
                head = append(store, head, chain([user(f"{n}.{number} " + "x" * 5000)], head))
            head = store.commit(head, *record_after(head))
            server.crash()
            with impatient(store, wait=2), pytest.raises(StoreError, match="cannot be reached"):
                append(store, head, chain([user("while it is gone")], head))
            server.start()
            assert (store.open("acme", "one"), store.verify(head)) == (head, [])
    server.release()


def test_waiting_for_the_database_does_not_block_the_loop(postgres_url: str) -> None:
    schema = taken_apart(postgres_url)[1]
    waits = f"SELECT 1 FROM pg_stat_activity WHERE application_name = '{schema}' AND wait_event_type = 'Lock'"

    async def main() -> None:
        chat = await open_async_conversation("one", store=named(postgres_url) + "&wait=120", policy="off")
        await chat.append({"role": "user", "content": "hi"})
        with psycopg.connect(postgres_url.partition("?")[0]) as other:
            other.execute(f"LOCK TABLE {schema}.branch IN EXCLUSIVE MODE".encode())
            waiting = asyncio.create_task(chat.append({"role": "user", "content": "ho"}))  # type: ignore[arg-type]
            await asyncio.sleep(0)  # It is begun.
            await asyncio.to_thread(until, lambda: execute(postgres_url, waits) == [(1,)])
            assert not waiting.done()  # It would have given up, had it kept the loop waiting.
        await waiting
        assert len(chat) == 2
        await chat.close()

    asyncio.run(main())
