"""How long originals are kept, which of a conversation are over their age, and which of those wait.

`OverAgeCheck` reads the stamps of a conversation and the facts of its view. It erases nothing and knows no store.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from msgspec import Struct

from ..errors import BadSetting, UnknownHandle
from .handles import parse_handle
from .runs import AgentRun
from .stamps import Expansion, Stamp, StampRow

__all__ = [
    "TIMED",
    "Age",
    "AgeKind",
    "Ages",
    "Exempt",
    "OverAge",
    "OverAgeCheck",
    "Shown",
    "Wait",
    "over_age_runs",
    "read_age",
    "read_ages",
    "read_rule",
    "shows_again",
]

AgeKind = Literal["tool_results", "assistant_messages", "user_messages", "media", "runs", "conversations", "all"]
"""What a rule is about. `media`: messages that hold an image, a document or a sound. `runs`: the texts of agents' runs
and their steps, counted from the end of a run. `conversations`: all of one, counted from its newest message. `all`:
every message.
"""

Exempt = Literal["short", "shown", "pinned", "system", "input"]
"""What waits although it is over its age, unless a rule says otherwise. `shown`: what the view shows, whole or in part;
`short`: what it shows only in a short form. `pinned`. `system`: system prompts. `input`: the newest input of the user.
"""

TIMED = ("runs", "conversations")
"""Kinds that have no turns of their own."""

_WORD = {
    "millisecond": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 7 * 86_400_000,
    "month": 30 * 86_400_000,
    "year": 365 * 86_400_000,
}
"""Milliseconds. A month is 30 days here, and a year 365."""
_LIMIT = re.compile(r"(\d{1,18})\s*(turn|" + "|".join(_WORD) + r")s?")


class Age(Struct, frozen=True):
    """One rule: what of one kind is kept for no longer than this.

    With both limits a message has to pass both: "the last 200 turns, and the last 90 days". Whoever means either of the
    two says it in two rules, since a message goes as soon as one rule says so. That cannot be said the other way round.

    Of several rules that are about a message the narrowest ones decide: one for its tool before one for media, before
    one for who said it, before `all`. Raises BadSetting for what is not allowed.
    """

    kind: AgeKind
    turns: int | None = None
    """Model calls begun since it was said."""
    milliseconds: int | None = None
    tool: str = ""
    """Only results of the tool with this name."""
    even: tuple[Exempt, ...] = ()
    """What goes all the same. With `shown`, summaries that tell of it go too."""

    def __post_init__(self) -> None:
        if self.kind not in get_args(AgeKind):
            raise BadSetting(f"Ages are told for {', '.join(get_args(AgeKind))}, not for {self.kind!r:.60}.")
        if self.turns is None and self.milliseconds is None:
            raise BadSetting(f"How long are {self.kind} kept? Give turns, a time, or both.")
        for limit in (self.turns, self.milliseconds):
            if limit is not None and (type(limit) is not int or limit < 0):
                raise BadSetting(f"An age is a whole number of 0 or more, not {limit!r:.60}.")
        if self.turns is not None and self.kind in TIMED:
            raise BadSetting(f"The age of {self.kind} is a time, such as 90 days; they have no turns of their own.")
        if self.tool and self.kind != "tool_results":
            raise BadSetting(f"Only the age of tool_results can be told for one tool, not that of {self.kind}.")
        if unknown := [name for name in self.even if name not in get_args(Exempt)]:
            raise BadSetting(f"even= names {', '.join(get_args(Exempt))}, not {unknown[0]!r:.60}.")

    def __str__(self) -> str:
        """The rule as `read_age` reads it."""
        limits = [f"{self.turns} turn{'s' * (self.turns != 1)}"] if self.turns is not None else []
        limits += [_told(self.milliseconds)] if self.milliseconds is not None else []
        of = f":{self.tool}" if self.tool else ""
        even = f", even {', even '.join(self.even)}" if self.even else ""
        return f"{self.kind.replace('_', ' ')}{of} = {' and '.join(limits)}{even}"

    @property
    def rank(self) -> int:
        """How narrow it is: the narrowest rules decide."""
        return 3 if self.tool else {"all": 0, "media": 2}.get(self.kind, 1)

    def is_over(self, turns: int, milliseconds: int) -> bool:
        """Whether something of this age has passed every limit."""
        return (self.turns is None or turns >= self.turns) and (
            self.milliseconds is None or milliseconds >= self.milliseconds
        )


def read_age(kind: str, told: str) -> Age:
    """A rule in words: `read_age("tool results", "90 days")`.

    The kind may be written with blanks or hyphens, and `tool results:grep` is about one tool. What is told is one limit
    or two with `and`: `200 turns`, `12 hours`, `90 days and 200 turns`; then, each after a comma, what goes all the
    same: `90 days, even pinned, even shown`. Raises BadSetting.
    """
    name, _, tool = kind.partition(":")
    limits, *exceptions = (piece.strip() for piece in told.split(","))
    found: dict[str, int] = {}
    for limit in re.split(r"\s+and\s+", limits):
        match = _LIMIT.fullmatch(limit.strip().lower())
        what = "turns" if match and match[2] == "turn" else "milliseconds"
        if match is None or what in found:
            raise BadSetting(f"An age looks like 90 days, 200 turns, or 90 days and 200 turns; not {told!r:.80}.")
        found[what] = int(match[1]) * (_WORD[match[2]] if what == "milliseconds" else 1)
    if wrong := [one for one in exceptions if not one.startswith("even ")]:
        raise BadSetting(f"After the age {limits!r} may follow `even pinned` and the like, not {wrong[0]!r:.60}.")
    even = tuple(one.removeprefix("even ").strip() for one in exceptions)
    word = "_".join(name.strip().lower().replace("-", " ").replace("_", " ").split())
    return Age(word, found.get("turns"), found.get("milliseconds"), tool.strip(), even)  # type: ignore[arg-type]


def read_rule(told: str) -> Age:
    """A rule as `str(age)` writes it: `tool results:grep = 90 days and 200 turns, even pinned`. Raises BadSetting."""
    kind, is_told, limits = told.partition("=")
    if not is_told:
        raise BadSetting(f'A kind and its age look like "tool results=90 days"; not {told!r:.80}.')
    return read_age(kind, limits)


Ages = Mapping[str, str | Sequence[str]] | Sequence[Age]
"""Rules as they are handed in: values, or in words by kind, as `read_age` reads them, one or several for a kind."""


def read_ages(told: Ages) -> tuple[Age, ...]:
    """All of these rules. Raises BadSetting."""
    if isinstance(told, Mapping):
        ages = tuple(read_age(kind, said) for kind, one in told.items() for said in _each(kind, one))
    else:
        ages = (told,) if isinstance(told, Age) else tuple(told)
    if wrong_age := [age for age in ages if not isinstance(age, Age)]:
        raise BadSetting(
            f'Ages look like {{"tool results": "90 days"}}, or are values of Age; not {wrong_age[0]!r:.60}.'
        )
    if not ages:
        raise BadSetting('There is no age by which anything could go. Give one, such as {"tool results": "90 days"}.')
    return ages


def _each(kind: object, told: object) -> list[str]:
    """The rules in words that are told for one kind."""
    each = list(told) if isinstance(told, list | tuple) else [told]
    said = [one for one in each if isinstance(one, str)]
    if not isinstance(kind, str) or not said or said != each:
        raise BadSetting(f"The age of {kind!r:.60} is a text, such as '90 days', or a list of such; not {told!r:.60}.")
    return said


def _told(milliseconds: int) -> str:
    """A time in the largest unit that tells it exactly."""
    for word, size in sorted(_WORD.items(), key=lambda one: -one[1]):
        if word not in ("month", "year") and milliseconds % size == 0 and milliseconds:
            number = milliseconds // size
            return f"{number} {word}{'s' * (number != 1)}"
    return "0 seconds"


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


class OverAge(NamedTuple):
    """One message that is over its age."""

    row: StampRow
    age: Age
    """The rule that says so."""
    since: int
    """When it was said at the earliest, in milliseconds since 1970."""
    has_media: bool


class OverAgeCheck:
    """What of a conversation is over its age. `take` its messages in order, answer what is `unsure`, then ask.

    `now`: milliseconds since 1970. A clock that went back ages nothing early: no message counts as older than one that
    was said before it.
    """

    def __init__(self, ages: Sequence[Age], now: int, shown: Shown) -> None:
        self._ages = [age for age in ages if age.kind not in TIMED]
        self._whole = [age for age in ages if age.kind == "conversations" and age.is_over(0, now - shown.touched)]
        self._now, self._shown, self._latest = now, shown, 0
        self.going: dict[int, OverAge] = {}
        """By position."""
        self.waiting: dict[int, tuple[OverAge, Wait]] = {}
        """By position: those that are over their age and wait, and why."""
        self.unsure: list[int] = []
        """Positions of messages for which it counts whether they hold media: to be told by `tell`."""
        self._open: dict[int, tuple[StampRow, int]] = {}
        self._copies: list[tuple[StampRow, frozenset[int]]] = []
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

    def take(self, row: StampRow) -> None:
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

    def spare_shared(self, shared: int, other: Shown, copies: Iterable[tuple[StampRow, frozenset[int]]] = ()) -> None:
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

    def _over(self, row: StampRow, since: int, turn: int, *, has_media: bool) -> list[Age]:
        """The rules by which a message is over its age, those that spare the least before others."""
        about = [age for age in self._ages if _is_about(age, row.stamp, has_media=has_media)]
        narrowest = max((age.rank for age in about), default=0)
        turns, time = turn - row.stamp.turn, self._now - since
        over = [age for age in about if age.rank == narrowest and age.is_over(turns, time)]
        return sorted(over, key=lambda age: ("shown" in age.even, len(age.even)), reverse=True)

    def _judge(self, row: StampRow, over: Sequence[Age], since: int, *, has_media: bool) -> None:
        if self._whole:
            self.going[row.position] = OverAge(row, self._whole[0], since, has_media)
            return
        waits = [(age, _wait_of(age, row, self._shown)) for age in over]
        for age, wait in waits:
            if wait is None and (row.size or "shown" in age.even):
                self.going[row.position] = OverAge(row, age, since, has_media)
                return
        for age, wait in waits[:1]:
            if wait is not None and row.size:
                self.waiting[row.position] = OverAge(row, age, since, has_media), wait

    def _wait(self, position: int, why: Wait) -> None:
        if going := self.going.pop(position, None):
            self.waiting[position] = going, why

    def _is_outlived(self, position: int) -> bool:
        return any(first <= position <= last for first, last in self._shown.outlived)


def shows_again(row: StampRow) -> bool:
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


def _wait_of(age: Age, row: StampRow, shown: Shown) -> Wait | None:
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


def _form(row: StampRow) -> str | None:
    return row.stamp.expanded.form if row.stamp.expanded else None


def _sources(shown: Expansion, by_id: Mapping[str, int], old: Sequence[int]) -> list[int]:
    """Which of the old messages, whose positions are given in order, are shown again here."""
    found = [by_id[shown.message]] if shown.message in by_id else []
    if shown.handle:
        try:
            span = parse_handle(shown.handle)
        except UnknownHandle:
            return list(old)  # Nobody can tell any more, so all of them wait with it.
        found += old[bisect_left(old, span.first) : bisect_right(old, span.last)]
    return found
