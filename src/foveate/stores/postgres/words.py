"""The index of words in a PostgreSQL database: a table of what messages say, and a GIN index of the words in it.

Words come cut already, so no configuration of PostgreSQL's own search cuts them again: they are turned into a tsvector
as they are. Each carries the place of its branch before it, so that one index holds all conversations and a search
reads nothing of another one: `7:rain`. Whether words stand in a row is seen by looking into the text, because the
positions in a tsvector end at 16,383. The table is made when something is first put into it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..sql.driver import Session
from ..words import Said, Term

__all__ = ["PostgresWords"]

_MAKE = (
    """
    CREATE TABLE said (
        place BIGINT NOT NULL, position BIGINT NOT NULL, words TEXT NOT NULL, PRIMARY KEY (place, position)
    )""",
    # What is new waits in a list until it is merged, which halves the work; a search reads all of that list, so it is
    # kept an eighth of what the server would let it grow to (in kB).
    """
    CREATE INDEX said_words ON said USING gin (array_to_tsvector(string_to_array(words, ' ')))
    WITH (fastupdate = on, gin_pending_list_limit = 512)""",
)
_IS_THERE = "SELECT to_regclass('said') IS NOT NULL"
_ADD = "INSERT INTO said (place, position, words) VALUES (?, ?, ?) ON CONFLICT (place, position) DO NOTHING"
_REMOVE = "DELETE FROM said WHERE place = ? AND position = ?"
_HAS = "SELECT 1 FROM said WHERE place = ? AND position = ?"
_BY_INDEX = "SET LOCAL enable_seqscan = off"
"""The planner takes cutting a text into words for cheap, and would do it with every row rather than read the index of
words. For the same reason the key is kept out of it (`position + 0`).
"""
_FIND = """
    SELECT position FROM said WHERE array_to_tsvector(string_to_array(words, ' ')) @@ CAST(? AS tsquery)
    AND position + 0 BETWEEN ? AND ?"""
_IN_A_ROW = " AND strpos(' ' || words || ' ', ?) > 0"
_NEWEST = " ORDER BY position DESC LIMIT ?"


class PostgresWords:
    """The WordIndex of a PostgreSQL database."""

    def __init__(self) -> None:
        self._is_made = False

    def add(self, session: Session, place: int, rows: Sequence[tuple[int, Said]]) -> None:
        if not self._is_made:
            self._is_made = bool(session.rows(_IS_THERE)[0][0])
            if not self._is_made and "said" not in session.tables():
                for statement in _MAKE:
                    session.rows(statement)
        added = [(place, position, _row(place, text)) for position, text in rows if text.words]
        if added:
            session.each(_ADD, added)

    def remove(self, session: Session, rows: Sequence[tuple[int, int, Said]]) -> bool:
        session.each(_REMOVE, [(place, position) for place, position, _ in rows])
        return True

    def clear(self, session: Session) -> None:
        session.rows("DELETE FROM said")

    def holding(self, session: Session, rows: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
        if not session.rows(_IS_THERE)[0][0]:
            return set()
        return {(place, position) for place, position in rows if session.rows(_HAS, (place, position))}

    def find(self, session: Session, place: int, first: int, last: int, terms: Sequence[Term], limit: int) -> list[int]:
        words = dict.fromkeys(word for term in terms for word in term)
        query = " & ".join(f"'{place}:{word}'" for word in words)
        phrases = [_marked(place, term) for term in terms if len(term) > 1]
        statement = _FIND + _IN_A_ROW * len(phrases) + _NEWEST
        session.rows(_BY_INDEX)
        return [position for (position,) in session.rows(statement, (query, first, last, *phrases, limit))]


def _row(place: int, text: Said) -> str:
    """Both rows of words, with a mark between them so that nothing stands in a row across it."""
    return " ".join(f"{place}:{word}" for word in [*text.words, "", *text.humps])


def _marked(place: int, term: Term) -> str:
    return " " + " ".join(f"{place}:{word}" for word in term) + " "
