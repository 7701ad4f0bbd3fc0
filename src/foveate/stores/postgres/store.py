"""The PostgreSQL store and its driver: one database for many processes and machines.

Reads see one consistent state (REPEATABLE READ, READ ONLY). Writes are READ COMMITTED; each statement that changes a
branch states what it expects to find, and locks its row. A write that fails because of other writers is retried after a
pause, a limited number of times, and so is one whose connection was cut. Statements are pipelined, so an append takes
two round trips.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

from ...errors import BadSetting, Damaged, MissingExtra, StoreError
from ...ports import Clock, Finding
from ..sql import SqlStore
from ..sql.driver import Dialect, Row, Session
from ..sql.migrate import TABLES

try:
    import psycopg
    from psycopg_pool import ConnectionPool as _  # noqa: F401
except ImportError as error:
    raise MissingExtra("A PostgreSQL store", "postgres") from error

from .dialect import check_partitions, count_partitions, laid_out, rewritten
from .errors import explain, is_conflict, is_lost, is_worth_another, unknown_outcome, unreplicated
from .pool import Connection, Connections, Patient
from .url import SCHEMES, read_url

__all__ = ["PostgresDriver", "PostgresStore"]

T = TypeVar("T")

_READ = b"BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_WRITE = b"BEGIN ISOLATION LEVEL READ COMMITTED"
"""Not READ WRITE, so that a read-only user stays read-only."""
_COMMIT = b"COMMIT"

_TABLES = "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = current_schema()"
_TRIGGERS = """
    SELECT t.tgname, c.relname
    FROM pg_catalog.pg_trigger t
    JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = current_schema() AND c.relname = ANY(?) AND NOT t.tgisinternal
        AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d WHERE d.objid = t.tgfoid AND d.deptype = 'e')
    ORDER BY t.tgname, c.relname"""
"""Without those of an extension: Citus attaches some to the tables that it distributes."""
_AMCHECK = """
    SELECT quote_ident(n.nspname)
    FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'amcheck'"""
_INDEXES = """
    SELECT CAST(i.indexrelid AS bigint), x.relname
    FROM pg_catalog.pg_index i
    JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid
    JOIN pg_catalog.pg_am a ON a.oid = x.relam
    JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_catalog.pg_inherits h ON h.inhrelid = c.oid
    LEFT JOIN pg_catalog.pg_class p ON p.oid = h.inhparent
    WHERE n.nspname = current_schema() AND COALESCE(p.relname, c.relname) = ANY(?) AND x.relkind = 'i'
        AND a.amname = 'btree' AND i.indisvalid
    ORDER BY x.relname"""
"""B-tree indexes of foveate's tables and of their partitions: the only kind that amcheck knows."""
_PATIENT = "SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true)"
_HERE = "SELECT set_config('search_path', quote_ident(current_schema()), true)"
"""So that dropping a table never finds one of another schema on the search path."""
_ALONE = "SELECT pg_advisory_xact_lock(hashtextextended('foveate ' || current_schema(), 0))"

_CONFLICTS_MAX = 12
"""Attempts of a write that conflicts with others."""
_LOST_MAX = 3
"""Attempts of work whose connection is cut before its commit."""
_PAUSE_FIRST, _PAUSE_MAX = 0.004, 0.5
"""Seconds before the second attempt, at most, and before any attempt."""


def _wait(attempt: int) -> None:
    """Sleep for a random part of a time that doubles with every attempt, so that writers do not collide again."""
    time.sleep(random.random() * min(_PAUSE_MAX, _PAUSE_FIRST * 2**attempt))


class PostgresStore(SqlStore):
    """Conversations in a PostgreSQL database, in the schema that the URL names. The tables are created if missing.

    `url`: `postgresql://user:password@host:port/database?schema=foveate`; options: `docs/guides/postgres.md`.
    Acknowledged writes are as durable as the server makes them (`synchronous_commit`, on by default). `pause` is called
    with the number of an attempt, from 1, before the next one; by default it sleeps for a random time. `connection`:
    the class of connections, for tests that let them fail.

    Raises BadSetting for a URL that cannot be parsed, MissingExtra without psycopg, and StoreError, with advice, if the
    database cannot be used. A store cannot be used across a fork of the process: close it before, and open it after.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        pause: Callable[[int], None] = _wait,
        connection: type[Connection] = Connection,
    ) -> None:
        super().__init__(PostgresDriver(url, pause=pause, connection=connection), clock=clock)


class PostgresDriver:
    """The `Driver` for one schema of one PostgreSQL database."""

    dialect: Dialect = "postgres"

    def __init__(
        self, url: str, *, pause: Callable[[int], None] = _wait, connection: type[Connection] = Connection
    ) -> None:
        if not url.startswith(SCHEMES):
            raise BadSetting("The URL of a PostgreSQL store begins with postgresql://.")
        parsed = read_url(url)
        self.place = parsed.place
        self.has_index = parsed.search
        self._pause = pause
        self._partitions = parsed.partitions
        self._connections = Connections(parsed, connection)
        if parsed.partitions:
            try:
                self.read(lambda session: check_partitions(session, parsed.partitions, parsed.place))
            except BaseException:
                self.close()
                raise

    def read(self, work: Callable[[Session], T]) -> T:
        return self._run(_READ, work)

    def write(self, work: Callable[[Session], T]) -> T:
        return self._run(_WRITE, work)

    def check(self) -> tuple[list[Finding], list[str]]:
        triggers = self.read(lambda session: session.rows(_TRIGGERS, (list(TABLES),)))
        findings = [
            Finding(f"trigger {name}", f"it is attached to {table}, and foveate makes no triggers. Drop it.")
            for name, table in triggers
        ]
        schemas = self.read(lambda session: session.rows(_AMCHECK))
        if not schemas:
            return findings, ["PostgreSQL's indexes were not checked: the extension amcheck is not installed."]
        statement = f"SELECT {schemas[0][0]}.bt_index_check(CAST(? AS regclass))"
        for oid, name in self.read(lambda session: session.rows(_INDEXES, (list(TABLES),))):
            try:
                self.read(lambda session, oid=oid: session.rows(statement, (oid,)))  # type: ignore[misc]
            except Damaged as error:
                findings.append(Finding(f"index {name}", f"{error} If the table is intact, REINDEX it."))
            except StoreError as error:
                return findings, [f"PostgreSQL's indexes were not checked: {error}"]
        return findings, []

    def vacuum(self) -> None:
        connection = self._connections.borrow()
        refused: list[str] = []

        def notice(diagnostic: psycopg.errors.Diagnostic) -> None:
            # The server skips a table with a notice only. Found by its source, because its text is translated.
            if (diagnostic.source_function or "").startswith("vacuum_is_"):
                refused.append(diagnostic.message_primary or "")

        connection.add_notice_handler(notice)
        try:
            connection.answer = None
            connection.execute(_PATIENT.replace("true", "false").encode(), prepare=False)
            tables = connection.execute(_TABLES.encode()).fetchall()
            for (name,) in tables:
                if name in TABLES:  # FULL rewrites the table: free space still has the deleted bytes.
                    connection.execute(f'VACUUM (FULL) "{name}"'.encode(), prepare=False)
            connection.execute(b"RESET statement_timeout; RESET lock_timeout", prepare=False)
        except BaseException as error:
            connection.close()  # Its settings would wait for locks without a limit.
            if isinstance(error, psycopg.Error):
                raise explain(error, self.place) from error
            raise
        finally:
            connection.remove_notice_handler(notice)
            self._connections.give_back(connection)
        if refused:
            raise StoreError(
                f"{self.place} lets only the owner of its tables vacuum them ({refused[0]}). Erased data is still in "
                f"its files. Vacuum as that user."
            )

    def close(self) -> None:
        self._connections.close()

    def __repr__(self) -> str:
        return f"PostgresDriver({self.place})"

    def _run(self, begin: bytes, work: Callable[[Session], T]) -> T:
        conflicts = lost = 0
        while True:
            attempt = _Attempt(begin, work, self._partitions)
            try:
                result = attempt.run(self._connections)
                if attempt.is_unreplicated:
                    raise unreplicated(self.place)
                return result
            except (psycopg.Error, UnicodeError) as error:
                conflicts, lost = conflicts + is_conflict(error), lost + attempt.is_lost
                if attempt.is_lost:
                    self._connections.give_up()
                    if attempt.is_unknown:
                        raise unknown_outcome(self.place, error) from error
                again = is_conflict(error) and conflicts < _CONFLICTS_MAX
                if not again and not (attempt.is_lost and is_worth_another(error) and lost < _LOST_MAX):
                    raise explain(error, self.place) from error
            self._pause(conflicts + lost)


class _Attempt(Generic[T]):
    """One transaction and its outcome."""

    def __init__(self, begin: bytes, work: Callable[[Session], T], partitions: int) -> None:
        self._begin, self._work, self._partitions = begin, work, partitions
        self.is_lost = False
        """Whether its connection was cut."""
        self.is_unknown = False
        """Whether the connection was lost during the commit, so that it may have been written."""
        self.is_unreplicated = False
        """Whether it was committed without waiting for the standby."""

    def run(self, connections: Connections) -> T:
        """Run the work, commit, and return its result. Its exceptions, and psycopg's, are raised after a rollback."""
        connection = connections.borrow()
        try:
            with _pipeline(connection) as pipeline:
                connection.execute(self._begin, prepare=False)
                result = self._work(_Session(connection, pipeline, self._begin is _WRITE, self._partitions))
                self.is_unknown = self._begin is _WRITE
                ended = connection.execute(_COMMIT, prepare=False)
            if ended.statusmessage != "COMMIT":  # PostgreSQL answers ROLLBACK if the transaction failed before.
                raise StoreError(f"The database rolled back a transaction: {ended.statusmessage}. Nothing was written.")
            self.is_unreplicated, connection.is_unreplicated = connection.is_unreplicated, False
            return result
        except BaseException as error:
            self.is_lost = connection.closed or is_lost(error) or connections.misleads(error)
            self._undo(connection, keep=isinstance(error, Exception) and not self.is_lost)
            raise
        finally:
            connections.give_back(connection)

    def _undo(self, connection: Patient, *, keep: bool) -> None:
        if keep:
            with suppress(psycopg.Error):
                connection.rollback()
                return
        connection.close()  # Its transaction is in an unknown state; the server rolls it back.


@contextmanager
def _pipeline(connection: Patient) -> Iterator[psycopg.Pipeline]:
    """Run psycopg's pipeline. After an error its end fails too, without new information."""
    context = connection.pipeline()
    pipeline = context.__enter__()
    try:
        yield pipeline
    except BaseException:
        with suppress(psycopg.Error):
            context.__exit__(None, None, None)
        raise
    try:
        context.__exit__(None, None, None)
    except psycopg.OperationalError as error:
        # psycopg replaces the server's last words by an error of the pipeline, if the connection ends here.
        if isinstance(error.__context__, psycopg.Error):
            raise error.__context__ from None
        raise


class _Session:
    """The `Session` of a connection with an open transaction, in a pipeline."""

    __slots__ = ("_connection", "_partitions", "_pipeline", "_writes")

    def __init__(self, connection: Patient, pipeline: psycopg.Pipeline, writes: bool, partitions: int) -> None:
        self._connection, self._pipeline = connection, pipeline
        self._writes = writes
        self._partitions = partitions

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        return self.ask((statement, values))[0]

    def ask(self, *queries: tuple[str, Sequence[Any]]) -> list[list[Row]]:
        sent = self._send(queries)
        if any(returns for _, returns in sent):
            self._pipeline.sync()
        return [cursor.fetchall() if returns else [] for cursor, returns in sent]

    def change(self, *queries: tuple[str, Sequence[Any]]) -> tuple[int, list[list[Row]]]:
        *before, (last, _) = self._send(queries)
        self._pipeline.sync()
        return last.rowcount, [cursor.fetchall() for cursor, _ in before]

    def _send(self, queries: Iterable[tuple[str, Sequence[Any]]]) -> list[tuple[psycopg.Cursor[Row], bool]]:
        """Send these statements; return the cursor of each, and whether it returns rows.

        A fetch would wait for the rows. But only after a sync the server counts how long this process keeps it waiting,
        and ends the transaction of a process that hangs (idle_in_transaction_session_timeout).
        """
        sent = [(self._connection.cursor(binary=True), rewritten(statement), values) for statement, values in queries]
        for cursor, wanted, values in sent:
            cursor.execute(wanted.text, values)
        return [(cursor, wanted.returns) for cursor, wanted, _ in sent]

    def each(self, statement: str, many: Sequence[Sequence[Any]]) -> None:
        self._connection.cursor().executemany(rewritten(statement).text, many)

    def scrub(self) -> None:
        """Do nothing: PostgreSQL keeps deleted data until a vacuum."""

    def tables(self) -> set[str]:
        if self._writes:  # A migration is the only one until its transaction ends.
            self._connection.answer = None
            self.rows(_PATIENT)
            self.rows(_HERE)
            self.rows(_ALONE)
        return {name for (name,) in self.rows(_TABLES)}

    def define(self, statement: str) -> None:
        for part in laid_out(statement, count_partitions(self, self._partitions)):
            self.rows(part)
