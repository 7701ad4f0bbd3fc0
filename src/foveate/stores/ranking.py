"""Which of the messages that hold words of a query come first: one rule for all stores.

Those in which all of them stand in a row, the newest first; others that hold every word, likewise; then those that hold
some, by how much the words they hold weigh. A word weighs the more the fewer messages of the conversation hold it. It
knows no table and no text, only who holds what.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from math import log1p

from ..ports import Found
from .words import ROW_MAX, Term

__all__ = ["HITS_MAX", "Holding", "There", "best"]

HITS_MAX = 1000
"""Messages looked at, the newest, for each word of a query that no message holds whole. A word that so many hold tells
little; it bounds the work.
"""

Holding = Callable[[Sequence[Term], int], list[int]]
"""Positions of the messages that hold all these terms, the newest first, at most so many."""
There = Callable[[Sequence[int]], set[int]]
"""Those of these positions whose message still has a body. Asked of many at once, since it may have to wait for each
answer.
"""


def best(terms: Sequence[Term], limit: int, size: int, holding: Holding, there: There) -> list[Found]:
    """At most `limit` messages of a conversation of `size`, best first.

    A score is 1 where every term is held, else the share that the terms held have of the weight of all.
    """
    if not terms or limit <= 0:
        return []
    in_a_row = tuple(word for term in terms for word in term)
    first = _whole([in_a_row], limit, holding, there) if len(terms) > 1 and len(in_a_row) <= ROW_MAX else []
    others = _whole(terms, limit + len(first), holding, there) if len(first) < limit else []
    found = [Found(position, 1.0) for position in dict.fromkeys([*first, *others])][:limit]
    if len(found) < limit and len(terms) > 1:
        seen = {one.position for one in found}
        rest = (one for one in _some(terms, size, holding) if one.position not in seen)
        found += islice(_still(rest, limit, there), limit - len(found))
    return found


def _whole(terms: Sequence[Term], limit: int, holding: Holding, there: There) -> list[int]:
    asked = limit
    while True:
        positions = holding(terms, asked)
        here = there(positions)
        if len(here) >= limit or len(positions) < asked:
            return [position for position in positions if position in here][:limit]
        asked *= 4  # Among the newest were erased ones.


def _still(rest: Iterable[Found], most: int, there: There) -> Iterator[Found]:
    """Those that still have a body, asked for as many at a time as may be wanted."""
    found = iter(rest)
    while some := list(islice(found, most)):
        here = there([one.position for one in some])
        yield from (one for one in some if one.position in here)


def _some(terms: Sequence[Term], size: int, holding: Holding) -> Iterator[Found]:
    """Those that hold at least a part of the terms, best first."""
    held: defaultdict[int, float] = defaultdict(float)
    total = 0.0
    for term in terms:
        positions = holding([term], HITS_MAX)
        weight = log1p(size / (1 + len(positions)))
        total += weight
        for position in positions:
            held[position] += weight
    for position, weight in sorted(held.items(), key=lambda item: (item[1], item[0]), reverse=True):
        yield Found(position, weight / total)
