"""The frontier of cost against readable content, and the clairvoyant limit below it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from ..core.call_context import Prices
from ..core.messages import Message
from ..core.sizes import tokens_of
from ..replay.references import References, things_in_calls
from ..replay.result import Row

__all__ = ["all_in", "clairvoyant_cost", "non_dominated", "readable"]

T = TypeVar("T")

_CHARACTERS = 4
"""Characters of a token."""


def all_in(rows: Iterable[Row]) -> float:
    """Return the cost of several replays with fetching everything back, relative to sending everything.

    It is 1.0 without a call.
    """
    rows = list(rows)
    whole = sum([row.cost_unmanaged for row in rows])
    return sum([row.cost_all_in * row.cost_unmanaged for row in rows]) / whole if whole else 1.0


def readable(rows: Iterable[Row]) -> float:
    """Return the share of everything that the calls used and that their views showed; 1.0 if they used nothing.

    It counts identifiers from tool results (recall), other identifiers (said) and quoted lines alike.
    """
    used = visible = 0.0
    for row in rows:
        for number, share in (
            (row.references, row.recall_visible),
            (row.said_references, row.said_visible),
            (row.quoted_lines, row.quoted_visible),
        ):
            used += number
            visible += number * (share or 0.0)
    return visible / used if used else 1.0


def non_dominated(items: Sequence[T], figures: Callable[[T], tuple[float, float]]) -> list[T]:
    """Return the items that no other one beats, the cheapest first.

    `figures` returns an item's cost and its share of readable content. An item beats another if it costs no more, keeps
    no less readable, and is better in one of the two. Of items with equal figures only the first is returned.
    """
    frontier: list[T] = []
    most = -1.0
    for item in sorted(items, key=lambda item: (figures(item)[0], -figures(item)[1])):
        share = figures(item)[1]
        if share > most:
            frontier.append(item)
            most = share
    return frontier


def clairvoyant_cost(messages: Iterable[Message], prices: Prices) -> float:
    """Return what the calls of a recording cost under a policy that knows the future, in tokens of base input price.

    No policy reaches it. It misses nothing, and every edit is free: no cached prefix is ever written again.

    - The first request after a message writes it whole, at the write price. Later requests read what is left of it, at
      the read price.
    - System prompts and messages of the user stay whole.
    - Of any other message only the identifiers and whole lines stay that later calls use, each until its last use, at
      a quarter of their characters. If several messages hold one, the newest of them keeps it.

    A policy costs less only if it shortens a message before its first request, shortens messages of the system or the
    user, or hides what is used later.
    """
    transcript = list(messages)
    references = References(things_in_calls(transcript))
    sizes: list[int] = []
    whole: set[int] = set()  # positions of messages that stay whole
    asked: list[int] = []  # for each call, the number of messages in its request
    has_question = False
    last_uses: dict[tuple[int, str], int] = {}  # position and identifier or line -> the last call that uses it
    for message in transcript:
        used = references.read(message)
        if message.role == "assistant" and has_question:
            asked.append(len(sizes))
            for thing, positions in (*used.recall.items(), *used.said.items(), *used.quoted.items()):
                if whole.isdisjoint(positions):
                    last_uses[positions[-1], thing] = len(asked)
        has_question = has_question or message.role != "system"
        sizes.append(tokens_of(message))
        if message.role in ("system", "user"):
            whole.add(len(sizes))
    # For each message, the call whose request writes it.
    first = [bisect_left(asked, position) + 1 for position in range(1, len(sizes) + 1)]
    read = sum([sizes[position - 1] * max(0, len(asked) - first[position - 1]) for position in whole])
    kept = [len(thing) * max(0, last - first[position - 1]) for (position, thing), last in last_uses.items()]
    written = sum(sizes[: asked[-1]]) if asked else 0
    return prices.write * written + prices.read * (read + sum(kept) / _CHARACTERS)
