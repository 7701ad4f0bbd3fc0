"""What a summary of the oldest part of a view would cover, what of it stays, and how messages are numbered for this.

Knows nothing of when that is due or what the summary says. What stays is whole: a call and its results stay or go
together, so that no model reads of a call that its answer "is not shown".
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from itertools import accumulate, pairwise
from math import inf

from msgspec import Struct

from ..core.caches import cached
from ..core.edits import Span
from ..core.rules import cut_points
from ..core.view import Entry, View
from ..errors import BadSetting

__all__ = [
    "Numbering",
    "Oldest",
    "Tokens",
    "check_tokens",
    "first_unanswered",
    "is_earlier",
    "is_request",
    "last_request",
    "older_than",
    "oldest",
    "oldest_before",
    "open_inputs",
    "tokens_of_share",
]

Tokens = int | float
"""A number of tokens (int), or a share of the usable ones (float, below 1.0)."""


def check_tokens(mechanism: str, **named: Tokens | None) -> None:
    """Raises BadSetting for a window that is negative, or a share of 1.0 or more; None is no window."""
    for name, value in named.items():
        if value is not None and (value < 0 or (isinstance(value, float) and not value < 1)):
            raise BadSetting(
                f"{mechanism} needs {name} as tokens (a whole number of 0 or more) or as a share of the usable ones, "
                f"below 1.0, not {value}."
            )


def tokens_of_share(protect: Tokens, view: View) -> int:
    """The window in tokens, by the counter of the conversation."""
    return max(0, int(view.budget.usable * protect)) if isinstance(protect, float) else protect


def older_than(view: View, protect: int, *, part_max: float = inf, everything: bool = True) -> int:
    """How many entries stand before the newest `protect` tokens; the one in which these end is among them.

    `part_max`: no message counts for more tokens than this. `everything`: whether other messages than tool results
    count too.
    """
    filled = _filled(view.entries, part_max, everything)
    return max(0, len(view.entries) - bisect_left(filled, protect))


@cached(8)  # Several mechanisms, and several windows of each, look at one view.
def _filled(entries: tuple[Entry, ...], part_max: float, everything: bool) -> list[float]:
    """Tokens of no entry, of the newest, of the newest two, and so on."""
    tokens = [
        min(entry.tokens, part_max) if entry.kind != "summary" and (everything or entry.is_result) else 0
        for entry in reversed(entries)
    ]
    return list(accumulate(tokens, initial=0))


def is_request(view: View) -> bool:
    """Whether the model has something to answer. Behind its own answer nothing is due: what that answered would be the
    last input still, and stay as if it were open.
    """
    last = next((entry for entry in reversed(view.entries) if entry.kind != "stand-in"), None)
    return last is not None and last.message.role != "assistant"


def first_unanswered(entries: Sequence[Entry]) -> int:
    """Index at which that begins which the model has not answered: inputs, or the results of its newest calls."""
    last = next((i for i in reversed(range(len(entries))) if entries[i].message.role in ("assistant", "tool")), -1)
    if any(entry.is_input for entry in entries[last + 1 :]):
        return last + 1
    while last > 0 and entries[last].message.role == "tool":
        last -= 1
    return max(0, last)


def open_inputs(view: View, room: int) -> list[str]:
    """Ids of what the user asked for since the model last ended a turn, the newest first: it stays as it was said.

    `room`: tokens that all but the last input may take together.
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
    """The user's last input."""
    return next((entry.message.text for entry in reversed(view.entries) if entry.is_input), "")


_FLOOR = "floor"
"""The floor's note says what is hidden and how to see it, but not what was said there: nothing may swallow it."""
_STEPS = ("recap", "fold")
"""What these policies write stands in the place of steps, and is summarised like them."""


class Oldest(Struct, frozen=True):
    """The oldest part of a view, as one summary could cover it."""

    gone: tuple[Entry, ...]
    """What the summary takes the place of, oldest first."""
    kept: tuple[str, ...]
    """Ids of the messages in the span that stay, but for system prompts."""
    span: Span
    first: int
    """Position of the first message that goes."""
    last: int

    @property
    def earlier(self) -> tuple[Entry, ...]:
        """Summaries among what goes, whose texts the new one carries on."""
        return tuple(entry for entry in self.gone if is_earlier(entry))

    @property
    def said(self) -> tuple[Entry, ...]:
        """All else that goes, as the model sees it."""
        return tuple(entry for entry in self.gone if not is_earlier(entry))

    @property
    def handle(self) -> str:
        return f"m{self.first}-m{self.last}" if self.first < self.last else f"m{self.first}"


def is_earlier(entry: Entry) -> bool:
    """Whether this is an account of what was said before: a checkpoint, a compaction, or one made by hand."""
    return entry.kind == "summary" and entry.stamp.source not in (_FLOOR, *_STEPS)


def oldest(view: View, until: int) -> Oldest | None:
    """The part that ends with the message at position `until`, or where the unit begins that this would part.

    None where nothing would go but summaries. What stays: system prompts, pins, the last user input, calls that still
    wait for an answer, what was expanded for the coming call, each with the unit it belongs to; and the floor's note.
    """
    entries = view.entries
    reached = next((i for i, entry in enumerate(entries) if max(entry.position, entry.last) > until), len(entries))
    return oldest_before(view, reached)


def oldest_before(view: View, index: int, *, also: Collection[str] = ()) -> Oldest | None:
    """The part before this index of the view. `also`: ids of more messages that stay."""
    entries = view.entries
    points = [point for point in cut_points(view) if point <= index]
    stays = _Stays(view)
    gone: list[Entry] = []
    for start, end in pairwise(points):
        unit = entries[start:end]
        said = {entry.id for entry in unit if entry.source is not None}  # A summary has the id of its first message.
        if said.isdisjoint(also) and not any(map(stays.is_there, unit)):
            gone += [entry for entry in unit if entry.position]
    if all(is_earlier(entry) for entry in gone):
        return None
    first, last = min(gone, key=lambda entry: entry.position), max(gone, key=lambda entry: entry.last)
    inside = {entry.id for entry in gone if entry.source is not None}
    kept = tuple(
        entry.id
        for entry in entries
        if entry.source is not None
        and first.position <= entry.position <= last.last
        and entry.message.role != "system"
        and entry.id not in inside
    )
    span = Span(first.id, last.span.last if last.span else last.id)
    return Oldest(tuple(gone), kept, span, first.position, last.last)


class _Stays:
    """What no summary covers in this view."""

    def __init__(self, view: View) -> None:
        self._turn, self._last_input = view.turn, view.last_input
        self._answered_late = {entry.result.call_id for entry in view if entry.kind == "note" and entry.result}
        # What is shown of a run that the floor hid stays with the note: a span over both would swallow that.
        self._hidden = max((entry.last for entry in view if _is_floors(entry)), default=0)

    def is_there(self, entry: Entry) -> bool:
        is_input = entry.source is not None and entry.position == self._last_input
        is_kept = entry.is_pinned() or is_input or entry.renewed >= self._turn
        is_hidden = _is_floors(entry) or 0 < entry.position <= self._hidden
        return is_kept or is_hidden or entry.message.role == "system" or self._waits(entry)

    def _waits(self, entry: Entry) -> bool:
        result = entry.message.result
        return entry.kind == "stand-in" and result is not None and result.call_id not in self._answered_late


def _is_floors(entry: Entry) -> bool:
    return entry.kind == "summary" and entry.stamp.source == _FLOOR


class Numbering:
    """The messages of a view's history that are no system prompts, counted from 0, and which of them are summarised.

    What the floor has hidden counts as summarised: no summary will take its place.
    """

    def __init__(self, view: View) -> None:
        self._systems = [entry.position for entry in view if entry.message.role == "system"]
        covers = [entry for entry in view if entry.kind == "summary" and entry.stamp.source not in _STEPS]
        self._runs = _merged(sorted((entry.position, entry.last) for entry in covers))
        self._tip = max((max(entry.position, entry.last) for entry in view), default=0)

    @property
    def unsummarised(self) -> int:
        """How many are not covered by a summary."""
        return self.unsummarised_after(0)

    def number(self, position: int) -> int:
        """The number of the message at this position; for a system prompt that of the next one."""
        return position - 1 - bisect_left(self._systems, position)

    def position(self, number: int) -> int:
        """Where the message with this number stands, if there is one."""
        position = number + 1
        for system in self._systems:
            position += system <= position
        return position

    def after(self, position: int) -> int:
        """How many come after this position."""
        return self._tip - position - (len(self._systems) - bisect_right(self._systems, position))

    def unsummarised_after(self, position: int) -> int:
        """How many that are not covered by a summary come after this position."""
        return self.after(position) - sum(
            self.after(max(first - 1, position)) - self.after(last) for first, last in self._runs if last > position
        )

    def leaving(self, count: int) -> int:
        """The last position after which at least `count` unsummarised ones are left."""
        low, high = 0, self._tip
        while low < high:  # What is left only falls with the position.
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.unsummarised_after(middle) >= count else (low, middle - 1)
        return low


def _merged(runs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in runs:
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged
