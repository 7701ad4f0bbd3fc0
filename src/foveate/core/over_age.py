"""What of a conversation is over its age, and which of it waits.

Nothing here erases, reads a clock or knows a store: `Aging` is shown the stamps of a conversation one by one, with what
its view shows, and then tells which messages go and which wait.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from ..errors import UnknownHandle
from .ages import TIMED, Age, AgeKind
from .handles import parse_handle
from .runs import AgentRun
from .stamps import Expanded, Stamp, Stamped

__all__ = ["Aging", "Going", "Shown", "Wait", "over_age_runs", "shows_again"]

Wait = Literal["short", "shown", "pinned", "system", "input", "copied", "forked"]
"""Why a message waits. `copied`: a message that stays shows it again. `forked`: a fork that shares it keeps it."""

_OF_ORIGIN: Mapping[str, AgeKind] = {
    "tool": "tool_results",
    "derived": "tool_results",
    "assistant": "assistant_messages",
    "user": "user_messages",
}
"""Other messages (system prompts, what plugins said, imported summaries) are of the kind `all` alone."""


class Shown(Struct, frozen=True):
    """What one conversation's view shows, by positions in its history, and when that is."""

    turn: int
    """Model calls begun."""
    whole: frozenset[int] = frozenset()
    """Shown whole or in part."""
    short: frozenset[int] = frozenset()
    """Shown in a short form."""
    pinned: frozenset[int] = frozenset()
    last_input: int = 0
    outlived: tuple[tuple[int, int], ...] = ()
    """Spans of summaries that are shown, and outlive some of what they tell of."""
    touched: int = 0
    """When its newest message was said, in milliseconds since 1970."""


class Going(NamedTuple):
    """One message that is over its age."""

    row: Stamped
    age: Age
    """The rule that says so."""
    since: int
    """When it was said at the earliest, in milliseconds since 1970."""
    has_media: bool


class Aging:
    """What of a conversation is over its age. `take` its messages in order, answer what is `unsure`, then ask.

    `now`: milliseconds since 1970. A clock that went back ages nothing early: no message counts as older than one that
    was said before it.
    """

    def __init__(self, ages: Sequence[Age], now: int, shown: Shown) -> None:
        self._ages = [age for age in ages if age.kind not in TIMED]
        self._whole = [age for age in ages if age.kind == "conversations" and age.is_over(0, now - shown.touched)]
        self._now, self._shown, self._latest = now, shown, 0
        self.going: dict[int, Going] = {}
        """By position."""
        self.waiting: dict[int, tuple[Going, Wait]] = {}
        """By position: those that are over their age and wait, and why."""
        self.unsure: list[int] = []
        """Positions of messages for which it counts whether they hold media: to be told by `tell`."""
        self._open: dict[int, tuple[Stamped, int]] = {}
        self._copies: list[tuple[Stamped, frozenset[int]]] = []
        """Messages in which others were shown again, and the places that the text of one names."""

    @property
    def is_untouched(self) -> bool:
        """Whether all of the conversation goes, because nothing was said in it for so long."""
        return bool(self._whole)

    @property
    def searches(self) -> list[int]:
        """Positions of results of searches: to be told by `quotes` which places they quote.

        Of those that go too, since one that is shown again stays with all that it quotes.
        """
        return [one.position for one, _ in self._copies if _form(one) == "search"]

    def take(self, row: Stamped) -> None:
        """The next message, in order of position."""
        stamp = row.stamp
        self._latest = max(self._latest, stamp.time)
        if shows_again(row):
            self._copies.append((row, frozenset()))
        if not row.size and not self._is_outlived(row.position):
            return
        without, with_media = (self._over(row, self._latest, self._shown.turn, has_media=it) for it in (False, True))
        if self._whole or without == with_media:
            self._judge(row, without, self._latest, has_media=False)
        elif row.size:
            self.unsure.append(row.position)
            self._open[row.position] = row, self._latest

    def tell(self, position: int, *, has_media: bool) -> None:
        """Whether a message that is `unsure` holds media."""
        row, since = self._open.pop(position)
        self._judge(row, self._over(row, since, self._shown.turn, has_media=has_media), since, has_media=has_media)

    def quotes(self, position: int, places: Iterable[int]) -> None:
        """Which places the result of a search at `position` quotes."""
        self._copies = [(one, frozenset(places) if one.position == position else named) for one, named in self._copies]

    def spare_copied(self) -> None:
        """Let wait what a message that stays shows again. Asked after all else was told."""
        by_id = {going.row.id: position for position, going in self.going.items()}
        old = sorted(self.going)
        for copy, places in reversed(self._copies):
            if copy.position in self.going or copy.stamp.expanded is None:
                continue  # The newest first: one that goes keeps nothing that was said before it.
            for position in {*places, *_sources(copy.stamp.expanded, by_id, old)}:
                self._wait(position, "copied")

    def spare_shared(self, shared: int, other: Shown, copies: Iterable[tuple[Stamped, frozenset[int]]] = ()) -> None:
        """Let wait what is no older than it may be in another conversation that shares the first messages, up to the
        position `shared`, and what it shows again in messages of its own: `copies`, each with the places that the text
        of one names.
        """
        if any(age.is_over(0, self._now - other.touched) for age in self._whole):
            return
        by_id = {going.row.id: position for position, going in self.going.items() if position <= shared}
        old = sorted(by_id.values())
        for copy, places in copies:  # All of them, however old: what they keep goes once that conversation lets go.
            for position in {*places, *_sources(copy.stamp.expanded, by_id, old)} if copy.stamp.expanded else ():
                if position <= shared:
                    self._wait(position, "forked")
        kept = {*other.whole, *other.short, *other.pinned, other.last_input}
        for position, one in sorted(self.going.items()):
            if position > shared:
                break
            turns = other.turn - one.row.stamp.turn
            if not self._whole and position not in kept and (one.age.turns is None or turns >= one.age.turns):
                continue  # The rule by which it goes here says so there too.
            over = self._over(one.row, one.since, other.turn, has_media=one.has_media)
            if all(_wait_of(age, one.row, other) for age in over):
                self._wait(position, "forked")

    def _over(self, row: Stamped, since: int, turn: int, *, has_media: bool) -> list[Age]:
        """The rules by which a message is over its age, those that spare the least before others."""
        about = [age for age in self._ages if _is_about(age, row.stamp, has_media=has_media)]
        narrowest = max((age.rank for age in about), default=0)
        turns, time = turn - row.stamp.turn, self._now - since
        over = [age for age in about if age.rank == narrowest and age.is_over(turns, time)]
        return sorted(over, key=lambda age: ("shown" in age.even, len(age.even)), reverse=True)

    def _judge(self, row: Stamped, over: Sequence[Age], since: int, *, has_media: bool) -> None:
        if self._whole:
            self.going[row.position] = Going(row, self._whole[0], since, has_media)
            return
        waits = [(age, _wait_of(age, row, self._shown)) for age in over]
        for age, wait in waits:
            if wait is None and (row.size or "shown" in age.even):
                self.going[row.position] = Going(row, age, since, has_media)
                return
        for age, wait in waits[:1]:
            if wait is not None and row.size:
                self.waiting[row.position] = Going(row, age, since, has_media), wait

    def _wait(self, position: int, why: Wait) -> None:
        if going := self.going.pop(position, None):
            self.waiting[position] = going, why

    def _is_outlived(self, position: int) -> bool:
        return any(first <= position <= last for first, last in self._shown.outlived)


def shows_again(row: Stamped) -> bool:
    """Whether the conversation showed others again in this message, and it still says so."""
    return row.stamp.expanded is not None and row.stamp.expanded.is_copy and row.size > 0


def over_age_runs(runs: Iterable[AgentRun], ages: Sequence[Age], now: int) -> list[AgentRun]:
    """The runs that ended so long ago that their texts go. One that never ended waits."""
    told = [age for age in ages if age.kind == "runs"]
    return [run for run in runs if run.ended and any(age.is_over(0, now - run.ended) for age in told)]


def _is_about(age: Age, stamp: Stamp, *, has_media: bool) -> bool:
    match age.kind:
        case "all":
            return True
        case "media":
            return has_media
        case _:
            return age.kind == _OF_ORIGIN.get(stamp.origin) and age.tool in ("", stamp.source)


def _wait_of(age: Age, row: Stamped, shown: Shown) -> Wait | None:
    """Why a message waits that is over its age."""
    at, even = row.position, age.even
    if row.stamp.origin == "system" and "system" not in even:
        return "system"
    if at == shown.last_input and "input" not in even:
        return "input"
    if at in shown.pinned and "pinned" not in even:
        return "pinned"
    if at in shown.whole and "shown" not in even:
        return "shown"
    if at in shown.short and "short" not in even and "shown" not in even:
        return "short"
    return None


def _form(row: Stamped) -> str | None:
    return row.stamp.expanded.form if row.stamp.expanded else None


def _sources(shown: Expanded, by_id: Mapping[str, int], old: Sequence[int]) -> list[int]:
    """Which of the old messages, whose positions are given in order, are shown again here."""
    found = [by_id[shown.message]] if shown.message in by_id else []
    if shown.handle:
        try:
            span = parse_handle(shown.handle)
        except UnknownHandle:
            return list(old)  # Nobody can tell any more, so all of them wait with it.
        found += old[bisect_left(old, span.first) : bisect_right(old, span.last)]
    return found
