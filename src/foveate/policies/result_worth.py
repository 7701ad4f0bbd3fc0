"""Worth of results: which results are worth their place in the view, by the chance that a call uses them.

A call uses a result if it repeats whole lines of it, as an edit repeats the lines that it replaces. Digests keep names,
so only lines count. The chance falls with the number of calls since the result came. A file that the agent read and has
not changed yet is the most likely to be used. The lines of a changed file mostly are in newer results. While an agent
only explores, files age slowly: it reads them to change them later.

A result is worth its place while the price of fetching it, times the chance that the next call uses it, is above the
price of reading it once more. The numbers were fitted by `bench/retention_model.py` on recorded sessions.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping
from itertools import chain
from math import inf
from posixpath import basename
from typing import Any

from msgspec import Struct, field

from ..core.caches import cached_on_entry
from ..core.growing import Growing, notes
from ..core.view import Entry, View
from .span_selection import count_older
from .tool_kinds import (
    ASKS,
    LOOKS,
    READS,
    WRITES,
    ClassifiedResult,
    GrowingResults,
    create_classifier,
    is_same_file,
    names_key,
)

__all__ = [
    "CHANCE",
    "CHANCE_CHANGED",
    "CHANCE_READ",
    "EXPANDED",
    "EXPLORING",
    "LEAST",
    "STAY",
    "WINDOW",
    "needed_results",
]

CHANCE_READ = 0.078
"""Chance that a call quotes a result that shows a file, times the number of calls since it came, until that file is
changed. Fitted without the source that is measured: 0.067 to 0.087.
"""
CHANCE_CHANGED = 0.022
"""The same for files that were changed after the result came, by the number of calls since the last change: 0.020 to
0.025.
"""
CHANCE = 0.016
"""The same for results of other tools: 0.014 to 0.019."""
STAY = 80
"""Calls for which a fetched result stays in the view, at most. Half of all uses have 106 calls after them."""
EXPLORING = 4
"""Calls before the first change of a file since the user's input that age a read as much as one later call."""
EXPANDED = 20
"""Calls for which a message stays that the model expanded."""
LEAST = 400
"""Tokens of the smallest result that is worth its place after the first call: a fold shows most of a smaller one."""
WINDOW = 0.4
"""Share of the room for results. Results before the newest entries that fill it are not worth their place."""
FIXED = 16_000
"""Tokens of instructions, inputs and summaries that leave no room for results, in recorded sessions."""
_ROOM_MIN = 0.3
"""Share of the usable tokens that are room for results at least, in small windows."""

_FOLDED_CALL = re.compile(r"^(?:m\d+| ) (?:\w+__)?([\w.-]+)\((.{0,200})", re.MULTILINE)
"""A call in the text of a fold: the name of the tool, and the beginning of its arguments."""
_FILE = re.compile(r"(?:^|, )(?:file_path|filePath|path|filename|file|target_file|notebook_path)=([^\s,]+)")
"""The file in the beginning of the arguments of a folded call."""
_PATCH = re.compile(r"\*\*\* (?:Update|Add|Delete) File: ([^\s\\\"]+)")


def needed_results(view: View) -> frozenset[int]:
    """Return the indices of the results that are worth their place, and of the messages that the model expanded.

    Results that no call has seen yet are among them, unless they are before the newest `WINDOW` of the usable tokens.
    The prices are those of the view: where the provider caches nothing, reading a result once more costs as much as
    fetching it, so fewer results are needed.
    """
    known = _NEEDED.of(view)
    asked = view.turn, len(view.entries), view.budget, view.call.prices
    if asked not in known:  # Several policies ask about one view.
        known.clear()
        known[asked] = _needed_results(view)
    return known[asked]


_NEEDED: Growing[dict[Any, frozenset[int]]] = notes()


def _needed_results(view: View) -> frozenset[int]:
    room = max(_ROOM_MIN * view.budget.usable, view.budget.usable - FIXED)
    older = count_older(view, int(WINDOW * room))
    known = _KNOWN.of(view)
    needed = {place for place in known.renewed if view.turn - view.entries[place].renewed < EXPANDED}
    now, prices = view.turn, view.call.prices
    # Fetching costs a request that reads the view and writes the result, and `STAY` calls that read it.
    request, each = prices.read * view.tokens, prices.write + STAY * prices.read
    reading = prices.read * LEAST
    age_max = max(1.0, CHANCE * (request + each * LEAST) / reading) if reading else inf  # Of the smallest result.
    for result in chain(known.others_since(now - age_max - 1, older), known.files_since(older, now)):
        age, tokens = (now - result.since) / result.slower, result.tokens
        if age <= 1 or (tokens >= LEAST and result.chance / age * (request + each * tokens) > prices.read * tokens):
            needed.add(result.place)
    return frozenset(needed)


_NONE: Mapping[str, int] = {}


class _Aging(Struct, frozen=True, gc=False, array_like=True):
    """A result that the view shows whole, and how it ages until further files are changed."""

    place: int
    """Its index in the view."""
    tokens: int
    since: int
    """The turn since which it ages."""
    slower: int
    """Calls that age it as much as one call."""
    chance: float


class _Read(Struct, frozen=True, gc=False, array_like=True):
    """A result that shows a file."""

    place: int
    """Its index in the view."""
    tokens: int
    turn: int
    """The turn of its call."""
    came: int
    """The turn since which it is in the view: that of its call, or of its expansion."""
    file: str


class _Changes(Struct):
    """The changes of files among entries that are added in order, by turn."""

    number: int = 0
    """Number of inputs and changes."""
    _inputs: list[int] = []
    _turns: list[int] = []  # Ascending.
    _files: dict[str, dict[str, int]] = {}  # Newest turn of each path, by the name of the file.
    _folded: list[str] = []  # Files that folds after the newest message changed; "" for an unknown one.

    def copy(self) -> _Changes:
        # `_note` replaces the inner mappings, which are small.
        files, folded = self._files.copy(), self._folded.copy()
        return _Changes(self.number, self._inputs.copy(), self._turns.copy(), files, folded)

    @property
    def has_open_fold(self) -> bool:
        """Return whether folds after the newest message changed files."""
        return bool(self._folded)

    def read(self, entry: Entry) -> None:
        """Add an entry: an input, or a fold of changes."""
        if entry.is_input:
            self._inputs.append(entry.stamp.turn)
            self.number += 1
        if entry.kind == "summary":
            self._folded += _folded_changes(entry)
        elif entry.kind == "message" and self._folded:
            for file in self._folded:  # A fold does not say when: at the latest before the next message.
                self._note(entry.stamp.turn, file)
            self._folded = []

    def add(self, entry: Entry, files: tuple[str, ...]) -> None:
        """Add a change of these files."""
        for file in files:
            self._note(entry.stamp.turn, file)

    def _note(self, turn: int, file: str) -> None:
        self.number += 1
        insort(self._turns, turn)
        if file:
            name = basename(file)
            turns = self._files.get(name, _NONE)
            self._files[name] = {**turns, file: max(turn, turns.get(file, 0))}

    def aging(self, result: _Read, now: int) -> _Aging:
        """Return how a read ages: from the first change after exploring, or from the last change of its file, on.

        `now`: the turn of the view.
        """
        place, tokens, read, turn, file = result.place, result.tokens, result.turn, result.came, result.file
        same = [changed for path, changed in self._files.get(basename(file), _NONE).items() if is_same_file(path, file)]
        if same and (changed := max(same)) >= read:
            return _Aging(place, tokens, max(turn, changed), 1, CHANCE_CHANGED)
        turns = [*self._turns, now] if self._folded else self._turns
        began = self._inputs[bisect_right(self._inputs, read) - 1] if self._inputs else 0
        following = bisect_right(turns, read)
        if following and turns[following - 1] > began:
            return _Aging(place, tokens, turn, 1, CHANCE_READ)
        if following == len(turns):  # The agent was exploring when it read the file, and still is.
            return _Aging(place, tokens, turn, EXPLORING, CHANCE_READ)
        return _Aging(place, tokens, max(turn, turns[following]), 1, CHANCE_READ)


class _ResultsSoFar(Struct):
    """The results among entries that are added in order, and the changes of files."""

    renewed: list[int] = []
    """Indices of messages that the model expanded."""
    _size: int = 0
    _others: list[_Aging] = []  # Results that show no file.
    _other_places: list[int] = []  # Their indices in the view.
    _newest: list[int] = []  # The newest turn up to each of them.
    _files: list[_Read] = []
    _file_places: list[int] = []
    _changes: _Changes = field(default_factory=_Changes)
    _aging: list[_Aging] = []  # Of the first files, after so many changes.
    _aging_after: int = 0

    def copy(self) -> _ResultsSoFar:
        return _ResultsSoFar(
            self.renewed.copy(),
            self._size,
            self._others.copy(),
            self._other_places.copy(),
            self._newest.copy(),
            self._files.copy(),
            self._file_places.copy(),
            self._changes.copy(),
        )

    def add(self, entry: Entry, result: ClassifiedResult | None) -> None:
        file = ""
        self._changes.read(entry)
        if result is not None and result[1] != "error":
            call = result[2]
            if call.kind == "write":
                self._changes.add(entry, call.files)
            elif call.kind == "read":
                file = call.files[0]
        if entry.renewed:
            self.renewed.append(self._size)
        if entry.is_result and not entry.shrunk:
            turn = max(entry.stamp.turn, entry.renewed)
            if file:
                self._files.append(_Read(self._size, entry.tokens, entry.stamp.turn, turn, file))
                self._file_places.append(self._size)
            else:
                self._others.append(_Aging(self._size, entry.tokens, turn, 1, CHANCE))
                self._other_places.append(self._size)
                self._newest.append(max(turn, self._newest[-1]) if self._newest else turn)
        self._size += 1

    def others_since(self, turn: float, place: int) -> list[_Aging]:
        """Return the results that show no file, from a place in the view and about a turn on."""
        return self._others[max(bisect_left(self._newest, turn), bisect_left(self._other_places, place)) :]

    def files_since(self, place: int, now: int) -> list[_Aging]:
        """Return the results that show a file, from a place in the view on. `now`: the turn of the view."""
        changes = self._changes
        if changes.number != self._aging_after:
            self._aging, self._aging_after = [], changes.number
        first = bisect_left(self._file_places, place)
        if changes.has_open_fold:
            return [changes.aging(read, now) for read in self._files[first:]]
        self._aging += [changes.aging(read, now) for read in self._files[len(self._aging) :]]
        return self._aging[first:]


_KNOWN = GrowingResults(
    _ResultsSoFar,
    create_classifier(),
    name=f"worth {CHANCE} {names_key(READS, WRITES, LOOKS, ASKS)}",
    kind=_ResultsSoFar,
)


@cached_on_entry
def _folded_changes(entry: Entry) -> tuple[str, ...]:
    """Return the files that the calls in a fold change, "" for an unknown one: a policy sees only the view."""
    text = entry.message.text
    files = _PATCH.findall(text)
    for call in _FOLDED_CALL.finditer(text):
        tool = call[1].lower()
        if tool in WRITES and (tool not in READS or "command=view" not in call[2]):
            file = _FILE.search(call[2])
            files.append(file[1] if file else "")
    return tuple(files)
