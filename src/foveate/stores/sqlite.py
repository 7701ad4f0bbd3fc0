"""SQLite: the embedded default. One file (and its write-ahead log beside it), no server.

Knows connections, locks and SQLite's errors; no table. Writing is done by one thread (`sqlite_writer.py`), reading by as
many as there are, each with a connection of its own while it reads. Other processes may use the same file; the folder must
be on a disk of this computer, since the log is shared through memory.
"""

from __future__ import annotations

import os
import sqlite3
import time
import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from ..errors import BadSetting, Damaged, StoreError
from ..ports import Clock
from .checks import CLOSED
from .codec import Codec
from .driver import Row, Session
from .sql import SqlStore
from .sqlite_writer import Writer

__all__ = ["SqliteDriver", "SqliteStore"]

T = TypeVar("T")
Synchronous = Literal["full", "normal"]

_held: Counter[tuple[str, int]] = Counter()
"""The files that are open now, with the process that opened them. A forked child inherits this and so knows its parent's."""


class SqliteStore(SqlStore):
    """Conversations in one SQLite file, made if there is none.

    `synchronous="full"` (the default): what was acknowledged survives a power cut. `"normal"`: it survives a crash of the
    process; a power cut may undo the last moments, never more. `wait`: seconds to wait while another process writes.
    `connection` is the class that connections are made of, for tests that make one fail.

    Raises StoreError where the file cannot be used, and says what to do. A store must not be carried across a fork: open it
    in the child, after the parent has closed its own.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: Synchronous = "full",
        clock: Clock | None = None,
        wait: float = 10.0,
        codec: Codec = "zlib",
        connection: type[sqlite3.Connection] = sqlite3.Connection,
    ) -> None:
        super().__init__(
            SqliteDriver(path, synchronous=synchronous, wait=wait, connection=connection), codec=codec, clock=clock
        )


class SqliteDriver:
    """The Driver for one SQLite file."""

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: Synchronous = "full",
        wait: float = 10.0,
        connection: type[sqlite3.Connection] = sqlite3.Connection,
    ) -> None:
        if synchronous not in ("full", "normal"):
            raise BadSetting(f'synchronous is "full" or "normal", not {synchronous!r}.')
        self._path = _usable(path)
        self.place = str(path)
        self._pid = os.getpid()
        self._wait = wait
        files = _Files(self._path, synchronous, wait, connection)
        try:
            files.create()
            self._writer = Writer(files.writing)
        except sqlite3.Error as error:
            raise self._explain(error) from error
        self._files = files
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        _held[str(self._path), self._pid] += 1
        self._finish = weakref.finalize(self, _finish, self._writer, self._idle, (str(self._path), self._pid))

    def read(self, work: Callable[[Session], T]) -> T:
        self._check_open()
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._new_reader()
        try:
            connection.execute("BEGIN")
            result = work(_Session(connection))
            connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            connection.close()
            raise self._explain(error) from error
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        if self._closed:  # Meanwhile, by another thread.
            _drain(self._idle)
        return result

    def write(self, work: Callable[[Session], T]) -> T:
        self._check_open()
        try:
            return self._writer.run(lambda connection: work(_Session(connection)))
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def close(self) -> None:
        self._closed = True
        self._finish()

    # ------------------------------------------------------------------------------------------------------------- helpers

    def _check_open(self) -> None:
        if self._pid != os.getpid():
            raise StoreError(_FORKED.format(path=self.place))
        if self._closed:
            raise StoreError(CLOSED)

    def _new_reader(self) -> sqlite3.Connection:
        try:
            return self._files.reading()
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def _explain(self, error: sqlite3.Error) -> StoreError:
        path, why = self.place, f"({error})"
        match getattr(error, "sqlite_errorcode", 0) & 0xFF:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return StoreError(
                    f"{path} is locked: another process has been writing to it for more than {self._wait:g} s {why}. "
                    f"Nothing was written. Let it finish, then retry."
                )
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN:
                return StoreError(
                    f"{path} cannot be opened for writing {why}. This user needs to be able to write to the file and to its "
                    f"folder, where SQLite keeps its log."
                )
            case sqlite3.SQLITE_NOTADB:
                return StoreError(f"{path} is not a SQLite database {why}. Name another file, or move this one away.")
            case sqlite3.SQLITE_CORRUPT:
                return Damaged(
                    f"{path} is damaged {why}. Keep a copy, then restore a backup or run `sqlite3 {path} .recover`."
                )
            case sqlite3.SQLITE_FULL:
                return StoreError(f"The disk of {path} is full {why}. Nothing was written. Make room, then retry.")
            case _:
                return StoreError(
                    f"{path}: {error}. Open the conversation again to see whether the last write took place."
                )


class _Session:
    """The Session over a connection with an open transaction."""

    __slots__ = ("_connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(statement, values).fetchall()

    def each(self, statement: str, many: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(statement, many)

    def tables(self) -> set[str]:
        return {
            name
            for (name,) in self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        }


class _Files:
    """How connections to one file are opened. Knows nothing of the driver, so that the writer's thread keeps none alive."""

    def __init__(self, path: Path, synchronous: Synchronous, wait: float, connection: type[sqlite3.Connection]) -> None:
        self._path, self._synchronous, self._wait, self._class = path, synchronous, wait, connection

    def create(self) -> None:
        """Make the file if there is none, and set it to write-ahead logging, which it remembers."""
        deadline = time.monotonic() + self._wait
        connection = self._open(str(self._path), uri=False)
        try:
            while True:
                try:
                    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
                    break
                except sqlite3.OperationalError as error:
                    # Two processes that make the same file at once: SQLite does not wait here by itself.
                    busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
                    if not busy or time.monotonic() > deadline:
                        raise
                    time.sleep(0.01)
        finally:
            connection.close()
        if mode != "wal":
            raise StoreError(
                f"{self._path} lies on a file system where SQLite cannot share its log (a network folder?). Put it on a disk "
                f"of this computer."
            )

    def writing(self) -> sqlite3.Connection:
        return self._existing(f"PRAGMA synchronous = {self._synchronous}")

    def reading(self) -> sqlite3.Connection:
        return self._existing("PRAGMA query_only = 1")

    def _existing(self, setting: str) -> sqlite3.Connection:
        # Never made anew: a file that was deleted under a running program must not come back empty.
        connection = self._open(self._path.as_uri() + "?mode=rw", uri=True)
        try:
            connection.execute(setting)
        except BaseException:
            connection.close()
            raise
        return connection

    def _open(self, name: str, *, uri: bool) -> sqlite3.Connection:
        return sqlite3.connect(
            name, timeout=self._wait, isolation_level=None, check_same_thread=False, factory=self._class, uri=uri
        )


_FORKED = (
    "{path} was opened before this process was forked. SQLite loses acknowledged writes when a file is used on both sides of "
    "a fork. Close the store before forking and open it afterwards, or start workers with multiprocessing's 'spawn'."
)


def _usable(path: str | Path) -> Path:
    """The full path. Raises StoreError where no SQLite file can be there."""
    if sqlite3.sqlite_version_info < (3, 35):
        raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old; 3.35 or newer is needed. Use a newer Python.")
    if str(path) == ":memory:":
        raise StoreError('A SQLite store keeps a file. For one in memory use "memory:" (MemoryStore).')
    full = Path(path).expanduser().resolve()
    if full.is_dir():
        raise StoreError(f"{path} is a folder. Name a file in it.")
    if not full.parent.is_dir():
        raise StoreError(f"There is no folder {full.parent}. Create it, or name a file elsewhere.")
    if any(held == str(full) and pid != os.getpid() for held, pid in _held):
        raise StoreError(_FORKED.format(path=path))
    return full


def _finish(writer: Writer, idle: list[sqlite3.Connection], held: tuple[str, int]) -> None:
    """Close everything: on `close`, when a store is forgotten, and when Python ends."""
    if held[1] != os.getpid():
        return  # In a forked child these connections are the parent's.
    writer.close()
    _drain(idle)
    _held[held] -= 1
    if not _held[held]:
        del _held[held]


def _drain(idle: list[sqlite3.Connection]) -> None:
    while idle:
        idle.pop().close()
