"""Where an original is shown again, and whether there is room for it. Pure arithmetic.

In its place everything behind it is written to the provider's cache once more; at the tail nothing is, but the original
stands beside the placeholder that stays. While the cache is warm the tail is cheaper, unless little stands behind.
"""

from __future__ import annotations

from typing import Literal

from ..core.economy import flush_cost, is_cold
from ..core.messages import Reasoning
from ..core.view import Entry, View
from .excerpts import count_lines
from .items import items_of

__all__ = ["Where", "advice", "cheaper", "most_room_in", "rewritten", "room_in"]

Where = Literal["view", "tail", "auto"]
"""`view`: in its place. `tail`: as the result of the call. `auto`: where it costs less now."""

NOTE_TOKENS = 20
"""What it takes to say that something is shown again in its place."""
LEAST_ROOM = 0.05
"""Share of the usable budget that an expansion may take even where the view is full: the next plan makes room."""


def rewritten(view: View, shown: tuple[Entry, ...], first: int) -> int:
    """Tokens behind position `first` that the last request (`shown`) put into the cache, and that an edit there would
    have written again.
    """
    sent = {id(entry) for entry in shown}
    return sum(entry.tokens for entry in view.entries if entry.position > first and id(entry) in sent)


def cheaper(view: View, shown: tuple[Entry, ...], first: int, last: int, *, binds_reasoning: bool = False) -> Where:
    """`view` or `tail`: where the originals of these positions cost less, in the next request. A tie goes to `view`.

    Both write the original once. In its place: a note, and what stands behind is written again. At the tail: what
    stands for the original now is sent, and read, once more. Where editing the past voids the reasoning behind it
    (`binds_reasoning`) and there is some, the tail is taken.
    """
    behind = [entry for entry in view.entries if entry.position > first]
    if binds_reasoning and any(isinstance(part, Reasoning) for entry in behind for part in entry.message.parts):
        return "tail"
    prices = view.call.prices
    if is_cold(view, prices):
        return "view"
    standing = sum(entry.tokens for entry in view.entries if first <= entry.position <= last)
    in_place = flush_cost(rewritten(view, shown, first), prices) + prices.write * NOTE_TOKENS
    return "view" if in_place <= prices.read * standing else "tail"


def room_in(view: View) -> int:
    """Tokens that an expansion may take."""
    usable = view.budget.usable
    return max(usable - view.tokens, int(usable * LEAST_ROOM))


def most_room_in(view: View) -> int:
    """Tokens that an original may take in its place if everything else that may shrink makes room for it."""
    newest = view.last_input
    stays = [one for one in view.entries if one.is_pinned() or one.message.role == "system" or one.position == newest]
    return max(0, view.budget.usable - sum(entry.tokens for entry in stays))


def advice(text: str, tokens: int, room: int) -> str:
    """What to ask for instead of something too large."""
    count, found = count_lines(text), items_of(text)
    number = max(1, int(0.8 * room * count / tokens))
    parts = [f'lines, such as "1-{number}" of its {count:,}'] if count > 1 else []
    if (total := found.count()) > 1 and found.what != "lines":
        parts.append(f'items, such as "1-{max(1, int(0.8 * room * total / tokens))}" of its {total:,} {found.what}')
    asked = "; ".join([*parts, "or a pattern" if parts else "what a pattern matches"])
    return f"it has {tokens:,} tokens, and there is room for {room:,}. Ask for a part of it: {asked}"
