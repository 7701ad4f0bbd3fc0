"""URLs of PostgreSQL stores, unusable databases, and their errors."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.ports import append

pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")

import psycopg
from postgres_schemas import execute
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from short_waits import impatient
from waiting import until

from foveate import open_store
from foveate.core.messages import user
from foveate.errors import BadSetting, MissingExtra, StoreError
from foveate.stores import place_of, without_password
from foveate.stores.postgres import PostgresDriver, PostgresStore
from foveate.stores.postgres.dialect import rewritten
from foveate.stores.postgres.errors import Unanswered
from foveate.stores.postgres.pool import Connections, Patient
from foveate.stores.postgres.url import read_url
from foveate.testing.rows import chain, record_after

# --------------------------------------------------------------------------------------------------------------- URLs


def test_url_says_where_to_connect_and_how() -> None:
    parsed = read_url(
        "postgresql://ann:s%40crt@db.example:5433/chats?schema=my%20own&pool=3&wait=2.5&search=off&sslmode=require"
    )
    assert parsed._replace(conninfo="") == (
        ("postgresql://ann@db.example:5433/chats?schema=my%20own", "", "my own", 3, False, 2.5, 0, 62.5, False)
    )
    results = conninfo_to_dict(parsed.conninfo)
    assert {name: results[name] for name in ("user", "password", "host", "port", "dbname", "sslmode")} == {
        "user": "ann",
        "password": "s@crt",
        "host": "db.example",
        "port": "5433",
        "dbname": "chats",
        "sslmode": "require",
    }
    assert (results["connect_timeout"], results["client_encoding"]) == ("2", "utf8")
    assert results["options"] == (
        "-c lock_timeout=2500ms -c idle_in_transaction_session_timeout=60s -c tcp_keepalives_idle=30 "
        '-c tcp_keepalives_interval=10 -c tcp_keepalives_count=3 -c search_path="my\\ own"'
    )


def test_url_options_override_defaults() -> None:
    parsed = read_url("postgres://host/db?connect_timeout=99&application_name=mine&options=-c%20lock_timeout%3D1s")
    results = conninfo_to_dict(parsed.conninfo)
    assert (results["connect_timeout"], results["application_name"]) == ("99", "mine")
    assert str(results["options"]).endswith("-c lock_timeout=1s")
    assert parsed._replace(conninfo="") == ("postgresql://host/db", "", "", 8, True, 10.0, 0, 70.0, False)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("postgresql:///chats?host=/run/postgresql", {"dbname": "chats", "host": "/run/postgresql"}),
        ("postgresql:///chats", {"dbname": "chats"}),
        ("postgresql://?service=chats", {"service": "chats"}),
        ("postgres:///", {}),
    ],
)
def test_url_without_a_host_is_read_as_libpq_reads_it(url: str, options: dict[str, str]) -> None:
    parsed = conninfo_to_dict(read_url(url).conninfo)
    given = {name: parsed[name] for name in ("dbname", "host", "service") if name in parsed}
    assert given == options


@pytest.mark.parametrize(
    ("hosts", "place"),
    [
        ("a:1,b:2", "a:1,b:2"),
        ("a,b", "a,b"),
        ("a:1", "a:1"),
        ("[::1]:5433,b:1", "[::1]:5433,b:1"),
    ],
)
def test_each_of_several_hosts_is_named_with_its_port(hosts: str, place: str) -> None:
    assert read_url(f"postgresql://ann:secret@{hosts}/db").place == f"postgresql://ann@{place}/db"


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=4))
def test_no_password_is_in_what_is_shown(password: str) -> None:
    secret = f"<{password}>"
    url = f"postgresql://ann:{quote(secret, '')}@host/db?schema=s"
    parsed = read_url(url)
    assert conninfo_to_dict(parsed.conninfo)["password"] == secret
    assert parsed.place == "postgresql://ann@host/db?schema=s"
    assert without_password(url) == "postgresql://ann:***@host/db?schema=s"


@pytest.mark.parametrize(
    "text",
    [
        "host=h password=hunter2",
        "host=h PASSWORD = 'hunter2 hunter2' dbname=d",
        "host=h password=hun\\ hunter2",
        "host=h sslpassword=hunter2",
        "postgresql:/u:hunter2@h/db",
        "postgresql:u:hunter2@h/db",
        "u:hunter2@h/db",
        "//u:hunter2@h/db",
        "postgresq://u:hunter2@h/db",
        "postgresql:/u:hun/hunter2@h/db",
        "postgresql:/h/db?password=hunter2",
    ],
)
def test_password_is_masked_in_a_store_that_is_refused(text: str) -> None:
    with pytest.raises(BadSetting) as refusal:
        open_store(text)
    assert "***" in str(refusal.value)
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:se#cret@host/db",
        "postgresql://ann:se/cret@host/db",
        "postgresql://ann:12/cret@host/db",
        "postgresql://ann:se?cret@host/db",
        "postgresql://ann:se@cr:et@host/db",
        "postgresql://ann:secret@host/db?nothing=of-libpq",
        "postgresql://ann:secret@[host/db",
        "postgresql://",
    ],
)
def test_url_that_cannot_be_read_is_refused_without_showing_any_of_it(url: str) -> None:
    with pytest.raises(BadSetting, match="written as %40") as refusal:
        PostgresStore(url)
    assert "cret" not in str(refusal.value)
    assert refusal.value.__cause__ is None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("pool=0", "pool= .* 1 to 1000"),
        ("pool=many", "pool="),
        ("wait=soon", "wait= .* seconds"),
        ("wait=nan", "wait="),
        ("search=no", "on or off"),
        ("partitions=1", "partitions= .* 2 to 128, not '1'"),
        ("partitions=129", "2 to 128"),
        ("partitions=many", "2 to 128"),
        ("partitions=9999999999", "2 to 128"),
        ("partitions=", "2 to 128"),
        (f"schema={'s' * 64}", "63 bytes"),
    ],
)
def test_unknown_option_is_named(options: str, says: str) -> None:
    with pytest.raises(BadSetting, match=says):
        PostgresStore(f"postgresql://ann:secret@host/db?{options}")


def test_another_scheme_is_refused_without_its_password() -> None:
    with pytest.raises(BadSetting, match=r"no store 'postgresql\+asyncpg://ann:\*\*\*@host/db\?password=\*\*\*'"):
        place_of("postgresql+asyncpg://ann:secret@host/db?password=secret")
    with pytest.raises(BadSetting, match="begins with postgresql://"):
        PostgresDriver("mysql://host/db")


def test_missing_psycopg_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.delitem(sys.modules, "foveate.stores.postgres")
    monkeypatch.delitem(sys.modules, "foveate.stores.postgres.store")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r'pip install "foveate\[postgres\]"'):
        open_store("postgresql://host/db")


# ---------------------------------------------------------------------------------------------------------- statements


@pytest.mark.parametrize(
    ("ours", "theirs", "returns"),
    [
        ("SELECT a FROM b WHERE c = ? AND d = ?", "SELECT a FROM b WHERE c = %s AND d = %s", True),
        ("INSERT INTO a VALUES (?) ON CONFLICT DO NOTHING", "INSERT INTO a VALUES (%s) ON CONFLICT DO NOTHING", False),
        ("\n UPDATE a SET b = ? RETURNING c", "\n UPDATE a SET b = %s RETURNING c", True),
        ("CREATE TABLE a (b BLOB NOT NULL, blobs TEXT)", "CREATE TABLE a (b BYTEA NOT NULL, blobs TEXT)", False),
        ("SELECT 'why? BLOB ''%''' || ?", "SELECT 'why? BLOB ''%%''' || %s", True),
        ('SELECT "a?" -- why?\n, ?', 'SELECT "a?" -- why?\n, %s', True),
        ("SELECT 5 % ?", "SELECT 5 %% %s", True),
    ],
)
def test_statement_is_rewritten_but_for_what_stands_in_quotation_marks(ours: str, theirs: str, returns: bool) -> None:
    assert rewritten(ours) == (theirs.encode(), returns)


# ------------------------------------------------------------------------------------------------ what is wrong with it


@pytest.fixture
def other_user(postgres: Any, postgres_url: str) -> str:
    """Return the URL of the same schema for a user who may only read it."""
    name = f"reader_{postgres_url[-8:]}"
    PostgresStore(postgres_url).close()
    execute(postgres_url, f"CREATE ROLE {name} LOGIN PASSWORD 'reads'")
    execute(postgres_url, f"GRANT USAGE ON SCHEMA {postgres_url.partition('schema=')[2]} TO {name}")
    execute(postgres_url, f"GRANT SELECT ON ALL TABLES IN SCHEMA {postgres_url.partition('schema=')[2]} TO {name}")
    return f"{postgres.url(user=name, password='reads')}?schema={postgres_url.partition('schema=')[2]}"


def test_wrong_password_is_said_at_once_and_not_shown(postgres: Any) -> None:
    with pytest.raises(StoreError, match=r"password authentication failed .* Correct the URL") as refusal:
        PostgresStore(postgres.url(password="wrong-one"))
    assert "wrong-one" not in str(refusal.value)


def test_database_that_there_is_not_is_named(postgres: Any) -> None:
    with pytest.raises(StoreError, match=r'database "nowhere" does not exist.* Create the database'):
        PostgresStore(postgres.url(database="nowhere"))


def test_schema_that_there_is_not_is_named_and_not_made(postgres: Any) -> None:
    with pytest.raises(StoreError, match=r'no schema "nowhere".*CREATE SCHEMA nowhere AUTHORIZATION postgres'):
        PostgresStore(postgres.url() + "?schema=nowhere")


def test_pooler_that_drops_the_schema_is_reported(postgres_url: str) -> None:
    """The tables were created in another schema, such as that of the application."""

    class Dropping(psycopg.Connection[Any]):
        @classmethod
        def connect(cls, conninfo: str = "", **keywords: Any) -> Any:
            return super().connect(make_conninfo(conninfo, options=""), **keywords)

    with pytest.raises(StoreError, match=r'for the schema "public".* pooler .*ALTER ROLE postgres SET search_path'):
        PostgresStore(postgres_url, connection=Dropping)
    assert execute(postgres_url, "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()") == [(0,)]


@pytest.mark.parametrize("is_pooled", [False, True])
def test_statements_are_prepared_only_without_a_pooler(
    is_pooled: bool, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind PgBouncer with `pool_mode = transaction`, 151 of 200 turns failed, and another statement could be run."""
    count = "SELECT count(*) FROM pg_prepared_statements"
    if is_pooled:  # A pooler passes on a number of its own.
        monkeypatch.setattr(psycopg.ConnectionInfo, "backend_pid", property(lambda info: 1))
    with PostgresStore(postgres_url + "&pool=1") as store:
        for _ in range(2):
            for _ in range(8):  # psycopg prepares what is asked for the sixth time.
                store.names("acme")
            prepared = store._driver.read(lambda session: session.rows(count))
            assert (prepared == [(0,)]) == is_pooled
            store._driver._connections.give_up()  # The next one is opened by the pool.


def test_port_without_a_server_is_named() -> None:
    with pytest.raises(StoreError, match=r"cannot be reached .*Start the server, or correct host and port"):
        PostgresStore("postgresql://ann:secret@127.0.0.1:1/db?wait=1")


def test_database_that_cannot_hold_every_character_is_refused(postgres: Any) -> None:
    name = f"latin_{uuid.uuid4().hex[:8]}"
    execute(postgres.url(), f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    with pytest.raises(StoreError, match=r"stores text as LATIN1.*ENCODING 'UTF8'"):
        PostgresStore(postgres.url(database=name))


def test_vacuum_without_privilege_is_reported(other_user: str) -> None:
    """The server skips each table with a warning, so the vacuum was once taken for done."""
    with (
        PostgresStore(other_user) as store,
        pytest.raises(StoreError, match=r"only the owner .* is still in its files\. Vacuum as that user"),
    ):
        store.vacuum()


def test_user_with_read_privileges_can_read(postgres_url: str, other_user: str) -> None:
    with PostgresStore(postgres_url) as store:
        head = store.open("acme", "one")
        rows = chain([user("hi")], head)
        head = append(store, head, rows)
    with PostgresStore(other_user) as store:
        assert (store.open("acme", "one"), store.messages(head, 1, 9)) == (head, rows)
        with pytest.raises(StoreError, match=r"does not let this user do it .*Grant the user"):
            append(store, head, chain([user("ho")], head))
        with pytest.raises(StoreError, match="does not let this user"):
            store.open("acme", "two")


def test_server_that_is_set_to_read_only_says_so(postgres_url: str) -> None:
    PostgresStore(postgres_url).close()
    with PostgresStore(postgres_url + "&options=-c%20default_transaction_read_only=on") as store:
        assert store.names("acme") == []
        with pytest.raises(StoreError, match=r"accepts no writes .*target_session_attrs=read-write"):
            store.open("acme", "one")


def test_statement_that_takes_too_long_is_stopped(postgres_url: str) -> None:
    with PostgresStore(postgres_url) as store:

        def work(session: Any) -> None:
            session.rows("SELECT set_config('statement_timeout', '200', true)")  # For this transaction alone.
            session.rows("SELECT pg_sleep(60)")

        with pytest.raises(StoreError, match="took too long"):
            store._driver.write(work)
        assert store.names("acme") == []


def test_row_that_another_holds_too_long_is_given_up(postgres_url: str) -> None:
    with PostgresStore(postgres_url + "&wait=60&options=-c%20lock_timeout=200") as store:
        head = store.open("acme", "one")
        with psycopg.connect(postgres_url.partition("?")[0]) as other:
            other.execute(f"LOCK TABLE {postgres_url.partition('schema=')[2]}.branch IN EXCLUSIVE MODE".encode())
            with pytest.raises(StoreError, match=r"held the same row for too long .*wait= in the URL"):
                append(store, head, chain([user("hi")], head))
            assert store.open("acme", "one") == head  # Reading goes on meanwhile.
        assert append(store, head, chain([user("hi")], head)).position == 1


def test_ctrl_c_in_a_vacuum_leaves_no_connection_that_waits_for_ever(postgres_url: str) -> None:
    class Interrupted(psycopg.Connection[Any]):
        def execute(self, query: Any, *arguments: Any, **keywords: Any) -> Any:
            if "VACUUM" in str(query):
                raise KeyboardInterrupt
            return super().execute(query, *arguments, **keywords)

    with PostgresStore(postgres_url + "&pool=1&wait=45", connection=Interrupted) as store:
        with pytest.raises(KeyboardInterrupt):
            store._driver.vacuum()
        shown = store._driver.read(lambda session: session.rows("SELECT current_setting('lock_timeout')"))
        assert shown == [("45s",)]


def test_when_all_connections_are_in_use_the_pool_is_named(postgres_url: str) -> None:
    with PostgresStore(postgres_url + "&pool=1&wait=60") as store:

        def work(session: Any) -> None:
            with (
                impatient(store, wait=0.2),
                pytest.raises(StoreError, match=r"no connection free within 0.2 s.* Raise pool="),
            ):
                store.names("acme")

        store._driver.read(work)
        assert store.names("acme") == []


@pytest.mark.slow
def test_server_that_is_gone_is_named_however_many_ask_for_a_connection(postgres_url: str) -> None:
    """Later requests do not shorten the time of waiting ones."""
    is_gone = False

    class Gone(psycopg.Connection[Any]):
        @classmethod
        def connect(cls, *arguments: Any, **keywords: Any) -> Any:
            if is_gone:
                raise psycopg.OperationalError("Connection refused")
            return super().connect(*arguments, **keywords)

    lines: list[str] = []
    with PostgresStore(postgres_url + "&wait=60", connection=Gone) as store:

        def ask() -> None:
            with pytest.raises(StoreError) as caught:
                store.names("acme")
            lines.append(str(caught.value))

        is_gone = True
        store._driver._connections.give_up()
        asking = [threading.Thread(target=ask) for _ in range(24)]
        with impatient(store, wait=2):
            for one in asking:
                one.start()
                threading.Event().wait(0.15)
            for one in asking:
                one.join()
    assert ["Start the server" in one for one in lines] == [True] * 24


def test_request_during_an_abandoned_attempt_uses_the_next_one(postgres_url: str) -> None:
    """The server is back, but the last attempt began before that."""
    second_asks, last_began = threading.Event(), threading.Event()
    tried: list[Any] = []
    spare: list[Any] = []

    class Returning(psycopg.Connection[Any]):
        @classmethod
        def connect(cls, *arguments: Any, **keywords: Any) -> Any:
            if not spare:
                return super().connect(*arguments, **keywords)
            tried.append(cls)
            if len(tried) == 2:
                last_began.set()
                assert second_asks.wait(60)
            if len(tried) <= 2:
                raise psycopg.OperationalError("Connection refused")
            return spare.pop()

    parsed = read_url(postgres_url + "&pool=2&wait=60")
    connections = Connections(parsed, Returning)
    used = [connections.borrow()]
    spare.append(type(used[0]).connect(parsed.conninfo, autocommit=True))

    with impatient(connections, wait=0.2), pytest.raises(StoreError):
        connections.borrow()
    assert last_began.wait(60)  # The pool's pause is so short that the second attempt is the last of its kind.
    queued = connections._pool.get_stats().get("requests_queued", 0)
    second = threading.Thread(target=lambda: used.append(connections.borrow()))
    second.start()
    until(lambda: connections._pool.get_stats().get("requests_queued", 0) > queued)
    second_asks.set()
    second.join(60)
    for connection in used:
        connections.give_back(connection)
    connections.close()
    assert (len(used), len(tried)) == (2, 3)


@pytest.mark.parametrize(
    ("looks", "is_given_up"), [([0.1] * 21, True), ([0.1] * 19, False), ([100, *[0.1] * 9], False)]
)
def test_server_is_silent_only_while_this_process_looks(
    monkeypatch: pytest.MonkeyPatch, looks: list[float], is_given_up: bool
) -> None:
    """A process that was suspended for a while has not read the answer that came meanwhile."""
    clock, finished = [0.0], list[bool]()
    monkeypatch.setattr("foveate.stores.postgres.pool.time", SimpleNamespace(monotonic=lambda: clock[0]))
    connection: Any = SimpleNamespace(pgconn=SimpleNamespace(finish=lambda: finished.append(True)))

    def asked() -> Iterator[str]:
        while not (yield "wait"):
            pass

    waiting = Patient._bounded(connection, asked(), 2.0)
    next(waiting)
    with pytest.raises(Unanswered, match="has not answered for 2 s") if is_given_up else nullcontext():
        for seconds in looks:
            clock[0] += seconds
            waiting.send(0)
    assert finished == [True] * is_given_up


def test_reading_cannot_write(postgres_url: str) -> None:
    with PostgresStore(postgres_url) as store, pytest.raises(StoreError, match="accepts no writes"):
        store._driver.read(lambda session: session.rows("DELETE FROM tree RETURNING root"))


def test_text_that_postgresql_cannot_store_is_refused(postgres_url: str) -> None:
    with PostgresStore(postgres_url) as store:
        for text in ("a\0b", "half \ud83d"):
            with pytest.raises(StoreError, match="cannot contain NUL"):
                store._driver.write(lambda session: session.rows("SELECT CAST(? AS text)", (text,)))  # noqa: B023
        assert store.names("acme") == []


def test_store_without_an_index_of_words_refuses_to_search(postgres_url: str) -> None:
    with PostgresStore(postgres_url + "&search=off") as store:
        head = store.open("acme", "one")
        head = append(store, head, chain([user("rain")], head))
        with pytest.raises(StoreError, match="search off"):
            store.search(head, "rain")
        store.commit(head, *record_after(head))
    assert execute(postgres_url, "SELECT count(*) FROM said") == [(0,)]


def test_tables_of_something_else_are_left_as_they_are(postgres_url: str) -> None:
    execute(postgres_url, "CREATE TABLE message (subject TEXT)")
    with pytest.raises(StoreError, match=r"tables of something else \(message\)"):
        PostgresStore(postgres_url)
    assert execute(postgres_url, "SELECT count(*) FROM message") == [(0,)]


def test_two_schemas_of_one_database_know_nothing_of_each_other(postgres: Any, postgres_url: str) -> None:
    name = postgres_url.partition("schema=")[2] + ' the "other"'
    execute(postgres_url, 'CREATE SCHEMA "' + name.replace('"', '""') + '"')
    with (
        PostgresStore(postgres_url) as ours,
        PostgresStore(f"{postgres.url()}?schema={quote(name, '')}&partitions=2") as theirs,
    ):
        head = ours.open("acme", "one")
        append(ours, head, chain([user("hi")], head))
        assert theirs.names("acme") == []
        assert theirs.open("acme", "one") == head


def test_new_schema_takes_nothing_from_another_on_the_search_path(postgres: Any, postgres_url: str) -> None:
    """As for a user with a private schema in addition to the shared one."""
    name = postgres_url.partition("schema=")[2]
    own = f"{name}_own"
    execute(postgres_url, f'CREATE SCHEMA "{own}"')
    path = quote(f'-c search_path="{own}","{name}"', "")
    with PostgresStore(postgres_url) as shared:
        head = shared.open("acme", "one")
        head = append(shared, head, chain([user("the river bank")], head))
        results = shared.search(head, "river")
        assert len(results) == 1
        with PostgresStore(f"{postgres.url()}?options={path}") as store:
            assert store.names("acme") == []
        assert shared.search(head, "river") == results


@pytest.mark.parametrize("option", ["", "&partitions=2"])
def test_concurrent_opening_creates_a_new_schema_once(postgres_url: str, option: str) -> None:
    start, results = threading.Barrier(6), []

    def work() -> None:
        start.wait()
        with PostgresStore(postgres_url + option) as store:
            results.append(store.open("acme", "one"))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(results), len(set(results))) == (6, 1)


def test_store_keeps_no_password_in_what_it_is_shown_as(postgres: Any, postgres_url: str) -> None:
    with PostgresStore(postgres_url) as store:
        assert postgres.password not in repr(store) + repr(store._driver) + str(vars(store))
