"""Is a view within its budget, and how much has to go if it is not.

Trigger and target are apart: a view that is over is brought down to `TARGET` of what is usable, so that the next
message does not trigger again, and the prefix that was rewritten is read from the cache for a while.

How full a window is, is measured where it can be: what the provider counted for the last request, and an estimate of
what came and went since.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from .stamps import Usage
from .view import View

__all__ = [
    "ANSWER_MAX",
    "NEAR",
    "TARGET",
    "Excess",
    "aim_at",
    "default_reserve",
    "measure_excess",
    "occupied_tokens",
    "overflows",
    "usable_tokens",
]

ANSWER_MAX = 32_000
"""No answer is taken to need more tokens than this, whatever its limit."""

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


def measure_excess(view: View) -> Excess:
    """By how much this view is over what is usable."""
    budget = view.budget
    return Excess(
        max(0, view.tokens - budget.usable),
        max(0, view.bytes - budget.usable_bytes),
        max(0, view.images - budget.max_images),
    )


def occupied_tokens(view: View) -> int:
    """Tokens that the next request would take if it showed this view.

    What the provider counted for the newest measured reply that is shown, its output included, and an estimate of what
    came and went since then; the estimate of the whole where no reply was measured.
    """
    budget = view.budget
    estimated = view.tokens + budget.overhead
    for entry in reversed(view.entries):
        usage, stamp = entry.stamp.usage, entry.stamp
        if usage is None or not stamp.estimate or entry.kind != "message":
            continue
        if (prompt := usage.prompt_tokens) is not None:
            since = estimated - stamp.estimate - stamp.tokens
            rate = budget.scale if since > 0 else prompt / stamp.estimate  # What went was measured, in proportion.
            return max(0, prompt + (usage.output or 0) + int(since * rate))
    return int(estimated * budget.scale)


def overflows(usage: Usage, usable: int | None) -> bool:
    """Whether a request that was billed so filled more than `usable` tokens, its answer included; None: never.

    Strictly more. `usage` counts cached tokens once, whatever the provider does. What is not known is not over.
    """
    prompt = usage.prompt_tokens
    return usable is not None and prompt is not None and prompt + (usage.output or 0) > usable


def usable_tokens(
    context: int | None, output_limit: int = 0, input_limit: int | None = None, *, reserve: int | None = None
) -> int | None:
    """Tokens a request may take, by the limits of its model; None where its context is 0 or unknown: never too many.

    `input_limit`: counts instead of the context where the model has one. `reserve`: kept free for the answer; default:
    the longest answer, at most 32,000. Never more than half of the limit is kept free, or nothing would be left where
    an answer may be as long as the context.
    """
    limit = input_limit or context
    if not limit:
        return None
    wanted = min(output_limit, ANSWER_MAX) if reserve is None else reserve
    return limit - min(max(0, wanted), limit // 2)


def aim_at(view: View, over: Excess, share: float = TARGET) -> View:
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
