"""Explain SQLite's errors: what happened to which file, and what to do.

SQLite has one code for a file without permissions, too few file handles and a missing folder. So the folder is checked,
without opening the database file: closing it would release every lock that this process holds on it.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from ...errors import Damaged, StoreError

__all__ = ["FAILURES", "code_of", "explain"]

FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""Errors of a connection. The second: SQLite quotes damaged text that Python cannot decode."""

_ROOM = 64 * 1024
"""Free bytes that opening a file needs: SQLite's shared index of the log begins with 32 KiB."""

_NO_LOCKS = {
    sqlite3.SQLITE_IOERR_LOCK,
    sqlite3.SQLITE_IOERR_UNLOCK,
    sqlite3.SQLITE_IOERR_RDLOCK,
    sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK,
    sqlite3.SQLITE_IOERR_SHMLOCK,
    sqlite3.SQLITE_IOERR_SHMMAP,
    sqlite3.SQLITE_IOERR_SHMOPEN,
}
_READING = {sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS}
_WRITING = {sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_TRUNCATE}

_LOOK = "Open the conversation again to see whether the last write took place."
_MAKE_ROOM = "Nothing was written. Make room, then retry; reading goes on meanwhile."


def code_of(error: Exception) -> int:
    """Return the primary code of an error (https://sqlite.org/rescode.html); 0 if it has none."""
    return _whole_code(error) & 0xFF


def explain(error: Exception, path: Path, place: str, wait: float, *, is_read_only: bool = False) -> StoreError:
    """Return a StoreError that says what happened to which file, and what to do.

    `place`: the user's name of `path`. `wait`: the seconds that the write waited for others. `is_read_only`: the file
    was opened for reading.
    """
    why, whole = f"({error})", _whole_code(error)
    match code_of(error):
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN if is_read_only:
            return StoreError(_unread(path, place, why))
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreError(
                f"{place} is locked: another process has been writing to it for more than {wait:g} s {why}. Nothing "
                f"was written. Let it finish, or end it if it hangs; then retry."
            )
        case sqlite3.SQLITE_NOTADB:
            return StoreError(f"{place} is not a SQLite database {why}. Name another file, or move this one away.")
        case sqlite3.SQLITE_CORRUPT:
            return _damaged(place, why)
        case sqlite3.SQLITE_ERROR if str(error).startswith("no such ") or " has no column " in str(error):
            return Damaged(
                f"{place} lacks a table or a column that existed {why}. If a newer foveate has upgraded it, restart "
                "this program with that version. Otherwise another program changed it: keep a copy, then restore a "
                "backup."
            )
        case sqlite3.SQLITE_FULL:
            return StoreError(f"The disk of {place} is full {why}. {_MAKE_ROOM}")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN:
            return StoreError(_unopened(path, place, why))
        case sqlite3.SQLITE_PROTOCOL:
            return StoreError(_unlockable(place, why))
        case sqlite3.SQLITE_IOERR if whole in _NO_LOCKS:
            return StoreError(_unlockable(place, why))
        case sqlite3.SQLITE_IOERR if whole in _WRITING:
            return StoreError(_unwritten(path, place, why))
        case sqlite3.SQLITE_IOERR if whole in _READING:
            return StoreError(
                f"{place} could not be read {why}: its disk fails, or was removed. Acknowledged writes are as safe as "
                "the disk. Keep a copy of it and of its -wal file, check the disk, then run `foveate db verify`."
            )
        case sqlite3.SQLITE_TOOBIG:
            return StoreError(f"{place} takes no more than 1 GB in one piece {why}. Nothing was written.")
        case _:
            return StoreError(f"{place} failed {why}. {_LOOK}")


def _damaged(place: str, why: str) -> Damaged:
    return Damaged(f"{place} is damaged {why}. Keep a copy, then restore a backup or run `sqlite3 {place} .recover`.")


def _unlockable(place: str, why: str) -> str:
    return (
        f"{place} is on a file system that does not lock files as SQLite needs it {why}: a network folder, or one "
        f"shared with a virtual machine. Move it to a disk of this computer. {_LOOK}"
    )


def _unwritten(path: Path, place: str, why: str) -> str:
    if _is_full(path):
        return f"The disk of {place} is full {why}. {_MAKE_ROOM}"
    return (
        f"{place} could not be written to {why}: this user's quota or this process's limit for the size of a file "
        f"(`ulimit -f`) is reached, or the disk fails. Nothing was written. Correct that, then retry."
    )


def _unread(path: Path, place: str, why: str) -> str:
    """Return the reason for which a file cannot be opened for reading."""
    log = Path(f"{path}-wal")
    for file in (path, log):
        if file.exists() and not os.access(file, os.R_OK):
            return f"{place} cannot be read {why}: this user ({_user()}) may not read {file.name}{_because(file)}"
    if log.exists() and log.stat().st_size:
        return (
            f"{place} cannot be read {why}: its newest messages are in {log.name}, and SQLite reads that only in a "
            f"folder that it can write. Copy both files into a folder of your own, and name the copy."
        )
    return f"{place} cannot be read {why}. Copy it into a folder of your own, and name the copy."


def _unopened(path: Path, place: str, why: str) -> str:
    """Return the first reason that is found for a file that cannot be opened for writing."""
    folder, begin = path.parent, f"{place} cannot be opened for writing {why}"
    if not folder.is_dir():
        return f"{begin}: its folder is gone. Restore it, then open the store again."
    if _has_no_handle():
        return (
            f"{begin}: this process has as many files open as it may. Nothing was written. Close some, share one store "
            f"instead of opening many, or raise the limit (`ulimit -n`)."
        )
    if _is_read_only(path):
        return f"{begin}: its file system is mounted read-only. Copy it to a disk that can be written to."
    for file in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        if file.exists() and not os.access(file, os.R_OK | os.W_OK):
            return f"{begin}: this user ({_user()}) may not read and write {file.name}{_because(file)}"
    if not os.access(folder, os.W_OK | os.X_OK):
        return (
            f"{begin}: this user ({_user()}) may not make files in {folder}, where SQLite keeps its log. Have its "
            f"owner allow it, or copy the file elsewhere."
        )
    if _is_full(path):
        return f"The disk of {place} is full {why}. {_MAKE_ROOM}"
    return (
        f"{begin}. This user ({_user()}) needs to be able to write to the file and to its folder, where SQLite keeps "
        f"its log, and neither may be immutable (`chattr`, `chflags`)."
    )


def _because(path: Path) -> str:
    """Explain why a file may not be read and written, and what to do."""
    if hasattr(os, "geteuid") and path.stat().st_uid == os.geteuid():
        return (
            ", although it owns the file: allow it (`chmod u+rw`), or make it mutable (`chattr -i`, `chflags nouchg`)."
        )
    return f", which belongs to {_owner(path)}. Have its owner allow it, or run as its owner."


def _is_full(path: Path) -> bool:
    import shutil  # Slow to load, and few files are ever full.

    try:
        return shutil.disk_usage(path.parent).free < _ROOM
    except OSError:
        return False


def _has_no_handle() -> bool:
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return True
    return False


def _is_read_only(path: Path) -> bool:
    try:
        return bool(os.statvfs(path.parent).f_flag & os.ST_RDONLY)
    except (AttributeError, OSError):  # Only Linux and macOS have statvfs.
        return False


def _user() -> str:
    return f"id {os.geteuid()}" if hasattr(os, "geteuid") else "the current user"


def _owner(path: Path) -> str:
    try:
        return path.owner()
    except (KeyError, OSError, NotImplementedError):
        return "a user without a name here"


def _whole_code(error: Exception) -> int:
    if isinstance(error, UnicodeDecodeError):
        return sqlite3.SQLITE_CORRUPT
    return int(getattr(error, "sqlite_errorcode", 0))
