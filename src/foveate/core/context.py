"""The context meter: the content of the window now, and the savings so far.

A pure value, computed from a view, its budget, and the sums over all calls. It uses no store, provider or terminal. An
argument supplies the price of a token.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, get_args

from msgspec import Struct

from .caches import cached_on_entry
from .call_context import Prices
from .messages import Content, Media, Message, Part, Reasoning, ToolCall, ToolResult
from .sizes import estimate, tokens_of
from .stamps import Usage
from .totals import ModelTotals, Totals
from .view import Entry, View

__all__ = ["Context", "ContextKind", "Rates", "dollars_of", "measure_context", "rates_of", "tokens_by_kind"]

Rates = tuple[float, float, float, float]
"""US dollars per token of input, cache read, cache write and output."""

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
"""The content of a request, by kind: the system prompt; tool definitions; user messages; the model's text, reasoning
and calls; tool results; images and documents; parts added by plugins; texts in place of a span; texts in place of
shrunk content; originals that are visible again on request.
"""

_FEW = 1_000
"""Size in tokens of the request used to find a price."""

Cost = Callable[[Usage], float | None]
"""Returns the US dollars for this usage, or None if the price is unknown."""

CostOf = Callable[[str], Cost | None]
"""Returns the cost of the model with this name, or None if its price is unknown."""


class Context(Struct, frozen=True):
    """How full a window is, with which content, and what it costs. Tokens are estimates, corrected by measurements."""

    kinds: Mapping[ContextKind, int]
    """Tokens of the next request by kind, in order of the kinds, without empty ones."""
    window: int | None
    """The model's window in tokens; None if unknown."""
    reserve: int
    """Tokens reserved for the answer."""
    entries: int
    """Number of visible messages. A summary is one; a placeholder for a missing answer is none."""
    messages: int
    """Number of messages in the history."""
    overhead: int
    """Tokens of `tokens` outside the messages: the system prompt and the tools of the last prompt."""
    tokens_whole: int
    """Tokens of the whole history, without system prompt and tools."""
    last: Usage | None
    """Usage of the newest call; None if there was none, or its usage is unknown."""
    totals: Totals
    """Sums over all calls."""
    prices: Prices
    """Prices as multiples of the price of input."""
    scale: float = 1.0
    """Ratio of measured to estimated tokens. It corrects all estimates of this value."""
    dollars_by_model: Mapping[str, float] = {}
    """The bill in US dollars of each model whose price is known, by its name."""
    dollars_saved: float | None = None
    """The savings of these models in US dollars; None if no price is known. See `saved`."""

    def __str__(self) -> str:
        """Return one short line, such as `8,210 of 200,000 tokens (4%), 12 of 80 messages visible`."""
        window = f" of {self.window:,} tokens ({self.share:.0%})" if self.window else " tokens"
        return f"{self.tokens:,}{window}, {self.entries} of {self.messages} messages visible"

    @property
    def tokens(self) -> int:
        """Return the tokens of the next request, without the answer."""
        return sum(self.kinds.values())

    @property
    def tokens_shown(self) -> int:
        """Return the tokens of visible messages, to compare with `tokens_whole`."""
        return self.tokens - self.overhead

    @property
    def free(self) -> int | None:
        """Return the tokens left until the window is full, or None without a window."""
        return None if self.window is None else max(0, self.window - self.reserve - self.tokens)

    @property
    def share(self) -> float | None:
        """Return the share of the window that the next request fills, or None without a window."""
        return None if self.window is None else self.tokens / self.window

    @property
    def cached(self) -> float | None:
        """Return the share of the newest prompt that came from the provider's cache, or None if unknown."""
        return _cached(self.last)

    @property
    def cached_overall(self) -> float | None:
        """Return this share over all calls."""
        return _cached(self.totals.usage)

    @property
    def dollars(self) -> float | None:
        """Return the bill in US dollars, each call at the price of its model, without the models in `unpriced`.

        None if no price is known.
        """
        return sum(self.dollars_by_model.values()) if self.dollars_by_model else None

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Return the names of the models with a bill and without a known price. A name may be blank."""
        models = self.totals.by_model.items()
        return tuple(name for name, model in models if model.calls_billed and name not in self.dollars_by_model)

    @property
    def cost(self) -> float:
        """Return the bill of all calls, in tokens at the price of uncached input."""
        return self.totals.cost(self.prices)

    @property
    def saved(self) -> float:
        """Return the savings over sending the whole history, in tokens at the price of uncached input. Negative if
        shrinking cost more than it saved.

        Both cases assume a warm cache. With the whole history, each call reads everything but the new messages from the
        cache and writes the new ones. In reality, each call also writes the new messages, so these cancel out. It reads
        `tokens_saved` fewer, and writes the tokens after an edit again instead of reading them (`tokens_rebilled`):

            saved = read * tokens_saved - (write - read) * tokens_rebilled

        Not included: that the whole history would not fit at all from some call on, the cost of summaries by a model,
        and the answers, which are assumed to be equal.
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
    cost_of: CostOf | None = None,
) -> Context:
    """Return the context meter of a view.

    `messages`: number of messages in the history. `tools`: tokens of the tool definitions within the budget's overhead;
    the rest of the overhead is the system prompt. `count`: the conversation's counter. `cost_of`: prices of the models.
    """
    budget = view.budget
    kinds = Counter[ContextKind](tools=min(tools, budget.overhead), system=max(0, budget.overhead - tools))
    for entry in view:
        kinds.update(tokens_by_kind(entry, count))
    corrected = {kind: round(kinds[kind] * budget.scale) for kind in get_args(ContextKind) if kinds[kind] > 0}
    has_window = budget.has_window
    return Context(
        corrected,
        budget.window if has_window else None,
        budget.reserve if has_window else 0,
        sum(entry.kind not in ("stand-in", "continuation") for entry in view),
        messages,
        corrected.get("tools", 0) + round((budget.overhead - min(tools, budget.overhead)) * budget.scale),
        round(totals.tokens_history * budget.scale),
        last,
        totals,
        view.call.prices,
        budget.scale,
        *_dollars(totals, budget.scale, cost_of),
    )


@cached_on_entry  # Programs show the meter at each call, and few entries are new.
def tokens_by_kind(entry: Entry, count: Callable[[str], int] = estimate) -> Mapping[ContextKind, int]:
    """Return the tokens of one entry by kind. Their sum is `entry.tokens`."""
    if (only := _only(entry)) is not None:
        return {only: entry.tokens}
    weights = Counter[ContextKind]()
    for kind, part in _parts(entry):
        weights[kind] += tokens_of(Message(entry.message.role, (part,)), count) - tokens_of(Message("user"), count)
    if not weights:
        return {_main(entry): entry.tokens}
    rest = entry.tokens - sum(weights.values())  # The fixed tokens of a message count for its largest kind.
    weights[max(weights, key=weights.__getitem__)] += rest
    return dict(weights) if min(weights.values()) >= 0 else {_main(entry): entry.tokens}


def _only(entry: Entry) -> ContextKind | None:
    """Return the kind of an entry whose parts are all of one kind, or None."""
    if entry.kind == "summary":
        return "summaries"
    if entry.stamp.expanded is not None:
        return "expanded" if entry.stamp.expanded.shows_original else "results"
    if entry.renewed and not entry.shrunk:
        return "expanded"
    return "plugins" if entry.stamp.origin == "plugin" else None


def _main(entry: Entry) -> ContextKind:
    """Return the kind of an entry's text."""
    if entry.is_result or entry.kind != "message":
        return "results"
    role = entry.message.role
    return "results" if role == "tool" else role


def _parts(entry: Entry) -> Iterator[tuple[ContextKind, Part]]:
    """Yield each visible part with its kind, and the parts of a tool result one by one."""
    own: set[Part] = set()
    added: set[Part] = set()
    if entry.outline is not None:
        for index, part in enumerate(entry.outline.parts):
            (added if entry.stamp.is_added((index,)) else own).add(part)
            if isinstance(part, ToolResult):
                for place, nested in enumerate(part.content):
                    (added if entry.stamp.is_added((place,)) else own).add(nested)
    for part in entry.message.parts:
        for item in _contents(part):
            if entry.shrunk and item not in own and item not in added:
                yield "shrunk", item
            elif item in added:
                yield "plugins", item
            else:
                yield _kind(item, entry), item


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


def _dollars(totals: Totals, scale: float, cost_of: CostOf | None) -> tuple[dict[str, float], float | None]:
    """Return the bill of each model with a known price, and their savings, in US dollars."""
    costs = {} if cost_of is None else {name: cost_of(name) for name in totals.by_model}
    each = {
        name: dollars_of(totals.by_model[name], scale, rates)
        for name, cost in costs.items()
        if cost and (rates := rates_of(cost))
    }
    saved = sum(saved for _, saved in each.values()) if each else None
    return {name: bill for name, (bill, _) in each.items()}, saved


def _rate(cost: Cost, usage: Usage) -> float | None:
    """Return the US dollars per token at this size of request. Larger requests may cost more per token, but the tokens
    in question are a sum over many requests.
    """
    tokens = (usage.prompt_tokens or 0) + (usage.output or 0)
    return None if (dollars := cost(usage)) is None else dollars / tokens


def rates_of(cost: Cost) -> Rates | None:
    """Return the prices of a model; None if one of them is unknown."""
    each = [_rate(cost, usage) for usage in (Usage(_FEW, 0, 0, 0), Usage(0, _FEW, 0, 0), Usage(0, 0, _FEW, 0))]
    known = [rate for rate in (*each, _rate(cost, Usage(0, 0, 0, _FEW))) if rate is not None]
    return (known[0], known[1], known[2], known[3]) if len(known) == 4 else None


def dollars_of(totals: ModelTotals, scale: float, rates: Rates) -> tuple[float, float]:
    """Return the bill and the savings in US dollars (see `Context.saved`).

    `scale`: real tokens for each estimated one (`Budget.scale`).
    """
    base, read, write, output = rates
    used = totals.usage
    billed = base * (used.input or 0) + read * (used.cache_read or 0) + write * (used.cache_write or 0)
    saved = read * totals.tokens_saved - max(0.0, write - read) * totals.tokens_rebilled
    return billed + output * (used.output or 0), saved * scale
