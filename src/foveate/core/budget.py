"""Is a view within its budget, and how much has to go if it is not.

Trigger and target are apart: a view that is over is brought down to `TARGET` of what is usable, so that the next
message does not trigger again, and the prefix that was rewritten is read from the cache for a while.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from .view import View

__all__ = ["NEAR", "TARGET", "Excess", "aimed", "default_reserve", "is_over"]

TARGET = 0.75
"""Share of the usable budget that a view is brought down to once it is over."""

NEAR = 0.8
"""A view that came down to this share stays so: what is left to the target is not worth harsher means."""


class Excess(Struct, frozen=True):
    """How much has to go, in each unit; 0 where nothing has to."""

    tokens: int = 0
    bytes: int = 0
    images: int = 0

    def __bool__(self) -> bool:
        return bool(self.tokens or self.bytes or self.images)


def default_reserve(window: int) -> int:
    """What is kept free for the answer where nobody says: a tenth of the window, at most 20,000 tokens."""
    return min(20_000, window // 10)


def is_over(view: View) -> Excess:
    """By how much this view is over what is usable."""
    budget = view.budget
    return Excess(
        max(0, view.tokens - budget.usable),
        max(0, view.bytes - budget.usable_bytes),
        max(0, view.images - budget.max_images),
    )


def aimed(view: View, over: Excess, share: float = TARGET) -> View:
    """The same view under a budget lowered to this share of it in every unit in which it was over."""
    budget = view.budget
    if over.tokens:
        budget = replace(budget, window=_lowered(budget.usable, share), reserve=0, overhead=0, scale=1.0)
    if over.bytes:
        budget = replace(budget, max_bytes=_lowered(budget.usable_bytes, share), overhead_bytes=0)
    if over.images:
        budget = replace(budget, max_images=_lowered(budget.max_images, share))
    return replace(view, budget=budget)


def _lowered(usable: int, share: float) -> int:
    return min(usable, int(usable * share))  # What is usable may be less than nothing.
