"""Alignment of two sequences of keys: the elements that both have, in the same order.

Equal beginnings and ends are matched first. Between them, the keys that each side has once are matched along their
longest common order (as `patience diff` does), and so on between these. The work grows with the length of the
sequences, also for long ones that have little in common.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence

__all__ = ["align"]


def align(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return pairs of indices of equal elements, ascending on both sides."""
    pairs: list[tuple[int, int]] = []
    open_ranges = [(0, len(old), 0, len(new))]
    while open_ranges:
        a, b, c, d = open_ranges.pop()
        while a < b and c < d and old[a] == new[c]:
            pairs.append((a, c))
            a, c = a + 1, c + 1
        while a < b and c < d and old[b - 1] == new[d - 1]:
            b, d = b - 1, d - 1
            pairs.append((b, d))
        if a == b or c == d:
            continue
        anchors = _anchors(old, new, a, b, c, d)
        for i, j in anchors:
            pairs.append((i, j))
            open_ranges.append((a, i, c, j))
            a, c = i + 1, j + 1
        if anchors:
            open_ranges.append((a, b, c, d))
    return sorted(pairs)


def _anchors(old: Sequence[Hashable], new: Sequence[Hashable], a: int, b: int, c: int, d: int) -> list[tuple[int, int]]:
    """Return pairs in the longest common order of the keys that occur once on both sides.

    Without such keys: of the first occurrences of the keys that both sides have.
    """
    counts_old, counts_new = Counter(old[a:b]), Counter(new[c:d])
    shared = counts_old.keys() & counts_new.keys()
    once = {key for key in shared if counts_old[key] == 1 and counts_new[key] == 1} or set(shared)
    places: dict[Hashable, int] = {}
    for j in range(d - 1, c - 1, -1):
        places[new[j]] = j
    pairs = []
    for i in range(a, b):
        if old[i] in once:
            once.discard(old[i])
            pairs.append((i, places[old[i]]))
    return _longest_order(pairs)


def _longest_order(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of these pairs, ascending in their first index, that ascends in the second."""
    ends: list[int] = []  # the smallest last index of an order of each length
    last: list[int] = []  # the pair with this index, by length
    before: list[int] = []
    for n, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        ends[length : length + 1] = [j]
        last[length : length + 1] = [n]
        before.append(last[length - 1] if length else -1)
    order: list[tuple[int, int]] = []
    n = last[-1] if last else -1
    while n >= 0:
        order.append(pairs[n])
        n = before[n]
    return order[::-1]
