"""Typing errors: which words of an index are meant by a word that it does not contain.

One error in a word of 4 to 7 letters, two in a longer one: a letter too many, too few, another one, or two neighbours
swapped. The first letter is right, or swapped with the second: that holds for nine of ten errors, and keeps seven
eighths of an index unread.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["CANDIDATES_MAX", "beginnings", "distance", "errors_max", "similar"]

CANDIDATES_MAX = 8
"""Words that may be meant by one word of a query, at most: those with the fewest errors in the most messages."""


def errors_max(word: str) -> int:
    """Return how many errors a word may have: 0 if it is too short, or contains a digit."""
    if len(word) < 4 or not word.isalpha():
        return 0
    return 1 if len(word) < 8 else 2


def beginnings(word: str) -> tuple[str, ...]:
    """Return the first letters that a word may have."""
    return tuple(dict.fromkeys(word[:2]))


def similar(word: str, known: Iterable[str]) -> dict[str, int]:
    """Return the words among `known` that may be meant by `word`, each with its errors.

    A known word may end with its language (`verbindung/de`).
    """
    most = errors_max(word)
    meant: dict[str, int] = {}
    letters = set(word)
    low, high = len(word) - most, len(word) + most
    for key in known if most else ():
        plain = key.partition("/")[0] if "/" in key else key
        if low <= len(plain) <= high and len(letters.difference(plain)) <= most:
            errors = distance(word, plain, most)
            if errors <= most:
                meant[key] = errors
    return meant


def distance(first: str, second: str, most: int) -> int:
    """Return the number of errors between two words (optimal string alignment), or `most` + 1 if there are more."""
    if first == second:
        return 0
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, letter in enumerate(first, 1):
        older, before, row = before, row, [i]
        for j, sign in enumerate(second, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != sign))
            if i > 1 and j > 1 and letter == second[j - 2] and first[i - 2] == sign:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > most and min(before) > most:
            return most + 1
    return min(row[-1], most + 1)
