"""The word index of a PostgreSQL database: a table with the words of messages, and a GIN index.

Text arrives cut into words, which become a tsvector as they are. In the index each word has a number of its branch as a
prefix, such as `9f3c21a7:rain`, so one index serves all conversations and a search reads nothing of another one. The
number is a hash; two branches with the same number cost some time, but find nothing of each other, because the key is
compared too. The text shows whether words are in a row, because positions in a tsvector end at 16,383. A migration
creates the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from ..sql.driver import Section, Session
from ..words import Term, Words

__all__ = ["PostgresWords"]

_PLACE_BYTES = 4
"""Bytes of the hash: few branches share one, and it is short enough for every word."""
_ROWS = 500
"""Messages per query."""
_KEY = "tenant = ? AND root = ? AND branch = ? AND position = ? AND place >= 0"
"""With a condition that searches lack, so that only these queries use the key (0006_words_by_tree.postgres.sql)."""

_ADD = """
    INSERT INTO said (tenant, root, branch, position, place, words) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_REMOVE = f"DELETE FROM said WHERE {_KEY}"
_HAS = f"SELECT 1 FROM said WHERE {_KEY}"
_CLEAR = "DELETE FROM said"
_BY_INDEX = "SET LOCAL enable_seqscan = off"
"""The planner underestimates the cost of the expression, and would compute it for every row."""
_VECTOR = """array_to_tsvector(
        string_to_array(to_hex(place) || ':' || replace(words, ' ', ' ' || to_hex(place) || ':'), ' '))"""
"""The expression of the index: the vector itself is stored nowhere else."""
_FIND = f"""
    SELECT position FROM said
    WHERE tenant = ? AND root = ? AND branch = ? AND {_VECTOR} @@ CAST(? AS tsquery) AND position BETWEEN ? AND ?"""
_IN_A_ROW = " AND strpos(' ' || words || ' ', ?) > 0"
_NEWEST = " ORDER BY position DESC LIMIT ?"


class PostgresWords:
    """The `WordIndex` of a PostgreSQL database."""

    def place(self, session: Session, tenant: str, root: int, branch: int) -> int:
        digest = blake2b(f"{root} {branch} {tenant}".encode(), digest_size=_PLACE_BYTES, person=b"foveate place 1")
        return int.from_bytes(digest.digest()) or 1

    def add(self, session: Session, section: Section, rows: Sequence[tuple[int, Words]]) -> None:
        *branch, place = section
        added = [(*branch, position, place, _row(text)) for position, text in rows if text.words]
        if added:
            session.each(_ADD, added)

    def remove(self, session: Session, rows: Sequence[tuple[Section, int, Words]]) -> None:
        session.each(_REMOVE, [(*section[:3], position) for section, position, _ in rows])

    def settle(self, session: Session) -> bool:
        return False  # A deleted row has no words.

    def clear(self, session: Session) -> None:
        session.rows(_CLEAR)

    def holding(self, session: Session, rows: Sequence[tuple[Section, int]]) -> set[tuple[Section, int]]:
        indexed: set[tuple[Section, int]] = set()
        for begin in range(0, len(rows), _ROWS):
            some = rows[begin : begin + _ROWS]
            answers = session.ask(*((_HAS, (*section[:3], position)) for section, position in some))
            indexed.update(row for row, answer in zip(some, answers, strict=True) if answer)
        return indexed

    def find(
        self, session: Session, section: Section, first: int, last: int, terms: Sequence[Term], limit: int
    ) -> list[int]:
        *branch, place = section
        words = dict.fromkeys(word for term in terms for word in term)
        query = " & ".join(f"'{place:x}:{word}'" for word in words)
        phrases = [f" {' '.join(term)} " for term in terms if len(term) > 1]
        statement = _FIND + _IN_A_ROW * len(phrases) + _NEWEST
        session.rows(_BY_INDEX)
        return [position for (position,) in session.rows(statement, (*branch, query, first, last, *phrases, limit))]


def _row(text: Words) -> str:
    """Return both rows of words, with an extra space between, so that no phrase spans them."""
    return " ".join([*text.words, "", *text.humps] if text.humps else text.words)
