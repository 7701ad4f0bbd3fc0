"""Ways to shrink a conversation: the digest, two simple baselines, and whole conversations in a window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from foveate import Message, Options, open_conversation
from foveate.summarizers import SummaryRequest, digest_history, first_characters
from retention.conversations import Sample, distinct_characters, length_of, prose_of, text_of
from retention.scoring import Score, Verdict, count_cut_lines, judge

__all__ = ["BUDGETS", "POLICIES", "ROUNDS", "SUMMARIZERS", "WINDOWS", "Row", "measure_summarizer", "measure_views"]

Write = Callable[[Sequence[Message], str, int], str]
"""Takes messages, the previous summary, and the characters it may use. Returns a text."""

ROUNDS = (1, 3, 5, 10)
BUDGETS = (0.1, 0.2, 0.3)
WINDOWS = (2_000, 8_000, 32_000)
POLICIES = ("balanced",)
_OVERFLOW = 12
"""Characters of a conversation for each token of its window: about three windows."""


class Row(NamedTuple):
    """The figures of one way, over all conversations."""

    way: str
    budget: str
    """The share of the text that a summary may take, or the window in tokens."""
    rounds: int
    score: Score
    room: float | None
    """Share of the permitted room that the text takes, or of all different sentences if those are fewer."""
    cut: float | None
    """Share of the lines copied from prose that are cut inside a sentence."""
    losses: tuple[tuple[Verdict, str], ...] = ()
    """Each verdict with its text, for those who look for reasons."""


def _digest(messages: Sequence[Message], previous: str, room: int) -> str:
    return _ask(digest_history(), messages, previous, room)


def _first(messages: Sequence[Message], previous: str, room: int) -> str:
    return _ask(first_characters(), messages, previous, room)


def _ask(summarizer: object, messages: Sequence[Message], previous: str, room: int) -> str:
    assert callable(summarizer)
    answer = summarizer(SummaryRequest("compact", tuple(messages), room, previous))
    return answer if isinstance(answer, str) else answer.text


def _newest(messages: Sequence[Message], previous: str, room: int) -> str:
    """Return the newest whole lines that fit."""
    lines = [*previous.splitlines(), *(line for message in messages for line in text_of(message).splitlines())]
    kept: list[str] = []
    for line in reversed(lines):
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join(reversed(kept))


SUMMARIZERS: dict[str, Write] = {"digest": _digest, "first characters": _first, "newest lines": _newest}


def measure_summarizer(way: str, samples: Sequence[Sample], budget: float, rounds: int) -> Row:
    """Return the row of one summarizer.

    In each round it gets a part of the messages and its own last summary, and writes a text for both. Its room is the
    same in each round: the share `budget` of the text of one round.
    """
    found, used, cuts = list[tuple[Verdict, str]](), list[float](), [0, 0]
    for sample in samples:
        room = int(budget * sum(map(length_of, sample.messages)) / rounds)
        text = ""
        for part in sample.segments(rounds):
            text = SUMMARIZERS[way](part, text, room)
        found += [(verdict, text) for verdict in judge(sample.facts, text)]
        used.append(min(1.0, len(text) / min(room, distinct_characters(sample))))
        cuts = [sum(pair) for pair in zip(cuts, count_cut_lines(text, prose_of(sample.messages)), strict=True)]
    return _row(way, f"{budget:.0%}", rounds, found, used, cuts)


def measure_views(policy: str, window: int, samples: Iterable[Sample]) -> Row:
    """Return the row of whole conversations under a policy: what the model can read at the end, without `expand`."""
    found, used, cuts = list[tuple[Verdict, str]](), list[float](), [0, 0]
    for sample in samples:
        options = Options(reserve=window // 8)
        with open_conversation("retention", format="openai", window=window, policy=policy, options=options) as chat:
            for group in sample.groups:
                for message in group:
                    if message.role == "assistant":
                        chat.prompt()
                        chat.record(message)
                    else:
                        chat.append(message)
            chat.append("Is everything done?")
            chat.prompt()
            view = chat.view
        derived = "\n".join(text_of(entry.message) for entry in view if entry.kind != "message")
        verbatim = "\n".join(text_of(entry.message) for entry in view if entry.kind == "message")
        found += [(verdict, derived) for verdict in judge(sample.facts, derived, verbatim)]
        used.append(view.tokens / view.budget.usable)
        cuts = [sum(pair) for pair in zip(cuts, count_cut_lines(derived, prose_of(sample.messages)), strict=True)]
    return _row(policy, f"{window:,}", 0, found, used, cuts)


def characters_for(window: int) -> int:
    """Return the length of a conversation that overflows a window several times."""
    return window * _OVERFLOW


def _row(
    way: str, budget: str, rounds: int, found: list[tuple[Verdict, str]], used: list[float], cuts: list[int]
) -> Row:
    score = Score.of(verdict for verdict, _ in found)
    room = sum(used) / len(used) if used else None
    return Row(way, budget, rounds, score, room, cuts[0] / cuts[1] if cuts[1] else None, tuple(found))
