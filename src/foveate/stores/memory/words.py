"""The word index of the memory store: the positions of each word, and the words of each message.

A search brings it up to date. Erased messages are not in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ...ports import SearchHit, StoredMessage
from ..words import Term, Words, best_hits, contains, terms, words_of

__all__ = ["MemoryWords"]


class MemoryWords:
    """The words of the messages that one branch shows."""

    def __init__(self) -> None:
        self._texts: list[Words] = []
        """By position - 1."""
        self._positions: defaultdict[str, list[int]] = defaultdict(list)
        """By word: the positions that contain it, in order."""

    def catch_up(self, rows: Sequence[StoredMessage]) -> None:
        """Add the new rows. `rows`: all rows of the branch."""
        for row in rows[len(self._texts) :]:
            text = words_of(row.body)
            self._texts.append(text)
            for word in {*text.words, *text.humps}:
                self._positions[word].append(row.position)

    def holds(self, position: int) -> bool:
        """Whether the index has any word of a message."""
        return position <= len(self._texts) and bool(self._texts[position - 1].words)

    def search(self, query: str, limit: int, last: int) -> list[SearchHit]:
        """Search positions 1..last: see `Searches.search`."""

        def holding(some: Sequence[Term], count: int) -> list[int]:
            words = {word for term in some for word in term}
            shared = set.intersection(*(set(self._positions.get(word, ())) for word in words))
            positions = [
                position
                for position in sorted(shared, reverse=True)
                if position <= last and all(contains(self._texts[position - 1], term) for term in some)
            ]
            return positions[:count]

        return best_hits(terms(query), limit, last, holding, set)
