"""The index of words in a SQLite file: a table of its full-text module, FTS5.

The table keeps no text ("contentless"), only which words stand where. It is made when something is first put into it,
since not every SQLite has the module. A row's number is the place of its branch and the position of its message, so
that a search reads a range of rows and nothing of another conversation. Words come cut already; the module's tokenizer
has nothing left to cut, and a query holds nothing but quoted words.
"""

from __future__ import annotations

from collections.abc import Sequence

from .driver import Session
from .words import Said, Term

__all__ = ["SqliteWords"]

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
_FIND = "SELECT rowid FROM said WHERE said MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?"


class SqliteWords:
    """The WordIndex of a SQLite file."""

    def is_possible(self, session: Session) -> bool:
        return bool(session.rows(_HAS_MODULE))

    def add(self, session: Session, place: int, rows: Sequence[tuple[int, Said]]) -> None:
        if "said" not in session.tables():
            session.rows(_MAKE)
            session.each(_SET, _SETTINGS)
        added = [
            (place * _POSITIONS + position, " ".join(text.words), " ".join(text.humps))
            for position, text in rows
            if text.words and position < _POSITIONS
        ]
        session.each(_ADD, added)
        size = sum(len(words) + len(humps) for _, words, humps in added)
        session.rows(_SET, ("merge", _MERGED + _MERGED * size // _MERGED_BYTES))

    def find(self, session: Session, place: int, first: int, last: int, terms: Sequence[Term], limit: int) -> list[int]:
        match = " AND ".join(f'"{" ".join(term)}"' for term in terms)
        begin = place * _POSITIONS
        found = session.rows(_FIND, (match, begin + first, begin + min(last, _POSITIONS - 1), limit))
        return [rowid - begin for (rowid,) in found]
