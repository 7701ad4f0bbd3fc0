"""Fold finished stretches of an agent's steps into a few lines each, without a model.

In a long run most of what a view holds are steps that are done: what the model said before a call, the call, a result
that has shrunk already. Behind a protected window such steps become one text a stretch, which tells what was done, what
came back, and each name once, with the handles that show a step whole again. What users said stays as it is.

A stretch is counted from where the last one, or what stays, ends, and is closed once it is long enough. So it is the
same at every later call, is folded once, and what stands before it is not touched again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ..core.caches import cached
from ..core.edits import Edit, Span, Summarize
from ..core.planner import Policy
from ..core.rules import cut_points
from ..core.view import Entry, View
from ..errors import BadSetting
from .folded import steps_in_short, told_in
from .protected import Tokens, check_tokens, older_than, tokens_of_share

__all__ = ["FOLDED", "PROTECT", "STRETCH", "fold"]

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
    return (
        is_step
        and entry.source is not None
        and entry.kind == "message"
        and not entry.is_pinned()
        and entry.renewed < turn
    )


def _is_apart(entries: Sequence[Entry], start: int, end: int) -> bool:
    """Whether an answer in this unit was given elsewhere in the history: a span over it would cover other messages."""
    return any(after.position != before.position + 1 for before, after in pairwise(entries[start:end]))
