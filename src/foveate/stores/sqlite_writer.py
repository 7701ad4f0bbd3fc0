"""The one thread that writes to a SQLite file, and how it commits many writes at once.

Jobs that arrive while a commit is on its way to the disk wait in a queue and are committed together in the next
transaction, each in a savepoint of its own, so that one that fails takes no other with it. A job that comes alone is
committed at once: nothing ever waits for a timer. A thread of its own also means that Ctrl-C in a caller never stops a
transaction half-way.

It knows connections and transactions, no table.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from ..errors import StoreError
from .checks import CLOSED

__all__ = ["Writer"]

T = TypeVar("T")

_GROUP_MAX = 256
"""Jobs committed together, so that the first of a long queue is not kept waiting by the last."""


class _Job:
    """One piece of work, and what became of it once `done` is released."""

    __slots__ = ("done", "error", "result", "work")

    def __init__(self, work: Callable[[sqlite3.Connection], Any]) -> None:
        self.work = work
        self.done = threading.Lock()
        self.done.acquire()
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self, connection: sqlite3.Connection) -> None:
        try:
            self.result, self.error = self.work(connection), None
        except BaseException as error:  # Whatever it is, it belongs to the caller, not to this thread.
            self.error = error


class _Broken(Exception):
    """The transaction is lost, with every job in it."""


class Writer:
    """Runs jobs on the connection that `connect` opens. `run` may be called from any thread of the process that made
    it.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._connection: sqlite3.Connection | None = connect()
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._open = True
        self._thread = threading.Thread(target=self._loop, name="foveate-sqlite-writer", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What `work` returns, once it is committed; or what it raises, once it is undone."""
        job = _Job(work)
        with self._lock:
            if not self._open:
                raise StoreError(CLOSED)
            self._queue.put(job)
        job.done.acquire()
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def close(self) -> None:
        """Commit what was accepted, then close the connection. Doing it again does nothing."""
        with self._lock:
            closing, self._open = self._open, False
        if closing:
            self._queue.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    # ------------------------------------------------------------------------------------------------ the thread

    def _loop(self) -> None:
        while self._serve():
            pass
        if self._connection is not None:
            self._connection.close()

    def _serve(self) -> bool:
        """Do the jobs there are; whether any can come after. Keeps none of them, nor what they hold on to."""
        jobs, going = self._next()
        try:
            self._group(jobs)
        except BaseException as error:  # Nobody may be left waiting.
            for job in jobs:
                job.error = job.error or error
        for job in jobs:
            job.done.release()
        return going

    def _next(self) -> tuple[list[_Job], bool]:
        """All the jobs there are, at least one; and whether any can come after them."""
        jobs: list[_Job] = []
        job = self._queue.get()
        while job is not None:
            jobs.append(job)
            if len(jobs) == _GROUP_MAX:
                return jobs, True
            try:
                job = self._queue.get_nowait()
            except Empty:
                return jobs, True
        return jobs, False

    def _group(self, jobs: list[_Job]) -> None:
        if not jobs:
            return
        try:
            self._transaction(jobs)
        except _Broken as broken:
            # One job broke the transaction of all, and nothing of it was committed: each gets one of its own.
            for job in jobs if len(jobs) > 1 else ():
                self._group([job])
            if len(jobs) == 1:
                jobs[0].error = jobs[0].error or broken.__cause__
        except Exception as error:
            self._recover()
            for job in jobs:
                job.error = error

    def _transaction(self, jobs: list[_Job]) -> None:
        """Run and commit these jobs. Raises _Broken where nothing was committed, others where it may have been."""
        if self._connection is None:
            self._connection = self._connect()
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
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
            connection.execute("COMMIT")

    def _recover(self) -> None:
        """Undo the open transaction; where even that fails, begin again with a new connection."""
        connection = self._connection
        try:
            if connection is not None and connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._connection = None
            if connection is not None:
                connection.close()
