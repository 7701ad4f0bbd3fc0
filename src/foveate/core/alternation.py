"""Stand-ins between two messages of one side, for models whose templates require that the sides alternate.

The user's messages count, and the assistant's without calls. A message with calls and its results follow a user's
message, and count for no side. System prompts stand before all of them. A stand-in stays in its place, so that each
view extends the last one.

Source: the chat templates of Mistral and Gemma, such as those that llama.cpp ships, as of November 2026.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from .slots import Counter
from .system_messages import NO_REPLY, OPENING, sent_role, stand_in
from .view import Entry

__all__ = ["Side", "alternate", "last_side", "side_of"]

Side = Literal["user", "assistant"]

_KEY = "alternation"
_WHY = "the messages of the user and of the assistant must alternate"


def side_of(entry: Entry) -> Side | None:
    """Return the side that speaks in an entry; None for results and system messages."""
    role = sent_role(entry)
    return role if role == "user" or role == "assistant" else None


def last_side(entry: Entry, before: Side) -> Side:
    """Return the side that counted last after an entry. `before`: the side before it."""
    side = side_of(entry)
    return "user" if entry.message.calls else side or before


def alternate(entries: Iterable[Entry], count: Counter) -> tuple[Entry, ...]:
    """Return the entries with a stand-in of the other side before each that follows one of its own side."""
    placed: list[Entry] = []
    last: Side = "assistant"
    for entry in entries:
        side = side_of(entry)
        if side == last:
            placed.append(_stand_in(entry, NO_REPLY if side == "user" else OPENING, count))
        placed.append(entry)
        last = last_side(entry, last)
    return tuple(placed)


def _stand_in(entry: Entry, text: str, count: Counter) -> Entry:
    """Return the stand-in before an entry, always the same object."""
    known: Entry | None = entry.recall(_KEY)
    if known is None:
        known = stand_in(entry, text, _WHY, count)
        entry.remember(_KEY, known)
    return known
