"""A copy of a SQLite database that is in use, as it was at one moment.

By SQLite's own online backup: others go on reading and writing meanwhile. The copy is a whole file without a log beside
it, is looked through before it gets its name, and is on the disk then. A PostgreSQL database is backed up by the tools
of its server.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

from ..errors import BadSetting, Damaged, StoreError
from .files import check_place, placed

__all__ = ["backup"]

_OPTION = r"(?:search|synchronous|wait)=[^&?]*"
_URL = re.compile(rf"sqlite:///(.+?)(?:\?{_OPTION}(?:&{_OPTION})*)?", re.DOTALL)
"""A path, and how a store is opened there, which a copy need not know. Other options are a part of the path."""


def backup(source: str | Path, target: str | Path, *, overwrite: bool = False) -> int:
    """Copy a SQLite database of foveate's to a new file, and return its size in bytes.

    `source`: its path, or its URL (`sqlite:///chat.db`). `overwrite`: a file that there is, other than the source.
    Raises BadSetting where there is no such database or the copy cannot be written, Damaged where what was copied is,
    and StoreError; then there is no new file.
    """
    path, copy = _file(source), Path(target).expanduser()
    check_place(copy, database=True)
    if copy.exists() and copy.samefile(path):
        raise BadSetting(f"{copy} is the database itself. Name another file for the copy.")
    log = copy.with_name(copy.name + "-wal")
    if log.exists():  # SQLite would read it into the copy as soon as that is opened.
        raise BadSetting(f"{log} is the log of another database. Take it away, or name another file for the copy.")
    with placed(copy, overwrite=overwrite, database=True) as beside:
        try:
            with closing(_connect(path)) as reading, closing(sqlite3.connect(beside)) as writing:
                if reading.execute("SELECT 1 FROM sqlite_master WHERE name = 'migration'").fetchone() is None:
                    raise BadSetting(f"{path} is no database of foveate's.")
                reading.backup(writing)  # In one step: as it was at one moment, and never begun again.
                writing.execute("PRAGMA journal_mode = DELETE")
                wrong = writing.execute("PRAGMA quick_check(1)").fetchone()[0]
        except sqlite3.Error as error:
            damaged = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
            kind = Damaged if damaged else StoreError
            raise kind(f"{path} could not be copied to {copy} ({error}). There is no copy.") from error
        if wrong != "ok":
            raise Damaged(f"{path} is damaged ({wrong}). There is no copy. Run `verify` to see what can be read.")
        return beside.stat().st_size


def _file(source: str | Path) -> Path:
    text = str(source)
    if text.startswith(("postgresql://", "postgres://")):
        raise BadSetting(
            "A PostgreSQL database is backed up by the tools of its server: pg_dump for a copy, or an archive of its "
            "log for every moment. `foveate db export` writes an archive of conversations from either."
        )
    url = _URL.fullmatch(text)
    path = Path(url[1] if url else text).expanduser()
    if not path.is_file():
        raise BadSetting(f"There is no database {path}.")
    return path


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
