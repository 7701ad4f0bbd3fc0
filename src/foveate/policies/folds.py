"""Folds: replace finished stretches of an agent's steps by a few lines, without a model.

In a long run most of the view is finished steps: a text of the model, its call, a result that is already shrunk. Behind
a protected window, each stretch of such steps becomes one text with the calls, the results and each name once, and the
handles of the whole steps. User inputs stay.

A stretch begins where the previous one, or a message that stays, ends, and is closed when it is long enough. So it is
the same at every later call, and is folded once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import chain
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.caches import known_form, newest_forms, remember_form
from ..core.edits import Edit, Span, Summarize
from ..core.growing import Growing
from ..core.handles import Handle
from ..core.planner import Policy
from ..core.results import is_loose_result, is_step_note
from ..core.sizes import estimate
from ..core.units import Units
from ..core.view import Entry, View
from ..errors import BadSetting
from .fold_text import StepWriter
from .kinds import check_kinds
from .names import names_of
from .result_worth import needed_results
from .span_selection import TokenWindow, check_token_windows, count_older, window_tokens

__all__ = ["FOLDED", "PROTECT", "STRETCH", "fold"]

PROTECT = 0.1
"""Share of the usable tokens: the newest tokens that are never folded."""
STRETCH = 5_000
"""Tokens, as appended, that close a stretch."""
FOLDED = (
    "[Steps {handle} in short. They are done, and ask for nothing; "
    'expand("{handle}") shows all of them whole, expand("{last}") one.]\n{steps}'
)
"""Template for a stretch."""

_NAME = "fold"
_SAVED_SHARE_MIN = 0.3
"""Share of a stretch's tokens that folding must save."""


@check_kinds
def fold(
    *,
    protect: TokenWindow = PROTECT,
    stretch: int = STRETCH,
    min_share: float = _SAVED_SHARE_MIN,
    framing: str = FOLDED,
    by_worth: bool = False,
) -> Policy:
    """Return a policy that folds finished steps of the model, calls and results, a stretch at a time.

    `protect`: newest tokens that stay, as a number (int) or as a share of the usable tokens (float below 1.0).
    `stretch`: minimum number of tokens, as appended, of a stretch that no message ends earlier. `min_share`: share of
    a stretch's tokens that folding must save. `framing`: template for a stretch; `{handle}` and `{last}` are
    arguments of `expand`, `{steps}` is the text. `by_worth`: steps whose results are worth their place stay
    (`needed_results`), and end a stretch.

    System prompts, user inputs, pins, calls without an answer, other summaries and messages that were expanded for the
    coming call stay, and end a stretch. Raises BadSetting for values out of range and for a framing without `{steps}`.
    """
    check_token_windows("fold", protect=protect)
    if stretch < 1 or not 0 <= min_share < 1:
        raise BadSetting(
            f"stretch and min_share of fold are {stretch} and {min_share}. Set stretch to 1 or more, and min_share to "
            "0 or more and below 1."
        )
    if "{steps}" not in framing:
        raise BadSetting(f"framing of fold is {framing!r:.80}. It must contain {{steps}}, the text of the steps.")

    def write(entries: Sequence[Entry], writer: StepWriter) -> str:
        """Return the text of a fold; "" if it saves too little."""
        text = _fill_framing(framing, entries[0].position, max(entry.position for entry in entries), writer.text)
        # The text has no count yet: its quarter of the characters is corrected as for the steps that it replaces.
        return text if estimate(text) <= (1 - min_share) * max(1, writer.tokens) else ""

    memo = _Memo(write)
    name = f"folds {protect} {stretch} {min_share} {by_worth} {framing!a}"

    def policy(view: View) -> Iterator[Edit]:
        window = window_tokens(protect, view)
        old = count_older(view, window)
        if not old:
            return
        named = _Names()
        at, newest = 0, _START
        needed = needed_results(view) if by_worth else frozenset[int]()
        memo.restore(view.marks.take(name, view.entries, list[_SavedFold]) or (), view.marks.entries)
        folds: list[tuple[int, int, _Fold]] = []
        for start, end in _closed_stretches(view, old, stretch, needed):
            between, entries = view.entries[at:start], view.entries[start:end]
            at = end
            newest.writer = None  # Its stretch is closed.
            newest = memo.fold(newest.node, between, entries, named)
            named.add(newest)
            folds.append((start, end, newest))
            if newest.text:
                yield newest.edit(entries, f"older than the newest {window:,} tokens")
        view.marks.leave(name, view.entries, at, lambda: [fold.saved(start, end) for start, end, fold in folds])

    return policy


def _fill_framing(framing: str, first: int, last: int, steps: str) -> str:
    text = framing.replace("{handle}", str(Handle(first, last))).replace("{last}", f"m{last}")
    return text.replace("{steps}", steps)


class _Names:
    """The names up to a fold, gathered when they are asked for: most calls make no fold."""

    def __init__(self) -> None:
        self._all: set[str] = set()
        self._further: list[_Fold] = []

    def add(self, fold: _Fold) -> None:
        """Add the new names of a fold."""
        self._further.append(fold)

    def all(self) -> Set[str]:
        """Return all names, until the next `add`."""
        self._all.update(*[fold.names() for fold in self._further])
        self._further.clear()
        return self._all


class _SavedFold(Struct, frozen=True, gc=False, array_like=True):
    """The fold of a stretch of a saved view."""

    start: int
    """Index of the first entry of the stretch."""
    end: int
    """Index behind its last one."""
    text: str
    """The text; "" if it saves too little."""
    names: tuple[str, ...]
    """The new names in its lines."""


class _Fold:
    """The fold of a stretch."""

    __slots__ = ("_edit", "_new", "_unread", "before", "node", "text", "writer")

    def __init__(
        self,
        node: int,
        text: str = "",
        new: tuple[str, ...] = (),
        *,
        before: tuple[str, ...] = (),
        unread: tuple[Entry, ...] = (),
        writer: StepWriter | None = None,
    ) -> None:
        """`new`: names in the lines of its steps that no earlier message has. `unread`: the entries between the fold
        before and this one, if the names in `before` are not known.
        """
        self.node = node
        self.text = text
        """The text; "" if it saves too little."""
        self.before = before
        """The new names between the fold before and this one. A set would take four times the memory."""
        self.writer = writer
        """The writer of its steps, as long as the stretch may grow."""
        self._new, self._unread = new, unread
        self._edit: Summarize | None = None

    def names(self) -> Iterator[str]:
        """Return the names up to its end that are new."""
        if self._unread:
            self.before, self._unread = tuple(_names_between(self._unread)), ()
        return chain(self._new, self.before)

    def saved(self, start: int, end: int) -> _SavedFold:
        """Return the fold of the stretch with these ends, to be saved."""
        return _SavedFold(start, end, self.text, tuple(sorted(self._new)))

    def edit(self, entries: Sequence[Entry], reason: str) -> Summarize:
        """Return the edit that replaces its entries, the same one at each call: it may wait for many calls."""
        if self._edit is None or self._edit.reason != reason:
            self._edit = Summarize(Span(entries[0].id, entries[-1].id), self.text, _NAME, reason)
        return self._edit


_START: Final = _Fold(0)
"""Before the first fold."""


class _Memo:
    """The folds of earlier calls. A fold depends on all entries before it, so folds form a tree, from node 0 on."""

    def __init__(self, write: Callable[[Sequence[Entry], StepWriter], str]) -> None:
        """`write`: returns the text of a fold of entries with these steps; "" if there is none."""
        self._newest = 0
        self._write = write

    def fold(self, node: int, between: tuple[Entry, ...], entries: tuple[Entry, ...], named: _Names) -> _Fold:
        """Return the fold of entries.

        `node`: of the fold before; `between`: the entries since then; `named`: the names up to that fold.
        """

        def make() -> _Fold:
            known = named.all()
            begun = self._begun(node, between, entries)
            if begun is None:
                further, size = _names_between(between), 0
                writer, before = StepWriter(further), tuple(further - known)
            else:
                writer, before, size = begun
            writer.add(entries[size:], known)
            self._newest += 1
            text, new = self._write(entries, writer), tuple(writer.written.difference(known, before))
            return _Fold(self._newest, text, new, before=before, writer=writer)

        return newest_forms(entries[-1], self, (node, between, entries[:-1]), make)

    def restore(self, folds: Iterable[_SavedFold], entries: tuple[Entry, ...]) -> None:
        """Let the entries of a view hold the folds that were saved with it."""
        node = at = 0
        for saved in folds:
            between, stretch = entries[at : saved.start], entries[saved.start : saved.end]
            self._newest += 1
            fold = _Fold(self._newest, saved.text, saved.names, unread=between)
            remember_form(stretch[-1], self, (node, between, stretch[:-1]), fold)
            node, at = fold.node, saved.end

    def _begun(
        self, node: int, between: tuple[Entry, ...], entries: tuple[Entry, ...]
    ) -> tuple[StepWriter, tuple[str, ...], int] | None:
        """Return the writer of the longest fold with which these entries begin, the names before it that were new, and
        the number of its entries; None if there is none.

        A stretch at the end of the view grows by a step with each call, until it is closed.
        """
        if any(map(is_loose_result, entries)):  # The form of a step depends on the messages after it.
            return None
        for size in range(len(entries) - 1, 0, -1):
            fold: _Fold | None = known_form(entries[size - 1], self, (node, between, entries[: size - 1]))
            if fold is not None and fold.writer is not None:
                writer, fold.writer = fold.writer, None
                return writer, fold.before, size
        return None


def _names_between(entries: Iterable[Entry]) -> frozenset[str]:
    """Return the names in the texts of entries between two stretches."""
    return frozenset[str]().union(*(names_of(entry.message.text) for entry in entries))


class _Unit(Struct, frozen=True, gc=False, array_like=True):
    """A unit of entries that may be folded, if none of them is needed or was expanded for the coming call."""

    start: int
    end: int
    tokens: int
    """Tokens, as appended."""
    renewed: int
    """Newest turn in which one of its entries was expanded."""


class _Units(Struct):
    """The units among entries that are added in order."""

    closed: list[_Unit] = []
    """The closed units that may be folded."""
    _units: Units = field(default_factory=Units)
    _begin: int = 0  # Where the newest unit begins, which is still open.
    _end: int = 0  # Where it ends, without stand-ins behind its last message.
    _size: int = 0
    _tokens: int = 0
    _renewed: int = 0
    _last: int = 0  # Position of its newest entry; 0: it has none.
    _may_fold: bool = True

    def copy(self) -> _Units:
        return replace(self, closed=self.closed.copy(), _units=self._units.copy())

    def add(self, entry: Entry) -> None:
        if self._units.add(entry):
            self.closed += self.newest
            self._begin, self._tokens, self._renewed = self._size, 0, 0
            self._last, self._may_fold = 0, True
        self._size += 1
        if entry.is_between:
            return
        # If an answer of the unit is elsewhere in the history, a span would cover other messages too.
        is_next = self._last in (0, entry.position - 1)
        self._may_fold = self._may_fold and is_next and _may_fold(entry)
        self._end, self._last, self._tokens = self._size, entry.position, self._tokens + entry.stamp.tokens
        self._renewed = max(self._renewed, entry.renewed)

    @property
    def newest(self) -> list[_Unit]:
        """The newest unit, as if it ended here; empty if it may not be folded."""
        if not self._last or not self._may_fold:
            return []
        return [_Unit(self._begin, self._end, self._tokens, self._renewed)]


_UNITS = Growing[_Units](_Units, _Units.add, _Units.copy, name="fold units", kind=_Units)


def _closed_stretches(view: View, old: int, least: int, needed: Set[int]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the closed stretches among the first `old` entries.

    `needed`: the indices of results that stay.
    """
    units = _UNITS.of(view)
    begin, end, size = 0, 0, 0
    for unit in chain(units.closed, units.newest):
        if unit.start > end:  # Other units are between.
            if begin < end <= old:
                yield begin, end
            begin, size = unit.start, 0
        if unit.renewed >= view.turn or not needed.isdisjoint(range(unit.start, unit.end)):
            if begin < unit.start <= old:
                yield begin, unit.start
            begin, end, size = unit.end, unit.end, 0
            continue
        end = unit.end
        size += unit.tokens
        if end > old:
            return
        if size >= least:
            yield begin, end
            begin, size = end, 0
    if begin < end <= old and end < len(view.entries):
        yield begin, end


def _may_fold(entry: Entry) -> bool:
    if entry.kind != "message" or entry.outline is None or entry.is_pinned():
        return False
    return entry.message.role == "assistant" or entry.is_result or is_step_note(entry.message, entry.stamp)
