"""The writing connection of a SQLite file, with group commit.

A thread puts its job into a queue and waits for its turn with the connection. The thread that has the turn runs all
waiting jobs in one transaction and one commit, each in its own savepoint, so that a failing job affects no other; the
other threads then find theirs done. So concurrent writers share the cost of a commit, and a single writer needs no
thread and no timer.

Ctrl-C may arrive anywhere in here. The transaction is rolled back, and the other threads run their jobs again, unless
they were committed already.
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
"""Jobs per commit at most, so that the first job of a long queue does not wait for the last."""

_CHECK_EVERY = 0.002
"""Seconds, at most, between two checks whether another process has finished writing."""


class _Job:
    """One piece of work, and its result."""

    __slots__ = ("error", "is_done", "result", "work")

    def __init__(self, work: Callable[[sqlite3.Connection], Any]) -> None:
        self.work = work
        self.is_done = False
        """Committed, failed, or abandoned by its owner."""
        self.result: Any = None
        self.error: Exception | None = None

    def run(self, connection: sqlite3.Connection) -> None:
        try:
            self.result, self.error = self.work(connection), None
        except Exception as error:  # Raised later in the owner's thread.
            self.error = error


class _Broken(Exception):
    """The transaction was rolled back with every job in it."""


class Writer:
    """Runs jobs on the connection that `connect` opens. Any thread of this process may call `run`.

    A connection that cannot roll back is replaced. `losing` is called before a connection is closed. `wait`: seconds to
    wait while another process writes.
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
        """Held by the thread that uses the connection."""
        self._thread = 0
        """The thread that holds `_turn`; 0 if none."""
        self._committing: list[_Job] = []
        """The jobs of a transaction during its commit, until all are marked as done."""
        self._is_open = True

    def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` and return its result when it is committed; an exception of `work` is raised after a rollback.

        Raises StoreError if it is called from within another job, which would wait for itself.
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
                    self._thread = 0  # Before the next thread gets the turn.
        finally:
            job.is_done = True  # A caller that was interrupted must not get its job written later.
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def close(self) -> None:
        """Commit the accepted jobs, then close the connection. A second call does nothing."""
        self._check_outside()
        with self._turn:
            try:
                self._thread = get_ident()
                self._settle()
                while jobs := self._waiting():
                    self._group(jobs)
                self._is_open = False
                if self._connection is not None:
                    self._losing()
                    self._connection.close()
                    self._connection = None
            finally:
                self._thread = 0

    def _check_outside(self) -> None:
        if self._thread == get_ident():
            raise StoreError(
                "A write was started in the middle of another write of the same thread: by a function that makes "
                "messages for a store, or by the finalizer of an object, such as a stream that was abandoned. Nothing "
                "was written. Write before or after it, and close streams that you abandon."
            )

    # ---------------------------------------------------------------------------------- by the thread that has the turn

    def _waiting(self, own: _Job | None = None) -> list[_Job]:
        """Return the waiting jobs in order, with the caller's own, even if an interrupted thread had taken it."""
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
            # One job broke the transaction of all, and nothing was committed: each gets its own transaction.
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
        """After an interrupted commit: mark the jobs as done if they were committed. Else they would be written
        twice.
        """
        if self._committing and self._connection is not None and not self._connection.in_transaction:
            for job in self._committing:
                job.is_done = True
        self._committing = []

    def _transaction(self, jobs: list[_Job]) -> None:
        """Run and commit these jobs. Raises _Broken if nothing was committed, another error if the commit is
        uncertain.
        """
        if self._connection is not None and self._connection.in_transaction:
            self._recover()  # Left open by a thread that was interrupted twice.
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
        if not connection.in_transaction:  # SQLite rolled all of it back: the disk is full, or failed.
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
        """Begin a transaction when no other process has one. Raises SQLite's error after `wait` seconds.

        SQLite itself checks less and less often, down to ten times a second: a process that writes all the time would
        nearly always be first, and one that waits nearly never.
        """
        deadline = time.monotonic() + self._wait
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(random.random() * _CHECK_EVERY)
            else:
                return

    def _recover(self) -> None:
        """Roll back the open transaction; if that fails, continue with a new connection."""
        connection = self._connection
        try:
            if connection is not None and connection.in_transaction:
                connection.execute("ROLLBACK")
        except Exception:
            self._connection = None
            if connection is not None:
                self._losing()
                connection.close()
