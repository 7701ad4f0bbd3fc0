"""SQLite: the embedded default. One file (and its write-ahead log beside it), no server.

Writing is done by one at a time, for all who wait (`writer.py`); reading by as many as there are, each with a
connection of its own while it reads. Other processes may use the same file; the folder must be on a disk of this
computer, since the log is shared through memory. Nothing here knows a table.
"""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ...errors import StoreError
from ...ports import Clock, Finding
from ..checks import CLOSED
from ..codec import Codec
from ..sql.driver import Dialect, Row, Session, WordIndex
from ..sql.store import SqlStore
from .errors import FAILURES
from .file import TABLES, SqliteFile, Synchronous
from .words import SqliteWords
from .writer import Writer

__all__ = ["SqliteDriver", "SqliteStore"]

T = TypeVar("T")

_CHECK = "PRAGMA integrity_check(100)"
_FOREIGN = "SELECT type, name, tbl_name FROM sqlite_master WHERE type IN ('trigger', 'view') ORDER BY type, name"


class SqliteStore(SqlStore):
    """Conversations in one SQLite file, made if there is none.

    `synchronous="full"` (the default): what was acknowledged survives a power cut. `"normal"`: it survives a crash of
    the process, and a power cut may undo the last moments, never a part of a write. `wait`: seconds to wait while
    another process writes. `search=False`: no index of words is kept, and `search` raises StoreError, as it does where
    SQLite was built without its full-text module FTS5. `connection` is the class that connections are made of, for
    tests that make one fail.

    Raises StoreError where the file cannot be used, and says what to do. A store cannot be carried across a fork: close
    it before, open it after.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: Synchronous = "full",
        clock: Clock | None = None,
        wait: float = 10.0,
        codec: Codec = "zlib",
        search: bool = True,
        connection: type[sqlite3.Connection] = sqlite3.Connection,
    ) -> None:
        file = SqliteFile(path, synchronous=synchronous, wait=wait, connection=connection)
        super().__init__(SqliteDriver(file, search=search), codec=codec, clock=clock)


class SqliteDriver:
    """The Driver for one SQLite file."""

    dialect: Dialect = "sqlite"

    def __init__(self, file: SqliteFile, *, search: bool = True) -> None:
        self._file = file
        self.place = file.place
        try:
            file.create()
            writer = Writer(file.writing, losing=file.forget, wait=file.wait)
        except FAILURES as error:
            raise file.explain(error) from error
        self._writer = writer
        self._idle: list[sqlite3.Connection] = []
        """Connections that nobody reads with at the moment."""
        self._closed = False
        file.hold()
        self._finish = weakref.finalize(self, _finish, file, writer, self._idle)
        words = SqliteWords()
        self.words: WordIndex | None = words if search and self.read(words.is_possible) else None

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
                connection.close()  # It may be anywhere in its transaction; the next reader gets a new one.
            if isinstance(error, FAILURES):
                raise self._file.explain(error) from error
            raise
        self._idle.append(connection)
        if self._closed:  # Meanwhile, by another thread.
            _drain(self._idle)
        return result

    def write(self, work: Callable[[Session], T]) -> T:
        self._check_open()
        try:
            result = self._writer.run(lambda connection: work(_Session(connection)))
        except FAILURES as error:
            raise self._file.explain(error) from error
        self._file.check()  # Again: what went into a file that was deleted meanwhile must not be acknowledged.
        return result

    def check(self) -> tuple[list[Finding], list[str]]:
        def work(session: Session) -> list[Finding]:
            problems = [problem for (problem,) in session.rows(_CHECK) if problem != "ok"]
            made = session.rows(_FOREIGN)
            return [
                *(Finding("database", f"SQLite's integrity_check reports: {problem}") for problem in problems),
                *(
                    Finding(f"{kind} {name}", f"it is attached to {table}, and foveate makes no {kind}s. Drop it.")
                    for kind, name, table in made
                ),
            ]

        return self.read(work), []

    def vacuum(self) -> None:
        self._check_open()
        _drain(self._idle)
        try:
            connection = self._file.writing()
            try:
                connection.execute(f"PRAGMA busy_timeout = {round(self._file.wait * 1000)}").fetchall()
                connection.execute("VACUUM")
                # What was overwritten is in the log until the file has taken it over and the log is cut.
                (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                connection.close()
        except FAILURES as error:
            raise self._file.explain(error) from error
        if is_busy:
            raise StoreError(
                f"{self.place} is being read by somebody else, so its log still holds what was deleted. Let them "
                f"finish, then vacuum again."
            )

    def close(self) -> None:
        self._closed = True
        self._finish()

    def _reader(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._file.reading()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(CLOSED)
        self._file.check()


class _Session:
    """The Session over a connection with an open transaction."""

    __slots__ = ("_connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(statement, values).fetchall()

    def ask(self, *asked: tuple[str, Sequence[Any]]) -> list[list[Row]]:
        return [self.rows(*one) for one in asked]

    def each(self, statement: str, many: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(statement, many)

    def scrub(self) -> None:
        self._connection.execute("PRAGMA secure_delete = ON").fetchall()

    def tables(self) -> set[str]:
        return {name for (name,) in self.rows(TABLES)}

    def define(self, statement: str) -> None:
        self.rows(statement)


def _finish(file: SqliteFile, writer: Writer, idle: list[sqlite3.Connection]) -> None:
    """Close everything: on `close`, when a store is forgotten, and when Python ends."""
    if file.is_ours:  # In a forked child these connections are the parent's.
        writer.close()
        _drain(idle)
        file.let_go()


def _drain(idle: list[sqlite3.Connection]) -> None:
    while idle:
        idle.pop().close()
