"""What a conversation's window holds right now, and what keeping it small has saved: the meter.

A pure value, made from a view, its budget, what travels beside it, and the sums over all calls. It knows no store, no
provider and no terminal; what a token costs is told, where it is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, get_args

from msgspec import Struct

from .messages import Content, Media, Message, Part, Reasoning, ToolCall, ToolResult
from .sizes import estimate, tokens_of
from .stamps import Usage
from .totals import Totals
from .view import Entry, Prices, View

__all__ = ["SHOWN_AGAIN", "Context", "ContextKind", "measure_context", "tokens_by_kind"]

ContextKind = Literal[
    "system",
    "tools",
    "user",
    "assistant",
    "reasoning",
    "calls",
    "results",
    "media",
    "plugins",
    "summaries",
    "shrunk",
    "expanded",
]
"""What a token of a request belongs to: the system prompt; the tools' definitions; what the user said, the model said,
thought and called; what tools answered; images and documents; what plugins added; texts that stand for a span; what
stands for content that was shrunk; originals that are shown again because somebody asked.
"""

SHOWN_AGAIN = ("whole", "lines", "items", "pattern")
"""Forms of what the conversation says itself that show content again."""

_UNKNOWN = 10**9
"""A budget with more tokens than this is that of a conversation without a window."""

_FEW = 1_000
"""Tokens of a request whose price is asked for."""

Cost = Callable[[Usage], float | None]
"""US dollars that so many tokens cost; None where that is not known."""


class Context(Struct, frozen=True):
    """How full a window is, of what, and what that costs. Tokens are estimates, corrected by what was measured."""

    kinds: Mapping[ContextKind, int]
    """Tokens of the next request by kind; only kinds of which there is something, in their order."""
    window: int | None
    """The model's window in tokens; None where nobody said."""
    reserve: int
    """Kept free for the answer."""
    entries: int
    """Messages that are shown."""
    messages: int
    """Messages that were said, shown or not."""
    overhead: int
    """Of `tokens`, what travels beside what was said: the system prompt and the tools of the last prompt."""
    tokens_whole: int
    """What all that was said would take if it were shown whole; what travels beside is not in it."""
    last: Usage | None
    """What the newest call was billed; None where there was none, or nobody said."""
    totals: Totals
    """Sums over all calls."""
    prices: Prices
    """Prices as multiples of that of input."""
    scale: float = 1.0
    """Measured tokens over estimated ones: what all estimates in here are corrected by."""
    dollars: float | None = None
    """What all calls were billed, in US dollars, where the price is known."""
    dollars_saved: float | None = None
    """`saved` in US dollars, where the price is known."""

    @property
    def tokens(self) -> int:
        """Tokens of the next request, without the answer."""
        return sum(self.kinds.values())

    @property
    def tokens_shown(self) -> int:
        """Those of them that show what was said, to be held against `tokens_whole`."""
        return self.tokens - self.overhead

    @property
    def free(self) -> int | None:
        """Tokens that may still come before the window is full; None without a window."""
        return None if self.window is None else max(0, self.window - self.reserve - self.tokens)

    @property
    def share(self) -> float | None:
        """Share of the window that the next request takes; None without a window."""
        return None if self.window is None else self.tokens / self.window

    @property
    def cached(self) -> float | None:
        """Share of the newest call's prompt that its provider had in its cache; None where it did not say."""
        return _cached(self.last)

    @property
    def cached_overall(self) -> float | None:
        """The same over all calls."""
        return _cached(self.totals.usage)

    @property
    def cost(self) -> float:
        """What all calls were billed, in tokens at the price of uncached input."""
        return self.totals.cost(self.prices)

    @property
    def saved(self) -> float:
        """What was saved by not sending everything whole, in tokens at the price of uncached input; below zero where it
        cost more than it saved.

        A warm cache is taken for granted both ways. Sent whole, each call reads all but what is new from the cache, and
        writes what is new. Sent as it was, each call writes what is new too, so that cancels out; it reads
        `tokens_saved` fewer, and writes again, instead of reading it, what stood behind an edit (`tokens_rebilled`):

            saved = read * tokens_saved - (write - read) * tokens_rebilled

        Not in it: that everything whole would not have fitted at all from some call on, what summaries by a model cost,
        and the answers, which are taken to be the same.
        """
        totals, prices = self.totals, self.prices
        again = max(0.0, prices.write - prices.read) * totals.tokens_rebilled
        return (prices.read * totals.tokens_saved - again) * self.scale


def measure_context(
    view: View,
    totals: Totals,
    *,
    messages: int,
    tools: int = 0,
    last: Usage | None = None,
    count: Callable[[str], int] = estimate,
    cost: Cost | None = None,
) -> Context:
    """The meter of a view. `messages`: how many were said; `tools`: tokens of the tools' definitions, as far as they
    are in the budget's overhead, the rest of which is the system prompt. `count`: the conversation's counter.
    """
    budget = view.budget
    kinds = Counter[ContextKind](tools=min(tools, budget.overhead), system=max(0, budget.overhead - tools))
    for entry in view:
        kinds.update(tokens_by_kind(entry, count))
    corrected = {kind: round(kinds[kind] * budget.scale) for kind in get_args(ContextKind) if kinds[kind] > 0}
    has_window = budget.window < _UNKNOWN
    return Context(
        corrected,
        budget.window if has_window else None,
        budget.reserve if has_window else 0,
        len(view),
        messages,
        corrected.get("tools", 0) + round((budget.overhead - min(tools, budget.overhead)) * budget.scale),
        round(totals.tokens_history * budget.scale),
        last,
        totals,
        view.call.prices,
        budget.scale,
        *((cost and _dollars(totals, budget.scale, cost)) or (None, None)),
    )


def tokens_by_kind(entry: Entry, count: Callable[[str], int] = estimate) -> dict[ContextKind, int]:
    """The tokens of one entry by kind; their sum is `entry.tokens`."""
    if (only := _only(entry)) is not None:
        return {only: entry.tokens}
    weights = Counter[ContextKind]()
    for kind, part in _parts(entry):
        weights[kind] += tokens_of(Message(entry.message.role, (part,)), count) - tokens_of(Message("user"), count)
    if not weights:
        return {_main(entry): entry.tokens}
    rest = entry.tokens - sum(weights.values())  # What a message costs besides its content goes to its largest kind.
    weights[max(weights, key=weights.__getitem__)] += rest
    return dict(weights) if min(weights.values()) >= 0 else {_main(entry): entry.tokens}


def _only(entry: Entry) -> ContextKind | None:
    """The kind of an entry that is of one kind whatever its parts are."""
    if entry.kind == "summary":
        return "summaries"
    if entry.stamp.expanded is not None:
        return "expanded" if entry.stamp.expanded.form in SHOWN_AGAIN else "results"
    if entry.renewed and not entry.shrunk:
        return "expanded"
    return "plugins" if entry.stamp.origin == "plugin" else None


def _main(entry: Entry) -> ContextKind:
    """What an entry is that holds nothing else."""
    if entry.is_result or entry.kind != "message":
        return "results"
    role = entry.message.role
    return "results" if role == "tool" else role


def _parts(entry: Entry) -> Iterator[tuple[ContextKind, Part]]:
    """Each part of what is shown, those in a tool result apart, with its kind."""
    own: set[Part] = set()
    added: set[Part] = set()
    if entry.source is not None:
        for index, part in enumerate(entry.source.parts):
            (added if entry.stamp.is_added((index,)) else own).add(part)
            if isinstance(part, ToolResult):
                for place, nested in enumerate(part.content):
                    (added if entry.stamp.is_added((place,)) else own).add(nested)
    for part in entry.message.parts:
        for one in _contents(part):
            if entry.shrunk and one not in own and one not in added:
                yield "shrunk", one
            elif one in added:
                yield "plugins", one
            else:
                yield _kind(one, entry), one


def _contents(part: Part) -> tuple[Part | Content, ...]:
    return part.content if isinstance(part, ToolResult) else (part,)


def _kind(part: Part, entry: Entry) -> ContextKind:
    match part:
        case Media():
            return "media"
        case Reasoning():
            return "reasoning"
        case ToolCall():
            return "calls"
        case _:
            return _main(entry)


def _cached(usage: Usage | None) -> float | None:
    prompt = usage.prompt_tokens if usage else None
    return None if usage is None or not prompt or usage.cache_read is None else usage.cache_read / prompt


def _rate(cost: Cost, usage: Usage) -> float | None:
    """US dollars for one token, by the price of a request of these few tokens: longer ones may cost more by the token,
    but each is a request of its own, and what is asked here is a sum over many.
    """
    tokens = (usage.prompt_tokens or 0) + (usage.output or 0)
    return None if (dollars := cost(usage)) is None else dollars / tokens


def _rates(cost: Cost) -> tuple[float, float, float, float] | None:
    """US dollars for a token of input, read from the cache, written to it, and of output."""
    each = [_rate(cost, usage) for usage in (Usage(_FEW, 0, 0, 0), Usage(0, _FEW, 0, 0), Usage(0, 0, _FEW, 0))]
    known = [rate for rate in (*each, _rate(cost, Usage(0, 0, 0, _FEW))) if rate is not None]
    return (known[0], known[1], known[2], known[3]) if len(known) == 4 else None


def _dollars(totals: Totals, scale: float, cost: Cost) -> tuple[float, float] | None:
    """What was billed, and what was saved (see `Context.saved`)."""
    if (rates := _rates(cost)) is None:
        return None
    base, read, write, output = rates
    used = totals.usage
    billed = base * (used.input or 0) + read * (used.cache_read or 0) + write * (used.cache_write or 0)
    saved = read * totals.tokens_saved - max(0.0, write - read) * totals.tokens_rebilled
    return billed + output * (used.output or 0), saved * scale
