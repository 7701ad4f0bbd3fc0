"""The protocols between the SQL store and a database.

A driver owns connections, transactions, locks and the word index. It knows no table. Statements are written once
(`statements.py`) with `?` for a value and BLOB for bytes; a driver rewrites them if its database needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from ...ports import Finding
from ..words import Term, Words

__all__ = ["Dialect", "Driver", "Row", "Section", "Session", "WordIndex"]

T = TypeVar("T")
Row = tuple[Any, ...]
Dialect = Literal["sqlite", "postgres"]
"""The kind of a database; migrations may differ between them."""


class Section(NamedTuple):
    """The part of a word index for one branch."""

    tenant: str
    root: int
    branch: int
    place: int
    """The number that the index gave to the branch (`WordIndex.place`)."""


class Session(Protocol):
    """One open transaction."""

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run a statement and return all its rows."""
        ...

    def ask(self, *queries: tuple[str, Sequence[Any]]) -> list[list[Row]]:
        """Run these statements in order, each with its values, and return the rows of each, in one round trip."""
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


class WordIndex(Protocol):
    """Finds messages by words with the means of a database. It works in the transaction of the given session."""

    def place(self, session: Session, tenant: str, root: int, branch: int) -> int:
        """Return a number, 1 or more, for a branch that is new to the index; the store keeps it with the branch's mark.

        In one file each branch has its own number. On several servers two branches may have the same number.
        """
        ...

    def add(self, session: Session, section: Section, rows: Sequence[tuple[int, Words]]) -> None:
        """Add messages of one branch, by position."""
        ...

    def remove(self, session: Session, rows: Sequence[tuple[Section, int, Words]]) -> None:
        """Remove messages, each with its section and its position, so that no search finds them."""
        ...

    def settle(self, session: Session) -> bool:
        """Do a part of the work that removes the words of removed messages from the index's pages; return whether there
        may be more to do. Words may stay if the message was cut into other words when it was added: `holding` finds
        them, and only `clear` removes them.
        """
        ...

    def clear(self, session: Session) -> None:
        """Remove everything."""
        ...

    def holding(self, session: Session, rows: Sequence[tuple[Section, int]]) -> set[tuple[Section, int]]:
        """Return those of these sections and positions that have a word in the index. May read the whole index."""
        ...

    def find(
        self, session: Session, section: Section, first: int, last: int, terms: Sequence[Term], limit: int
    ) -> list[int]:
        """Return the positions first..last of a branch that contain all these terms, newest first, at most `limit`.

        Called only for a section to which messages were added.
        """
        ...


class Driver(Protocol):
    """Runs work in transactions. Every failure of the database is raised as StoreError."""

    dialect: Dialect
    place: str
    """The name of this database in errors: its path, or its URL without the password."""
    words: WordIndex | None
    """Its word index; None if it has none."""

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
