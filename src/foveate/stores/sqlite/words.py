"""The word index of a SQLite file: a table of its full-text module, FTS5.

The table stores no text ("contentless"), only the positions of words. It is created at the first use, because not every
SQLite has the module. The number of a row combines the place of its branch and the position of its message, so a search
reads a range of rows and nothing of another conversation. Text arrives cut into words, and a query is quoted words.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..sql import statements as sql
from ..sql.driver import Section, Session
from ..words import Term, Words

__all__ = ["SqliteWords"]

_COUNTER = "", 0
"""The tree without conversations whose branches number the places."""
_POSITIONS = 2**28
"""Positions per place. There are 2**35 places."""

_HAS_MODULE = "SELECT 1 FROM pragma_module_list WHERE name = 'fts5'"
_MAKE = "CREATE VIRTUAL TABLE said USING fts5(words, humps, content='', columnsize=0, tokenize='ascii')"
_SET = "INSERT INTO said (said, rank) VALUES (?, ?)"
"""A setting of the table, which it remembers, or a command."""
_SETTINGS = (("automerge", 0), ("crisismerge", 64))
"""Added pieces must be merged. By default the module merges much at once, and some writer waits; here every addition
merges a little.
"""
_MERGED = 16
"""Pages merged at each addition, and as many more for each _MERGED_BYTES of it: enough to keep up."""
_MERGED_BYTES = 32_000
_ADD = "INSERT INTO said (rowid, words, humps) VALUES (?, ?, ?)"
_REMOVE = "INSERT INTO said (said, rowid, words, humps) VALUES ('delete', ?, ?, ?)"
_SETTLED = 256
"""Pages merged by one step: about ten milliseconds. Passed as a negative number, it merges pieces of any size."""
_CHANGES = "SELECT total_changes()"
_CLEAR = "INSERT INTO said (said) VALUES ('delete-all')"
_VOCABULARY = "CREATE VIRTUAL TABLE temp.held USING fts5vocab(main, said, instance)"
_INDEXED_ROWS = "SELECT DISTINCT doc FROM temp.held"
_DROP_VOCABULARY = "DROP TABLE temp.held"
_FIND = "SELECT rowid FROM said WHERE said MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?"


class SqliteWords:
    """The `WordIndex` of a SQLite file."""

    def is_possible(self, session: Session) -> bool:
        return bool(session.rows(_HAS_MODULE))

    def place(self, session: Session, tenant: str, root: int, branch: int) -> int:
        return int(session.rows(sql.NEW_BRANCH, _COUNTER)[0][0])

    def add(self, session: Session, section: Section, rows: Sequence[tuple[int, Words]]) -> None:
        if "said" not in session.tables():
            session.rows(_MAKE)
            session.each(_SET, _SETTINGS)
        added = [
            (section.place * _POSITIONS + position, " ".join(text.words), " ".join(text.humps))
            for position, text in rows
            if text.words and position < _POSITIONS
        ]
        session.each(_ADD, added)
        size = sum(len(words) + len(humps) for _, words, humps in added)
        session.rows(_SET, ("merge", _MERGED + _MERGED * size // _MERGED_BYTES))

    def remove(self, session: Session, rows: Sequence[tuple[Section, int, Words]]) -> None:
        removed = [
            (section.place * _POSITIONS + position, " ".join(text.words), " ".join(text.humps))
            for section, position, text in rows
            if text.words and position < _POSITIONS
        ]
        session.each(_REMOVE, removed)

    def settle(self, session: Session) -> bool:
        """Merge pieces: removed words are only marked until all pieces are merged into one."""
        if "said" not in session.tables():
            return False
        before = session.rows(_CHANGES)[0][0]
        session.rows(_SET, ("merge", -_SETTLED))
        return bool(session.rows(_CHANGES)[0][0] - before >= 2)  # One is the command itself.

    def clear(self, session: Session) -> None:
        session.rows(_CLEAR)

    def holding(self, session: Session, rows: Sequence[tuple[Section, int]]) -> set[tuple[Section, int]]:
        if "said" not in session.tables():
            return set()
        wanted = {section.place * _POSITIONS + position: (section, position) for section, position in rows}
        reading = bool(session.rows("PRAGMA query_only")[0][0])
        if reading:  # It forbids creating even this temporary table.
            session.rows("PRAGMA query_only = 0")
        session.rows(_VOCABULARY)
        indexed = {rowid for (rowid,) in session.rows(_INDEXED_ROWS)}
        session.rows(_DROP_VOCABULARY)
        if reading:
            session.rows("PRAGMA query_only = 1")
        return {wanted[rowid] for rowid in indexed if rowid in wanted}

    def find(
        self, session: Session, section: Section, first: int, last: int, terms: Sequence[Term], limit: int
    ) -> list[int]:
        match = " AND ".join(f'"{" ".join(term)}"' for term in terms)
        begin = section.place * _POSITIONS
        rows = session.rows(_FIND, (match, begin + first, begin + min(last, _POSITIONS - 1), limit))
        return [rowid - begin for (rowid,) in rows]
