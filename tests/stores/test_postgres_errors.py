"""Each error of PostgreSQL has its sentence, and is handled in the right way: retried, or reported."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from foveate.ports import append

pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")

import psycopg
from postgres_schemas import emptied, execute
from waiting import until

from foveate import Options, open_conversation
from foveate.core.messages import user
from foveate.errors import Damaged, NoSuchConversation, StoreError
from foveate.ports import Head
from foveate.stores.postgres import PostgresStore
from foveate.stores.postgres.errors import explain, unreachable
from foveate.testing.rows import chain, record_after

PLACE = "postgresql://ann@db/chats"

ONCE = [
    ("25006", r"accepts no writes .*standby, or read-only"),
    ("25P04", r"took too long and was stopped .*transaction_timeout"),
    ("42501", r"does not let this user do it .*Grant the user"),
    ("42P01", r"lacks a table or a column that existed .*If a newer foveate has upgraded it, restart this program"),
    ("42703", r"lacks a table or a column that existed .*If a newer foveate has upgraded it, restart this program"),
    ("53100", r"disk of .* is full .*Make room on the server"),
    ("53200", r"run out of memory, or of what it sets aside for locks .*max_locks_per_transaction"),
    ("53300", r"no connection to spare .*Lower pool="),
    ("53400", r"run out of memory"),
    ("54000", r"cannot store something as large as this"),
    ("55P03", r"held the same row for too long .*wait= in the URL"),
    ("57014", r"took too long and was stopped .*statement_timeout"),
    ("58030", r"could not read or write a file of its own .*its log and its disk"),
    ("22021", r"cannot store this .*cannot contain NUL"),
    ("26000", r"lost a prepared statement .*pool by sessions"),
    ("P0001", r"failed .*Read the server's log"),
    ("XX001", r"is damaged .*restore a backup"),
]
"""Errors that are raised at once."""
AGAIN = [
    ("08006", 3, r"connection to .* was lost again and again .*its log"),
    ("25P03", 3, r"this process was silent for too long, again and again"),
    ("57P01", 3, r"connection to .* was lost again and again"),
    ("57P02", 3, r"connection to .* was lost again and again"),
    ("57P03", 3, r"connection to .* was lost again and again"),
    ("57P04", 3, r"was dropped .*Restore a backup"),
    ("57P05", 3, r"connection to .* was lost again and again"),
    ("40001", 12, r"too busy .*Retry later"),
    ("40P01", 12, r"too busy .*Retry later"),
    ("23505", 12, r"too busy .*Retry later"),
]
"""Errors that are retried: the number of attempts, and the final error."""


def raising(state: str) -> str:
    return f"DO 'BEGIN RAISE EXCEPTION ''made to fail'' USING ERRCODE = ''{state}''; END'"


@pytest.fixture(scope="module")
def url(postgres: Any) -> str:
    name = f"errors_{uuid.uuid4().hex[:8]}"  # Of this process only: other tests run too.
    execute(postgres.url(), f"CREATE SCHEMA {name}")
    PostgresStore(f"{postgres.url()}?schema={name}").close()
    return f"{postgres.url()}?schema={name}"


@pytest.mark.parametrize(
    ("state", "tries", "says"), [*((state, 1, says) for state, says in ONCE), *AGAIN], ids=lambda one: str(one)[:5]
)
def test_error_has_its_sentence_and_is_met_once_or_again(url: str, state: str, tries: int, says: str) -> None:
    emptied(url)
    tried = 0
    with PostgresStore(url, pause=lambda attempt: None) as store:

        def work(session: Any, failures: int = 99) -> str:
            nonlocal tried
            tried += 1
            session.rows("INSERT INTO tree (tenant, root, branches) VALUES ('', ?, 1)", (tried,))
            if tried <= failures:
                session.rows(raising(state))
                session.rows("SELECT 1")  # Is waited for: the error is known before a COMMIT is sent.
            return "done"

        with pytest.raises(StoreError, match=says) as told:
            store._driver.write(work)
        assert (tried, isinstance(told.value.__cause__, psycopg.Error)) == (tries, True)
        assert isinstance(told.value, Damaged) == (state == "XX001")
        assert "Nothing was written" in str(told.value) or state in ("42P01", "42703", "26000", "XX001", "57P04")
        assert execute(url, "SELECT count(*) FROM tree") == [(0,)]
        tried = 0
        if tries > 1:
            assert store._driver.write(lambda session: work(session, 1)) == "done"
            assert (tried, execute(url, "SELECT root FROM tree")) == (2, [(2,)])
        assert store.open("acme", "one").position == 0  # The same store goes on.


@pytest.mark.parametrize("state", ["53100", "53200", "58030"])
def test_server_without_disk_space_refuses_writes_and_serves_reads(url: str, state: str) -> None:
    emptied(url)
    with open_conversation("one", store=url, policy="off", window=32_000) as chat:
        first = chat.append("hi")
        execute(url, f"CREATE FUNCTION fail() RETURNS trigger AS $$ BEGIN RAISE disk_full USING ERRCODE = '{state}'; "
                     "END $$ LANGUAGE plpgsql")  # fmt: skip
        execute(url, "CREATE TRIGGER no_room BEFORE INSERT ON message FOR EACH ROW EXECUTE FUNCTION fail()")
        try:
            for _ in range(3):
                with pytest.raises(StoreError, match="Nothing was written"):
                    chat.append("ho")
            assert ([row.id for row in chat.history()], chat.journal.verify()) == ([*first], [])
        finally:
            execute(url, "DROP TRIGGER no_room ON message; DROP FUNCTION fail")
        second = chat.append("ho")
        assert ([row.id for row in chat.history()], chat.journal.verify()) == ([*first, *second], [])


@pytest.mark.parametrize(
    ("said", "todo"),
    [
        ("FATAL: sorry, too many clients already", "max_connections"),
        ('FATAL: too many connections for role "ann"', "CONNECTION LIMIT"),
        ("FATAL: remaining connection slots are reserved for roles with the SUPERUSER attribute", "max_connections"),
        ("session is read-only", "promote it"),
        ("FATAL: the database system is starting up", "Try again in a moment"),
        ("FATAL: the database system is not yet accepting connections", "Try again in a moment"),
        ("FATAL: the database system is in recovery mode", "recovering"),
        ("FATAL: the database system is shutting down", "Start it again"),
        ("FATAL: unsupported startup parameter: options", "ignore_startup_parameters"),
        ("server does not support SSL, but SSL was required", "sslmode"),
        ("SSL error: certificate verify failed", "sslrootcert"),
        ("connection timeout expired", "does not answer"),
        ("[Errno -2] Name or service not known: failed to resolve host 'nowhere'", "no host with this name"),
        ("an unknown failure", "Check that it runs, then retry"),
    ],
)
def test_failed_connection_is_reported_with_advice(said: str, todo: str) -> None:
    told = str(unreachable(PLACE, 10, psycopg.OperationalError(said)))
    assert told.startswith(f"{PLACE} cannot be reached ({said}). ")
    assert todo in told


def test_each_failed_host_is_reported_with_advice_for_the_last() -> None:
    said = """connection timeout expired
Multiple connection attempts failed. All failures were:
- host: 'a', port: '1', hostaddr: '10.0.0.1': connection to server at "10.0.0.1", port 1 failed: Connection refused
\tIs the server running on that host and accepting TCP/IP connections?
- host: 'b', port: '2', hostaddr: '10.0.0.2': connection timeout expired"""
    assert str(unreachable(PLACE, 10, psycopg.OperationalError(said))) == (
        f"{PLACE} cannot be reached (host: 'a', port: '1', hostaddr: '10.0.0.1': connection to server at "
        f"\"10.0.0.1\", port 1 failed: Connection refused; host: 'b', port: '2', hostaddr: '10.0.0.2': connection "
        f"timeout expired). It accepts connections and does not answer. Check whether it hangs, and the network "
        f"between."
    )


def test_error_of_which_nothing_is_known_says_its_first_line() -> None:
    told = str(explain(psycopg.InternalError("made up\nDETAIL: more"), PLACE))
    assert told == f"{PLACE} failed (made up). Nothing was written. Read the server's log."


def test_host_that_there_is_not_and_a_server_without_tls_are_named(postgres: Any) -> None:
    with pytest.raises(StoreError, match="There is no host with this name"):
        PostgresStore("postgresql://ann:secret@no-such-host.invalid/db?wait=1")
    with pytest.raises(StoreError, match=r"does not support SSL.* Set sslmode in the URL"):
        PostgresStore(postgres.url() + "?sslmode=require&wait=1")


def test_server_without_free_connections_is_reported_and_recovers(postgres: Any, url: str) -> None:
    """A real error 53300, by a limit of the user's connections."""
    emptied(url)
    schema = url.partition("?schema=")[2]
    role = f"only_{uuid.uuid4().hex[:8]}"
    execute(url, f"CREATE ROLE {role} LOGIN PASSWORD 'one' SUPERUSER CONNECTION LIMIT 1")
    execute(url, f"ALTER ROLE {role} NOSUPERUSER")
    execute(url, f"GRANT ALL ON SCHEMA {schema} TO {role}")
    execute(url, f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {role}")
    ours = postgres.url(user=role, password="one") + f"?schema={schema}"
    with PostgresStore(ours) as store:
        head = store.open("acme", "one")
        with pytest.raises(StoreError, match=r"too many connections .*CONNECTION LIMIT"):
            PostgresStore(ours)
        assert append(store, head, chain([user("hi")], head)).position == 1


def test_transaction_stalled_by_its_own_process_is_repeated(url: str) -> None:
    """A real error 25P03."""
    emptied(url)
    with PostgresStore(url) as store:
        tried = 0

        def work(session: Any) -> str:
            nonlocal tried
            tried += 1
            session.rows("INSERT INTO tree (tenant, root, branches) VALUES ('', ?, 1) RETURNING root", (tried,))
            if tried == 1:
                session.rows("SELECT set_config('idle_in_transaction_session_timeout', '50', true)")
                pid = session._connection.info.backend_pid
                until(lambda: not execute(url, f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid}"))
            return str(session.rows("SELECT 'done'")[0][0])

        assert (store._driver.write(work), tried) == ("done", 2)
    assert execute(url, "SELECT root FROM tree") == [(2,)]


def test_standby_connection_is_replaced_if_the_url_asks_for_the_primary(url: str) -> None:
    """As behind a load balancer that was switched: old connections of the pool refuse writes, new ones accept them."""
    emptied(url)
    demoted = "SELECT set_config('default_transaction_read_only', 'on', false)"
    for option in ("", "&target_session_attrs=read-write"):
        with PostgresStore(url + option, pause=lambda attempt: None) as store:
            head = store.open("acme", option or "one")
            # One inside of the other, so that there are two connections.
            store._driver.read(lambda one: (one.rows(demoted), store._driver.read(lambda two: two.rows(demoted))))
            if option:
                assert append(store, head, chain([user("hi")], head)).position == 1
            else:
                with pytest.raises(StoreError, match="accepts no writes"):
                    append(store, head, chain([user("hi")], head))


def test_prepared_statement_is_prepared_again_after_a_table_change(url: str) -> None:
    """A real error 0A000: a newer version migrated the tables meanwhile."""
    execute(url, "DROP TABLE IF EXISTS changing; CREATE TABLE changing (one INT)")
    with PostgresStore(url, pause=lambda attempt: None) as store:
        for _ in range(8):  # psycopg prepares what is asked for the sixth time.
            store._driver.read(lambda session: session.rows("SELECT * FROM changing WHERE one = ?", (1,)))
        execute(url, "ALTER TABLE changing ADD two INT; INSERT INTO changing VALUES (1, 2)")
        assert store._driver.read(lambda session: session.rows("SELECT * FROM changing WHERE one = ?", (1,))) == [
            (1, 2)
        ]
    execute(url, "DROP TABLE changing")


@pytest.mark.parametrize("back", [1, 10**6, 10**12])
def test_clocks_that_go_back_do_not_matter(url: str, back: int) -> None:
    """Stamps and records contain the client's time; the server's time is not used."""
    emptied(url)
    times = iter([2 * 10**12, 2 * 10**12 - back, 2 * 10**12 - back, *[10**12 - back + 1] * 99])
    with open_conversation(
        "one", store=url, policy="off", window=32_000, options=Options(clock=lambda: next(times))
    ) as chat:
        ids = [chat.append(f"message {n}")[0] for n in range(5)]
        assert [row.id for row in chat.history()] == ids
        assert (chat.journal.verify(), chat.append("message 4", after=ids[3])) == ([], (ids[4],))
    with open_conversation("one", store=url, policy="off", window=32_000, options=Options(clock=lambda: 0)) as chat:
        assert ([entry.message.text for entry in chat.view][-1], chat.journal.verify()) == ("message 4", [])


def test_no_statement_asks_the_server_for_the_time(url: str) -> None:
    emptied(url)
    said: list[str] = []

    class Listening(psycopg.Connection[Any]):
        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            super().__init__(*arguments, **keywords)
            self.cursor_factory = Cursor

    class Cursor(psycopg.Cursor[Any]):
        def execute(self, query: Any, *arguments: Any, **keywords: Any) -> Any:
            said.append(str(query).lower())
            return super().execute(query, *arguments, **keywords)

    with PostgresStore(url, connection=Listening) as store:
        head: Head = store.open("acme", "one")
        head = append(store, head, chain([user("rain"), user("wind")], head))
        head = store.commit(head, *record_after(head))
        store.fork(head, "two", 1, 0)
        store.search(head, "rain")
        store.erase(head, [(1, 1)])
        assert store.verify(store.open("acme", "one")) == []
        with pytest.raises(NoSuchConversation):
            store.open("acme", "three", create=False)
    assert len(said) > 30
    assert [one for one in said if "now()" in one or "current_t" in one or "clock_" in one or "timestamp" in one] == []
