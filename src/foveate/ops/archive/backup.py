"""Back up a SQLite database that is in use, with SQLite's online backup.

Others read and write meanwhile. The copy is one file without a log; it is checked and synced before it gets its name.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from ...errors import BadSetting, Damaged, StoreError
from ...stores import place_of
from .files import check_place, placed

__all__ = ["backup"]


def backup(source: str | Path, target: str | Path, *, overwrite: bool = False) -> int:
    """Copy a SQLite database of foveate to a new file, and return its size in bytes.

    `source`: its path or its URL (`sqlite:///chat.db`). `overwrite`: replace an existing file, other than the source.
    Raises BadSetting if there is no such database or the copy cannot be written, Damaged if the database is damaged,
    and StoreError. There is no new file then.
    """
    path, copy = _file(source), Path(target).expanduser()
    check_place(copy, database=True)
    if copy.exists() and copy.samefile(path):
        raise BadSetting(f"{copy} is the database itself. Name another file for the copy.")
    log = copy.with_name(copy.name + "-wal")
    if log.exists():  # SQLite would apply it to the copy.
        raise BadSetting(f"{log} is the log of another database. Move it away, or name another file for the copy.")
    with placed(copy, overwrite=overwrite, database=True) as temporary:
        try:
            with closing(_connect(path)) as reading, closing(sqlite3.connect(temporary)) as writing:
                if reading.execute("SELECT 1 FROM sqlite_master WHERE name = 'migration'").fetchone() is None:
                    raise BadSetting(f"{path} is not a database of foveate.")
                reading.backup(writing)  # All pages in one step: a copy of one moment.
                writing.execute("PRAGMA journal_mode = DELETE")
                wrong = writing.execute("PRAGMA quick_check(1)").fetchone()[0]
        except sqlite3.Error as error:
            damaged = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
            kind = Damaged if damaged else StoreError
            raise kind(f"{path} could not be copied to {copy} ({error}). There is no copy.") from error
        if wrong != "ok":
            raise Damaged(
                f"{path} is damaged ({wrong}). There is no copy. Run `foveate db verify` to see what can be read."
            )
        return temporary.stat().st_size


def _file(source: str | Path) -> Path:
    text = str(source)
    if text.startswith(("postgresql://", "postgres://")):
        raise BadSetting(
            "Use the tools of the server to back up a PostgreSQL database: pg_dump, or continuous archiving. `foveate "
            "db export` writes an archive of conversations from either kind of database."
        )
    path = Path(place_of(text).path if text.startswith("sqlite:///") else text).expanduser()
    if not path.is_file():
        raise BadSetting(f"There is no database {path}.")
    return path


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
