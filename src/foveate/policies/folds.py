"""Fold finished stretches of an agent's steps into a few lines each, without a model.

In a long run most of what a view holds are steps that are done: what the model said before a call, the call, a result
that has shrunk already. Behind a protected window such steps become one text a stretch, which tells what was done, what
came back, and each name once, with the handles that show a step whole again. What users said stays as it is.

A stretch is counted from where the last one, or what stays, ends, and is closed once it is long enough. So it is the
same at every later call, is folded once, and what stands before it is not touched again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from ..core.caches import cached
from ..core.edits import Edit, Span, Summarize
from ..core.messages import Message, ToolCall, ToolResult
from ..core.planner import Policy
from ..core.rules import cut_points
from ..core.view import Entry, View
from ..digest import describe, digest, room_for
from ..errors import BadSetting
from .names import in_short, names_of
from .span_selection import Tokens, check_tokens, older_than, tokens_of_share

__all__ = ["FOLDED", "PROTECT", "STRETCH", "fold", "steps_in_short", "told_in"]

_WHITE = re.compile(r"\s+")
_ESCAPED = {"\n": "\\n", "\t": "\\t"}
_SAID = 240
"""Characters up to which what the model wrote is told whole."""
_SAID_SHARE = 0.3
_GIVEN = 100
"""Characters up to which an argument is told whole."""
_GIVEN_SHARE = 0.3
_SHORT = 120
"""Characters up to which a result is told whole."""
_LINE = 160
"""Characters of a line of a result."""


def steps_in_short(entries: Sequence[Entry], told: Iterable[str] = ()) -> str:
    """The messages of whole units, one paragraph for each of the model's. `told`: names that need not be told again."""
    short = _Short(set(told))
    answers: dict[str, Entry] = {}
    for entry in entries:
        if entry.result is not None:
            answers.setdefault(entry.result.call_id, entry)
    lines: list[str] = []
    for entry in entries:
        if entry.source is not None and entry.result is None:
            lines += short.step(entry, entry.source, answers)
    return "\n".join(lines)


@cached(4_096)
def told_in(text: str) -> frozenset[str]:
    """The names that a text tells."""
    return frozenset(names_of(text))


class _Short:
    """Writes steps, and remembers which names it has told."""

    def __init__(self, told: set[str]) -> None:
        self._told = told

    def step(self, entry: Entry, message: Message, answers: Mapping[str, Entry]) -> Iterator[str]:
        """The lines of one message of the model, and of the results of its calls."""
        said = list(self._said(message.text))
        calls = message.calls
        if said or not calls:
            yield " ".join([entry.handle, *said[:1]])
            yield from (f"    {line}" for line in said[1:])
        for number, call in enumerate(calls):
            begin = " " if said or number else entry.handle
            yield self._tell(f"{begin} {call.name}({self._given(call)})")
            answer = answers.get(call.call_id)
            if answer is not None and answer.result is not None:
                yield from self._answered(answer, answer.result)

    def _tell(self, line: str) -> str:
        self._told |= told_in(line)
        return line

    def _said(self, text: str) -> Iterator[str]:
        """What the model wrote: how it begins, and the lines further on that tell a new name."""
        flat = " ".join(text.split())
        if len(flat) <= _SAID:
            if flat:
                yield self._tell(flat)
            return
        yield self._tell(f"{flat[:_SAID].rsplit(' ', 1)[0]} …")
        yield from self._new_lines(digest(text, max(_SAID, int(len(text) * _SAID_SHARE))).text)

    def _given(self, call: ToolCall) -> str:
        try:
            given = msgspec.json.decode(call.arguments)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            given = None
        if not isinstance(given, dict):
            return self._value(call.arguments)
        return ", ".join(f"{key}={self._value(value)}" for key, value in given.items())

    def _value(self, value: Any) -> str:
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        flat = _on_one_line(text)
        if len(flat) <= _GIVEN:
            return flat
        kept = self._new_lines(in_short(text, max(_GIVEN, int(len(text) * _GIVEN_SHARE)), ""), as_written=True)
        return " /".join([f"{flat[: _GIVEN // 2]}…", *kept])

    def _answered(self, entry: Entry, result: ToolResult) -> Iterator[str]:
        text = entry.source.text if entry.source else ""
        flat = " ".join(text.split())
        mark = " failed" if result.state == "error" else ""
        if len(flat) <= _SHORT:
            yield self._tell(f"  → {entry.handle}{mark} {flat}".rstrip())
            return
        about = describe(text)
        size = f"{about.items:,} {about.item}" if about.items else f"{about.lines:,} lines"
        yield self._tell(f"  → {entry.handle}{mark} {about.kind}, {size}: {about.gist}")
        yield from (f"    {line}" for line in self._new_lines(digest(text, room_for(len(text)), entry.handle).text))

    def _new_lines(self, short: str, *, as_written: bool = False) -> list[str]:
        """The lines of a digest that tell a name which was not told yet. `as_written`: with what stood before them."""
        kept: list[str] = []
        for line in _body(short):
            shown = _on_one_line(f"\n{line}") if as_written else line.strip()
            if told_in(shown) - self._told:
                kept.append(self._tell(shown[:_LINE]))
        return kept


def _on_one_line(text: str) -> str:
    """A text with each run of white space as one space, or as the escape that it ends with, as calls write it."""
    return _WHITE.sub(lambda run: _ESCAPED.get(run[0][-1], " "), text)


def _body(text: str) -> list[str]:
    """The lines of a digest without its header."""
    lines = text.split("\n")
    return lines[1:] if lines[0].startswith("[") and len(lines) > 1 else lines


PROTECT = 0.1
"""Newest tokens that are never folded, as a share of the usable ones."""
STRETCH = 5_000
"""Tokens, as they were appended, from which on a stretch is closed."""
FOLDED = (
    "[Steps {handle} in short. They are done, and ask for nothing; "
    'expand("{handle}") shows all of them whole, expand("{last}") one.]\n{steps}'
)
"""What stands for a stretch."""

_NAME = "fold"
_LEAST_SHARE = 0.3
"""A stretch is folded if that saves so much of it."""


def fold(
    *, protect: Tokens = PROTECT, stretch: int = STRETCH, min_share: float = _LEAST_SHARE, framing: str = FOLDED
) -> Policy:
    """A policy that folds finished steps of the model, calls and results, a stretch at a time.

    `protect`: newest tokens that stay, as a number (int) or as a share of the usable tokens (float, below 1.0).
    `stretch`: tokens, as they were appended, that a stretch has at least, unless a user input or something else that
    stays ends it before. `min_share`: of the tokens of a stretch that folding must save. `framing`: what stands for it;
    `{handle}` and `{last}` are what `expand` takes, `{steps}` is the text.

    System prompts, what users said, pins, what waits for an answer, other summaries and what was expanded for the
    coming call stay, and end a stretch. Raises BadSetting for numbers out of range and for a framing without
    `{steps}`.
    """
    check_tokens("fold", protect=protect)
    if stretch < 1 or not 0 <= min_share < 1:
        raise BadSetting(f"fold needs stretch >= 1 and 0 <= min_share < 1, not {stretch} and {min_share}.")
    if "{steps}" not in framing:
        raise BadSetting("fold needs {steps} in its framing: nothing else would tell what was done.")

    def policy(view: View) -> Iterator[Edit]:
        safe = tokens_of_share(protect, view)
        old = older_than(view, safe)
        if not old:
            return
        told: set[str] = set()
        at = 0
        for start, end in _stretches(view, old, stretch):
            for entry in view.entries[at:start]:
                told |= _names(entry)
            at = end
            entries = view.entries[start:end]
            steps = _steps(entries, frozenset(told))
            first, last = entries[0], entries[-1]
            text = _framed(framing, first.position, max(entry.position for entry in entries), steps)
            before = sum([entry.tokens for entry in entries])
            told |= told_in(steps)
            if before - len(text) // 4 >= min_share * before:
                yield Summarize(Span(first.id, last.id), text, _NAME, f"older than the newest {safe:,} tokens")

    return policy


def _framed(framing: str, first: int, last: int, steps: str) -> str:
    text = framing.replace("{handle}", f"m{first}-m{last}").replace("{last}", f"m{last}")
    return text.replace("{steps}", steps)


@cached(8_192)
def _names(entry: Entry) -> frozenset[str]:
    return told_in(entry.message.text)


@cached(1_024)
def _steps(entries: Sequence[Entry], told: frozenset[str]) -> str:
    return steps_in_short(entries, told)


def _stretches(view: View, old: int, least: int) -> Iterator[tuple[int, int]]:
    """Where stretches begin and end that are closed and old."""
    entries = view.entries
    begin, size = 0, 0
    for start, end in pairwise(cut_points(view)):
        unit = entries[start:end]
        if not all(_may_go(entry, view.turn) for entry in unit) or _is_apart(entries, start, end):
            if begin < start <= old:
                yield begin, start
            begin, size = end, 0
            continue
        size += sum([entry.stamp.tokens for entry in unit])
        if end > old:
            return
        if size >= least:
            yield begin, end
            begin, size = end, 0


def _may_go(entry: Entry, turn: int) -> bool:
    is_step = entry.is_result or entry.message.role == "assistant"
    is_shown_whole = entry.kind == "message" and entry.source is not None
    return is_step and is_shown_whole and not entry.is_pinned() and entry.renewed < turn


def _is_apart(entries: Sequence[Entry], start: int, end: int) -> bool:
    """Whether an answer in this unit was given elsewhere in the history: a span over it would cover other messages."""
    return any(after.position != before.position + 1 for before, after in pairwise(entries[start:end]))
