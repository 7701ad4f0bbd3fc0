"""The file of a SQLite store: its connections, and checks that the file and its log are still the same ones."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from ...errors import BadSetting, Damaged, StoreError
from .. import Synchronous
from .errors import code_of, explain

__all__ = ["TABLES", "SqliteFile"]

TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"

_FOR_GOOD = ("PRAGMA fullfsync = ON", "PRAGMA checkpoint_fullfsync = ON")
"""On macOS these make a sync reach the disk, not only its cache. They change nothing elsewhere."""
_WRITING = ("PRAGMA foreign_keys = ON", "SELECT 1 FROM sqlite_master LIMIT 1")
"""The last one opens the log now, instead of at the first write."""
_AT_ONCE = "PRAGMA busy_timeout = 0"
"""The caller waits for other processes: SQLite does not wait fairly (`writer.py`)."""

_held: Counter[tuple[Path, int]] = Counter()
"""Files that are open now, with the process that opened them. A forked child inherits this."""

_FORKED = (
    "{path} was opened before this process was forked. SQLite loses acknowledged writes where a file is used on both "
    "sides of a fork. Close the store before forking and open it after, or start workers by multiprocessing's 'spawn'."
)


class SqliteFile:
    """Opens connections to one file. Raises StoreError if the path is impossible, and sqlite3.Error as SQLite does."""

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: Synchronous,
        wait: float,
        connection: type[sqlite3.Connection],
        is_read_only: bool = False,
    ) -> None:
        if synchronous not in ("full", "normal"):
            raise BadSetting(f'synchronous is "full" or "normal", not {synchronous!r}.')
        self.place = str(path)
        self.is_read_only = is_read_only
        self._access = "mode=ro" if is_read_only else "mode=rw"
        self._path = _usable(path)
        self._parent = str(self._path.parent)
        self._pid = os.getpid()
        self._known: tuple[tuple[str, int, int], ...] = ()
        """The file, its log and the index of the log, once they are known: path, device, inode."""
        self._folder: tuple[int, int, int] | None = None
        """The folder when these were last found in it: device, inode, time of its last change; None if it was changed a
        moment before that.
        """
        self._synchronous, self.wait, self._class = synchronous, wait, connection

    def require(self) -> None:
        """Find out how the file can be read where nothing can be written next to it. Raises StoreError.

        SQLite shares a log through a file that it writes. Without a log, a file that this process cannot write is
        read as if it never changed.
        """
        if not self._path.is_file():
            raise StoreError(f"There is no database {self.place}.")
        try:
            self._require_tables()
        except sqlite3.OperationalError as error:
            if code_of(error) & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) or _size(
                self._logs()[0]
            ):
                raise
            self._access = "mode=ro&immutable=1"
            self._require_tables()
        self._known = _known([self._path])

    def _require_tables(self) -> None:
        connection = self.reading()
        try:
            tables = {name for (name,) in connection.execute(TABLES).fetchall()}
        finally:
            connection.close()
        if "migration" not in tables:
            raise StoreError(f"{self.place} is a SQLite database, but holds no conversations of foveate.")

    def create(self) -> None:
        """Create the file if there is none, and switch it to write-ahead logging, which it remembers."""
        self._refuse_cut()
        connection = self._open(str(self._path), uri=False)
        try:
            tables = [name for (name,) in connection.execute(TABLES).fetchall()]
            if tables and "migration" not in tables:  # Checked before any change: it may be another program's.
                raise StoreError(
                    f"{self.place} is a database of something else (tables: {', '.join(tables[:5])}). Give foveate a "
                    f"separate file."
                )
            mode = self._set_mode(connection)
        finally:
            connection.close()
        if mode != "wal":
            raise StoreError(
                f"{self.place} is on a file system where SQLite cannot share its log (a network folder?). Move it to "
                f"a disk of this computer."
            )
        self._known = _known([self._path])

    def writing(self) -> sqlite3.Connection:
        """Return a connection for writing that does not wait. While it is open, the log and its index stay the same
        files.
        """
        for_good = _FOR_GOOD if self._synchronous == "full" else ()
        connection = self._existing(f"PRAGMA synchronous = {self._synchronous}", *for_good, *_WRITING, _AT_ONCE)
        self._known, self._folder = (*self._known[:1], *_known(self._logs())), None
        return connection

    def forget(self) -> None:
        """Forget the log before the writing connection is closed: SQLite may create a new one."""
        self._known, self._folder = self._known[:1], None

    def reading(self) -> sqlite3.Connection:
        """Return a connection for reading."""
        return self._existing("PRAGMA query_only = 1")

    def hold(self) -> None:
        """Record that this process has the file open, so that a forked child refuses to open it."""
        _held[self._path, self._pid] += 1

    def let_go(self) -> None:
        """Undo `hold`."""
        _held[self._path, self._pid] -= 1

    @property
    def is_ours(self) -> bool:
        """Return whether this is the process that opened the file, and not a forked child."""
        return self._pid == os.getpid()

    def check(self) -> None:
        """Raise StoreError in a forked child, or if the file, its log or the index of the log was deleted or replaced.

        SQLite would write to the deleted file and acknowledge it; or two processes would write to different logs. If no
        entry of the folder was added, deleted or renamed since the last check, all three are still there.
        """
        if not self.is_ours:
            raise StoreError(_FORKED.format(path=self.place))
        folder = _folder(self._parent)
        if folder == self._folder and folder is not None:
            return
        is_settled = folder is not None and time.time_ns() - folder[2] > _SETTLED
        for path, device, number in self._known:
            try:
                status = os.stat(path)
            except OSError:
                raise self._gone(path) from None
            if status.st_ino != number or status.st_dev != device:
                raise self._gone(path)
        # As it was before the files were checked, so that the next check sees a later change.
        self._folder = folder if is_settled else None

    def explain(self, error: Exception) -> StoreError:
        """Return a StoreError that says what happened to which file, and what to do."""
        return explain(error, self._path, self.place, self.wait, is_read_only=self.is_read_only)

    def _gone(self, path: str) -> StoreError:
        if path == self._known[0][0]:
            return StoreError(
                f"{self.place} was deleted or replaced while it was open; everything written before is in the file "
                "that is gone. Close the store, restore the file or start a new one, and open it again."
            )
        return StoreError(
            f"{os.path.basename(path)} was deleted or replaced while {self.place} was open. It contains the "
            f"newest writes: close the store before another program opens the file, which saves as much as possible; "
            f"then open it again and run `foveate db verify`. Never delete the -wal and -shm files of a database in "
            f"use."
        )

    def _logs(self) -> tuple[Path, Path]:
        return Path(f"{self._path}-wal"), Path(f"{self._path}-shm")

    def _refuse_cut(self) -> None:
        """Raise Damaged for a missing or empty file that has a log: SQLite would treat it as new, and delete the log.

        The log is checked first, because a new file is created before its log.
        """
        log = _size(self._logs()[0])
        if log and _size(self._path) == 0:
            raise Damaged(
                f"{self.place} is empty or gone, and its log has {log:,} bytes that belong to its former contents. "
                f"Keep a copy of {self.place}-wal, then restore a backup; to start a new file, move the log away."
            )

    def _set_mode(self, connection: sqlite3.Connection) -> str:
        deadline = time.monotonic() + self.wait
        while True:
            try:
                return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
            except sqlite3.OperationalError as error:
                # Two processes create the same file at once: SQLite does not wait here.
                if code_of(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _existing(self, *settings: str) -> sqlite3.Connection:
        # mode=rw never creates: a file that was deleted under a running program must not return empty.
        connection = self._open(f"{self._path.as_uri()}?{self._access}", uri=True)
        try:
            for setting in settings:
                connection.execute(setting).fetchall()
        except BaseException:
            connection.close()
            raise
        return connection

    def _open(self, name: str, *, uri: bool) -> sqlite3.Connection:
        # Threads pass a connection on; two never use it at once.
        connection = sqlite3.connect(
            name, timeout=self.wait, isolation_level=None, check_same_thread=False, factory=self._class, uri=uri
        )
        # `verify` reports damaged text; the connection must not raise.
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        return connection


def _usable(path: str | Path) -> Path:
    if sqlite3.sqlite_version_info < (3, 35):
        raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old; 3.35 or newer is needed. Use a newer Python.")
    if str(path) == ":memory:":
        raise StoreError("A SQLite store needs a file. For a store that ends with the process, use MemoryStore.")
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
    except (OSError, ValueError, RuntimeError) as error:  # Too long, a NUL in it, or an unknown home folder.
        raise StoreError(f"No file can be called {str(path)!r:.200}: {error}. Name another one.") from error
    if is_folder:
        raise StoreError(f"{path} is a folder. Name a file in it.")
    if not full.parent.is_dir():
        raise StoreError(f"There is no folder {full.parent}. Create it, or name a file elsewhere.")
    if any(held == full and pid != os.getpid() for (held, pid), count in _held.items() if count):
        raise StoreError(_FORKED.format(path=path))
    return full


_SETTLED = 2 * 10**9
"""Nanoseconds after which another change of a folder certainly gets another time."""


def _folder(path: str) -> tuple[int, int, int] | None:
    """Return device, inode and time of the last change of a folder; None if it is gone."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns


def _size(path: Path) -> int:
    """Return the size in bytes; 0 if there is no file."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _known(paths: Iterable[Path]) -> tuple[tuple[str, int, int], ...]:
    """Return path, device and inode of each of these files that exists."""
    return tuple(
        (str(path), status.st_dev, status.st_ino) for path in paths if path.exists() for status in [path.stat()]
    )
