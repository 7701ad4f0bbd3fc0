"""Totals of a conversation: tokens saved, and the cost of saving them.

A `Tally` receives messages, commits and model calls in their order, and sums. It uses no store and no clock. From the
whole history and journal it computes the totals of the conversation, always the same. From new events only, it computes
the totals since then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from functools import reduce
from typing import Any

from msgspec import Struct

from .call_context import Prices
from .edits import Bill, Record, Replace, Restore, Summarize, Task
from .json_objects import canonical_json
from .messages import Message, ToolCall
from .plurals import plural
from .stamps import Stamp, Usage, is_interrupted
from .view import Entry

__all__ = ["ModelTotals", "Tally", "Totals", "sum_totals", "sum_usage", "tokens_rebilled"]

_FIGURES = ("input", "cache_read", "cache_write", "output", "reasoning")
"""The fields of `Usage` that are summed."""


class ModelTotals(Struct, frozen=True):
    """Sums over the calls that one model answered. Tokens are counted as in `Totals`."""

    calls_billed: int = 0
    """Calls whose usage the provider reported."""
    usage: Usage = Usage()
    """Tokens that the provider reported as billed."""
    tokens_saved: int = 0
    """Tokens that were not sent, summed over calls."""
    tokens_rebilled: int = 0
    """Sent tokens that had to be written to the cache again because of edits."""

    def cost(self, prices: Prices) -> float:
        """Return the bill in tokens at the price of uncached input."""
        return _cost(self.usage, prices)


class Totals(Struct, frozen=True):
    """Sums over all model calls of a conversation, including those of a shared past.

    Tokens are the counter's estimates of messages, without system prompt and tools. `msgspec.to_builtins(totals)` is
    plain JSON.
    """

    calls: int = 0
    """Model calls with an answer."""
    tokens_whole: int = 0
    """Tokens of these calls if each received the whole history before it."""
    tokens_sent: int = 0
    """Tokens of these calls as sent: their views."""
    tokens_rebilled: int = 0
    """Sent tokens after the first change of an edit that the request before already had. Without the edit a warm cache
    would have served them, so they had to be written again.
    """
    expansions: int = 0
    """Number of times that an original, or a part of one, was shown again on request."""
    tokens_expanded: int = 0
    """Tokens that these expansions added."""
    refetches: int = 0
    """Repeated tool calls, with equal tool and arguments, whose earlier result was shrunk or hidden at that time. The
    model would have repeated some of them in any case.
    """
    tokens_refetched: int = 0
    """Tokens of their results."""
    summaries: Mapping[str, int] = {}
    """Accepted summaries, by author. Under "": texts for spans whose author, a summarizer or a policy, did not report a
    name.
    """
    refused: Mapping[str, int] = {}
    """Rejected answers, by author."""
    failed: int = 0
    """Failed compactions."""
    usage: Usage = Usage()
    """Tokens that providers reported as billed, with the estimates for interrupted replies. None if no call reported
    them.
    """
    calls_billed: int = 0
    """Calls with such a report, or with an estimate of it."""
    calls_estimated: int = 0
    """Calls whose reply was interrupted, without a later report: their usage is an estimate where the provider had not
    reported it.
    """
    tokens_history: int = 0
    """Tokens of all messages so far, each once: the next call if it received the whole history."""
    by_model: Mapping[str, ModelTotals] = {}
    """The sums of each model, by its name. Under "": of calls whose model is not known."""

    @property
    def tokens_saved(self) -> int:
        """Return the tokens that were not sent, summed over calls."""
        return self.tokens_whole - self.tokens_sent

    @property
    def summary_answers(self) -> int:
        """Return the number of answers to summary requests whose author is known."""
        return sum(self.summaries.values()) - self.summaries.get("", 0) + sum(self.refused.values())

    def cost(self, prices: Prices) -> float:
        """Return the bill in tokens at the price of uncached input. Multiply by that price to get money.

        Only calls with known usage count.
        """
        return _cost(self.usage, prices)

    def __str__(self) -> str:
        share = f" ({self.tokens_saved / self.tokens_whole:.0%})" if self.tokens_whole else ""
        facts = [f"{self.tokens_rebilled:,} tokens sent again after edits"]
        if self.expansions:
            facts.append(f"{plural(self.expansions, 'expansion')}, {self.tokens_expanded:,} tokens")
        if self.refetches:
            facts.append(f"{plural(self.refetches, 'repeated tool call')}, {self.tokens_refetched:,} tokens")
        lines = [
            f"{plural(self.calls, 'call')}: {self.tokens_sent:,} of {self.tokens_whole:,} tokens sent, "
            f"{self.tokens_saved:,} saved{share}",
            "; ".join(facts),
        ]
        if self.summaries or self.refused or self.failed:
            accepted, refused = _counted(self.summaries), _counted(self.refused)
            failed = f"failed {self.failed}" if self.failed else ""
            rejected = f"refused: {refused}" if refused else ""
            lines.append("summaries: " + "; ".join(filter(None, (accepted, rejected, failed))))
        if self.calls_billed:
            used = self.usage
            lines.append(
                f"billed for {plural(self.calls_billed, 'call')}: input {used.input or 0:,}, cache read "
                f"{used.cache_read or 0:,}, cache write {used.cache_write or 0:,}, output {used.output or 0:,}"
            )
        return "\n".join(lines)


def tokens_rebilled(before: tuple[Entry, ...], entries: tuple[Entry, ...], newest: int | None = None) -> int:
    """Return the tokens of a request after its first change, of messages that the request before it had already.

    `before`: the entries of that request. `newest`: position of the newest message then, by default that of its last
    entry.
    """
    if not before or before == entries[: len(before)]:  # The same objects: a fast comparison.
        return 0
    pairs = zip(before, entries, strict=False)
    same = next((i for i, (old, new) in enumerate(pairs) if not _is_same(old, new)), len(entries))
    last = before[-1].position if newest is None else newest
    return sum(entry.tokens for entry in entries[same:] if entry.position <= last)


def sum_totals(totals: Iterable[Totals]) -> Totals:
    """Return the sum of the totals of several conversations."""
    values: dict[str, Any] = {}
    for total in totals:
        for name in Totals.__struct_fields__:
            value = getattr(total, name)
            values[name] = _added(values[name], value) if name in values else value
    return Totals(**values)


def _added(first: Any, second: Any) -> Any:
    match first:
        case Usage():
            return sum_usage(first, second)
        case ModelTotals():
            return _plus(first, second)
        case Mapping():
            sums = {key: _added(first[key], value) if key in first else value for key, value in second.items()}
            return {**first, **sums}
        case _:
            return first + second


class Tally:
    """Sums over the events of a conversation, in their order. Each call costs O(view) at most."""

    def __init__(self) -> None:
        self._whole = 0
        """Tokens of all messages so far, except those that only repeat earlier content."""
        self._sums: Counter[str] = Counter()
        self._summaries: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._models: dict[str, ModelTotals] = {}
        self._unanswered = ModelTotals()
        """The sums of calls without a reply so far."""
        self._before: tuple[Entry, ...] = ()
        """The entries of the last call."""
        self._sent = 0
        """Their tokens."""
        self._newest = 0
        """Position of the newest message at that call."""
        self._position = 0
        self._is_edited = False
        """Whether a commit came after it."""
        self._waiting: dict[str, tuple[str, str]] = {}
        """Calls without a result, by id: tool and arguments."""
        self._results: dict[tuple[str, str], str] = {}
        """Tool and arguments -> id of the newest message with a result."""
        self._again: set[str] = set()
        """Ids of repeated calls that have no result yet."""

    def copy(self) -> Tally:
        """Return an independent copy."""
        twin = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, dict | set):
                setattr(twin, name, value.copy())
        return twin

    def add_call(self, entries: tuple[Entry, ...], erased: int = 0) -> None:
        """Add a model call that sees these entries.

        `erased`: tokens that it had, and that were erased since. They count as sent.
        """
        self._sums["calls"] += 1
        self._sums["tokens_whole"] += self._whole
        before = self._before
        is_extended = before == entries[: len(before)]  # The same objects: a fast comparison.
        known, new = (self._sent, entries[len(before) :]) if is_extended else (0, entries)
        self._sent = known + sum([entry.tokens for entry in new])
        sent = self._sent + erased
        self._sums["tokens_sent"] += sent
        again = 0
        if self._is_edited and not is_extended:
            again = tokens_rebilled(before, entries, self._newest)
            self._sums["tokens_rebilled"] += again
        self._unanswered = _plus(self._unanswered, ModelTotals(tokens_saved=self._whole - sent, tokens_rebilled=again))
        self._before, self._newest, self._is_edited = entries, self._position, False

    @property
    def position(self) -> int:
        """Return the position of the newest added message, or the position of `resume_at`."""
        return self._position

    def resume_at(self, whole: int, position: int) -> None:
        """Resume after a past that is not added: up to this position, with this many tokens in all messages."""
        self._whole, self._position = whole, position

    def add_message(self, position: int, id: str, message: Message, stamp: Stamp) -> None:
        """Add an appended message."""
        self._position = position
        shown = stamp.expanded
        if shown is None:
            self._whole += stamp.tokens
        elif shown.shows_original:
            self._sums["expansions"] += 1
            self._sums["tokens_expanded"] += stamp.tokens
        if message.role == "assistant":
            self._reply(stamp)
        for call in message.calls:
            self._call(call)
        if message.result is not None:
            self._answer(message.result.call_id, id, stamp.tokens)

    def add_record(self, record: Record) -> None:
        """Add a commit."""
        restored = 0
        for edit in record.edits:
            match edit:
                case Task():
                    self._sums["failed"] += edit.state == "failed"
                    continue
                case Bill():
                    self._add_bill(edit)
                    continue
                case Replace() | Summarize():
                    self._summaries[edit.by] += bool(edit.by or (edit.policy and isinstance(edit, Summarize)))
                    self._refused.update(who.partition(": ")[0] for who in edit.refused)
                case Restore(policy="") if record.author not in ("undo", "erase"):
                    restored += 1
                case _:
                    pass
            self._is_edited = True
        if restored:  # Measured on the whole view: a restored message may replace a summary.
            self._sums["expansions"] += restored
            self._sums["tokens_expanded"] += record.tokens_after - record.tokens_before

    def totals(self) -> Totals:
        """Return the sums so far."""
        return Totals(
            **self._sums,
            summaries=dict(+self._summaries),
            refused=dict(self._refused),
            usage=reduce(sum_usage, (model.usage for model in self._models.values()), Usage()),
            tokens_history=self._whole,
            by_model=dict(self._models),
        )

    def _reply(self, stamp: Stamp) -> None:
        """Add the calls since the last reply, and the bill of this one, to the sums of its model."""
        bill = ModelTotals() if stamp.usage is None else ModelTotals(1, stamp.usage)
        new, self._unanswered = _plus(self._unanswered, bill), ModelTotals()
        self._sums["calls_billed"] += new.calls_billed
        self._sums["calls_estimated"] += stamp.usage is not None and is_interrupted(stamp.stop)
        if new != ModelTotals():
            self._models = {**self._models, stamp.model: _plus(self._models.get(stamp.model, ModelTotals()), new)}

    def _add_bill(self, bill: Bill) -> None:
        """Add usage that was reported after its reply was stored, in place of the estimate for an interrupted one."""
        new = ModelTotals(1, bill.usage)
        if bill.replaces is not None:
            new = ModelTotals(0, sum_usage(bill.usage, _negative(bill.replaces)))
            self._sums["calls_estimated"] -= 1
        self._sums["calls_billed"] += new.calls_billed
        self._models = {**self._models, bill.model: _plus(self._models.get(bill.model, ModelTotals()), new)}

    def _call(self, call: ToolCall) -> None:
        request = call.name, canonical_json(call.arguments)
        self._waiting[call.call_id] = request
        earlier = self._results.get(request)
        if earlier is not None and not _is_whole(earlier, self._before):
            self._again.add(call.call_id)

    def _answer(self, call_id: str, id: str, tokens: int) -> None:
        request = self._waiting.pop(call_id, None)
        if request is None:
            return
        self._results[request] = id
        if call_id in self._again:
            self._again.discard(call_id)
            self._sums["refetches"] += 1
            self._sums["tokens_refetched"] += tokens


def _cost(used: Usage, prices: Prices) -> float:
    cached = prices.read * (used.cache_read or 0) + prices.write * (used.cache_write or 0)
    return (used.input or 0) + cached + prices.output * (used.output or 0)


def _plus(first: ModelTotals, second: ModelTotals) -> ModelTotals:
    return ModelTotals(
        first.calls_billed + second.calls_billed,
        sum_usage(first.usage, second.usage),
        first.tokens_saved + second.tokens_saved,
        first.tokens_rebilled + second.tokens_rebilled,
    )


def _negative(usage: Usage) -> Usage:
    figures = ((name, getattr(usage, name)) for name in _FIGURES)
    return Usage(**{name: -tokens for name, tokens in figures if tokens is not None})


def sum_usage(first: Usage, second: Usage) -> Usage:
    """Return the sum of two usages. A figure that is unknown in both is None."""
    sums: dict[str, int] = {}
    for usage in (first, second):
        for name in _FIGURES:
            if (tokens := getattr(usage, name)) is not None:
                sums[name] = sums.get(name, 0) + tokens
    return Usage(**sums)


def _is_same(old: Entry, new: Entry) -> bool:
    """Return whether two entries show the same message. A pin, for example, changes an entry but not its message."""
    return old is new or (old.id == new.id and old.message == new.message)


def _is_whole(id: str, entries: Iterable[Entry]) -> bool:
    """Return whether these entries show the whole message with this id."""
    return any(entry.span is None and not entry.shrunk for entry in entries if entry.id == id)


def _counted(counts: Mapping[str, int]) -> str:
    """Return counts by author; a count without an author goes first, and has no name."""
    return ", ".join(f"{who} {count}" if who else f"{count}" for who, count in sorted(counts.items()))
