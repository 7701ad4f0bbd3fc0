"""Which names of a history are worth telling alone, without the lines they stand in: those that are spoken of most."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from ..core.messages import Message
from ..digest import names_in
from .called import prompt_texts

__all__ = ["fitting", "how_often_used", "most_spoken_of"]

_LEAST = 1.0
"""Weight below which a name is not worth its place: it was mentioned once, long ago, by a tool."""


def how_often_used(messages: Sequence[Message]) -> Counter[str]:
    """In how many messages calls and speakers named what; what tools answered does not count."""
    used: Counter[str] = Counter()
    for message in messages:
        for call in message.calls:
            used.update(set(names_in(prompt_texts(call))))
        if message.role != "tool":
            used.update(set(names_in(message.text)))
    return used


def most_spoken_of(messages: Sequence[Message], known: Iterable[str]) -> list[str]:
    """The names that are worth telling, the most first. `known`: those that an earlier account told."""
    weights: defaultdict[str, float] = defaultdict(float)
    for i, message in enumerate(messages):
        age = 0.5 + (i + 1) / len(messages)
        for name in set(names_in(message.text)):
            weights[name] += age if message.role == "tool" else 2 * age
        for call in message.calls:
            for name in set(names_in(prompt_texts(call))):
                weights[name] += 2 * age
    for name in known:
        weights[name] += _LEAST
    ranked = sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))
    return [name for name, weight in ranked if weight >= _LEAST]


def fitting(names: Iterable[str], room: int) -> list[str]:
    """The first of these names that fit into `room` characters, with commas between them."""
    kept: list[str] = []
    for name in names:
        if len(name) + 2 <= room:
            kept.append(name)
            room -= len(name) + 2
    return kept
