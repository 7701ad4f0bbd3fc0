"""Spending of a session: the cost of its calls by kind of content and by tool result.

Pure. Each message of a request is billed as `replay.measure` bills it: at the price of writing the cache in the first
call that sends it, and in each call after a change before it, else at the price of reading. Costs are in tokens at the
base price of input, and in US dollars where the price of the model is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nlargest
from itertools import chain, repeat, takewhile
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ...conversation import Conversation
from ...core.call_context import NO_WINDOW, Budget, Prices
from ...core.context import Rates, rates_of
from ...core.messages import Message
from ...core.sizes import estimate, tokens_of
from ...core.snapshots import Row
from ...core.stamps import Stamp
from ...core.view import Entry, View
from ...formats import get_format
from ...policies.superseded_results import ResultTracker, Superseded, TrackedResult
from ...policies.tool_kinds import CallKind, create_classifier
from ...ports import CostOf, Rendered
from ...replay.lookup import ContentKind, content_kind
from ...replay.measure import DEFAULT_PRICES, CacheClock, Meter, asked_at
from ...replay.result import KIND_NAMES

__all__ = [
    "SPENDING_NAMES",
    "CostlyResult",
    "Ledger",
    "Share",
    "Spending",
    "SpendingKind",
    "main_argument",
    "spending_of_conversation",
    "spending_of_messages",
]

SpendingKind = ContentKind | Literal["outside"]
"""A kind of content, or `outside`: tool definitions and the system prompt that requests pass next to the messages."""

SPENDING_NAMES: Mapping[str, str] = {**KIND_NAMES, "outside": "tool definitions and request prompts"}
"""The names of the kinds for people."""

LISTED = 10
"""How many of the most expensive results are listed."""

_MAIN_ARGUMENTS = (
    "file_path", "filePath", "path", "filename", "file", "command", "cmd", "pattern", "query", "url", "prompt",
)  # fmt: skip
_ARGUMENT_MAX = 120
"""Characters of a call's main argument."""
_NO_BUDGET = Budget(NO_WINDOW, 0, 10**15, 10**9)


class Share(Struct, frozen=True):
    """The cost of all content of one kind, over all calls."""

    kind: SpendingKind
    """The kind of content."""
    tokens: int
    """Tokens of all calls together: a message counts in each call that sends it."""
    cost: float
    """In tokens at the base price of input."""
    dollars: float | None
    """In US dollars; None if a price is unknown."""


class CostlyResult(Struct, frozen=True):
    """The cost of one tool result, over all calls that showed it."""

    position: int
    """Position in the history, from 1; `m12` is the handle of message 12."""
    tool: str
    """The name of the tool; "" if it is unknown."""
    argument: str
    """The beginning of the call's main argument, such as a file or a command."""
    size: int
    """Tokens of the whole result."""
    calls: int
    """Calls that showed it, whole or shrunk."""
    whole: int
    """Calls that showed it whole."""
    tokens: int
    """Tokens of all calls together."""
    cost: float
    """In tokens at the base price of input."""
    dollars: float | None
    """In US dollars; None if a price is unknown."""
    superseded_by: int = 0
    """Position of a later result that made it worthless; 0 if there is none."""
    reason: str = ""
    """Why it is superseded, such as `read again`; "" if it is not."""
    wasted: float = 0.0
    """The part of `cost` after it was superseded."""
    wasted_dollars: float | None = None
    """The part of `dollars` after it was superseded."""


class Spending(Struct, frozen=True):
    """The input cost of a session, by kind of content and by result."""

    calls: int
    """Model calls."""
    tokens: int
    """Input tokens of all calls together."""
    cost: float
    """In tokens at the base price of input."""
    cost_unmanaged: float
    """The cost of the same calls if each had sent all messages before it, and nothing else."""
    dollars: float | None
    """In US dollars; None if a price is unknown."""
    shares: tuple[Share, ...]
    """By kind of content, the most expensive first."""
    results: tuple[CostlyResult, ...]
    """The tool results that cost most, at most ten."""
    superseded: tuple[CostlyResult, ...]
    """The superseded results that cost most after a later result made them worthless, at most ten."""
    superseded_results: int
    """The number of all superseded results."""
    wasted: float
    """The cost of all superseded results after they were superseded."""
    wasted_dollars: float | None
    """The same in US dollars."""
    pauses: int
    """Calls after a pause in which the provider's cache was lost."""
    pause_cost: float
    """The additional cost of these calls: they wrote tokens again that a call without the pause reads."""

    def share_of(self, kind: SpendingKind) -> float:
        """Return the share of the cost that content of this kind has; 0 without any cost."""
        found = next((share.cost for share in self.shares if share.kind == kind), 0.0)
        return found / self.cost if self.cost else 0.0

    @property
    def cost_ratio(self) -> float | None:
        """Return the cost of the messages relative to sending everything; None without a call to compare."""
        messages = self.cost * (1 - self.share_of("outside"))
        return messages / self.cost_unmanaged if self.cost_unmanaged else None


class _Account(Struct):
    """The sums of one result."""

    position: int
    tool: str
    argument: str
    size: int
    calls: int = 0
    whole: int = 0
    tokens: int = 0
    cost: float = 0.0
    dollars: float = 0.0
    newer: int = 0
    reason: str = ""
    since: int = 0
    """The first call after it was superseded."""
    wasted: float = 0.0
    wasted_dollars: float = 0.0


class Ledger:
    """Sums what each content costs, along the calls of a conversation. A call costs as much work as it changes."""

    def __init__(self, prices: Prices = DEFAULT_PRICES) -> None:
        self._prices = prices
        self._classify = create_classifier()
        self._tracker = ResultTracker()
        self._marked = 0  # superseded results that are already in the accounts
        self._requested: dict[str, tuple[str, str, CallKind]] = {}  # tool, main argument and kind, by id of the call
        self._results: dict[int, _Account] = {}
        self._kinds: dict[SpendingKind, list[float]] = {}  # tokens, cost and dollars
        self._sent: list[tuple[Rendered, int]] = []  # messages of the newest request, and the call that wrote them
        self._outside: tuple[int, int] = (0, 0)  # tokens next to the messages, and the call that wrote them
        self._read_dollars = [0.0]  # of reading one token in each call up to here
        self._write_dollars: list[float] = []  # of writing one token, by call
        self._unpriced = 0
        self._whole = self._sent_whole = 0  # tokens of all messages, and of those before the newest call
        self._unmanaged = 0.0
        self._pauses, self._pause_cost = 0, 0.0

    def message(self, position: int, message: Message, stamp: Stamp) -> None:
        """Add the next message of the history, before the calls that send it."""
        self._whole += stamp.tokens if stamp.expanded is None else 0
        for call in message.calls:
            kind = self._classify(call.name, call.arguments)
            self._requested[call.call_id] = (call.name, main_argument(call.arguments), kind)
        result = message.result
        if result is None and stamp.origin != "tool":
            return
        unknown = ("", "", CallKind("other"))
        tool, argument, kind = self._requested.get(result.call_id, unknown) if result else unknown
        tool = stamp.tool or (result.name if result else "") or tool
        self._results[position] = _Account(position, tool, argument, stamp.tokens)
        if result and result.state != "interrupted" and kind.kind != "other":
            tracked = TrackedResult(position, stamp.tokens, stamp.turn)
            is_error = result.state == "error"
            self._tracker.add(tracked, kind, is_error=is_error, has_image=any(message.media()))
            self._mark(self._tracker.superseded[self._marked :])
            self._marked = len(self._tracker.superseded)

    def call(
        self,
        kept: int,
        added: Sequence[Rendered],
        *,
        outside: int = 0,
        rates: Rates | None = None,
        is_cold: bool = False,
    ) -> None:
        """Add the next model call.

        `kept`: the number of leading messages that the call reads from the cache. `added`: the messages after them.
        `outside`: tokens of the request outside the messages. `rates`: the model's prices. `is_cold`: whether the cache
        holds nothing of the last call.
        """
        now = len(self._write_dollars)
        if is_cold and now:
            same = takewhile(lambda pair: pair[0][0] == pair[1], zip(self._sent, added, strict=False))
            again = sum(entry.tokens for (rendered, _), _ in same for entry in rendered.entries)
            again += outside if outside == self._outside[0] else 0
            self._pauses += 1
            self._pause_cost += again * (self._prices.write - self._prices.read)
        self._close(kept, now)
        self._sent += [(each, now) for each in added]
        if is_cold or outside != self._outside[0]:
            self._close_outside(now)
            self._outside = (outside, now)
        self._read_dollars.append(self._read_dollars[-1] + (rates[1] if rates else 0.0))
        self._write_dollars.append(rates[2] if rates else 0.0)
        self._unpriced += rates is None
        cached = 0 if is_cold else self._sent_whole
        self._unmanaged += self._prices.read * cached + self._prices.write * (self._whole - cached)
        self._sent_whole = self._whole

    def spending(self) -> Spending:
        """Return the figures of all calls so far. Nothing may be added after it."""
        calls = len(self._write_dollars)
        self._close(0, calls)
        self._close_outside(calls)
        priced = calls > 0 and not self._unpriced
        shares = [
            Share(kind, round(tokens), cost, dollars if priced else None)
            for kind, (tokens, cost, dollars) in self._kinds.items()
            if tokens
        ]
        accounts = list(self._results.values())
        superseded = [account for account in accounts if account.newer]
        expensive = nlargest(LISTED, accounts, key=lambda account: account.cost)
        wasteful = nlargest(LISTED, superseded, key=lambda account: account.wasted)
        return Spending(
            calls,
            sum(share.tokens for share in shares),
            sum(share.cost for share in shares),
            self._unmanaged,
            sum(share.dollars or 0.0 for share in shares) if priced else None,
            tuple(sorted(shares, key=lambda share: -share.cost)),
            tuple(_result(each, priced) for each in expensive if each.cost),
            tuple(_result(each, priced) for each in wasteful if each.wasted),
            len(superseded),
            sum(each.wasted for each in superseded),
            sum(each.wasted_dollars for each in superseded) if priced else None,
            self._pauses,
            self._pause_cost,
        )

    def _mark(self, found: Iterable[Superseded]) -> None:
        for old, newer, reason in found:
            account = self._results[old]
            if not account.newer:
                account.newer, account.reason = newer, reason
                account.since = len(self._write_dollars)

    def _close(self, kept: int, now: int) -> None:
        """Bill the messages that the coming call does not read from the cache, for the calls before it."""
        gone = self._sent[kept:]
        del self._sent[kept:]
        for rendered, since in gone:
            for entry in rendered.entries:
                self._bill(entry, since, now)

    def _close_outside(self, now: int) -> None:
        tokens, since = self._outside
        if tokens and now > since:
            self._add("outside", tokens, since, now)

    def _bill(self, entry: Entry, since: int, now: int) -> None:
        cost, dollars = self._add(content_kind(entry), entry.tokens, since, now)
        account = self._results.get(entry.position) if entry.span is None else None
        if account is None or entry.kind == "continuation":
            return
        calls = now - since
        account.calls += calls
        account.whole += 0 if entry.shrunk else calls
        account.tokens += entry.tokens * calls
        account.cost += cost
        account.dollars += dollars
        if account.newer and now > account.since:
            wasted, wasted_dollars = self._price(entry.tokens, max(since, account.since), now, since >= account.since)
            account.wasted += wasted
            account.wasted_dollars += wasted_dollars

    def _add(self, kind: SpendingKind, tokens: int, since: int, now: int) -> tuple[float, float]:
        cost, dollars = self._price(tokens, since, now, True)
        sums = self._kinds.setdefault(kind, [0.0, 0.0, 0.0])
        sums[0] += tokens * (now - since)
        sums[1] += cost
        sums[2] += dollars
        return cost, dollars

    def _price(self, tokens: int, since: int, now: int, is_written: bool) -> tuple[float, float]:
        """Return the cost of sending tokens in the calls from `since` up to `now`, and the same in dollars."""
        if now <= since:
            return 0.0, 0.0
        reads = now - since - is_written
        cost = tokens * (self._prices.write * is_written + self._prices.read * reads)
        read = self._read_dollars[now] - self._read_dollars[since + is_written]
        return cost, tokens * (read + (self._write_dollars[since] if is_written else 0.0))


def spending_of_messages(
    messages: Iterable[Message],
    *,
    tools: Sequence[Mapping[str, Any]] = (),
    prices: Prices = DEFAULT_PRICES,
    rates: Rates | None = None,
    times: Iterable[int | None] = (),
) -> Spending:
    """Return the spending of a recording whose every call sends all messages before it.

    `tools`: the definitions that each call sends, as recorded. `times`: when the messages were recorded, in
    milliseconds since 1970, None where that is unknown. Tokens are a quarter of the characters, as in a replay. A call
    is a reply of the model after any message but system prompts.
    """
    ledger, clock, now = Ledger(prices), CacheClock(prices), 0
    outside = estimate(msgspec.json.encode(tools).decode()) if tools else 0
    sent = 0
    known: list[Rendered] = []
    is_askable = False
    for position, (message, time) in enumerate(zip(messages, chain(times, repeat(None)), strict=False), 1):
        if message.role == "assistant" and is_askable:
            cold = clock.is_cold(now)
            kept = 0 if cold else sent
            ledger.call(kept, known[kept:], outside=outside, rates=rates, is_cold=cold)
            sent = len(known)
        now = max(now, time or 0)
        is_askable = is_askable or message.role != "system"
        tokens = tokens_of(message)
        role = message.role
        stamp = Stamp(0, 0, tokens, role)
        ledger.message(position, message, stamp)
        is_result = role == "tool"
        entry = Entry(position, "", Message(role, ()), None, stamp, tokens=tokens, is_result=is_result)
        known.append(Rendered(b"", (entry,)))
    return ledger.spending()


def spending_of_conversation(
    chat: Conversation,
    *,
    prices: Prices = DEFAULT_PRICES,
    cost_of: CostOf | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Spending:
    """Return the spending of a stored conversation: each call with the view that it saw.

    Tokens are those of the conversation's counter. The part of a request outside its messages follows from the estimate
    of the whole prompt, which the stamp of a reply with measured usage holds. It is compared in calls that show only
    whole messages, because their sizes are those of the same counter. `cost_of`: returns the prices of a model.
    `progress`: takes the messages read and those of the whole history, before each call.
    """
    session = chat._session
    with session.lock:
        walk, form, profile = session.past.walk(), get_format(chat.format.name), session.state.profile
    ledger, meter, clock = Ledger(prices), Meter(prices), CacheClock(prices)
    rates: dict[str, Rates | None] = {}
    outside = 0
    for call in walk.calls():
        for item in call.items:
            if isinstance(item, Row):
                ledger.message(item.position, item.message, item.stamp)
        entries, stamp = walk.entries(), call.reply.stamp
        if progress is not None:
            progress(walk.projection.position, walk.head.position)
        if stamp.estimate and all(map(_is_as_appended, entries)):
            outside = max(0, stamp.estimate - sum([entry.tokens for entry in entries]))
        if stamp.model not in rates:
            cost = cost_of(stamp.model) if cost_of and stamp.model else None
            rates[stamp.model] = rates_of(cost) if cost else None
        request = form.rendered(View(entries, call.turn, _NO_BUDGET), profile=profile)
        cold = clock.is_cold(asked_at(call))
        meter.bill(request, walk.projection.position, is_cold=cold)
        ledger.call(meter.kept, request[meter.kept :], outside=outside, rates=rates[stamp.model], is_cold=cold)
    return ledger.spending()


def _is_as_appended(entry: Entry) -> bool:
    """Return whether an entry shows its whole message, with the size that its stamp has."""
    return entry.kind == "message" and not entry.shrunk and entry.tokens == entry.stamp.tokens


def main_argument(arguments: str) -> str:
    """Return the argument of a call that says most, such as a file or a command, on one line and cut to 120 characters.

    Returns the beginning of all arguments if none has a known name.
    """
    try:
        values = msgspec.json.decode(arguments) if len(arguments) < 100_000 else None
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        values = None
    text = arguments
    if isinstance(values, dict):
        named = (values.get(name) for name in _MAIN_ARGUMENTS)
        found = next((value for value in named if value and isinstance(value, str | list)), None)
        if isinstance(found, list):
            text = " ".join(item for item in found if isinstance(item, str)) or arguments
        elif found:
            text = found
        elif not values:
            text = ""
    line = " ".join(text[: 4 * _ARGUMENT_MAX].split())
    return line if len(line) <= _ARGUMENT_MAX else f"{line[: _ARGUMENT_MAX - 1]}…"


def _result(account: _Account, priced: bool) -> CostlyResult:
    return CostlyResult(
        account.position,
        account.tool,
        account.argument,
        account.size,
        account.calls,
        account.whole,
        account.tokens,
        account.cost,
        account.dollars if priced else None,
        account.newer,
        account.reason,
        account.wasted,
        account.wasted_dollars if priced and account.newer else None,
    )
