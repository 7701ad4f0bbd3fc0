"""The tables of the queue: procrastinate's own, made and brought up to date as its manual says, and one for reasons.

They lie in the schema of the store, all with names of their own. procrastinate does not keep why a job failed, so that
is kept beside it. Made under the lock under which a store makes its tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import procrastinate
import psycopg
from procrastinate.schema import SchemaManager

from ..errors import BadSetting, StoreError
from ..stores import place_of
from ..stores.postgres.errors import explain
from ..stores.postgres.pool import Connections, Patient
from ..stores.postgres.url import Told, read_url

__all__ = ["Tables", "set_up", "told_of"]

_ALONE = "SELECT pg_advisory_xact_lock(hashtextextended('foveate ' || current_schema(), 0))"
_PATIENT = "SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true)"
_KNOWN = """
SELECT bool_or(relname = 'procrastinate_jobs'), bool_or(relname = 'job_failure'),
       max(obj_description(oid, 'pg_class')) FILTER (WHERE relname = 'procrastinate_jobs')
FROM pg_class WHERE relname IN ('procrastinate_jobs', 'job_failure') AND pg_table_is_visible(oid)"""
"""Not by to_regclass: who looked before waiting for whoever makes them is told by it that there still are none."""
_REASONS = """
CREATE TABLE IF NOT EXISTS job_failure (
    job bigint NOT NULL REFERENCES procrastinate_jobs (id) ON DELETE CASCADE,
    attempt integer NOT NULL,
    reason text NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job, attempt)
)"""
_ADD_REASON = """
INSERT INTO job_failure (job, attempt, reason) VALUES (%s, %s, %s)
ON CONFLICT (job, attempt) DO UPDATE SET reason = excluded.reason, at = now()"""
_RESCUER = "hashtextextended('foveate worker ' || current_schema(), 0)"
_HOLD = f"SELECT pg_try_advisory_lock({_RESCUER})"
_LET_GO = f"SELECT pg_advisory_unlock({_RESCUER})"
_MARK = "foveate brought these tables up to "
_REASON_LENGTH = 2_000


class Tables:
    """Connections to the database in which a queue lies. `url`: of the store. Raises BadSetting and StoreError."""

    def __init__(self, url: str) -> None:
        self.told = told_of(url)
        self._connections = Connections(self.told)
        self._is_ready = False

    @contextmanager
    def connection(self, held: Patient | None = None) -> Iterator[psycopg.Connection[Any]]:
        """A connection that commits each statement: `held`, where the caller has one. What the database refuses is
        raised as StoreError.
        """
        connection = held or self._alive()
        try:
            yield connection
        except psycopg.Error as error:
            raise explain(error, self.told.place) from error
        finally:
            if not held:
                self._connections.give_back(connection)

    def _alive(self) -> Patient:
        """A connection that works. One at rest may have been cut meanwhile; then all others are given up too."""
        connection = self._connections.borrow()
        try:
            connection.execute(b"")
            return connection
        except BaseException as error:
            connection.close()
            self._connections.give_back(connection)
            if not isinstance(error, psycopg.OperationalError):
                raise
        self._connections.give_up()
        return self._connections.borrow()

    def failure(self, error: Exception) -> StoreError:
        """What procrastinate raised where the database refused something, as what it means."""
        cause = error.__cause__
        return explain(cause if isinstance(cause, psycopg.Error) else error, self.told.place)

    def make(self) -> None:
        """Make what is missing, and bring procrastinate's tables up to what is installed. Done once, then nothing."""
        if self._is_ready:
            return
        with self.connection() as connection:
            self._is_ready = _is_up_to_date(connection)
        if self._is_ready:  # Whoever made them may have rights that this user lacks.
            return
        with self.connection() as connection, connection.transaction():
            connection.execute(_PATIENT)
            connection.execute(_ALONE)
            _bring_up_to_date(connection, self.told.place)
            connection.execute(_REASONS)
        self._is_ready = True

    def are_there(self) -> bool:
        """Whether there is a queue."""
        with self.connection() as connection:
            return _known(connection)[1]

    def add_reason(self, job: int, attempt: int, reason: str, held: Patient | None = None) -> None:
        """Keep why an attempt failed. `held`: a connection that was borrowed already; there may be no second one."""
        with self.connection(held) as connection:
            connection.execute(_ADD_REASON, (job, attempt, reason.replace("\0", "")[:_REASON_LENGTH]))

    def hold(self) -> list[Patient]:
        """The connection by which one alone looks for dead workers, to be handed to `let_go`; none where another one
        looks.
        """
        connection, held = self._alive(), list[Patient]()
        try:
            if (connection.execute(_HOLD.encode()).fetchone() or (False,))[0]:
                held.append(connection)
        except psycopg.Error as error:
            raise explain(error, self.told.place) from error
        finally:
            if not held:
                self._connections.give_back(connection)
        return held

    def let_go(self, held: Patient) -> None:
        """Let another one look."""
        try:
            held.execute(_LET_GO.encode())
        except psycopg.Error:
            held.close()  # The lock goes with it.
        self._connections.give_back(held)

    def close(self) -> None:
        """Let go of the connections."""
        self._connections.close()


def set_up(url: str) -> None:
    """Make the tables of a queue in the schema of this store, or bring them up to date. Does nothing where they are.

    It is done where a queue is first used too. Who does it needs CREATE on the schema.
    """
    tables = Tables(url)
    try:
        tables.make()
    finally:
        tables.close()


def told_of(url: str) -> Told:
    """What the URL of a store says, where a queue can lie beside it. Raises BadSetting."""
    if place_of(url).kind != "postgres":
        raise BadSetting(
            "A queue of jobs lies in PostgreSQL, beside the conversations: postgresql://USER:PASSWORD@HOST/DATABASE. "
            "With another store, summaries are written in the background of the process: background=True."
        )
    return read_url(url)


def _is_up_to_date(connection: psycopg.Connection[Any]) -> bool:
    """Whether nothing is to be made or changed."""
    jobs, reasons, comment = _known(connection)
    return jobs and reasons and (not comment.startswith(_MARK) or comment == _MARK + _files()[-1].name)


def _known(connection: psycopg.Connection[Any]) -> tuple[bool, bool, str]:
    """Whether there are jobs, whether there are reasons, and what is noted with the jobs."""
    jobs, reasons, comment = connection.execute(_KNOWN).fetchone() or (None, None, None)
    return bool(jobs), bool(reasons), str(comment or "")


def _files() -> list[Path]:
    """procrastinate's migrations, oldest first."""
    return sorted(Path(SchemaManager.get_migrations_path()).glob("*.sql"))


def _bring_up_to_date(connection: psycopg.Connection[Any], place: str) -> None:
    """Run procrastinate's schema, or its migrations that came since it was run here."""
    files = _files()
    newest = files[-1].name
    jobs, _, comment = _known(connection)
    if not jobs:
        connection.execute(SchemaManager.get_schema().encode())
    elif not comment.startswith(_MARK):
        return  # Another program's, who brings them up to date: a queue of ours in them is one among others.
    else:
        at = comment.removeprefix(_MARK)
        if at > newest:
            raise StoreError(
                f"The queue in {place} was made by a newer procrastinate ({at}) than the one installed here "
                f"({procrastinate.__version__}). Upgrade it: pip install -U procrastinate."
            )
        for file in files:
            if file.name > at:
                connection.execute(file.read_bytes())
    connection.execute(f"COMMENT ON TABLE procrastinate_jobs IS '{_MARK}{newest}'".encode())
