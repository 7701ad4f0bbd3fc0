"""Is a view within its budget, and how much has to go if it is not.

Trigger and target are apart: a view that is over is brought down to `TARGET` of what is usable, so that the next
message does not trigger again, and the prefix that was rewritten is read from the cache for a while.
"""

from __future__ import annotations

from msgspec import Struct

from .view import Budget, View

__all__ = ["TARGET", "Excess", "default_reserve", "is_over", "to_free"]

TARGET = 0.75
"""Share of the usable budget that a view is brought down to once it is over."""


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
    return _beyond(view, view.budget, 1.0)


def to_free(view: View) -> Excess:
    """What has to go to bring this view to the target, if it is over in that unit; 0 in the units in which it is
    not.
    """
    over, aim = is_over(view), _beyond(view, view.budget, TARGET)
    return Excess(
        aim.tokens if over.tokens else 0,
        aim.bytes if over.bytes else 0,
        aim.images if over.images else 0,
    )


def _beyond(view: View, budget: Budget, share: float) -> Excess:
    return Excess(
        max(0, view.tokens - int(budget.usable * share)),
        max(0, view.bytes - int(budget.usable_bytes * share)),
        max(0, view.images - int(budget.max_images * share)),
    )
