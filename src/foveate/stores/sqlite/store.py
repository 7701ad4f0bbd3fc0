"""The SQLite store and its driver: one file with a write-ahead log, no server.

One thread writes at a time, for all that wait (`writer.py`); any number of threads read, each with its own connection.
Other processes may use the same file. The folder must be on a disk of this computer, because the processes share the
log through memory.
"""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ...errors import StoreError
from ...ports import Clock, Finding
from .. import Synchronous
from ..checks import CLOSED
from ..sql.driver import Dialect, Row, Session
from ..sql.store import SqlStore
from .errors import FAILURES
from .file import TABLES, SqliteFile
from .writer import Writer

__all__ = ["SqliteDriver", "SqliteStore"]

T = TypeVar("T")

_CHECK = "PRAGMA integrity_check(100)"
_FOREIGN = "SELECT type, name, tbl_name FROM sqlite_master WHERE type IN ('trigger', 'view') ORDER BY type, name"


class SqliteStore(SqlStore):
    """Conversations in one SQLite file, which is created if there is none.

    `synchronous="full"` (the default): acknowledged writes survive a power cut. `"normal"`: they survive a crash of the
    process; a power cut may undo the newest writes, but never a part of one. `wait`: seconds to wait while another
    process writes. `search=False`: there is no word index, and `search` raises StoreError.
    `read_only`: the file must exist and stays unchanged; each write raises StoreError. It need
    not be writable, nor its folder. `connection`: the class of connections, for tests that let them fail.

    Raises StoreError, with advice, if the file cannot be used. A store cannot be used across a fork of the process:
    close it before, and open it after.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: Synchronous = "full",
        clock: Clock | None = None,
        wait: float = 10.0,
        search: bool = True,
        read_only: bool = False,
        connection: type[sqlite3.Connection] = sqlite3.Connection,
    ) -> None:
        file = SqliteFile(path, synchronous=synchronous, wait=wait, connection=connection, is_read_only=read_only)
        super().__init__(SqliteDriver(file, search=search), clock=clock)


class SqliteDriver:
    """The `Driver` for one SQLite file."""

    dialect: Dialect = "sqlite"

    def __init__(self, file: SqliteFile, *, search: bool = True) -> None:
        self._file = file
        self.place = file.place
        try:
            writer = None
            if file.is_read_only:
                file.require()
            else:
                file.create()
                writer = Writer(file.writing, losing=file.forget, wait=file.wait)
        except FAILURES as error:
            raise file.explain(error) from error
        self._writer = writer
        self._idle: list[sqlite3.Connection] = []
        """Connections that are not in use."""
        file.hold()
        self._finish = weakref.finalize(self, _finish, file, writer, self._idle)
        self.has_index = search

    def read(self, work: Callable[[Session], T]) -> T:
        self._check_open()
        connection = None
        try:
            connection = self._reader()
            connection.execute("BEGIN")
            result = work(_Session(connection))
            connection.execute("ROLLBACK")
        except BaseException as error:
            if connection is not None:
                connection.close()  # Its transaction is in an unknown state; the next reader gets a new connection.
            if isinstance(error, FAILURES):
                raise self._file.explain(error) from error
            raise
        self._idle.append(connection)
        if self._is_closed:  # By another thread, meanwhile.
            _drain(self._idle)
        return result

    def write(self, work: Callable[[Session], T]) -> T:
        self._check_open()
        if self._writer is None:
            raise self._refusal()
        try:
            result = self._writer.run(lambda connection: work(_Session(connection)))
        except FAILURES as error:
            raise self._file.explain(error) from error
        self._file.check()  # Checked again: a write to a file that was deleted meanwhile must not be acknowledged.
        return result

    def check(self) -> tuple[list[Finding], list[str]]:
        def work(session: Session) -> list[Finding]:
            problems = [problem for (problem,) in session.rows(_CHECK) if problem != "ok"]
            foreign = session.rows(_FOREIGN)
            return [
                *(Finding("database", f"SQLite's integrity_check reports: {problem}") for problem in problems),
                *(
                    Finding(f"{kind} {name}", f"it is attached to {table}, and foveate makes no {kind}s. Drop it.")
                    for kind, name, table in foreign
                ),
            ]

        return self.read(work), []

    def vacuum(self) -> None:
        self._check_open()
        if self._writer is None:
            raise self._refusal()
        _drain(self._idle)
        try:
            connection = self._file.writing()
            try:
                connection.execute(f"PRAGMA busy_timeout = {round(self._file.wait * 1000)}").fetchall()
                connection.execute("VACUUM")
                # Overwritten data stays in the log until it is checkpointed and truncated.
                (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                connection.close()
        except FAILURES as error:
            raise self._file.explain(error) from error
        if is_busy:
            raise StoreError(
                f"{self.place} is being read by another connection, so its log still has the deleted data. Let it "
                "finish, then vacuum again."
            )

    def close(self) -> None:
        self._finish()

    @property
    def _is_closed(self) -> bool:
        return not self._finish.alive  # Python's end calls it too.

    def _refusal(self) -> StoreError:
        return StoreError(
            f"{self.place} is open for reading only. Open it without read_only, or work on a copy that you may write."
        )

    def _reader(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._file.reading()

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError(CLOSED)
        self._file.check()


class _Session:
    """The `Session` of a connection with an open transaction."""

    __slots__ = ("_connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(statement, values).fetchall()

    def ask(self, *queries: tuple[str, Sequence[Any]]) -> list[list[Row]]:
        return [self.rows(*query) for query in queries]

    def change(self, *queries: tuple[str, Sequence[Any]]) -> tuple[int, list[list[Row]]]:
        *before, last = queries
        rows = [self.rows(*query) for query in before]
        return self._connection.execute(*last).rowcount, rows

    def each(self, statement: str, many: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(statement, many)

    def scrub(self) -> None:
        self._connection.execute("PRAGMA secure_delete = ON").fetchall()

    def tables(self) -> set[str]:
        return {name for (name,) in self.rows(TABLES)}

    def define(self, statement: str) -> None:
        self.rows(statement)


def _finish(file: SqliteFile, writer: Writer | None, idle: list[sqlite3.Connection]) -> None:
    """Close everything: on `close`, when the store is garbage, and when Python ends."""
    if file.is_ours:  # In a forked child these connections are the parent's.
        if writer is not None:
            writer.close()
        _drain(idle)
        file.let_go()


def _drain(idle: list[sqlite3.Connection]) -> None:
    while idle:
        idle.pop().close()
