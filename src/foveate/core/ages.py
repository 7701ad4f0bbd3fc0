"""Ages: how long originals are kept, by kind, and how a rule is read from words.

An age is told in turns, in time, or in both. What is over its age is found in `over_age.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from msgspec import Struct

from ..errors import BadSetting

__all__ = ["TIMED", "Age", "AgeKind", "Ages", "Spared", "read_age", "read_ages", "read_rule"]

AgeKind = Literal["tool_results", "assistant_messages", "user_messages", "media", "runs", "conversations", "all"]
"""What a rule is about. `media`: messages that hold an image, a document or a sound. `runs`: the texts of agents' runs
and their steps, counted from the end of a run. `conversations`: all of one, counted from its newest message. `all`:
every message.
"""

Spared = Literal["short", "shown", "pinned", "system", "input"]
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
    even: tuple[Spared, ...] = ()
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
        if unknown := [name for name in self.even if name not in get_args(Spared)]:
            raise BadSetting(f"even= names {', '.join(get_args(Spared))}, not {unknown[0]!r:.60}.")

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
