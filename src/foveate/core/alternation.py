"""Stand-ins between two messages of one side, for models whose templates require that the sides alternate.

The user's messages count, and the assistant's without calls. A message with calls and its results follow a user's
message, and count for no side. System prompts stand before all of them. A stand-in stays in its place, so that each
view extends the last one.

Source: the chat templates of Mistral and Gemma, such as those that llama.cpp ships, as of November 2026.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from .messages import Message, Text
from .slots import Counter, reshape
from .system_messages import NO_REPLY, OPENING, sent_role
from .view import Entry

__all__ = ["Side", "alternate", "last_side", "side_of"]

Side = Literal["user", "assistant"]

_KEY = "alternation"
_TEXTS: dict[Side, str] = {"user": OPENING, "assistant": NO_REPLY}
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
            placed.append(_stand_in(entry, "assistant" if side == "user" else "user", count))
        placed.append(entry)
        last = last_side(entry, last)
    return tuple(placed)


def _stand_in(entry: Entry, side: Side, count: Counter) -> Entry:
    """Return the stand-in before an entry, always the same object."""
    known: Entry | None = entry.recall(_KEY)
    if known is None:
        message = Message(side, (Text(_TEXTS[side]),))
        known = reshape(Entry(0, "", message, None, entry.stamp, "stand-in"), message, _WHY, count)
        entry.remember(_KEY, known)
    return known
