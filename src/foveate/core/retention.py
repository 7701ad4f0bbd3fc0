"""Retention rules, and the check which messages exceed their age.

`OverAgeCheck` reads the stamps of a conversation and the facts of its view. It erases nothing and uses no store.
"""

from __future__ import annotations

import re
import reprlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from msgspec import Struct

from ..errors import BadSetting, UnknownHandle
from .handles import parse_handle
from .runs import AgentRun
from .stamps import Expansion, Stamp, StampRow
from .tool_names import tool_name

__all__ = [
    "TIMED",
    "Age",
    "AgeKind",
    "Ages",
    "Exempt",
    "OverAge",
    "OverAgeCheck",
    "Visible",
    "Wait",
    "over_age_runs",
    "read_age",
    "read_ages",
    "read_rule",
    "shows_again",
]

AgeKind = Literal[
    "tool_results", "assistant_messages", "user_messages", "media", "plugin_blocks", "runs", "conversations", "all"
]
"""The subject of a rule. `media`: messages with an image, a document or a sound. `plugin_blocks`: blocks that plugins
added for a limited number of calls, once these are over; they are released, and not erased. `runs`: the texts of
agents' runs and their steps, counted from the end of a run. `conversations`: whole conversations, counted from their
newest message. `all`: every message.
"""

Exempt = Literal["short", "shown", "pinned", "system", "input"]
"""Content that is kept beyond its age unless a rule includes it. `shown`: visible content, whole or in part; `short`:
content that is visible only in a short form; `pinned`; `system`: system prompts; `input`: the newest user input.
"""

TIMED = ("runs", "conversations")
"""Kinds whose age is only a time."""

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
"""Milliseconds. A month is 30 days, a year 365."""
_LIMIT = re.compile(r"(\d{1,18})\s*(turn|" + "|".join(_WORD) + r")s?")


class Age(Struct, frozen=True):
    """One rule: content of one kind is kept no longer than this.

    A message must exceed both limits if both are set: "the last 200 turns, and the last 90 days". For either of two
    limits, use two rules: a message goes as soon as one rule applies.

    If several rules match a message, the narrowest ones decide: a rule for its tool before one for media, before one
    for its author, before `all`. Raises BadSetting for invalid values.
    """

    kind: AgeKind
    """The subject of the rule."""
    turns: int | None = None
    """Model calls begun since the message was appended."""
    milliseconds: int | None = None
    """Time since the message was appended."""
    tool: str = ""
    """Only results of this tool."""
    even: tuple[Exempt, ...] = ()
    """Content that goes in spite of its protection. With `shown`, summaries of it go too."""

    def __post_init__(self) -> None:
        if self.kind not in get_args(AgeKind):
            raise BadSetting(f"Unknown kind {self.kind!r:.60}. Use one of {', '.join(get_args(AgeKind))}.")
        if self.turns is None and self.milliseconds is None:
            raise BadSetting(f"The age of {self.kind} has no limit. Set turns, a time, or both.")
        for limit in (self.turns, self.milliseconds):
            if limit is not None and (type(limit) is not int or limit < 0):
                raise BadSetting(f"Age must be a whole number of 0 or more, not {limit!r:.60}.")
        if self.turns is not None and self.kind in TIMED:
            raise BadSetting(f"The age of {self.kind} must be a time, such as 90 days. They have no turns.")
        if self.tool and self.kind != "tool_results":
            raise BadSetting(f"The kind {self.kind} cannot name a tool. Only tool_results can.")
        if self.even and self.kind == "plugin_blocks":
            raise BadSetting(f"Blocks of plugins wait while they are shown or pinned. Remove `even {self.even[0]}`.")
        if unknown := [name for name in self.even if name not in get_args(Exempt)]:
            raise BadSetting(f"even= contains {unknown[0]!r:.60}. Use {', '.join(get_args(Exempt))}.")

    def __str__(self) -> str:
        """Return the rule as `read_age` parses it."""
        limits = [f"{self.turns} turn{'s' * (self.turns != 1)}"] if self.turns is not None else []
        limits += [_duration(self.milliseconds)] if self.milliseconds is not None else []
        of = f":{self.tool}" if self.tool else ""
        even = f", even {', even '.join(self.even)}" if self.even else ""
        return f"{self.kind.replace('_', ' ')}{of} = {' and '.join(limits)}{even}"

    @property
    def rank(self) -> int:
        """Return how narrow the rule is. The narrowest rules decide."""
        return 3 if self.tool else {"all": 0, "media": 2}.get(self.kind, 1)

    def is_over(self, turns: int, milliseconds: int) -> bool:
        """Return whether this age exceeds every limit of the rule."""
        return (self.turns is None or turns >= self.turns) and (
            self.milliseconds is None or milliseconds >= self.milliseconds
        )


def read_age(kind: str, text: str) -> Age:
    """Parse a rule: `read_age("tool results", "90 days")`.

    The kind may contain spaces or hyphens; `tool results:grep` is about one tool. `text` has one limit, or two with
    `and`: `200 turns`, `12 hours`, `90 days and 200 turns`. Exceptions from the protection follow, each after a comma:
    `90 days, even pinned, even shown`. Raises BadSetting.
    """
    name, _, tool = kind.partition(":")
    limits, *exceptions = (piece.strip() for piece in text.split(","))
    values: dict[str, int] = {}
    for limit in re.split(r"\s+and\s+", limits):
        match = _LIMIT.fullmatch(limit.strip().lower())
        unit = "turns" if match and match[2] == "turn" else "milliseconds"
        if match is None or unit in values:
            raise BadSetting(f"Age {text!r:.80} is not valid. Write 90 days, 200 turns, or 90 days and 200 turns.")
        values[unit] = int(match[1]) * (_WORD[match[2]] if unit == "milliseconds" else 1)
    if wrong := [phrase for phrase in exceptions if not phrase.startswith("even ")]:
        raise BadSetting(
            f"Text {wrong[0]!r:.60} after the age {limits!r} is not valid. Write `even pinned` or similar."
        )
    even = tuple(phrase.removeprefix("even ").strip() for phrase in exceptions)
    word = "_".join(name.strip().lower().replace("-", " ").replace("_", " ").split())
    return Age(word, values.get("turns"), values.get("milliseconds"), tool.strip(), even)  # type: ignore[arg-type]


def read_rule(text: str) -> Age:
    """Parse a rule as `str(age)` writes it: `tool results:grep = 90 days and 200 turns, even pinned`. Raises
    BadSetting.
    """
    kind, separator, limits = text.partition("=")
    if not separator:
        raise BadSetting(f'Rule {text!r:.80} is not valid. Write a kind and its age, such as "tool results=90 days".')
    return read_age(kind, limits)


Ages = Mapping[str, str | Sequence[str]] | Sequence[Age]
"""Rules as arguments: values, or texts by kind, as `read_age` parses them, one or several for a kind."""


def read_ages(rules: Ages) -> tuple[Age, ...]:
    """Return all rules as values. Raises BadSetting."""
    if isinstance(rules, Mapping):
        ages = tuple(read_age(kind, text) for kind, texts in rules.items() for text in _texts_of(kind, texts))
    elif isinstance(rules, Age):
        ages = (rules,)
    elif isinstance(rules, Iterable) and not isinstance(rules, str | bytes):
        ages = tuple(rules)
    else:
        raise BadSetting(f'Ages must be a dict such as {{"tool results": "90 days"}}, not {reprlib.repr(rules)}.')
    if wrong_age := [age for age in ages if not isinstance(age, Age)]:
        raise BadSetting(
            f'Rule {wrong_age[0]!r:.60} is not valid. Pass {{"tool results": "90 days"}} or values of Age.'
        )
    if not ages:
        raise BadSetting('Retention needs at least one rule. Pass one, such as {"tool results": "90 days"}.')
    return ages


def _texts_of(kind: object, value: object) -> list[str]:
    """Return the texts of the rules for one kind."""
    each = list(value) if isinstance(value, list | tuple) else [value]
    texts = [text for text in each if isinstance(text, str)]
    if not isinstance(kind, str) or not texts or texts != each:
        raise BadSetting(
            f"Age {value!r:.60} of {kind!r:.60} is not valid. Pass a text, such as '90 days', or a list of texts."
        )
    return texts


def _duration(milliseconds: int) -> str:
    """Return a time in the largest unit that gives a whole number."""
    for word, size in sorted(_WORD.items(), key=lambda item: -item[1]):
        if word not in ("month", "year") and milliseconds % size == 0 and milliseconds:
            number = milliseconds // size
            return f"{number} {word}{'s' * (number != 1)}"
    return "0 seconds"


Wait = Literal["short", "shown", "pinned", "system", "input", "copied", "forked"]
"""Why a message waits. `copied`: a kept message shows it again. `forked`: a fork that shares it keeps it."""

_OF_ORIGIN: Mapping[str, AgeKind] = {
    "tool": "tool_results",
    "derived": "tool_results",
    "assistant": "assistant_messages",
    "user": "user_messages",
}
"""Other messages (system prompts, plugin messages, imported summaries) match only `all`."""


class Visible(Struct, frozen=True):
    """Visible messages of one conversation, by position, and the time of the view."""

    turn: int
    """Number of model calls begun."""
    whole: frozenset[int] = frozenset()
    """Positions visible whole or in part."""
    short: frozenset[int] = frozenset()
    """Positions visible in a short form."""
    pinned: frozenset[int] = frozenset()
    """Pinned positions."""
    last_input: int = 0
    """Position of the newest user input."""
    outlived: tuple[tuple[int, int], ...] = ()
    """Spans of visible summaries with erased originals."""
    touched: int = 0
    """Time of the newest message, in milliseconds since 1970."""


class OverAge(NamedTuple):
    """One message over its age."""

    row: StampRow
    """The stamp of the message."""
    age: Age
    """The rule that applies."""
    since: int
    """The earliest possible time of the message, in milliseconds since 1970."""
    has_media: bool
    """Whether the message has media."""


class OverAgeCheck:
    """The check which messages of a conversation are over their age.

    Call `take` for every message in order, then `set_has_media` for those in `undecided`, then read the results.

    `now`: milliseconds since 1970. After a clock went back, no message counts as older than a message before it.
    """

    def __init__(self, ages: Sequence[Age], now: int, shown: Visible) -> None:
        self._ages = [age for age in ages if age.kind not in TIMED]
        self._whole = [age for age in ages if age.kind == "conversations" and age.is_over(0, now - shown.touched)]
        self._now, self._shown, self._latest = now, shown, 0
        self.due: dict[int, OverAge] = {}
        """Messages to erase, by position."""
        self.waiting: dict[int, tuple[OverAge, Wait]] = {}
        """Messages over their age that wait, by position, with the reason."""
        self.undecided: list[int] = []
        """Positions of messages for which media decide. Call `set_has_media` for each."""
        self._open: dict[int, tuple[StampRow, int]] = {}
        self._copies: list[tuple[StampRow, frozenset[int]]] = []
        """Messages that show others again, and the positions that the text of each one names."""

    @property
    def is_untouched(self) -> bool:
        """Return whether the whole conversation goes because its newest message is old enough."""
        return bool(self._whole)

    @property
    def searches(self) -> list[int]:
        """Return the positions of search results. Call `set_quotes` for each.

        They include messages to erase: if one of them waits, all messages it quotes wait too.
        """
        copies = [(row.position, row.stamp.expanded) for row, _ in self._copies]
        return [position for position, shown in copies if shown is not None and shown.form == "search"]

    def take(self, row: StampRow) -> None:
        """Add the next message, in order of position."""
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
            self.undecided.append(row.position)
            self._open[row.position] = row, self._latest

    def set_has_media(self, position: int, *, has_media: bool) -> None:
        """Decide an undecided message."""
        row, since = self._open.pop(position)
        self._judge(row, self._over(row, since, self._shown.turn, has_media=has_media), since, has_media=has_media)

    def set_quotes(self, position: int, places: Iterable[int]) -> None:
        """Set the positions that the search result at `position` quotes."""
        self._copies = [(row, frozenset(places) if row.position == position else named) for row, named in self._copies]

    def spare_copied(self) -> None:
        """Let messages wait that a kept message shows again. Call it after all other decisions."""
        by_id = {item.row.id: position for position, item in self.due.items()}
        old = sorted(self.due)
        for copy, places in reversed(self._copies):
            if copy.position in self.due or copy.stamp.expanded is None:
                continue  # Newest first: a message to erase protects no earlier ones.
            for position in {*places, *_sources(copy.stamp.expanded, by_id, old)}:
                self._wait(position, "copied")

    def spare_shared(self, shared: int, other: Visible, copies: Iterable[tuple[StampRow, frozenset[int]]] = ()) -> None:
        """Let messages wait that another conversation still needs. It shares the messages up to the position `shared`.

        `other`: the view of that conversation. `copies`: its own messages that show others again, each with the
        positions that its text names.
        """
        if any(age.is_over(0, self._now - other.touched) for age in self._whole):
            return
        by_id = {item.row.id: position for position, item in self.due.items() if position <= shared}
        old = sorted(by_id.values())
        # All of them, regardless of age: they release their sources when that conversation does.
        for copy, places in copies:
            for position in {*places, *_sources(copy.stamp.expanded, by_id, old)} if copy.stamp.expanded else ():
                if position <= shared:
                    self._wait(position, "forked")
        kept = {*other.whole, *other.short, *other.pinned, other.last_input}
        for position, item in sorted(self.due.items()):
            if position > shared:
                break
            turns = other.turn - item.row.stamp.turn
            if not self._whole and position not in kept and (item.age.turns is None or turns >= item.age.turns):
                continue  # The rule applies there too.
            over = self._over(item.row, item.since, other.turn, has_media=item.has_media)
            if all(_wait_of(age, item.row, other) for age in over):
                self._wait(position, "forked")

    def _over(self, row: StampRow, since: int, turn: int, *, has_media: bool) -> list[Age]:
        """Return the rules by which a message is over its age, the rules with the fewest protections first."""
        about = [age for age in self._ages if _is_about(age, row.stamp, has_media=has_media)]
        narrowest = max((age.rank for age in about), default=0)
        turns, time = turn - row.stamp.turn, self._now - since
        over = [age for age in about if age.rank == narrowest and age.is_over(turns, time)]
        return sorted(over, key=lambda age: ("shown" in age.even, len(age.even)), reverse=True)

    def _judge(self, row: StampRow, over: Sequence[Age], since: int, *, has_media: bool) -> None:
        if self._whole:
            self.due[row.position] = OverAge(row, self._whole[0], since, has_media)
            return
        waits = [(age, _wait_of(age, row, self._shown)) for age in over]
        for age, wait in waits:
            if wait is None and (row.size or "shown" in age.even):
                self.due[row.position] = OverAge(row, age, since, has_media)
                return
        for age, wait in waits[:1]:
            if wait is not None and row.size:
                self.waiting[row.position] = OverAge(row, age, since, has_media), wait

    def _wait(self, position: int, why: Wait) -> None:
        if item := self.due.pop(position, None):
            self.waiting[position] = item, why

    def _is_outlived(self, position: int) -> bool:
        return any(first <= position <= last for first, last in self._shown.outlived)


def shows_again(row: StampRow) -> bool:
    """Return whether this message of the conversation shows others again, and is not erased."""
    return row.stamp.expanded is not None and row.stamp.expanded.is_copy and row.size > 0


def over_age_runs(runs: Iterable[AgentRun], ages: Sequence[Age], now: int) -> list[AgentRun]:
    """Return the runs whose texts are over their age. A run that has not ended waits."""
    rules = [age for age in ages if age.kind == "runs"]
    return [run for run in runs if run.ended and any(age.is_over(0, now - run.ended) for age in rules)]


def _is_about(age: Age, stamp: Stamp, *, has_media: bool) -> bool:
    match age.kind:
        case "all":
            return True
        case "media":
            return has_media
        case _:
            return age.kind == _OF_ORIGIN.get(stamp.origin) and (
                not age.tool or stamp.tool in (age.tool, tool_name(age.tool))
            )


def _wait_of(age: Age, row: StampRow, shown: Visible) -> Wait | None:
    """Return why a message over its age waits, or None."""
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


def _sources(shown: Expansion, by_id: Mapping[str, int], old: Sequence[int]) -> list[int]:
    """Return the old messages that are shown again here. `old`: positions in order."""
    positions = [by_id[shown.message]] if shown.message in by_id else []
    if shown.handle:
        try:
            span = parse_handle(shown.handle)
        except UnknownHandle:
            return list(old)  # The sources are unknown, so all of them wait.
        positions += old[bisect_left(old, span.first) : bisect_right(old, span.last)]
    return positions
