"""Facts about views that are worked out entry by entry, and kept while views grow at their end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from .view import Entry, View

__all__ = ["Growing", "Marks"]

S = TypeVar("S")

_STEP = 8
"""Entries between two marks."""
_MARKS_MAX = 6
"""Marks of one fact that are kept. Most edits change one of the newest few dozen entries."""

_FACTS_MAX = 32
"""Facts that are kept for a conversation."""


class Marks:
    """States at places of one conversation's views, to which `Growing` returns. All its views share them."""

    __slots__ = ("kept",)

    def __init__(self) -> None:
        self.kept: dict[object, tuple[tuple[tuple[Entry, ...], Any], ...]] = {}
        """For each fact: the beginnings of views, shortest first, and the states after them."""


class Growing(Generic[S]):
    """A fact about a view, such as the sum of its tokens, as a state to which entries are added in order.

    The state of the next view is made from the part that both views share: after an append, only new entries are
    added; after an edit, those from the edited one on.
    """

    def __init__(self, begin: Callable[[], S], add: Callable[[S, Entry], None], copy: Callable[[S], S]) -> None:
        """`begin` returns the state before the first entry, `add` adds one entry to a state, and `copy` returns an
        independent copy of a state."""
        self._begin, self._add, self._copy = begin, add, copy

    def of(self, view: View) -> S:
        """Return the state after all entries of a view. The caller may change it."""
        entries, kept = view.entries, view.marks.kept
        # A mark stays if it is a beginning of the view, or the view, of an earlier call, one of it.
        marks = [mark for mark in kept.get(self, ()) if mark[0][: len(entries)] == entries[: len(mark[0])]]
        before = [mark for mark in marks if len(mark[0]) <= len(entries)]
        state, start = (self._copy(before[-1][1]), len(before[-1][0])) if before else (self._begin(), 0)
        is_longest = len(before) == len(marks)
        oldest = len(entries) - _STEP * _MARKS_MAX  # Older places would not be kept.
        for index in range(start, len(entries)):
            if is_longest and index > max(start, oldest) and index % _STEP == 0:
                marks.append((entries[:index], self._copy(state)))
            self._add(state, entries[index])
        if len(kept) > _FACTS_MAX:
            kept.clear()
        kept[self] = tuple(marks[-_MARKS_MAX:])
        return state
