"""A recorded disk: the requests of SQLite in order, the contents after a power cut, and failures on demand.

`Disk` returns connections like those of `sqlite3` whose files go through Python functions (a "VFS" of the package
`apsw`, which has its own SQLite, possibly newer than Python's). Files lie at their usual places. `Lost` computes from
the record what a disk may hold after a power cut: everything that was synced, and any part of the rest, torn at
sectors.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any, Literal

import apsw

SECTOR = 512
"""Bytes that a disk writes whole or not at all."""

Kind = Literal["read", "write", "truncate", "sync", "open", "delete", "lock", "size"]
"""The requests of SQLite to a disk. Its shared index of the log is in memory, and not recorded."""


@dataclass(frozen=True)
class Event:
    """A request to the disk, or an acknowledgement to the user of the store."""

    kind: Kind | Literal["acknowledged"]
    name: str = ""
    """Of the file, without its folder."""
    at: int = 0
    """Bytes from the beginning: where it was written, or how long the file is from now on."""
    data: bytes = b""


@dataclass
class Disk:
    """Records the requests for files, and fails on demand."""

    events: list[Event] = field(default_factory=list)
    count: int = 0
    """The requests since `fail` that could have failed."""
    asking: str = ""
    """The name of the file that something is asked of."""
    _fails: Callable[[Kind, int], int] = lambda kind, count: 0
    _lock: Any = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self._vfs = _Vfs(f"watched {next(_numbers)}", self)

    def fail(self, when: Callable[[Kind, int], int]) -> None:
        """Let requests fail from now on. `when` returns the name of an SQLite error for a request and its number,
        counted from 1; 0 lets the request succeed.
        """
        self.count, self._fails = 0, when

    def mend(self) -> None:
        """Let requests succeed again."""
        self._fails = lambda kind, count: 0

    def acknowledge(self) -> None:
        """Note that everything so far was acknowledged."""
        self.events.append(Event("acknowledged"))

    def syncs(self, name: str) -> int:
        """Return the number of syncs of this file."""
        return sum(event.kind == "sync" and event.name == name for event in self.events)

    @property
    def connection(self) -> type[sqlite3.Connection]:
        """Return a class for the argument `connection=` of a store."""
        disk = self

        class Watched(Connection):
            vfs = disk._vfs.vfs_name

        return Watched  # type: ignore[return-value]

    def asked(self, kind: Kind, name: str = "", at: int = 0, data: bytes = b"") -> None:
        """Handle a request of a file; raise the error that is due."""
        with self._lock:
            self.count, self.asking = self.count + 1, name
            code = self._fails(kind, self.count)
            # A file without a name is a temporary file of SQLite.
            if not code and name and kind in ("write", "truncate", "sync", "open", "delete"):
                self.events.append(Event(kind, name, at, data))
        if code:
            error = apsw.exception_for(code)
            error.extendedresult = code
            raise error


_numbers = itertools.count()


class _Vfs(apsw.VFS):
    def __init__(self, name: str, disk: Disk) -> None:
        super().__init__(name, "")
        self.vfs_name, self._disk = name, disk

    def xOpen(self, name: Any, flags: list[int]) -> _File:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._disk.asked("open", os.path.basename(path or ""))
        return _File(name, flags, self._disk)

    def xDelete(self, name: str, syncdir: bool) -> None:
        self._disk.asked("delete", os.path.basename(name))
        super().xDelete(name, syncdir)

    def excepthook(self, *error: Any) -> None:
        """Ignore a planned error, which SQLite's code reports as well."""


class _File(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int], disk: Disk) -> None:
        super().__init__("", name, flags)
        self._name = os.path.basename((name.filename() if isinstance(name, apsw.URIFilename) else name) or "")
        self._disk = disk

    def xRead(self, amount: int, offset: int) -> bytes:
        self._disk.asked("read", self._name)
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.asked("write", self._name, offset, bytes(data))
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:
        self._disk.asked("truncate", self._name, size)
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:
        self._disk.asked("sync", self._name)  # Noted, not done: the power stays on, and real disks take their time.

    def xLock(self, level: int) -> None:
        self._disk.asked("lock", self._name)
        super().xLock(level)

    def xFileSize(self) -> int:
        self._disk.asked("size", self._name)
        return super().xFileSize()

    def excepthook(self, *error: Any) -> None:
        """Ignore a planned error, which SQLite's code reports as well."""


# --------------------------------------------------------------------------------- connections like those of sqlite3


class Connection:
    """As much of `sqlite3.Connection` as a store uses."""

    vfs: str
    checkpoint = 20
    """Pages in the log from which on it is written back, so that this happens often."""

    def __init__(self, name: str, *, timeout: float, uri: bool = False, **_: Any) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | (apsw.SQLITE_OPEN_URI if uri else 0)
        self._connection = _told(lambda: apsw.Connection(name, flags=flags, vfs=self.vfs))
        self._connection.set_busy_timeout(int(timeout * 1000))
        self._connection.set_wal_hook(self._written)
        self.text_factory: object = str

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        rows = Rows(_told(lambda: self._connection.execute(sql, tuple(values)).fetchall()))
        rows.rowcount = self._connection.changes()
        return rows

    def executemany(self, sql: str, many: Iterable[Sequence[Any]]) -> Rows:
        return Rows(_told(lambda: self._connection.executemany(sql, [tuple(values) for values in many]).fetchall()))

    @property
    def in_transaction(self) -> bool:
        return bool(self._connection.in_transaction)

    def close(self) -> None:
        with suppress(apsw.Error):  # It is closed all the same, and `sqlite3` would say nothing of it.
            self._connection.close()

    def _written(self, connection: apsw.Connection, _: str, pages: int) -> int:
        """After a commit errors are ignored, because the commit is valid."""
        if 0 < self.checkpoint <= pages:
            with suppress(apsw.Error):
                connection.wal_checkpoint()
        return apsw.SQLITE_OK


class Rows(list[Any]):
    """The rows of a statement."""

    rowcount = -1
    """How many rows it changed."""

    def fetchall(self) -> list[Any]:
        return list(self)

    def fetchone(self) -> Any:
        return self[0] if self else None


def _told(work: Callable[[], Any]) -> Any:
    """Run `work`, with errors of apsw raised as errors of `sqlite3`."""
    try:
        return work()
    except apsw.Error as error:
        told = sqlite3.OperationalError(str(error) or type(error).__name__)
        told.sqlite_errorcode = getattr(error, "extendedresult", 0) or getattr(error, "result", 0)
        raise told from error


# ------------------------------------------------------------------------------------------------------- power loss


@dataclass
class _Kept:
    """One file: its synced contents, and the requests since its last sync."""

    synced: bytes = b""
    asked: list[Event] = field(default_factory=list)


class Lost:
    """The possible contents of the disk after a power cut at each moment. `take` applies the events in order.

    `folders`: whether the events contain syncs of the folder. Otherwise a folder is synced with the first sync of a
    new log or journal in it, as SQLite does.
    """

    def __init__(self, *, folders: bool = False) -> None:
        self._folders = folders
        self._files: dict[str, _Kept] = {}
        self._made: set[str] = set()
        """Made since the folder was synced: they may never have been."""
        self._deleted: dict[str, _Kept] = {}
        """Deleted since the folder was synced: they may come back."""
        self.acknowledged = 0

    def take(self, event: Event) -> None:
        match event.kind:
            case "acknowledged":
                self.acknowledged += 1
            case "open":
                if event.name not in self._files:
                    self._made.add(event.name)
                    self._files[event.name] = _Kept()
            case "delete":
                if event.name in self._files:
                    self._deleted[event.name] = self._files.pop(event.name)
            case "sync" if not event.name:
                self._deleted.clear()
                self._made.clear()
            case "sync":
                kept = self._files[event.name]
                if not self._folders and event.name in self._made and event.name.endswith(("-wal", "-journal")):
                    self._deleted.clear()
                    self._made.clear()
                self._files[event.name] = _Kept(_written(kept.synced, kept.asked))
            case _:
                self._files[event.name].asked.append(event)

    @property
    def is_settled(self) -> bool:
        """Return whether everything is synced."""
        return not self._deleted and not self._made and not any(kept.asked for kept in self._files.values())

    def left(self, random: Random | None, *, all: bool = False) -> dict[str, bytes]:
        """Return the files by name. `random` chooses the unsynced sectors that reached the disk, and their order;
        None: none of them, or with `all` all of them.
        """
        files = dict(self._files)
        if not all:
            lost = [name for name in self._made & files.keys() if random is None or random.random() < 0.5]
            files = {name: kept for name, kept in files.items() if name not in lost}
            files |= {name: kept for name, kept in self._deleted.items() if random is None or random.random() < 0.5}
        found = {}
        for name, kept in files.items():
            asked = kept.asked if all else [] if random is None else _some(kept.asked, random)
            found[name] = _written(kept.synced, asked)
        return {name: content for name, content in found.items() if content}


def _some(asked: list[Event], random: Random) -> list[Event]:
    """Return a part of the requests, torn at sectors, and sometimes reordered."""
    share = random.choice((0.1, 0.5, 0.9, 0.98))
    kept = [part for event in asked for part in _sectors(event) if random.random() < share]
    if random.random() < 0.3:
        random.shuffle(kept)
    return kept


def _sectors(event: Event) -> list[Event]:
    if event.kind != "write":
        return [event]
    ends = range(event.at - event.at % SECTOR, event.at + len(event.data), SECTOR)
    return [
        Event(
            "write", event.name, max(begin, event.at), event.data[max(begin - event.at, 0) : begin + SECTOR - event.at]
        )
        for begin in ends
    ]


def _written(content: bytes, asked: Iterable[Event]) -> bytes:
    file = bytearray(content)
    for event in asked:
        if event.kind == "truncate":
            del file[event.at :]
            file.extend(bytes(event.at - len(file)))
        else:
            file.extend(bytes(max(event.at - len(file), 0)))
            file[event.at : event.at + len(event.data)] = event.data
    return bytes(file)


def put(folder: Path, files: dict[str, bytes]) -> None:
    """Replace the contents of a folder by these files."""
    for file in folder.iterdir():
        file.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
