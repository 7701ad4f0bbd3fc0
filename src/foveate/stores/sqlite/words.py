"""The index of words in a SQLite file: a table of its full-text module, FTS5.

The table keeps no text ("contentless"), only which words stand where. It is made when something is first put into it,
since not every SQLite has the module. A row's number is the place of its branch and the position of its message, so
that a search reads a range of rows and nothing of another conversation. Words come cut already; the module's tokenizer
has nothing left to cut, and a query holds nothing but quoted words.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..sql import statements as sql
from ..sql.driver import Section, Session
from ..words import Said, Term

__all__ = ["SqliteWords"]

_COUNTER = "", 0
"""The tree, of no conversation, whose branches number the places."""
_POSITIONS = 2**28
"""Positions that a place has room for. There are 2**35 places."""

_HAS_MODULE = "SELECT 1 FROM pragma_module_list WHERE name = 'fts5'"
_MAKE = "CREATE VIRTUAL TABLE said USING fts5(words, humps, content='', columnsize=0, tokenize='ascii')"
_SET = "INSERT INTO said (said, rank) VALUES (?, ?)"
"""A setting of the table, which remembers it, or an order to it."""
_SETTINGS = (("automerge", 0), ("crisismerge", 64))
"""What is added piece by piece has to be merged. Left to itself the module merges much at once, and some writer waits;
so a little is merged with every piece.
"""
_MERGED = 16
"""Pages merged with each piece, and as many again for each _MERGED_BYTES of it: enough to keep up."""
_MERGED_BYTES = 32_000
_ADD = "INSERT INTO said (rowid, words, humps) VALUES (?, ?, ?)"
_REMOVE = "INSERT INTO said (said, rowid, words, humps) VALUES ('delete', ?, ?, ?)"
_SETTLED = 256
"""Pages merged by one step: about ten milliseconds. As a number below 0, so that pieces of any size become one."""
_CHANGES = "SELECT total_changes()"
_CLEAR = "INSERT INTO said (said) VALUES ('delete-all')"
_LOOK = "CREATE VIRTUAL TABLE temp.held USING fts5vocab(main, said, instance)"
_HELD = "SELECT DISTINCT doc FROM temp.held"
_LOOK_AWAY = "DROP TABLE temp.held"
_FIND = "SELECT rowid FROM said WHERE said MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?"


class SqliteWords:
    """The WordIndex of a SQLite file."""

    def is_possible(self, session: Session) -> bool:
        return bool(session.rows(_HAS_MODULE))

    def place(self, session: Session, tenant: str, root: int, branch: int) -> int:
        return int(session.rows(sql.NEW_BRANCH, _COUNTER)[0][0])

    def add(self, session: Session, section: Section, rows: Sequence[tuple[int, Said]]) -> None:
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

    def remove(self, session: Session, rows: Sequence[tuple[Section, int, Said]]) -> None:
        gone = [
            (section.place * _POSITIONS + position, " ".join(text.words), " ".join(text.humps))
            for section, position, text in rows
            if text.words and position < _POSITIONS
        ]
        session.each(_REMOVE, gone)

    def settle(self, session: Session) -> bool:
        """What is taken out is only marked as such until all pieces of the index are merged into one."""
        if "said" not in session.tables():
            return False
        before = session.rows(_CHANGES)[0][0]
        session.rows(_SET, ("merge", -_SETTLED))
        return bool(session.rows(_CHANGES)[0][0] - before >= 2)  # One is the order itself.

    def clear(self, session: Session) -> None:
        session.rows(_CLEAR)

    def holding(self, session: Session, rows: Sequence[tuple[Section, int]]) -> set[tuple[Section, int]]:
        if "said" not in session.tables():
            return set()
        wanted = {section.place * _POSITIONS + position: (section, position) for section, position in rows}
        reading = bool(session.rows("PRAGMA query_only")[0][0])
        if reading:  # It keeps from making even a table that is only a way to look.
            session.rows("PRAGMA query_only = 0")
        session.rows(_LOOK)
        found = {rowid for (rowid,) in session.rows(_HELD)}
        session.rows(_LOOK_AWAY)
        if reading:
            session.rows("PRAGMA query_only = 1")
        return {wanted[rowid] for rowid in found if rowid in wanted}

    def find(
        self, session: Session, section: Section, first: int, last: int, terms: Sequence[Term], limit: int
    ) -> list[int]:
        match = " AND ".join(f'"{" ".join(term)}"' for term in terms)
        begin = section.place * _POSITIONS
        found = session.rows(_FIND, (match, begin + first, begin + min(last, _POSITIONS - 1), limit))
        return [rowid - begin for (rowid,) in found]
