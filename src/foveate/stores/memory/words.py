"""The index of words of the memory store: simple enough to be right by looking at it.

For each word the positions that hold it, and each message's words, to see whether some stand in a row. It is made and
brought up to date when somebody searches. Erased messages are not in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ...ports import Appended, Found
from ..ranking import best
from ..words import Said, Term, said, stands_in, terms

__all__ = ["MemoryWords"]


class MemoryWords:
    """The words of one branch's messages, of those it shares too."""

    def __init__(self) -> None:
        self._said: list[Said] = []
        """By position - 1."""
        self._holders: defaultdict[str, list[int]] = defaultdict(list)
        """A word to the positions that hold it, in order."""

    def catch_up(self, rows: Sequence[Appended]) -> None:
        """Take in the rows that are new. `rows`: all of the branch."""
        for row in rows[len(self._said) :]:
            text = said(row.body)
            self._said.append(text)
            for word in {*text.words, *text.humps}:
                self._holders[word].append(row.position)

    def holds(self, position: int) -> bool:
        """Whether it has any word of a message."""
        return position <= len(self._said) and bool(self._said[position - 1].words)

    def search(self, query: str, limit: int, last: int) -> list[Found]:
        """See `Store.search`; in positions 1..last."""

        def holding(asked: Sequence[Term], count: int) -> list[int]:
            words = {word for term in asked for word in term}
            shared = set.intersection(*(set(self._holders.get(word, ())) for word in words))
            found = [
                position
                for position in sorted(shared, reverse=True)
                if position <= last and all(stands_in(term, self._said[position - 1]) for term in asked)
            ]
            return found[:count]

        return best(terms(query), limit, last, holding, set)
