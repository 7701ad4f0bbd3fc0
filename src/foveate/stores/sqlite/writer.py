"""The one connection that writes to a SQLite file, and how it commits many writes at once.

Whoever wants to write puts a job into a queue and waits for its turn with the connection. Whose turn it is does all the
jobs that wait, in one transaction and one commit, each in a savepoint of its own, so that one that fails takes no other
with it; the others then find theirs done. So writers that come together share the price of a commit, and one that comes
alone pays for no thread and waits for no timer.

Ctrl-C may strike anywhere in here. It undoes the transaction, and jobs of other threads that were in it are done again
by their owners; unless it strikes when they are committed, and they have yet to be told.

It knows connections and transactions, no table.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from threading import Lock, get_ident
from typing import Any, TypeVar

from ...errors import StoreError
from ..checks import CLOSED

__all__ = ["Writer"]

T = TypeVar("T")

_GROUP_MAX = 256
"""Jobs committed together, so that the first of a long queue is not kept waiting by the last."""

_LOOK = 0.002
"""Seconds, at most, until it is looked again whether another process is done writing."""


class _Job:
    """One piece of work, and what became of it once it is done."""

    __slots__ = ("error", "is_done", "result", "work")

    def __init__(self, work: Callable[[sqlite3.Connection], Any]) -> None:
        self.work = work
        self.is_done = False
        """Committed, failed, or given up by its owner."""
        self.result: Any = None
        self.error: Exception | None = None

    def run(self, connection: sqlite3.Connection) -> None:
        try:
            self.result, self.error = self.work(connection), None
        except Exception as error:  # It belongs to the owner, who may be another thread.
            self.error = error


class _Broken(Exception):
    """The transaction is lost, with every job in it."""


class Writer:
    """Runs jobs on the connection that `connect` opens. Any thread of the process that made it may call `run`.

    A connection that fails even to undo a transaction is replaced; `losing` is called before it is closed. `wait`:
    seconds to wait while another process writes, for a connection that does not wait by itself.
    """

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        *,
        losing: Callable[[], None] = lambda: None,
        wait: float = 10.0,
    ) -> None:
        self._connect, self._losing, self._wait = connect, losing, wait
        self._connection: sqlite3.Connection | None = connect()
        self._queue: deque[_Job] = deque()
        self._turn = Lock()
        """Held by whoever uses the connection."""
        self._thread = 0
        """The thread that holds it."""
        self._committing: list[_Job] = []
        """The jobs of a transaction that is asked to commit, until all are told."""
        self._is_open = True

    def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What `work` returns, once it is committed; or what it raises, once it is undone.

        Raises StoreError where it is asked for from within another one, which would wait for itself.
        """
        self._check_outside()
        job = _Job(work)
        self._queue.append(job)
        try:
            with self._turn:
                try:
                    self._thread = get_ident()
                    self._settle()
                    if not job.is_done:
                        if not self._is_open:
                            raise StoreError(CLOSED)
                        self._group(self._waiting(job))
                finally:
                    self._thread = 0  # Before another one has the turn, who says here that it has.
        finally:
            job.is_done = True  # Who gave up waiting gets nothing written behind their back.
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def close(self) -> None:
        """Commit what was accepted, then close the connection. Doing it again does nothing."""
        self._check_outside()
        with self._turn:
            try:
                self._thread = get_ident()
                self._settle()
                while jobs := self._waiting():
                    self._group(jobs)
                self._is_open = False
                if self._connection is not None:
                    self._connection.close()
                    self._connection = None
            finally:
                self._thread = 0

    def _check_outside(self) -> None:
        if self._thread == get_ident():
            raise StoreError(
                "A write was asked for in the middle of another one of the same thread: by a function that makes "
                "messages for a store, or by what Python does with an object that nobody needs any more, such as a "
                "stream that was left. Nothing was written. Write before or after it, and close streams that you leave."
            )

    # ------------------------------------------------------------------------------------- by whoever has the turn

    def _waiting(self, own: _Job | None = None) -> list[_Job]:
        """The jobs that wait, in order. Among them the caller's own, even if one who was interrupted had taken it."""
        jobs: list[_Job] = []
        while self._queue and len(jobs) < _GROUP_MAX:
            job = self._queue.popleft()
            if not job.is_done:
                jobs.append(job)
        return jobs if own is None or own in jobs else [*jobs, own]

    def _group(self, jobs: list[_Job]) -> None:
        try:
            self._transaction(jobs)
        except _Broken as broken:
            # One job broke the transaction of all, and nothing of it was committed: each gets one of its own.
            for job in jobs if len(jobs) > 1 else ():
                self._group([job])
            if len(jobs) == 1 and isinstance(broken.__cause__, Exception):
                jobs[0].error = jobs[0].error or broken.__cause__
        except Exception as error:
            self._recover()
            for job in jobs:
                job.error = error
        except BaseException:
            self._settle()
            self._recover()
            raise
        for job in jobs:
            job.is_done = True
        self._committing = []

    def _settle(self) -> None:
        """Where somebody was interrupted while committing: tell the jobs, if they are committed. Doing them again would
        write them twice.
        """
        if self._committing and self._connection is not None and not self._connection.in_transaction:
            for job in self._committing:
                job.is_done = True
        self._committing = []

    def _transaction(self, jobs: list[_Job]) -> None:
        """Run and commit these jobs. Raises _Broken where nothing was committed, others where it may have been."""
        if self._connection is not None and self._connection.in_transaction:
            self._recover()  # Left by who was interrupted twice.
        if self._connection is None:
            self._connection = self._connect()
        connection = self._connection
        self._begin(connection)
        try:
            for job in jobs:
                if len(jobs) == 1:
                    job.run(connection)
                else:
                    connection.execute("SAVEPOINT job")
                    job.run(connection)
                    if job.error is not None:
                        connection.execute("ROLLBACK TO job")
                    connection.execute("RELEASE job")
        except Exception as error:
            self._recover()
            raise _Broken from error
        if not connection.in_transaction:  # SQLite undid all of it: the disk is full, or failed.
            lost = sqlite3.OperationalError("the transaction was rolled back")
            raise _Broken from next((job.error for job in jobs if job.error), lost)
        if all(job.error is not None for job in jobs):
            self._recover()
        else:
            self._committing = jobs
            try:
                connection.execute("COMMIT")
            except Exception:
                self._committing = []
                raise

    def _begin(self, connection: sqlite3.Connection) -> None:
        """Begin a transaction when no other process is in one; raises what SQLite does after `wait` seconds.

        SQLite itself looks more and more seldom for whether its turn has come, up to ten times a second: who goes on
        writing would be first nearly each time, and who waits nearly never.
        """
        deadline = time.monotonic() + self._wait
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(random.random() * _LOOK)
            else:
                return

    def _recover(self) -> None:
        """Undo the open transaction; where even that fails, begin again with a new connection."""
        connection = self._connection
        try:
            if connection is not None and connection.in_transaction:
                connection.execute("ROLLBACK")
        except Exception:
            self._connection = None
            if connection is not None:
                self._losing()
                connection.close()
