"""Tools for a SQLite database: its schema, and queries. Changes need permission, and no other file is opened."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ...conversation import validate
from ...core.plurals import plural
from ...errors import BadSetting
from ..tools import Tool, ToolFailed, tool
from .folder import line_cut

__all__ = ["sqlite"]

T = TypeVar("T")

_ROWS_MAX = 100
_CELL_MAX = 300
_CHARACTERS_MAX = 16_000
_VALUE_MAX = 10_000_000
"""Bytes of one value in a query: prevents `randomblob(1e9)`."""
_INSTRUCTIONS = 10_000
"""Of SQLite's virtual machine, between two looks at the clock."""

_SCHEMA = """
    SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY tbl_name, type DESC, name
"""
_READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
    sqlite3.SQLITE_TRANSACTION,
    # SQLite asks for these when a query reads a virtual table, such as `json_each` or an FTS5 table. The file is opened
    # for reading, so that a real change fails.
    sqlite3.SQLITE_INSERT,
    sqlite3.SQLITE_UPDATE,
    sqlite3.SQLITE_DELETE,
}
_PRAGMAS = {"table_info", "table_xinfo", "table_list", "index_list", "index_info", "foreign_key_list"}
"""They describe the schema, and set nothing."""
_OWN_PRAGMAS = {"data_version", "page_size"}
"""Virtual tables for full-text search read them."""
_NEVER = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH}
"""They open other files."""


def sqlite(
    path: str | os.PathLike[str], *, read_only: bool = True, timeout: float = 30, needs_approval: bool | None = None
) -> tuple[Tool, ...]:
    """Return `database_schema` and `query_database` for the SQLite database in the file `path`.

    `read_only`: nothing can be changed. Otherwise each call of `query_database` is one transaction, and needs approval
    unless `needs_approval` is False. `timeout`: seconds of one query. Raises BadSetting if there is no such file.
    """
    validate.instance("read_only=", read_only, bool, "True or False")
    place = Path(path).expanduser().resolve()
    if not place.is_file():
        raise BadSetting(f"There is no database {path!s:.200}. Pass the path of an existing file.")
    database = _Database(place, read_only, timeout)

    def database_schema() -> str:
        """The tables, views and indexes of the database, as SQL."""
        statements = [" ".join(row[0].split()) for row in database.run(_SCHEMA, sqlite3.Cursor.fetchall)]
        return "\n".join(f"{statement};" for statement in statements) or "(the database is empty)"

    def query_database(sql: str) -> str:
        """Run one SQL statement (SQLite) and show its rows: the names of the columns, then a line for each row.

        Args:
            sql: The statement. Ask for what you need: columns by name, LIMIT, count(*), GROUP BY.
        """
        if not sql.strip():
            raise ToolFailed("There is no statement.")
        return database.run(sql, _table)

    changes = not read_only
    return (
        tool(database_schema, is_repeatable=True),
        tool(
            query_database,
            is_repeatable=read_only,
            needs_approval=changes if needs_approval is None else needs_approval,
            is_parallel=read_only,
        ),
    )


class _Database:
    """A database file. It is opened for each query, because tools may be called from any thread."""

    def __init__(self, place: Path, read_only: bool, timeout: float) -> None:
        self._place, self._read_only, self._timeout = place, read_only, timeout

    def run(self, sql: str, read: Callable[[sqlite3.Cursor], T]) -> T:
        """Run a statement, and return the result of `read`. Raises ToolFailed."""
        until = time.monotonic() + self._timeout
        mode = "ro" if self._read_only else "rw"
        try:
            connection = sqlite3.connect(f"{self._place.as_uri()}?mode={mode}", uri=True, timeout=min(5, self._timeout))
        except sqlite3.Error as error:
            raise ToolFailed(f"The database cannot be opened: {error}.") from error
        try:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_MAX)
            connection.text_factory = lambda text: text.decode("utf-8", "replace")  # A file may hold any bytes as text.
            connection.set_authorizer(self._authorize)
            connection.set_progress_handler(lambda: time.monotonic() > until, _INSTRUCTIONS)
            with connection:
                return read(connection.execute(sql))
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
            raise ToolFailed(self._describe(error, time.monotonic() > until)) from error
        finally:
            connection.close()

    def _authorize(self, action: int, first: str | None, second: str | None, *_: object) -> int:
        name = (first or "").lower()
        is_known = action == sqlite3.SQLITE_PRAGMA and (name in _PRAGMAS or (name in _OWN_PRAGMAS and second is None))
        if action in _NEVER or (action == sqlite3.SQLITE_PRAGMA and not is_known):
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK if not self._read_only or is_known or action in _READING else sqlite3.SQLITE_DENY

    def _describe(self, error: BaseException, is_late: bool) -> str:
        text = str(error)
        if is_late and "interrupt" in text:
            return f"The query took longer than {self._timeout:g} seconds. Narrow it, or count first."
        if "not authorized" in text or "readonly" in text:
            what = "This database can only be read" if self._read_only else "This statement is not allowed here"
            return f"{what}: {text}."
        if "one statement" in text:
            return "One statement at a time."
        return f"SQLite says: {text}."


def _table(cursor: sqlite3.Cursor) -> str:
    if cursor.description is None:
        changed = cursor.rowcount
        return "Done." if changed < 0 else f"Done: {plural(changed, 'row')} changed."
    rows = cursor.fetchmany(_ROWS_MAX + 1)
    lines = [" | ".join(column[0] for column in cursor.description)]
    room = _CHARACTERS_MAX
    for row in rows[:_ROWS_MAX]:
        line = " | ".join(map(_cell, row))
        if room < len(line) and len(lines) > 1:
            break
        lines.append(line)
        room -= len(line) + 1
    shown = len(lines) - 1
    if shown < len(rows):
        lines.append(f"[the first {shown} rows; there are more: LIMIT and OFFSET, or a narrower question, show them]")
    else:
        lines.append(f"[{plural(shown, 'row')}]")
    return "\n".join(lines)


def _cell(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bytes():
            return f"<{len(value):,} bytes>"
        case str():
            return line_cut(value.replace("\\", "\\\\").replace("\n", "\\n").replace("|", "\\|"), _CELL_MAX)
        case _:
            return str(value)
