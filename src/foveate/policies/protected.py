"""The newest tokens of a view, which a mechanism leaves as they are, and what is older than these.

A window is told as a number of tokens, or as a share of the usable ones, so that one setting suits every model.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from math import inf

from ..core.caches import cached
from ..core.view import Entry, View
from ..errors import BadSetting

__all__ = ["Tokens", "check_tokens", "older_than", "tokens_of_share"]

Tokens = int | float
"""A number of tokens (int), or a share of the usable ones (float, below 1.0)."""


def check_tokens(mechanism: str, **named: Tokens | None) -> None:
    """Raises BadSetting for a window that is negative, or a share of 1.0 or more; None is no window."""
    for name, value in named.items():
        if value is not None and (value < 0 or (isinstance(value, float) and not value < 1)):
            raise BadSetting(
                f"{mechanism} needs {name} as tokens (a whole number of 0 or more) or as a share of the usable ones, "
                f"below 1.0, not {value}."
            )


def tokens_of_share(protect: Tokens, view: View) -> int:
    """The window in tokens, by the counter of the conversation."""
    return max(0, int(view.budget.usable * protect)) if isinstance(protect, float) else protect


def older_than(view: View, protect: int, *, part_max: float = inf, everything: bool = True) -> int:
    """How many entries stand before the newest `protect` tokens; the one in which these end is among them.

    `part_max`: no message counts for more tokens than this. `everything`: whether other messages than tool results
    count too.
    """
    filled = _filled(view.entries, part_max, everything)
    return max(0, len(view.entries) - bisect_left(filled, protect))


@cached(8)  # Several mechanisms, and several windows of each, look at one view.
def _filled(entries: tuple[Entry, ...], part_max: float, everything: bool) -> list[float]:
    """Tokens of no entry, of the newest, of the newest two, and so on."""
    tokens = [
        min(entry.tokens, part_max) if entry.kind != "summary" and (everything or entry.is_result) else 0
        for entry in reversed(entries)
    ]
    return list(accumulate(tokens, initial=0))
