"""A pool of connections to one PostgreSQL database, and checks of the database."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Generator
from contextlib import suppress
from inspect import GEN_CLOSED, getgeneratorstate
from typing import Any, ClassVar

import psycopg
from psycopg.types.numeric import Int8BinaryDumper
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from ...errors import StoreError
from ..checks import CLOSED
from .errors import Unanswered, explain, unreachable
from .url import PostgresUrl

__all__ = ["Connection", "Connections", "Patient"]

Connection = psycopg.Connection[Any]

# The pool warns of each failed connection. Borrowers get an error anyway, so do not print it without logging.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())

_OLDEST = 130_000
"""The oldest supported server: 13."""
_IDLE_SECONDS = 300.0
"""After which an unused connection is closed."""
_AGAIN_SECONDS = 0.5
"""At most between two attempts to connect while a thread waits. psycopg pauses 1, 2, 4 and more seconds, so a thread
could wait long after the server is back.
"""
_CHECK_MAX = 1.0
"""Seconds of silence that one check counts for, at most. psycopg checks ten times a second; if a check takes longer,
this process itself stood still.
"""


class Patient(Connection):
    """A connection that waits only for some time for a silent server."""

    answer: float | None = None
    """Seconds; None: no limit."""
    born = 0
    """The pool's generation when it was created."""
    is_unreplicated = False
    """Whether a wait for a standby was cancelled on it."""

    def wait(self, gen: Any, *arguments: Any, **keywords: Any) -> Any:
        bounded = self._bounded(gen, self.answer)
        try:
            return super().wait(bounded, *arguments, **keywords)
        except BaseException as error:
            # Ctrl-C, or a time limit that a signal handler raises, leaves the server's answers unread, wherever in
            # psycopg it is raised. psycopg would replace the interrupt with an error of the pipeline, and a write could
            # count as not written. Only the other errors are those of the statement or its values.
            if getgeneratorstate(bounded) != GEN_CLOSED or not isinstance(error, psycopg.Error | UnicodeError):
                self.pgconn.finish()
                with suppress(psycopg.Error):
                    gen.close()
            raise

    def _bounded(self, gen: Any, seconds: float | None) -> Generator[Any, Any, Any]:
        """Run a generator; raise Unanswered after so many seconds without traffic. None: no limit."""
        silent, looked = 0.0, time.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                now = time.monotonic()
                silent, looked = 0.0 if ready else silent + min(now - looked, _CHECK_MAX), now
                if seconds is not None and silent > seconds:
                    self.pgconn.finish()
                    raise Unanswered(f"has not answered for {seconds:g} s")
                wanted = gen.send(ready)
        except StopIteration as done:
            return done.value


class Connections:
    """The connections of this process to a database. Any thread may borrow one.

    Raises StoreError, with advice, if the database cannot be used.
    """

    def __init__(self, url: PostgresUrl, connection: type[Connection] = Connection) -> None:
        self._url = url
        self._pid = os.getpid()
        self._reason: list[Exception] = []
        """The error of the newest connection, if it failed."""
        self._generation = [1]
        """The generation: increased when all connections are discarded."""
        kind = _remembering(url, connection, self._reason, self._generation)
        first = [_first(url, kind)]
        kind.first = first
        self._asking: set[int] = set()
        """Threads that wait for a connection."""
        self._interrupts = 0
        """Threads that were interrupted, as by Ctrl-C, before they had a connection."""
        self._pool: ConnectionPool[Patient] = ConnectionPool(
            url.conninfo,
            connection_class=kind,
            kwargs={"autocommit": True, "prepare_threshold": first[0].prepare_threshold},
            min_size=0,
            max_size=url.pool,
            open=False,
            configure=_set_up,
            timeout=url.wait,
            max_idle=_IDLE_SECONDS,
            # Abandoned soon and started again, so that no thread waits for the pause of an old attempt.
            reconnect_timeout=min(_AGAIN_SECONDS, url.wait / 4),
            reconnect_failed=_again_for(self._asking),
        )
        self._pool.open()
        self._finish = weakref.finalize(self, _finish, self._pool, first, self._pid)

    def borrow(self) -> Patient:
        """Return a connection without a transaction. It must be given back."""
        if self._pid != os.getpid():
            raise StoreError(
                f"{self._url.place} was opened before this process was forked, and its connections are the parent's. "
                f"Close the store before forking and open it after, or start workers by multiprocessing's 'spawn'."
            )
        thread = threading.get_ident()
        self._asking.add(thread)
        try:
            while True:
                connection = self._pool.getconn()
                if connection.born >= self._generation[0]:
                    return connection
                connection.close()
                self._pool.putconn(connection)
        except PoolClosed as error:
            raise StoreError(CLOSED) from error
        except PoolTimeout as error:
            reason = next(iter(self._reason), None)  # Another thread may clear it meanwhile.
            raise unreachable(self._url.place, self._url.wait, reason) from error
        except BaseException:
            # The pool may still give a connection to this thread, and counts it as in use for ever.
            self._interrupts += 1
            self._pool.resize(0, self._url.pool + self._interrupts)
            raise
        finally:
            self._asking.discard(thread)

    def give_back(self, connection: Patient) -> None:
        """Return a connection to the pool; a broken or closed one is replaced when it is needed."""
        connection.answer = self._url.answer
        self._pool.putconn(connection)

    def give_up(self) -> None:
        """Discard all connections: if one was cut, others were too. Does not ask the server."""
        self._generation[0] += 1

    def misleads(self, error: BaseException) -> bool:
        """Return whether a connection leads to a standby, as this error shows, and the URL asks for the primary."""
        return self._url.is_for_primary and isinstance(error, psycopg.errors.ReadOnlySqlTransaction)

    def close(self) -> None:
        """Close the idle connections now, and the others when they are given back. A second call does nothing."""
        self._finish()


def _first(url: PostgresUrl, kind: type[Patient]) -> Patient:
    """Open and check the first connection. Raises StoreError."""
    try:
        connection = kind.connect(url.conninfo, autocommit=True)
    except psycopg.Error as error:
        raise unreachable(url.place, url.wait, error) from error
    try:
        _check(connection, url)
    except BaseException as error:
        connection.close()
        if isinstance(error, psycopg.Error):
            raise explain(error, url.place) from error
        raise
    return connection


def _again_for(asking: set[int]) -> Callable[[ConnectionPool[Any]], None]:
    """Return the pool's callback for an abandoned attempt: start another one if a thread is waiting.

    Else the thread would wait although the server is back: the pool starts an attempt only for a new thread.
    """

    def again(pool: ConnectionPool[Any]) -> None:
        if asking:
            pool.check()  # Without idle connections it only starts a new one.

    return again


def _remembering(url: PostgresUrl, kind: type[Connection], reason: list[Exception], now: list[int]) -> Any:
    """Return a class of connections that remembers the newest error: the pool reports a timeout only.

    The connection in its `first`, which checked the database, is used before another is opened.
    """

    class Remembering(Patient, kind):  # type: ignore[valid-type, misc]
        first: ClassVar[list[Patient]] = []

        @classmethod
        def connect(cls, *arguments: Any, **keywords: Any) -> Any:
            if cls.first:
                return cls.first.pop()
            born = now[0]  # Read before: an event that cuts the others meanwhile may cut this one.
            try:
                connection = super().connect(*arguments, **keywords)
            except psycopg.Error as error:
                reason[:] = [error]
                raise
            reason.clear()
            connection.answer, connection.born = url.answer, born
            return connection

    return Remembering


def _set_up(connection: Patient) -> None:
    # One type for all numbers: else a statement is prepared again for each size of its values.
    connection.adapters.register_dumper(int, Int8BinaryDumper)

    def notice(diagnostic: psycopg.errors.Diagnostic) -> None:
        # It comes with a successful COMMIT. Found by its place in the server's source, because its text is translated.
        if diagnostic.source_function == "SyncRepWaitForLSN":
            connection.is_unreplicated = True

    connection.add_notice_handler(notice)


def _check(connection: Connection, url: PostgresUrl) -> None:
    """Let a connection through a pooler prepare nothing. Raises StoreError if foveate cannot use this database."""
    info = connection.info
    if info.server_version < _OLDEST:
        raise StoreError(
            f"{url.place} is PostgreSQL {info.server_version // 10000}; {_OLDEST // 10000} or newer is needed. "
            f"Upgrade the server."
        )
    encoding = info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreError(
            f"{url.place} stores text as {encoding}, which lacks characters. Give foveate a separate "
            f"database: CREATE DATABASE foveate ENCODING 'UTF8' TEMPLATE template0."
        )
    row = connection.execute("SELECT current_schema(), pg_backend_pid()").fetchone()
    if not row or row[0] is None:
        name = f'"{url.schema}"' if url.schema else "for this user"
        raise StoreError(
            f"{url.place} has no schema {name}, or this user may not use it. Create it: CREATE SCHEMA "
            f"{url.schema or 'public'} AUTHORIZATION {info.user}."
        )
    if url.schema not in ("", row[0]):
        raise StoreError(
            f'{url.place} gave a connection for the schema "{row[0]}": a pooler between here and the server drops the '
            f"options of a connection. Connect to the server directly, or set the schema for the user: ALTER ROLE "
            f'{info.user} SET search_path = "{url.schema}".'
        )
    if row[1] != info.backend_pid:
        # A pooler is in between. If it pools by transactions, a statement that one connection prepared is known to
        # another one, whose own statement of that name may be different.
        connection.prepare_threshold = None


def _drain(connections: list[Patient]) -> None:
    while connections:
        connections.pop().close()


def _finish(pool: ConnectionPool[Patient], first: list[Patient], pid: int) -> None:
    """Close everything: on `close`, when the store is garbage, and when Python ends."""
    if pid == os.getpid():  # In a forked child these connections are the parent's.
        _drain(first)
        pool.close()
