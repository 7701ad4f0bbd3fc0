"""What the SQL store asks of a database: two small protocols.

A driver owns connections, transactions, locking and the words that differ between databases. It knows no table.
Statements are written once (`statements.py`) with `?` for a value and BLOB for bytes; a driver for a database with
other habits rewrites them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from ...ports import Finding
from ..words import Said, Term

__all__ = ["Dialect", "Driver", "Row", "Section", "Session", "WordIndex"]

T = TypeVar("T")
Row = tuple[Any, ...]
Dialect = Literal["sqlite", "postgres"]
"""Which of the databases a driver is for, where a migration differs between them."""


class Section(NamedTuple):
    """Where an index of words keeps those of one branch."""

    tenant: str
    root: int
    branch: int
    place: int
    """A number that the index gave the branch (`WordIndex.place`), and that is kept for it."""


class Session(Protocol):
    """One open transaction."""

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run a statement and fetch all it returns."""
        ...

    def ask(self, *asked: tuple[str, Sequence[Any]]) -> list[list[Row]]:
        """Run these statements, each with its values, one after the other; what each returns. Waits once for all of
        them, where there is a server to wait for.
        """
        ...

    def each(self, statement: str, many: Sequence[Sequence[Any]]) -> None:
        """Run a statement once for each tuple of values."""
        ...

    def scrub(self) -> None:
        """From here on overwrite what is deleted, where the database would only let go of it and can do so."""
        ...

    def tables(self) -> set[str]:
        """The names of the tables there are. Asked in a write, no other write that asks it goes on until this one ends:
        who makes tables looks first.
        """
        ...

    def define(self, statement: str) -> None:
        """Run a statement of a migration, with whatever else it takes to lay a table out as this database's are."""
        ...


class WordIndex(Protocol):
    """Finds messages by words, in a database's own way. Works in the transaction of the session it is handed."""

    def place(self, session: Session, tenant: str, root: int, branch: int) -> int:
        """A number, 1 or more, for a branch that is new to the index; it is kept with how far the branch is indexed.

        Where all branches lie in one file it is the branch's own. Where they lie on several servers nothing can count
        them, so two may have the same.
        """
        ...

    def add(self, session: Session, section: Section, rows: Sequence[tuple[int, Said]]) -> None:
        """Take in messages of one branch, by position."""
        ...

    def remove(self, session: Session, rows: Sequence[tuple[Section, int, Said]]) -> None:
        """Take out messages that were added, each with its section and its position: no search finds them any more."""
        ...

    def settle(self, session: Session) -> bool:
        """Do a little of what it takes until no word of what was taken out is left in the index's own pages. Whether
        there may be more to do. Something may be left of a message all the same, which `holding` tells, because it was
        cut into other words then: only `clear` gets that out.
        """
        ...

    def clear(self, session: Session) -> None:
        """Take out everything."""
        ...

    def holding(self, session: Session, rows: Sequence[tuple[Section, int]]) -> set[tuple[Section, int]]:
        """Those of these sections and positions of which any word is in the index. It may read all of it."""
        ...

    def find(
        self, session: Session, section: Section, first: int, last: int, terms: Sequence[Term], limit: int
    ) -> list[int]:
        """The positions first..last of a branch that hold all these terms, the newest first, at most `limit`.
        Only asked where something was added to the section.
        """
        ...


class Driver(Protocol):
    """Runs work in transactions. Every failure of the database comes out as StoreError."""

    dialect: Dialect
    place: str
    """What to call this database in an error: its path or its URL without the password."""
    words: WordIndex | None
    """Its index of words; None where it can have none, or is to have none."""

    def read(self, work: Callable[[Session], T]) -> T:
        """What `work` returns, run on one consistent state of the database. Any thread may call it.

        It may be run a second time, where the connection to a database was lost.
        """
        ...

    def write(self, work: Callable[[Session], T]) -> T:
        """What `work` returns, once all it wrote is durable. Whatever it raises undoes what it wrote.

        It may be run a second time after its first run was undone, so it keeps nothing between runs.
        """
        ...

    def check(self) -> tuple[list[Finding], list[str]]:
        """Let the database check its own files, and find triggers and views that foveate did not make.

        Returns the faults, and notes about checks that could not run.
        """
        ...

    def vacuum(self) -> None:
        """Leave no byte of what was deleted in the files, and give back their room. Others wait while it is done."""
        ...

    def close(self) -> None:
        """Finish what was accepted, then let go. Calling it again does nothing."""
        ...
