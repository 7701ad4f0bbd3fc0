"""Connections to one PostgreSQL database: a pool of them, what is wrong with the database if it is, and forks.

Knows how connections are set up and handed out; no transaction, no statement of the store.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import psycopg
from psycopg.types.numeric import Int8BinaryDumper
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from ...errors import StoreError
from ..checks import CLOSED
from .errors import Unanswered, explain, unreachable
from .url import Told

__all__ = ["Connection", "Connections", "Patient"]

Connection = psycopg.Connection[Any]

# The pool warns of each connection that fails. Whoever borrows one is told; the rest is for those who set up logging.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())

_OLDEST = 130_000
"""The oldest server that is taken: 13. The tests run on what they find, usually the newest."""
_IDLE_SECONDS = 300.0
"""After which a connection that nobody needed is closed."""
_AGAIN_SECONDS = 0.5
"""At most between two attempts to connect while somebody waits. psycopg's own pauses are 1, 2, 4 and more seconds: who
asked in the last of them waited to the end beside a server that was back.
"""
_LOOK_MAX = 1.0
"""Seconds of silence that one look for an answer counts for, at most. psycopg looks ten times a second; where a look
took longer, it is this process that stood still.
"""


class Patient(Connection):
    """A connection that waits for a silent server so long and no longer. Made by the pool; tests make others."""

    answer: float | None = None
    """Seconds; None: for ever."""
    born = 0
    """Which of the pool's times it was made in."""
    is_unreplicated = False
    """Whether a wait for a standby was cut short on it."""

    def wait(self, gen: Any, *arguments: Any, **keywords: Any) -> Any:
        bounded = gen if self.answer is None else self._bounded(gen, self.answer)
        return super().wait(bounded, *arguments, **keywords)

    def _bounded(self, gen: Any, seconds: float) -> Any:
        """The same, which raises Unanswered after so many seconds in which nothing came or went."""
        silent, looked = 0.0, time.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                now = time.monotonic()
                silent, looked = 0.0 if ready else silent + min(now - looked, _LOOK_MAX), now
                if silent > seconds:
                    self.pgconn.finish()
                    raise Unanswered(f"has not answered for {seconds:g} s")
                wanted = gen.send(ready)
        except StopIteration as done:
            return done.value


class Connections:
    """Connections of this process to the database that `told` names. Any thread may borrow one.

    Raises StoreError where there is no such database, or none that foveate can use, and says what to do.
    """

    def __init__(self, told: Told, connection: type[Connection] = Connection) -> None:
        self._told = told
        self._pid = os.getpid()
        self._reason: list[Exception] = []
        """Why the newest connection failed, if it did."""
        self._time = [1]
        """Counts how often all connections were given up."""
        kind = _telling(told, connection, self._reason, self._time)
        first = [_first(told, kind)]
        kind.first = first
        self._asking: set[int] = set()
        """The threads that wait for a connection."""
        self._pool: ConnectionPool[Patient] = ConnectionPool(
            told.conninfo,
            connection_class=kind,
            kwargs={"autocommit": True},
            min_size=0,
            max_size=told.pool,
            open=False,
            configure=_set_up,
            timeout=told.wait,
            max_idle=_IDLE_SECONDS,
            # Given up soon, and begun anew for whoever asks: nobody waits for the pause of an old attempt.
            reconnect_timeout=min(_AGAIN_SECONDS, told.wait / 4),
            reconnect_failed=_again_for(self._asking),
        )
        self._pool.open()
        self._finish = weakref.finalize(self, _finish, self._pool, first, self._pid)

    def borrow(self) -> Patient:
        """A connection with no transaction. It must be given back."""
        if self._pid != os.getpid():
            raise StoreError(
                f"{self._told.place} was opened before this process was forked, and its connections are the parent's. "
                f"Close the store before forking and open it after, or start workers by multiprocessing's 'spawn'."
            )
        thread = threading.get_ident()
        self._asking.add(thread)
        try:
            while True:
                connection = self._pool.getconn()
                if connection.born >= self._time[0]:
                    return connection
                connection.close()
                self._pool.putconn(connection)
        except PoolClosed as error:
            raise StoreError(CLOSED) from error
        except PoolTimeout as error:
            reason = next(iter(self._reason), None)  # Another thread may empty it meanwhile.
            raise unreachable(self._told.place, self._told.wait, reason) from error
        finally:
            self._asking.discard(thread)

    def give_back(self, connection: Patient) -> None:
        """Take it back; one that is broken or closed is replaced when somebody needs it."""
        connection.answer = self._told.answer
        self._pool.putconn(connection)

    def give_up(self) -> None:
        """Hand out none of those there are: where one was cut, so were others. Asks the server nothing."""
        self._time[0] += 1

    def misleads(self, error: BaseException) -> bool:
        """Whether this tells that a connection leads to a standby, although the URL asks for the primary."""
        return self._told.is_for_primary and isinstance(error, psycopg.errors.ReadOnlySqlTransaction)

    def close(self) -> None:
        """Close what waits here now, and what is out when it is given back. Doing it again does nothing."""
        self._finish()


def _first(told: Told, kind: type[Patient]) -> Patient:
    """A connection to a database that foveate can use. Raises StoreError."""
    try:
        connection = kind.connect(told.conninfo, autocommit=True)
    except psycopg.Error as error:
        raise unreachable(told.place, told.wait, error) from error
    try:
        _check(connection, told)
    except BaseException as error:
        connection.close()
        if isinstance(error, psycopg.Error):
            raise explain(error, told.place) from error
        raise
    return connection


def _again_for(asking: set[int]) -> Callable[[ConnectionPool[Any]], None]:
    """What the pool does when it has given an attempt up: begin another if somebody asked meanwhile.

    Without it they would wait to their end beside a server that is back: the pool begins an attempt only when somebody
    comes, and not while another is under way.
    """

    def again(pool: ConnectionPool[Any]) -> None:
        if asking:
            pool.check()  # With no connection at rest it only sees to a new one.

    return again


def _telling(told: Told, kind: type[Connection], reason: list[Exception], now: list[int]) -> Any:
    """The class of connections, remembering why the newest failed: the pool tells its borrowers only that they waited.

    The one in its `first`, which was made to look at the database, is handed out before another is made.
    """

    class Telling(Patient, kind):  # type: ignore[valid-type, misc]
        first: ClassVar[list[Patient]] = []

        @classmethod
        def connect(cls, *arguments: Any, **keywords: Any) -> Any:
            if cls.first:
                return cls.first.pop()
            born = now[0]  # Looked at before: whatever befalls the others meanwhile may befall this one.
            try:
                connection = super().connect(*arguments, **keywords)
            except psycopg.Error as error:
                reason[:] = [error]
                raise
            reason.clear()
            connection.answer, connection.born = told.answer, born
            return connection

    return Telling


def _set_up(connection: Patient) -> None:
    # One type for every number: else a statement is prepared anew for each size of its values.
    connection.adapters.register_dumper(int, Int8BinaryDumper)

    def notice(said: psycopg.errors.Diagnostic) -> None:
        # It comes with a COMMIT that succeeds. By the place in the server's source: its words are translated.
        if said.source_function == "SyncRepWaitForLSN":
            connection.is_unreplicated = True

    connection.add_notice_handler(notice)


def _check(connection: Connection, told: Told) -> None:
    """Raises StoreError where foveate cannot use this database."""
    info = connection.info
    if info.server_version < _OLDEST:
        raise StoreError(
            f"{told.place} is PostgreSQL {info.server_version // 10000}; {_OLDEST // 10000} or newer is needed. "
            f"Upgrade the server."
        )
    encoding = info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreError(
            f"{told.place} keeps text as {encoding}, which has no room for every character. Give foveate a database "
            f"of its own: CREATE DATABASE foveate ENCODING 'UTF8' TEMPLATE template0."
        )
    found = connection.execute("SELECT current_schema()").fetchone()
    if not found or found[0] is None:
        name = f'"{told.schema}"' if told.schema else "that is this user's"
        raise StoreError(
            f"{told.place} has no schema {name}, or this user may not use it. Create it: CREATE SCHEMA "
            f"{told.schema or 'public'} AUTHORIZATION {info.user}."
        )


def _drain(connections: list[Patient]) -> None:
    while connections:
        connections.pop().close()


def _finish(pool: ConnectionPool[Patient], first: list[Patient], pid: int) -> None:
    """Close everything: on `close`, when a store is forgotten, and when Python ends."""
    if pid == os.getpid():  # In a forked child these connections are the parent's.
        _drain(first)
        pool.close()
