"""The protocols between the SQL store and a database.

A driver owns connections, transactions and locks. It knows no table. Statements are written once
(`statements.py`) with `?` for a value and BLOB for bytes; a driver rewrites them if its database needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeVar

from ...ports import Finding

__all__ = ["Dialect", "Driver", "Row", "Session"]

T = TypeVar("T")
Row = tuple[Any, ...]
Dialect = Literal["sqlite", "postgres"]
"""The kind of a database; migrations may differ between them."""


class Session(Protocol):
    """One open transaction."""

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run a statement and return all its rows."""
        ...

    def ask(self, *queries: tuple[str, Sequence[Any]]) -> list[list[Row]]:
        """Run these statements in order, each with its values, and return the rows of each, in one round trip."""
        ...

    def change(self, *queries: tuple[str, Sequence[Any]]) -> tuple[int, list[list[Row]]]:
        """Run these statements in order, in one round trip; return how many rows the last one changed.

        The last one returns no rows. The second value holds the rows of each of the others.
        """
        ...

    def each(self, statement: str, many: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each tuple of values."""
        ...

    def scrub(self) -> None:
        """From now on overwrite deleted data, if the database supports it."""
        ...

    def tables(self) -> set[str]:
        """Return the names of the tables. In a write, it also locks out other writes that call it until this one ends,
        because a migration calls it first.
        """
        ...

    def define(self, statement: str) -> None:
        """Run a statement of a migration, adapted to the table layout of this database, such as partitions."""
        ...


class Driver(Protocol):
    """Runs work in transactions. Every failure of the database is raised as StoreError."""

    dialect: Dialect
    place: str
    """The name of this database in errors: its path, or its URL without the password."""
    has_index: bool
    """Whether words are indexed for searches."""

    def read(self, work: Callable[[Session], T]) -> T:
        """Run `work` on one consistent state of the database and return its result. Any thread may call it.

        `work` may run again if the connection was lost.
        """
        ...

    def write(self, work: Callable[[Session], T]) -> T:
        """Run `work` in a transaction and return its result when its writes are durable; an exception rolls them back.

        `work` may run again after a rollback, so it must keep no state between runs.
        """
        ...

    def check(self) -> tuple[list[Finding], list[str]]:
        """Let the database check its own files, and find triggers and views that foveate did not make.

        Returns the faults, and notes about checks that could not run.
        """
        ...

    def vacuum(self) -> None:
        """Remove every deleted byte from the files, and shrink them. Others wait meanwhile."""
        ...

    def close(self) -> None:
        """Finish the accepted writes, then close. A second call does nothing."""
        ...
