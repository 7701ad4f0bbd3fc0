"""Selection of messages: protected windows, unanswered messages, and the span that a summary covers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import pairwise, takewhile
from math import inf

from msgspec import Struct

from ..core.edits import Span
from ..core.growing import Growing
from ..core.handles import Handle
from ..core.server_tools import pair_key, server_blocks
from ..core.units import cut_points
from ..core.view import Entry, View
from ..errors import BadSetting

__all__ = [
    "MessageNumbers",
    "OldestSpan",
    "TokenWindow",
    "awaits_reply",
    "check_token_windows",
    "count_older",
    "first_unanswered",
    "is_carried_summary",
    "last_request",
    "open_inputs",
    "select_oldest",
    "select_oldest_before",
    "window_tokens",
]

# ---------------------------------------------------------------------------------------------------- protected windows

TokenWindow = int | float
"""A number of tokens (int), or a share of the usable tokens (float below 1.0), so that one setting fits all models."""


def check_token_windows(mechanism: str, **windows: TokenWindow | None) -> None:
    """Raise BadSetting for a negative window and for a share of 1.0 or more. None is no window."""
    for name, value in windows.items():
        if value is not None and (value < 0 or (isinstance(value, float) and not value < 1)):
            raise BadSetting(
                f"{name} of {mechanism} is {value}. Set a number of tokens (0 or more), or a share of the usable "
                "tokens (a decimal below 1.0)."
            )


_SHARE_MIN = 500
"""Least tokens of a window that is a share of the usable tokens: a view as small as that is left alone."""


def window_tokens(protect: TokenWindow, view: View) -> int:
    """Return a window in tokens, by the counter of the conversation.

    A share above 0.0 protects at least 500 tokens, or half of the usable tokens if these are fewer than 1,000.
    """
    if not isinstance(protect, float):
        return protect
    usable = max(0, view.budget.usable)
    return max(int(usable * protect), min(_SHARE_MIN, usable // 2)) if protect else 0


def count_older(view: View, protect: int, *, part_max: float = inf, results_only: bool = False) -> int:
    """Return the number of entries before the newest `protect` tokens. The entry in which these begin is not counted.

    `part_max`: maximum number of tokens that one message counts for. `results_only`: only tool results fill the window.
    """
    sums = _token_sums(part_max, results_only).of(view)
    # The newest ones fill the window where those before them have at most the rest of the sum.
    return max(0, bisect_right(sums, sums[-1] - protect) - 1) if protect > 0 else len(view.entries)


@cache
def _token_sums(part_max: float, results_only: bool) -> Growing[list[float]]:
    """Return the fact of the tokens before each entry, and of all."""

    def add(sums: list[float], entry: Entry) -> None:
        counts = entry.kind != "summary" and (entry.is_result or not results_only)
        sums.append(sums[-1] + (min(entry.tokens, part_max) if counts else 0))

    name = f"token sums {part_max} {results_only}"
    return Growing(lambda: [0], add, list.copy, name=name, kind=list[int | float])


# -------------------------------------------------------------------------------------------------- unanswered messages


def awaits_reply(view: View) -> bool:
    """Return whether the newest message is one that the model has to answer."""
    last = next((entry for entry in reversed(view.entries) if entry.kind != "stand-in"), None)
    return last is not None and not _is_of_model(last, "assistant")


def first_unanswered(entries: Sequence[Entry]) -> int:
    """Return the index of the first entry that the model has not answered: new inputs, or its newest calls."""
    last = next((i for i in reversed(range(len(entries))) if _is_of_model(entries[i], "assistant", "tool")), -1)
    if any(entry.is_input for entry in entries[last + 1 :]):
        return last + 1
    while last > 0 and entries[last].message.role == "tool":
        last -= 1
    return max(0, last)


def _is_of_model(entry: Entry, *roles: str) -> bool:
    """Return whether an entry has one of these roles. A summary has none of them, in any role."""
    return entry.message.role in roles and entry.kind != "summary"


def open_inputs(view: View, room: int) -> list[str]:
    """Return the ids of the user inputs since the model last ended a turn, newest first.

    `room`: maximum number of tokens of all these inputs together, the last one not counted.
    """
    ids: list[str] = []
    for entry in reversed(view.entries):
        message = entry.message
        if entry.kind == "message" and message.role == "assistant" and not message.calls and message.has_content:
            break
        if entry.is_input:
            room -= entry.tokens if ids else 0
            if room < 0:
                break
            ids.append(entry.id)
    return ids


def last_request(view: View) -> str:
    """Return the text of the last user input."""
    return next((entry.message.text for entry in reversed(view.entries) if entry.is_input), "")


# ------------------------------------------------------------------------------------------------------ the oldest span

_STEP_POLICIES = ("recap", "fold")
"""Summaries by these policies replace steps, and a new summary reads them like steps."""


class OldestSpan(Struct, frozen=True):
    """The oldest part of a view, as one summary could cover it."""

    covered: tuple[Entry, ...]
    """Entries that the summary replaces, oldest first."""
    kept: tuple[str, ...]
    """Ids of the messages inside the span that stay, without system prompts."""
    span: Span
    first: int
    """Position of the first covered message."""
    last: int

    @property
    def earlier_summaries(self) -> tuple[Entry, ...]:
        """The covered summaries. The new summary carries their texts on."""
        return tuple(entry for entry in self.covered if is_carried_summary(entry))

    @property
    def to_read(self) -> tuple[Entry, ...]:
        """All other covered entries, as the model sees them."""
        return tuple(entry for entry in self.covered if not is_carried_summary(entry))

    @property
    def handle(self) -> str:
        return str(Handle(self.first, self.last))


def is_carried_summary(entry: Entry) -> bool:
    """Return whether the entry is a checkpoint, a compaction, a summary made by hand or the floor's note."""
    return entry.kind == "summary" and entry.stamp.source not in _STEP_POLICIES


def select_oldest(view: View, until: int) -> OldestSpan | None:
    """Return the span that ends with the message at position `until`, or before a unit that this would split.

    These stay: system prompts, pins, the last user input, calls and server tools without an answer, and content that
    was expanded for the coming call, each with its unit. Returns None if the span would cover only summaries.
    """
    entries = view.entries
    index = next((i for i, entry in enumerate(entries) if entry.last > until), len(entries))
    return select_oldest_before(view, index)


def select_oldest_before(view: View, index: int, *, keep: Collection[str] = ()) -> OldestSpan | None:
    """Return the same for all entries before `index`. `keep`: ids of more messages that stay."""
    entries = view.entries
    points = [point for point in cut_points(view) if point <= index]
    exceptions = _Exceptions(view)
    covered: list[Entry] = []
    for start, end in pairwise(points):
        unit = entries[start:end]
        ids = {entry.id for entry in unit if entry.outline is not None}  # A summary has the id of its first message.
        if ids.isdisjoint(keep) and not any(map(exceptions.include, unit)):
            covered += [entry for entry in unit if not entry.is_between]
    if all(is_carried_summary(entry) for entry in covered):
        return None
    first, last = min(covered, key=lambda entry: entry.position), max(covered, key=lambda entry: entry.last)
    covered_ids = {entry.id for entry in covered if entry.outline is not None}
    kept = tuple(
        entry.id
        for entry in entries
        if entry.outline is not None
        and first.position <= entry.position <= last.last
        and not entry.is_system
        and entry.id not in covered_ids
    )
    span = Span(first.id, last.span.last if last.span else last.id)
    return OldestSpan(tuple(covered), kept, span, first.position, last.last)


class _Exceptions:
    """The entries of a view that no summary covers."""

    def __init__(self, view: View) -> None:
        self._turn, self._last_input = view.turn, view.last_input
        self._uses = _open_uses(view)
        self._answered_late = {
            result.call_id for entry in view if entry.kind == "note" and (result := entry.outlined_result)
        }

    def include(self, entry: Entry) -> bool:
        is_last_input = entry.outline is not None and entry.position == self._last_input
        is_kept = entry.is_pinned() or is_last_input or entry.renewed >= self._turn
        is_kept = is_kept or (entry.position in self._uses and entry.message.role == "assistant")
        return is_kept or entry.is_system or self._is_open_call(entry)

    def _is_open_call(self, entry: Entry) -> bool:
        result = entry.message.result
        return entry.kind == "stand-in" and result is not None and result.call_id not in self._answered_late


def _open_uses(view: View) -> set[int]:
    """Return the positions of the messages with a use of a server tool whose result may still come."""
    turn = takewhile(lambda entry: _is_of_model(entry, "assistant", "tool"), reversed(view.entries))
    uses: dict[str, int] = {}
    for entry in reversed([*turn]):
        for index, block in server_blocks(entry.message):
            key = pair_key(block, f"{entry.position}.{index}", uses)
            if block.is_use:
                uses[key] = entry.position
            else:
                uses.pop(key, None)
    return set(uses.values())


class MessageNumbers:
    """Numbers of the messages of a view's history, from 0 and without system prompts, and which are unsummarized.

    Unsummarized are visible messages, and those that recaps and folds stand for: a recap also stands for the hidden
    inputs between it and the message before. A message that the floor hid counts as summarized: its note holds a
    digest. Other hidden messages do not count, such as those that the caller's list no longer has.
    """

    def __init__(self, view: View) -> None:
        self._systems = [entry.position for entry in view if entry.is_system]
        self._shown, self._hidden = _unsummarized_counts(view)
        shown = [(entry.last, count) for entry, count in self._shown.items()]
        self._counts = sorted([*shown, *self._hidden])
        self.newest = max((entry.last for entry in view), default=0)
        """Position of the newest message that is shown, whole or in a summary."""

    @property
    def unsummarized(self) -> int:
        """The number of messages that no summary covers."""
        return self.unsummarized_after(0)

    def number(self, position: int) -> int:
        """Return the number of the message at this position. A system prompt has the number of the next message."""
        return position - 1 - bisect_left(self._systems, position)

    def position(self, number: int) -> int:
        """Return the position of the message with this number, whether it exists or not."""
        position = number + 1
        for system in self._systems:
            position += system <= position
        return position

    def unsummarized_in(self, entries: Iterable[Entry]) -> int:
        """Return the number of messages that these entries stand for, and that no summary covers."""
        known = [entry for entry in entries if entry in self._shown]
        first = min((entry.position for entry in known), default=0)
        last = max((entry.position for entry in known), default=0)
        hidden = sum(count for position, count in self._hidden if first < position < last)
        return hidden + sum(self._shown[entry] for entry in known)

    def unsummarized_after(self, position: int) -> int:
        """Return the number of messages after this position that no summary covers."""
        return sum(count for last, count in self._counts if last > position)

    def position_leaving(self, count: int) -> int:
        """Return the last position that has at least `count` unsummarized messages after it."""
        position = self.newest
        for last, messages in reversed(self._counts):
            if count <= 0:
                break
            position, count = last - 1, count - messages
        return position if count <= 0 else 0


def _unsummarized_counts(view: View) -> tuple[dict[Entry, int], list[tuple[int, int]]]:
    """Return the unsummarized messages that each entry counts for, and the hidden ones before recaps.

    Those are pairs of the position of the last one and their number.
    """
    carried = _merged(sorted((entry.position, entry.last) for entry in view if is_carried_summary(entry)))
    positions = sorted({entry.position for entry in view if entry.outline is not None})
    shown: dict[Entry, int] = {}
    hidden: list[tuple[int, int]] = []
    counted: set[int] = set()
    end = 0
    for entry in sorted(view.entries, key=lambda entry: entry.position):
        if _is_recap(entry) and entry.position > end + 1:
            hidden.append((entry.position - 1, entry.position - 1 - end))
        end = max(end, entry.last)
        if entry.is_system or _is_in(entry.position, carried):
            continue
        if entry.kind == "summary":
            inside = bisect_right(positions, entry.last) - bisect_left(positions, entry.position)
            shown[entry] = entry.last - entry.position + 1 - inside
        elif entry.outline is not None and entry.position not in counted:
            counted.add(entry.position)
            shown[entry] = 1
    return shown, hidden


def _is_recap(entry: Entry) -> bool:
    return "recap" in (entry.stamp.source if entry.kind == "summary" else entry.shrunk_by)


def _is_in(position: int, ranges: Sequence[tuple[int, int]]) -> bool:
    """Return whether a position is in one of these ranges, which are in order."""
    index = bisect_right(ranges, (position, inf)) - 1
    return index >= 0 and position <= ranges[index][1]


def _merged(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in ranges:
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged
