"""The budget check: whether a view fits, and how much must be removed.

Trigger and target differ. A view over its budget is reduced to `TARGET` of the usable size, so that the next message
does not trigger again, and the provider reads the rewritten prefix from its cache for some turns.

The fill level of the window is measured if possible: the provider's count of the last request, plus an estimate of the
changes since then.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from .growing import Growing
from .stamps import Stamp, Usage
from .view import Entry, View

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
"""No answer needs more tokens than this, regardless of its limit."""

TARGET = 0.75
"""Share of the usable budget to which an excessive view is reduced."""

NEAR = 0.8
"""A view reduced to this share is small enough: the rest is not worth a harsher stage."""


class Excess(Struct, frozen=True):
    """How much must be removed, in each unit; 0 for none."""

    tokens: int = 0
    """Tokens over the limit."""
    bytes: int = 0
    """Bytes over the limit."""
    images: int = 0
    """Images over the limit."""

    def __bool__(self) -> bool:
        return bool(self.tokens or self.bytes or self.images)


def default_reserve(window: int) -> int:
    """Return the default reserve for the answer: a tenth of the window, at most 20,000 tokens."""
    return min(20_000, window // 10)


def measure_excess(view: View) -> Excess:
    """Return by how much this view exceeds its usable budget."""
    budget = view.budget
    return Excess(
        max(0, view.tokens - budget.usable),
        max(0, view.bytes - budget.usable_bytes),
        max(0, view.images - budget.max_images),
    )


def occupied_tokens(view: View) -> int:
    """Return the tokens of the next request if it shows this view.

    This is the provider's count for the newest visible measured reply of the model, including its output, plus an
    estimate of the changes since then. Without a measured reply it is an estimate of the whole view.
    """
    budget = view.budget
    estimated = view.tokens + budget.overhead
    for stamp in reversed(_MEASURED.of(view)):
        if stamp.model and view.call.model and stamp.model != view.call.model:
            continue  # Another model counts other tokens.
        usage = stamp.usage
        if usage is not None and (prompt := usage.sent_tokens) is not None:
            since = estimated - stamp.estimate - stamp.tokens
            # The removed part was measured, so it counts in proportion.
            rate = budget.scale if since > 0 else prompt / stamp.estimate
            return max(0, prompt + (usage.output or 0) + int(since * rate))
    return int(estimated * budget.scale)


def _add_measured(stamps: list[Stamp], entry: Entry) -> None:
    if entry.stamp.usage is not None and entry.stamp.estimate and entry.kind == "message":
        stamps.append(entry.stamp)


_MEASURED = Growing[list[Stamp]](list, _add_measured, list.copy)
"""The stamps of the replies whose prompts were measured."""


def overflows(usage: Usage, usable: int | None) -> bool:
    """Return whether a request with this usage filled more than `usable` tokens, including its answer.

    None as `usable` means no limit. `usage` counts cached tokens once for every provider. Unknown usage never
    overflows. A prompt that the model read several times counts once.
    """
    prompt = usage.prompt_tokens
    if usable is None or prompt is None or usage.sent == 0:
        return False
    return min(prompt, usage.sent or prompt) + (usage.output or 0) > usable


def usable_tokens(
    context: int | None, output_limit: int = 0, input_limit: int | None = None, *, reserve: int | None = None
) -> int | None:
    """Return the tokens that a request may have by the limits of its model, or None if its context is 0 or unknown.

    `input_limit` replaces the context if the model has one. `reserve`: tokens for the answer; by default the longest
    answer, at most 32,000. At most half of the limit is reserved: otherwise a model whose answer may fill its context
    would have no input left.
    """
    limit = input_limit or context
    if not limit:
        return None
    wanted = min(output_limit, ANSWER_MAX) if reserve is None else reserve
    return limit - min(max(0, wanted), limit // 2)


def aim_at(view: View, over: Excess, share: float = TARGET) -> View:
    """Return the same view with a budget lowered to this share in every unit in excess."""
    budget = view.budget
    if over.tokens:
        budget = budget.without_estimates(_lowered(budget.usable, share))
    if over.bytes:
        budget = replace(budget, max_bytes=_lowered(budget.usable_bytes, share), overhead_bytes=0)
    if over.images:
        budget = replace(budget, max_images=_lowered(budget.max_images, share))
    return replace(view, budget=budget)


def _lowered(usable: int, share: float) -> int:
    return min(usable, int(usable * share))  # The usable size may be negative.
