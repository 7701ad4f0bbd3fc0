"""The index of words in a PostgreSQL database: a table of what messages say, and a GIN index of the words in it.

Words come cut already, so no configuration of PostgreSQL's own search cuts them again: they are turned into a tsvector
as they are. In the index each carries a number of its branch before it, so that one index holds all conversations and a
search reads nothing of another one: `9f3c21a7:rain`. The number is a hash, which nothing has to count; two branches
that share one cost each other time and find nothing of each other, since the key is asked for too. Whether words stand
in a row is seen by looking into the text, because the positions in a tsvector end at 16,383. A migration makes the
table.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from ..sql.driver import Section, Session
from ..words import Term, Words

__all__ = ["PostgresWords"]

_PLACE_BYTES = 4
"""Of the hash: enough that few branches share one, and short enough to stand before every word."""
_ROWS = 500
"""Messages asked about at a time."""
_KEY = "tenant = ? AND root = ? AND branch = ? AND position = ? AND place >= 0"
"""With what a search leaves out, so that the key is open to this and not to that (0006_words_by_tree.postgres.sql)."""

_ADD = """
    INSERT INTO said (tenant, root, branch, position, place, words) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_REMOVE = f"DELETE FROM said WHERE {_KEY}"
_HAS = f"SELECT 1 FROM said WHERE {_KEY}"
_CLEAR = "DELETE FROM said"
_BY_INDEX = "SET LOCAL enable_seqscan = off"
"""The planner takes cutting a text into words for cheap, and would do it with every row there is."""
_VECTOR = """array_to_tsvector(
        string_to_array(to_hex(place) || ':' || replace(words, ' ', ' ' || to_hex(place) || ':'), ' '))"""
"""As the index has it: an expression of the text, so that the vector itself is stored nowhere else."""
_FIND = f"""
    SELECT position FROM said
    WHERE tenant = ? AND root = ? AND branch = ? AND {_VECTOR} @@ CAST(? AS tsquery) AND position BETWEEN ? AND ?"""
_IN_A_ROW = " AND strpos(' ' || words || ' ', ?) > 0"
_NEWEST = " ORDER BY position DESC LIMIT ?"


class PostgresWords:
    """The WordIndex of a PostgreSQL database."""

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
        return False  # A row that is deleted has no words.

    def clear(self, session: Session) -> None:
        session.rows(_CLEAR)

    def holding(self, session: Session, rows: Sequence[tuple[Section, int]]) -> set[tuple[Section, int]]:
        found: set[tuple[Section, int]] = set()
        for begin in range(0, len(rows), _ROWS):
            some = rows[begin : begin + _ROWS]
            held = session.ask(*((_HAS, (*section[:3], position)) for section, position in some))
            found.update(row for row, answer in zip(some, held, strict=True) if answer)
        return found

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
    """Both rows of words, apart by one more space so that nothing stands in a row across it."""
    return " ".join([*text.words, "", *text.humps] if text.humps else text.words)
