"""How one SQLite file is opened, and whether it is still the one that was opened.

Knows paths, settings and forks; no thread, and no table but the one that marks a file as foveate's.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from ...errors import BadSetting, Damaged, StoreError
from .errors import code_of, explain

__all__ = ["TABLES", "SqliteFile", "Synchronous"]

TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"

Synchronous = Literal["full", "normal"]

_FOR_GOOD = ("PRAGMA fullfsync = ON", "PRAGMA checkpoint_fullfsync = ON")
"""On macOS a sync stops at the memory of the disk unless it is asked to go further. Elsewhere these change nothing."""
_WRITING = ("PRAGMA foreign_keys = ON", "SELECT 1 FROM sqlite_master LIMIT 1")
"""The last opens the log, which it would otherwise do at the first write."""
_AT_ONCE = "PRAGMA busy_timeout = 0"
"""Where another process writes, whoever uses the connection waits: SQLite does not wait fairly (`writer.py`)."""

_held: Counter[tuple[Path, int]] = Counter()
"""The files that are open now, with the process that opened them. A forked child inherits this, and so knows."""

_FORKED = (
    "{path} was opened before this process was forked. SQLite loses acknowledged writes where a file is used on both "
    "sides of a fork. Close the store before forking and open it after, or start workers by multiprocessing's 'spawn'."
)


class SqliteFile:
    """Opens connections to one file. Raises StoreError where no such file can be, sqlite3.Error where SQLite does."""

    def __init__(
        self, path: str | Path, *, synchronous: Synchronous, wait: float, connection: type[sqlite3.Connection]
    ) -> None:
        if synchronous not in ("full", "normal"):
            raise BadSetting(f'synchronous is "full" or "normal", not {synchronous!r}.')
        self.place = str(path)
        self._path = _usable(path)
        self._pid = os.getpid()
        self._known: tuple[tuple[str, int, int], ...] = ()
        """The file, its log and the log's index, as far as it is known which they are: path, device, number there."""
        self._synchronous, self.wait, self._class = synchronous, wait, connection

    def create(self) -> None:
        """Make the file if there is none, and set it to write-ahead logging, which it remembers."""
        self._refuse_cut()
        connection = self._open(str(self._path), uri=False)
        try:
            tables = [name for (name,) in connection.execute(TABLES).fetchall()]
            if tables and "migration" not in tables:  # Before anything is changed in what may be another program's.
                raise StoreError(
                    f"{self.place} is a database of something else (tables: {', '.join(tables[:5])}). Give foveate a "
                    f"file of its own."
                )
            mode = self._set_mode(connection)
        finally:
            connection.close()
        if mode != "wal":
            raise StoreError(
                f"{self.place} lies on a file system where SQLite cannot share its log (a network folder?). Put it on "
                f"a disk of this computer."
            )
        self._known = _known([self._path])

    def writing(self) -> sqlite3.Connection:
        """A connection that writes, and does not wait. While it is open the log and its index stay the same."""
        for_good = _FOR_GOOD if self._synchronous == "full" else ()
        connection = self._existing(f"PRAGMA synchronous = {self._synchronous}", *for_good, *_WRITING, _AT_ONCE)
        self._known = (*self._known[:1], *_known(self._logs()))
        return connection

    def forget(self) -> None:
        """The connection that writes is about to be closed: the log may be made anew."""
        self._known = self._known[:1]

    def reading(self) -> sqlite3.Connection:
        """A connection that reads."""
        return self._existing("PRAGMA query_only = 1")

    def hold(self) -> None:
        """Note that this process has the file open, so that a child forked from now on refuses to open it."""
        _held[self._path, self._pid] += 1

    def let_go(self) -> None:
        """Take `hold` back."""
        _held[self._path, self._pid] -= 1

    @property
    def is_ours(self) -> bool:
        """Whether this is still the process that opened the file, and no child forked from it."""
        return self._pid == os.getpid()

    def check(self) -> None:
        """Raises StoreError in a forked child, and where the file, its log or the log's index was deleted or replaced
        since it was opened.

        SQLite would go on writing to what was deleted, and acknowledge what nobody can ever read; or two processes
        would each write to a log of their own.
        """
        if not self.is_ours:
            raise StoreError(_FORKED.format(path=self.place))
        for path, device, number in self._known:
            try:
                found = os.stat(path)
            except OSError:
                raise self._gone(path) from None
            if found.st_ino != number or found.st_dev != device:
                raise self._gone(path)

    def explain(self, error: Exception) -> StoreError:
        """The error as one that says what happened to which file, and what to do."""
        return explain(error, self._path, self.place, self.wait)

    def _gone(self, path: str) -> StoreError:
        if path == self._known[0][0]:
            return StoreError(
                f"{self.place} was deleted or replaced while it was open; what was written before is in the file that "
                f"is gone. Close the store, put the file back or begin a new one, and open it again."
            )
        return StoreError(
            f"{os.path.basename(path)} was deleted or replaced while {self.place} was open. It holds what was written "
            f"last: close the store before anybody else opens the file, which saves what it can; then open it again "
            f"and run `foveate db verify`. Nobody may touch the files beside a database in use."
        )

    def _logs(self) -> tuple[Path, Path]:
        return Path(f"{self._path}-wal"), Path(f"{self._path}-shm")

    def _refuse_cut(self) -> None:
        """SQLite takes an empty file for a new one, and throws away the log beside it. The log is looked at first: who
        makes a file makes it before its log.
        """
        log = _size(self._logs()[0])
        if log and _size(self._path) == 0:
            raise Damaged(
                f"{self.place} is empty or gone, and its log beside it holds {log:,} bytes that belong to what was in "
                f"it. Keep a copy of {self.place}-wal, then restore a backup; to begin anew move the log away."
            )

    def _set_mode(self, connection: sqlite3.Connection) -> str:
        deadline = time.monotonic() + self.wait
        while True:
            try:
                return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
            except sqlite3.OperationalError as error:
                # Two processes that make the same file at once: SQLite does not wait here by itself.
                if code_of(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _existing(self, *settings: str) -> sqlite3.Connection:
        # Never made anew: a file that was deleted under a running program must not come back empty.
        connection = self._open(self._path.as_uri() + "?mode=rw", uri=True)
        try:
            for setting in settings:
                connection.execute(setting).fetchall()
        except BaseException:
            connection.close()
            raise
        return connection

    def _open(self, name: str, *, uri: bool) -> sqlite3.Connection:
        # Between threads a connection is handed on, never shared.
        connection = sqlite3.connect(
            name, timeout=self.wait, isolation_level=None, check_same_thread=False, factory=self._class, uri=uri
        )
        # Damaged text is for `verify` to report, not for the connection to raise.
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        return connection


def _usable(path: str | Path) -> Path:
    if sqlite3.sqlite_version_info < (3, 35):
        raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old; 3.35 or newer is needed. Use a newer Python.")
    if str(path) == ":memory:":
        raise StoreError("A SQLite store keeps a file. For one that is gone with the process use MemoryStore.")
    try:
        full = Path(path).expanduser().resolve()
        is_folder = stat.S_ISDIR(os.stat(full).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        is_folder = False
    except PermissionError as error:
        raise StoreError(
            f"{path} cannot be reached ({error}): this user may not enter one of its folders. Have the folder's owner "
            f"allow it, or name a file elsewhere."
        ) from error
    except (OSError, ValueError, RuntimeError) as error:  # Too long, a NUL in it, the home of nobody.
        raise StoreError(f"No file can be called {str(path)!r:.200}: {error}. Name another one.") from error
    if is_folder:
        raise StoreError(f"{path} is a folder. Name a file in it.")
    if not full.parent.is_dir():
        raise StoreError(f"There is no folder {full.parent}. Create it, or name a file elsewhere.")
    if any(held == full and pid != os.getpid() for (held, pid), count in _held.items() if count):
        raise StoreError(_FORKED.format(path=path))
    return full


def _size(path: Path) -> int:
    """Bytes; 0 where there is no file."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _known(paths: Iterable[Path]) -> tuple[tuple[str, int, int], ...]:
    """Which files these are now: path, device, number there. Without those that are not there."""
    return tuple((str(path), found.st_dev, found.st_ino) for path in paths if path.exists() for found in [path.stat()])
