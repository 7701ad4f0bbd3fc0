"""Facts about views that are worked out entry by entry, and kept while views grow at their end."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import msgspec

from .scalars import plain_scalar

if TYPE_CHECKING:
    from .view import Entry, View

__all__ = ["STEP", "Growing", "Marks", "SavedFact", "Selected", "mark_places", "notes", "selecting", "shared_length"]

S = TypeVar("S")

STEP = 16
"""Entries between the two newest marks of a fact."""
_SPREAD = 2
"""How much farther apart older marks are. An edit costs the entries after it, and at most this many times their
number before it.
"""
_MARKED_MAX = 20_000
"""Entries of the longest view that has marks. Each mark takes memory in proportion to its place."""
_FACTS_MAX = 32
"""Facts that are kept for a conversation."""

_encode = msgspec.msgpack.Encoder(enc_hook=plain_scalar).encode


class SavedFact(msgspec.Struct, frozen=True, array_like=True):
    """A fact about the beginning of a saved view."""

    size: int
    """Number of entries of this beginning."""
    state: msgspec.Raw
    """The state after these entries."""


class _Mark(NamedTuple):
    size: int
    """Number of entries before the mark."""
    state: Any
    """The state after these entries."""


class _Known:
    """One fact: its state after the first `size` entries of the view, and marks before them."""

    __slots__ = ("beginning", "marks", "places", "size", "state")

    def __init__(self) -> None:
        self.marks: list[_Mark] = []
        self.places: Set[int] = frozenset()
        """The places that the marks had when they were chosen last."""
        self.size: int = -1
        self.state: Any = None
        self.beginning: tuple[tuple[Entry, ...], Any] | None = None
        """The state for the beginning of the view that was asked about last."""

    def keep(self, size: int) -> None:
        """Forget what follows the first `size` entries."""
        self.marks = [mark for mark in self.marks if mark.size <= size]
        self.beginning = None
        if self.size > size:
            self.size, self.state = -1, None


class Marks:
    """The facts that `Growing` keeps about the views of one conversation. All its views share them."""

    __slots__ = ("_beginning", "_known", "_left", "_past", "_saved", "entries", "places")

    def __init__(self) -> None:
        self.entries: tuple[Entry, ...] = ()
        """The entries of the newest view."""
        self.places: Set[int] = frozenset()
        """The places of marks in it."""
        self._beginning: tuple[Entry, ...] | None = None
        self._known: dict[Growing[Any], _Known] = {}
        self._saved: dict[str, SavedFact] = {}  # Facts about these entries that were not asked for yet.
        self._left: dict[str, tuple[int, Callable[[], object]]] = {}  # By name: a size, and how to save the first ones.
        self._past: Marks | None = None

    def __reduce__(self) -> tuple[type[Marks], tuple[()]]:
        """Pickle and copy a view without the facts, which can be worked out again."""
        return Marks, ()

    def saved(self, entries: tuple[Entry, ...]) -> dict[str, SavedFact]:
        """Return the facts with a name about the beginning of a view, to be saved.

        Each is the state at a mark some entries before the end, since edits mostly change newer entries. Values that
        policies left are among them, as they are.
        """
        facts = {}
        size = shared_length(self.entries, entries)
        for fact, known in self._known.items():
            marks = [mark for mark in known.marks if mark.size <= size - STEP]
            if fact.name and marks:
                facts[fact.name] = SavedFact(marks[-1].size, msgspec.Raw(_encode(marks[-1].state)))
        for name, (end, state) in self._left.items():
            if end <= size:
                with suppress(UnicodeEncodeError):  # Half of a surrogate pair.
                    facts[name] = SavedFact(end, msgspec.Raw(_encode(state())))
        return facts

    def restore(self, facts: Mapping[str, SavedFact], entries: tuple[Entry, ...]) -> None:
        """Continue with the facts that were saved about the beginning of a view with these entries."""
        self.show(entries)
        self._saved = dict(facts)

    def leave(self, name: str, entries: tuple[Entry, ...], size: int, state: Callable[[], object]) -> None:
        """Let a saved view keep what a policy worked out about the first `size` entries of the newest view.

        `state`: returns it, in the form that `take` returns. It is dropped with an edit of one of these entries.
        """
        if entries is self.entries:
            self._left[name] = size, state

    def take(self, name: str, entries: tuple[Entry, ...], kind: type[S]) -> S | None:
        """Return what a policy left under this name before the view was saved, once; None if it does not fit.

        It is about the beginning of `self.entries`. `entries`: those of the view that the policy sees.
        """
        self.show(entries)
        saved = self._saved.pop(name, None)
        if saved is not None:
            with suppress(msgspec.MsgspecError):  # Another shape, of code that is developed.
                return msgspec.msgpack.decode(saved.state, type=kind)
        return None

    def past(self, size: int) -> Marks:
        """Return the facts about views of earlier calls, for a policy that looks back. They have other entries.

        Those of a huge view are not kept: they would take much memory. `size`: number of its entries.
        """
        if size > _MARKED_MAX:
            return Marks()
        if self._past is None:
            self._past = Marks()
        return self._past

    def release_huge(self) -> None:
        """Forget the facts about a huge view, before a task that takes memory itself."""
        if len(self.entries) > _MARKED_MAX:
            self._known, self._left, self._past = {}, {}, None

    def known(self, fact: Growing[Any]) -> _Known:
        """Return what is known of a fact."""
        known = self._known.get(fact)
        if known is None:
            if len(self._known) >= _FACTS_MAX:
                self._known.clear()
            known = self._known[fact] = _Known()
            saved = self._saved.pop(fact.name, None)
            if saved is not None:
                with suppress(msgspec.MsgspecError):  # Another shape, of code that is developed.
                    known.marks = [_Mark(saved.size, msgspec.msgpack.decode(saved.state, type=fact.kind))]
        return known

    def show(self, entries: tuple[Entry, ...]) -> bool:
        """Move on to a view with these entries; return False if they are only the beginning of those before.

        Views are compared once, not for each fact, and at the cost of a comparison of pointers.
        """
        before = self.entries
        if entries is before:
            return True
        if entries is self._beginning:
            return False
        if len(entries) < len(before) and before[: len(entries)] == entries:
            self._beginning = entries
            return False
        if entries[: len(before)] != before:
            same = shared_length(before, entries)
            for known in self._known.values():
                known.keep(same)
            self._saved = {name: saved for name, saved in self._saved.items() if saved.size <= same}
            self._left = {name: left for name, left in self._left.items() if left[0] <= same}
        self.entries, self.places, self._beginning = entries, mark_places(len(entries)), None
        return True


class Growing(Generic[S]):
    """A fact about a view, such as the sum of its tokens, as a state to which entries are added in order.

    The state moves on with the views of a conversation: after an append, only new entries are added; after an edit,
    those from a mark before it on.
    """

    def __init__(
        self,
        begin: Callable[[], S],
        add: Callable[[S, Entry], object],
        copy: Callable[[S], S],
        *,
        name: str = "",
        kind: Any = None,
    ) -> None:
        """`begin` returns the state before the first entry, `add` adds one entry to a state, and `copy` returns an
        independent copy of a state.

        With a `name`, a saved view keeps the state, so that a conversation that opens with it does not add all entries
        again. The state must be of a type `kind` that `msgspec` decodes, and name entries by their indices. The name
        must contain the settings on which the state depends.
        """
        self._begin, self._add, self._copy = begin, add, copy
        self.name: str = name
        """The name under which a saved view keeps the state; "" if it does not."""
        self.kind: Any = kind
        """The type of the state in a saved view."""

    def of(self, view: View) -> S:
        """Return the state after all entries of a view, until the next call. The caller must not change it."""
        return self.after(view.entries, view.marks)

    def after(self, entries: tuple[Entry, ...], marks: Marks) -> S:
        """Return the same for the entries of a view, and the marks of its conversation."""
        is_newest = entries is marks.entries or marks.show(entries)
        known = marks.known(self)
        if not is_newest:
            if known.beginning is None or known.beginning[0] is not entries:
                known.beginning = entries, self._after_beginning(known, entries)
            first: S = known.beginning[1]
            return first
        if known.size < len(entries):
            self._grow(known, entries, marks.places)
        state: S = known.state
        return state

    def _grow(self, known: _Known, entries: tuple[Entry, ...], places: Set[int]) -> None:
        size, state = known.size, known.state
        if size < 0:
            size, state = self._nearest(known, len(entries))
        known.size, known.state = -1, None  # If an entry cannot be added, the state is of no use.
        if places is not known.places:  # They move on after several entries.
            known.places = places
            known.marks = [mark for mark in known.marks if mark.size in places]
        marked = known.marks[-1].size if known.marks else 0
        for index in range(size, len(entries)):
            if index > marked and index in places:
                known.marks.append(_Mark(index, self._copy(state)))
            self._add(state, entries[index])
        known.size, known.state = len(entries), state

    def _after_beginning(self, known: _Known, entries: tuple[Entry, ...]) -> S:
        size, state = self._nearest(known, len(entries))
        for entry in entries[size:]:
            self._add(state, entry)
        return state

    def _nearest(self, known: _Known, size: int) -> tuple[int, S]:
        """Return a new state after at most `size` entries, and their number."""
        nearest = max((mark for mark in known.marks if mark.size <= size), default=None, key=lambda mark: mark.size)
        if nearest is None or nearest.size < known.size <= size:
            return (known.size, self._copy(known.state)) if 0 < known.size <= size else (0, self._begin())
        return nearest.size, self._copy(nearest.state)


def notes() -> Growing[dict[Any, Any]]:
    """Return a fact for what a policy notes about a view and those that continue it, as a dict that it may change.

    An edit of the view empties it.
    """
    return Growing(dict, lambda notes, entry: None, lambda notes: {})


class Selected(msgspec.Struct):
    """The entries of a view that fulfil a condition. The caller must not change it."""

    indices: list[int] = []
    """Their indices in the view, in order."""
    size: int = 0
    """Number of entries of the view."""

    def before(self, index: int) -> list[int]:
        """Return those before this index in the view."""
        return self.indices[: bisect_left(self.indices, index)]

    def copy(self) -> Selected:
        """Return an independent copy."""
        return Selected(self.indices.copy(), self.size)

    def add(self, *, is_selected: bool) -> None:
        """Add an entry of the view."""
        if is_selected:
            self.indices.append(self.size)
        self.size += 1


def selecting(condition: Callable[[Entry], bool], name: str = "") -> Growing[Selected]:
    """Return the fact which entries of a view fulfil a condition.

    A policy then looks at these alone in each turn. The condition must depend on nothing but the entry: neither on the
    turn nor on other entries. `name`: as for `Growing`.
    """

    def add(known: Selected, entry: Entry) -> None:
        known.add(is_selected=condition(entry))

    return Growing(Selected, add, Selected.copy, name=name, kind=Selected)


def mark_places(size: int) -> Set[int]:
    """Return the places of marks in a view of so many entries: the newest two of each distance, none in a huge view.

    They are the same set until the view has `STEP` entries more, or less.
    """
    return _mark_places((size - 1) // STEP * STEP + 1)


@lru_cache(256)
def _mark_places(size: int) -> Set[int]:
    places: set[int] = set()
    step = STEP
    while step < size <= _MARKED_MAX:
        newest = (size - 1) // step * step
        places |= {newest, newest - step}
        step *= _SPREAD
    return places


def shared_length(first: Sequence[Entry], second: Sequence[Entry]) -> int:
    """Return how many entries two views share at their beginning."""
    low, high = 0, min(len(first), len(second))
    if first[:high] == second[:high]:  # As for most views, which only grow.
        return high
    while low < high:  # Compares slices: a hundred times faster than a loop over entries.
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
