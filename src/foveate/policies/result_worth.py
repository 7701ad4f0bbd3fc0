"""Worth of results: which results are worth their place in the view, by the chance that a call uses them.

A call uses a result if it repeats whole lines of it, as an edit repeats the lines that it replaces. Digests keep names,
so only lines count. The chance falls with the number of calls since the result came, and an edit of the same file
renews it. While an agent only explores, files age slowly: it reads them to change them later.

A result is worth its place while the price of fetching it, times the chance that the next call uses it, is above the
price of reading it once more. The numbers were fitted by `bench/retention_model.py` on recorded sessions.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from posixpath import basename

from ..core.caches import cached, cached_on_entry
from ..core.view import Entry, Prices, View
from .span_selection import count_older
from .tool_kinds import READS, WRITES, classify_results, create_classifier, is_same_file

__all__ = [
    "CHANCE",
    "CHANCE_READ",
    "EXPANDED",
    "EXPLORING",
    "LEAST",
    "STAY",
    "WINDOW",
    "needed_results",
]

CHANCE_READ = 0.038
"""Chance that a call quotes a result that shows a file, times the number of calls since it came. Fitted without the
source that is measured: 0.035 to 0.042.
"""
CHANCE = 0.016
"""The same for results of other tools: 0.014 to 0.019."""
STAY = 50
"""Calls for which a fetched result stays in the view."""
EXPLORING = 6
"""Calls before the first change of a file since the user's input that age a read as much as one later call."""
EXPANDED = 20
"""Calls for which a message stays that the model expanded."""
LEAST = 150
"""Tokens of the smallest result that is worth its place after the first call: a fold shows most of a smaller one."""
WINDOW = 0.4
"""Share of the room for results. Results before the newest entries that fill it are not worth their place."""
FIXED = 16_000
"""Tokens of instructions, inputs and summaries that leave no room for results, in recorded sessions."""
_ROOM_MIN = 0.3
"""Share of the usable tokens that are room for results at least, in small windows."""

_FOLDED_CALL = re.compile(r"^(?:m\d+| ) (?:\w+__)?([\w.-]+)\((.{0,200})", re.MULTILINE)
"""A call in the text of a fold: the name of the tool, and the beginning of its arguments."""
_PATCH = re.compile(r"\*\*\* (?:Update|Add|Delete) File: ")


@cached(4)  # Several policies ask about one view.
def needed_results(view: View) -> frozenset[str]:
    """Return the ids of the results that are worth their place in the view, and of messages that the model expanded.

    Results that no call has seen yet are among them, unless they are before the newest `WINDOW` of the usable tokens.
    The prices are those of the view: where the provider caches nothing, reading a result once more costs as much as
    fetching it, so fewer results are needed.
    """
    room = max(_ROOM_MIN * view.budget.usable, view.budget.usable - FIXED)
    older = count_older(view, int(WINDOW * room))
    changes, reads = _Changes(view), dict[str, str]()
    for entry, state, call in classify_results(view, create_classifier()):
        if call.kind == "write" and state != "error":
            changes.add(entry, call.files)
        elif call.kind == "read" and state != "error":
            reads[entry.id] = call.files[0]
    changes.sort()
    needed: set[str] = set()
    for index, entry in enumerate(view.entries):
        if entry.renewed and view.turn - entry.renewed < EXPANDED:
            needed.add(entry.id)
        if index < older or not entry.is_result or entry.shrunk:
            continue
        age = float(view.turn - max(entry.stamp.turn, entry.renewed))
        chance = CHANCE
        if entry.id in reads:
            age, chance = changes.age_of_read(entry, reads[entry.id], age), CHANCE_READ
        chance /= max(1.0, age)
        worth = entry.tokens >= LEAST and is_worth_its_place(entry.tokens, chance, view.tokens, view.call.prices)
        if age <= 1 or worth:
            needed.add(entry.id)
    return frozenset(needed)


def is_worth_its_place(tokens: int, chance: float, view_tokens: int, prices: Prices) -> bool:
    """Return whether a result of this size is worth its place if the next call uses it with this chance.

    Fetching it costs a request that reads the view and writes the result, and `STAY` calls that read it.

    >>> is_worth_its_place(2_000, 0.02, 30_000, Prices()), is_worth_its_place(2_000, 0.01, 30_000, Prices())
    (True, False)
    """
    fetching = prices.read * view_tokens + (prices.write + STAY * prices.read) * tokens
    return chance * fetching > prices.read * tokens


class _Changes:
    """The changes of files in a view, by turn."""

    def __init__(self, view: View) -> None:
        self._turn = view.turn
        self._inputs = [entry.stamp.turn for entry in view.entries if entry.is_input]
        self._turns: list[int] = []
        self._files: dict[str, list[tuple[str, int]]] = {}  # Path and turn, by the name of the file.
        turn = view.turn
        for entry in reversed(view.entries):
            if entry.kind == "message":
                turn = entry.stamp.turn
            elif entry.kind == "summary" and _folds_changes(entry):
                self._turns.append(turn)  # A fold does not say when: at the latest before the next message.

    def add(self, entry: Entry, files: tuple[str, ...]) -> None:
        """Add a change of these files."""
        self._turns.append(entry.stamp.turn)
        for file in files:
            self._files.setdefault(basename(file), []).append((file, entry.stamp.turn))

    def sort(self) -> None:
        """Put the changes in order, after the last one was added."""
        self._turns.sort()

    def age_of_read(self, entry: Entry, file: str, age: float) -> float:
        """Return the calls since a read, the first change after exploring, or the last change of the file.

        `age`: calls since the read.
        """
        began = self._inputs[bisect_right(self._inputs, entry.stamp.turn) - 1] if self._inputs else 0
        following = bisect_right(self._turns, entry.stamp.turn)
        if not following or self._turns[following - 1] <= began:  # The agent was exploring when it read the file.
            if following == len(self._turns):
                age /= EXPLORING
            else:
                age = min(age, self._turn - self._turns[following])
        same = [turn for path, turn in self._files.get(basename(file), ()) if is_same_file(path, file)]
        return min([age, *(float(self._turn - turn) for turn in same if turn >= entry.stamp.turn)])


@cached_on_entry
def _folds_changes(entry: Entry) -> bool:
    """Return whether a fold lists a call that changes files: a policy sees only the view, not the folded calls."""
    text = entry.message.text
    for call in _FOLDED_CALL.finditer(text):
        tool = call[1].lower()
        if tool in WRITES and (tool not in READS or "command=view" not in call[2]):
            return True
    return _PATCH.search(text) is not None
