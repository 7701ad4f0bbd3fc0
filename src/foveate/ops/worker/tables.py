"""The tables of the queue in the schema of the store, and the states of jobs.

The tables are procrastinate's, created and upgraded as its manual describes, and one for the reasons of failures, which
procrastinate does not store. They are created under the same lock as the tables of a store.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import procrastinate
import psycopg
from msgspec import Struct
from procrastinate.schema import SchemaManager

from ...errors import BadSetting, StoreError
from ...stores import place_of
from ...stores.postgres.errors import explain
from ...stores.postgres.pool import Connections, Patient
from ...stores.postgres.url import PostgresUrl, read_url

__all__ = ["JobState", "Tables", "job_states", "read_postgres_url", "set_up"]

_ALONE = "SELECT pg_advisory_xact_lock(hashtextextended('foveate ' || current_schema(), 0))"
_PATIENT = "SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true)"
_KNOWN = """
SELECT bool_or(relname = 'procrastinate_jobs'), bool_or(relname = 'job_failure'),
       max(obj_description(oid, 'pg_class')) FILTER (WHERE relname = 'procrastinate_jobs')
FROM pg_class WHERE relname IN ('procrastinate_jobs', 'job_failure') AND pg_table_is_visible(oid)"""
"""Not with to_regclass: after a wait for the lock it still returns the old state."""
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
_LOCK_RESCUE = f"SELECT pg_try_advisory_lock({_RESCUER})"
_UNLOCK_RESCUE = f"SELECT pg_advisory_unlock({_RESCUER})"
_MARK = "foveate brought these tables up to "
_REASON_LENGTH = 2_000


class Tables:
    """Connections to the database of a queue. `url`: that of the store. Raises BadSetting and StoreError."""

    def __init__(self, url: str) -> None:
        self.url = read_postgres_url(url)
        self._connections = Connections(self.url)
        self._is_ready = False

    @contextmanager
    def connection(self, held: Patient | None = None) -> Iterator[psycopg.Connection[Any]]:
        """Yield a connection that commits each statement, or the caller's own, `held`. Errors are StoreErrors."""
        connection = held or self._alive()
        try:
            yield connection
        except psycopg.Error as error:
            raise explain(error, self.url.place) from error
        finally:
            if not held:
                self._connections.give_back(connection)

    def _alive(self) -> Patient:
        """Return a connection that works. If an idle one was cut, all idle connections are discarded."""
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
        """Return the StoreError for an error of the database that procrastinate raised."""
        cause = error.__cause__
        return explain(cause if isinstance(cause, psycopg.Error) else error, self.url.place)

    def make(self) -> None:
        """Create or upgrade the tables. Only the first call does something."""
        if self._is_ready:
            return
        with self.connection() as connection:
            self._is_ready = _is_up_to_date(connection)
        if self._is_ready:  # The user who created them may have more rights.
            return
        with self.connection() as connection, connection.transaction():
            connection.execute(_PATIENT)
            connection.execute(_ALONE)
            _bring_up_to_date(connection, self.url.place)
            connection.execute(_REASONS)
        self._is_ready = True

    def are_there(self) -> bool:
        """Return whether the queue exists."""
        with self.connection() as connection:
            return _known(connection)[1]

    def add_reason(self, job: int, attempt: int, reason: str, held: Patient | None = None) -> None:
        """Store why an attempt failed. `held`: the caller's connection, if there may be no second one."""
        with self.connection(held) as connection:
            connection.execute(_ADD_REASON, (job, attempt, reason.replace("\0", "")[:_REASON_LENGTH]))

    def lock_rescue(self) -> list[Patient]:
        """Take the lock for rescuing jobs; return its connection for `unlock_rescue`, or none if another worker has
        it.
        """
        connection, held = self._alive(), list[Patient]()
        try:
            if (connection.execute(_LOCK_RESCUE.encode()).fetchone() or (False,))[0]:
                held.append(connection)
        except psycopg.Error as error:
            raise explain(error, self.url.place) from error
        finally:
            if not held:
                self._connections.give_back(connection)
        return held

    def unlock_rescue(self, held: Patient) -> None:
        """Release the lock for rescuing jobs."""
        try:
            held.execute(_UNLOCK_RESCUE.encode())
        except psycopg.Error:
            held.close()  # This releases the lock.
        self._connections.give_back(held)

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()


def set_up(url: str) -> None:
    """Create the tables of a queue in the schema of this store, or upgrade them.

    The first use of a queue does this too. It needs CREATE on the schema.
    """
    tables = Tables(url)
    try:
        tables.make()
    finally:
        tables.close()


def read_postgres_url(url: str) -> PostgresUrl:
    """Parse the URL of a store that can have a queue. Raises BadSetting."""
    if not isinstance(url, str) or place_of(url).kind != "postgres":
        raise BadSetting(
            "A queue of jobs needs a PostgreSQL store: postgresql://USER:PASSWORD@HOST/DATABASE. With another store, "
            "summaries can be written by a thread of the process: background=True."
        )
    return read_url(url)


def _is_up_to_date(connection: psycopg.Connection[Any]) -> bool:
    """Return whether the tables exist and are up to date."""
    jobs, reasons, comment = _known(connection)
    return jobs and reasons and (not comment.startswith(_MARK) or comment == _MARK + _files()[-1].name)


def _known(connection: psycopg.Connection[Any]) -> tuple[bool, bool, str]:
    """Return whether the two tables exist, and the comment of the jobs table."""
    jobs, reasons, comment = connection.execute(_KNOWN).fetchone() or (None, None, None)
    return bool(jobs), bool(reasons), str(comment or "")


def _files() -> list[Path]:
    """Return procrastinate's migrations, oldest first."""
    return sorted(Path(SchemaManager.get_migrations_path()).glob("*.sql"))


def _bring_up_to_date(connection: psycopg.Connection[Any], place: str) -> None:
    """Run procrastinate's schema, or its newer migrations."""
    files = _files()
    newest = files[-1].name
    jobs, _, comment = _known(connection)
    if not jobs:
        connection.execute(SchemaManager.get_schema().encode())
    elif not comment.startswith(_MARK):
        return  # Created by another program, which upgrades them; foveate's queue is one of several in them.
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


_STATES: dict[str, Literal["waiting", "running", "done", "failed"]] = {
    "todo": "waiting",
    "doing": "running",
    "succeeded": "done",
    "failed": "failed",
    "cancelled": "failed",
    "aborted": "failed",
}
_ALL = """
SELECT job.id, job.task_name, job.args, job.status::text, job.attempts, job.scheduled_at,
       (SELECT max(event.at) FROM procrastinate_events AS event
        WHERE event.job_id = job.id AND event.type <> 'scheduled'),
       (SELECT failure.reason FROM job_failure AS failure
        WHERE failure.job = job.id ORDER BY failure.attempt DESC LIMIT 1)
FROM procrastinate_jobs AS job WHERE job.queue_name = %s ORDER BY job.id"""


class JobState(Struct, frozen=True):
    """One job and its state."""

    id: int
    """The number of the job in the queue."""
    what: str
    """`age`, `compact`, `erase` or `vacuum`."""
    conversation: str
    """The name of the conversation that the job works on."""
    tenant: str
    """Its owner."""
    state: Literal["waiting", "running", "done", "failed"]
    """The state of the job in the queue."""
    attempts: int
    """Ended attempts."""
    since: datetime | None
    """When it got this state."""
    next: datetime | None
    """When it is tried again; None: at once, or never."""
    reason: str
    """Why the newest attempt failed; "" if none failed."""


def job_states(url: str) -> list[JobState]:
    """Return the jobs in the queue of this store, oldest first. Ended jobs are kept for a week."""
    tables = Tables(url)
    try:
        if not tables.are_there():
            return []
        with tables.connection() as connection:
            rows = connection.execute(_ALL.encode(), ("foveate",)).fetchall()
    finally:
        tables.close()
    return [
        JobState(
            id,
            task.rpartition(".")[2],
            args.get("conversation") or "",
            args.get("tenant", ""),
            _STATES[status],
            attempts,
            since,
            scheduled if status == "todo" else None,
            reason or ("" if status not in ("cancelled", "aborted") else f"it was {status}"),
        )
        for id, task, args, status, attempts, scheduled, since, reason in rows
    ]
