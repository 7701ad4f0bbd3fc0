"""The order of search results, for every store: best first.

A store answers three questions about one conversation (`Index`); everything else is worked out here, so two stores with
the same messages find the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from math import log1p
from typing import NamedTuple, Protocol

from ..ports import SearchHit
from .languages import ENGLISH, stem
from .matches import significant
from .spelling import CANDIDATES_MAX, beginnings, errors_max, similar
from .words import ROW_MAX, RowFinder, Term, terms

__all__ = ["HITS_MAX", "READ_MAX", "Index", "find"]

HITS_MAX = 1000
"""Messages per term, the newest, if no message contains the whole query. It bounds the work; a term that so many
contain is not significant.
"""

READ_MAX = 300
"""Messages read in vain for the phrases and names of a query, at most. It bounds the work."""

_ORDER_MAX = 40
"""Messages with every word, the newest, that are read to put those with the words in a row first."""

_PART_MIN = 3
"""Letters of a part of a name that is searched alone. A character of a script without spaces says nothing alone."""

_CORRECTED = 0.5
"""Weight of a word that was found with typing errors only, or as a part of a name, relative to one found as it is."""


class Index(Protocol):
    """The words of one conversation."""

    def positions(self, keys: Collection[str]) -> Mapping[str, Sequence[int]]:
        """Return for each key the positions of the messages that contain it, in order."""
        ...

    def keys_from(self, beginnings: Collection[str]) -> Iterable[str]:
        """Return the keys that begin with one of these letters. It may return some of other conversations."""
        ...

    def texts(self, positions: Sequence[int]) -> dict[int, str]:
        """Return the searched texts of messages, without those whose bodies are erased or unreadable."""
        ...


class _Found(NamedTuple):
    """The messages with one term."""

    positions: Sequence[int]
    """In order."""
    quality: float = 1.0
    """1, or less if a typing error was corrected or a name taken apart."""
    row: tuple[str, ...] = ()
    """Words that the text of a message must contain in a row; () if the keys prove it."""
    proven: frozenset[int] = frozenset()
    """Positions of messages that need not be read, because their keys prove it."""


def find(index: Index, query: str, size: int, limit: int) -> list[SearchHit]:
    """Return at most `limit` messages of a conversation with `size` messages, best first.

    Messages that contain all terms in a row come first, then others that contain every term, each newest first, then
    those that contain some, by weight. A term has the more weight the fewer messages contain it. Stop words only count
    if there are no other words. The score is 1 if every term is contained, else the weight of the contained terms as
    a share of the weight of all; a word that was found with a typing error, or as a part of a name that no message
    contains, has half of its weight.
    """
    asked = terms(query)
    if not asked or limit <= 0:
        return []
    return _Search(index, size).hits(asked, limit)


class _Search:
    """One search: everything read of the index stays until it ends."""

    def __init__(self, index: Index, size: int) -> None:
        self._index, self._size = index, size
        self._known: dict[str, Sequence[int]] = {}
        self._texts: dict[int, RowFinder | None] = {}
        """By position; None if the message has no text any more."""
        self._in_vain = 0
        """Messages that were read and lack a phrase."""

    def hits(self, asked: Sequence[Term], limit: int) -> list[SearchHit]:
        self._load([key for term in asked for keys in (*term.keys, (term.joined,)) for key in keys if key])
        found = [result for term in significant(asked) for result in self._find(term)]
        row = [word for term in asked for word in term.row]
        is_row = len(asked) > 1 and len(row) <= ROW_MAX
        shared = _shared([result.positions for result in found])
        every = self._newest(shared, found, max(limit, _ORDER_MAX if is_row else 0))
        first = [at for at in every[:_ORDER_MAX] if self._has_row(at, tuple(row))] if is_row else []
        best = list(dict.fromkeys([*first, *every]))[:limit]
        total = sum(map(self._weight, found)) or 1.0
        whole = sum(self._weight(result) * result.quality for result in found) / total
        hits = [SearchHit(position, whole) for position in best]
        if len(hits) < limit and len(found) > 1:
            hits += self._some(found, total, set(best), limit - len(hits))
        return hits

    def _find(self, term: Term) -> list[_Found]:
        """Return the messages with a term; for a name that no message contains whole, those with each of its parts."""
        if len(term.row) == 1:
            return [self._word(term.keys[0], term.row[0], is_exact=term.is_exact)]
        joined = frozenset(self._known.get(term.joined, ()))
        parts = _shared([self._any(keys) for keys in term.keys])
        whole = _Found(sorted(joined.union(parts)), 1.0, term.row, joined)
        if term.is_exact or self._newest(whole.positions, [whole], 1):
            return [whole]
        if term.joined and (corrected := self._corrected(term.joined)):
            return [_Found(corrected, _CORRECTED)]
        words = {word: keys for word, keys in zip(term.row, term.keys, strict=True) if len(word) >= _PART_MIN}
        apart = [self._word(keys, word, is_exact=False) for word, keys in words.items()]
        return [_Found(part.positions, _CORRECTED) for part in apart] or [_Found([])]

    def _word(self, keys: Sequence[str], word: str, *, is_exact: bool) -> _Found:
        positions = self._any(keys)
        if is_exact:  # A key is a stem: only the text shows the word itself.
            return _Found(positions, 1.0, (word,) if len(word) > 3 else ())
        if not positions and (corrected := self._corrected(word)):
            return _Found(corrected, _CORRECTED)
        return _Found(positions)

    def _corrected(self, word: str) -> Sequence[int]:
        """Return the messages with the words that may be meant by a word that no message contains."""
        for form in dict.fromkeys((word, stem(word, ENGLISH))):
            meant = similar(form, self._index.keys_from(beginnings(form))) if errors_max(form) else {}
            self._load(meant)
            here = {key: errors for key, errors in meant.items() if self._known[key]}
            if here:
                fewest = [key for key, errors in here.items() if errors == min(here.values())]
                fewest.sort(key=lambda key: (-len(self._known[key]), key))
                return self._any(fewest[:CANDIDATES_MAX])
        return []

    def _some(self, found: Sequence[_Found], total: float, known: set[int], limit: int) -> list[SearchHit]:
        """Return the best messages that contain at least one term."""
        weights: defaultdict[int, float] = defaultdict(float)
        for result in found:
            weight = self._weight(result) * result.quality
            for position in result.positions[-HITS_MAX:]:
                weights[position] += weight
        order = sorted(weights, key=lambda position: (weights[position], position), reverse=True)
        rest = iter([position for position in order if position not in known])
        hits: list[SearchHit] = []
        while len(hits) < limit and (some := list(islice(rest, 2 * limit))):
            scored = [
                (
                    sum(self._weight(result) * result.quality for result in found if self._contains(result, position)),
                    position,
                )
                for position in self._read(some)
            ]
            hits += [SearchHit(at, weight / total) for weight, at in sorted(scored, reverse=True) if weight]
        return hits[:limit]

    def _weight(self, found: _Found) -> float:
        return log1p(self._size / (1 + min(len(found.positions), HITS_MAX)))

    def _load(self, keys: Iterable[str]) -> None:
        if wanted := [key for key in dict.fromkeys(keys) if key not in self._known]:
            self._known.update(self._index.positions(wanted))

    def _any(self, keys: Sequence[str]) -> Sequence[int]:
        """Return the positions of messages with at least one of these keys, in order."""
        rows = [row for key in keys if (row := self._known[key])]
        return rows[0] if len(rows) == 1 else sorted(set().union(*rows))

    def _newest(self, positions: Sequence[int], found: Sequence[_Found], count: int) -> list[int]:
        """Return the newest of these positions, newest first, whose messages contain these terms: `count` at most."""
        newest: list[int] = []
        rest = iter(reversed(positions))
        while len(newest) < count and self._in_vain < READ_MAX and (some := list(islice(rest, max(count, 20)))):
            here = [at for at in self._read(some) if all(self._contains(result, at) for result in found)]
            newest += here
            self._in_vain += len(some) - len(here)
        return newest[:count]

    def _contains(self, found: _Found, position: int) -> bool:
        """Return whether a message that was read contains a term."""
        at = bisect_left(found.positions, position)
        if at == len(found.positions) or found.positions[at] != position:
            return False
        return not found.row or position in found.proven or self._has_row(position, found.row)

    def _has_row(self, position: int, row: tuple[str, ...]) -> bool:
        text = self._texts[position]
        return text is not None and text.has(row)

    def _read(self, positions: Sequence[int]) -> list[int]:
        """Read the texts of messages; return the positions of those that have one."""
        if missing := [position for position in positions if position not in self._texts]:
            texts = self._index.texts(missing)
            self._texts.update({at: RowFinder(texts[at]) if at in texts else None for at in missing})
        return [position for position in positions if self._texts[position]]


def _shared(rows: Sequence[Sequence[int]]) -> list[int]:
    """Return the positions that are in every one of these rows, in order."""
    fewest, *others = sorted(rows, key=len)
    shared = set(fewest)
    for row in others:
        if not shared:
            break
        shared.intersection_update(row)
    return sorted(shared)
