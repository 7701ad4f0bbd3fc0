"""The figures of the model calls of a stored conversation, folded in the background.

The figures are those that a replay reports for the same recording. The history is folded once, and continued when the
conversation grows. Each fold works on a head of its own, without the lock of the conversation.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from threading import Condition, Lock, Thread
from typing import Any
from weakref import WeakKeyDictionary

from msgspec import Struct

from ...conversation import Conversation
from ...conversation.past import LateChange, PastCall, Walk
from ...core.call_context import NO_WINDOW, Budget, Prices
from ...core.context import Rates, rates_of
from ...core.edits import Bill, Record, Summarize, Task
from ...core.profiles import Profile
from ...core.receipts import receipt_of
from ...core.sizes import estimate
from ...core.snapshots import Row
from ...core.stamps import Usage, is_interrupted
from ...core.view import View
from ...errors import StoreError
from ...formats import get_format
from ...ports import CostOf, Format, Head
from ...replay.lookup import KINDS, ContentKind, content_kind
from ...replay.measure import CacheClock, Meter, ViewChanges, asked_at
from ...replay.result import CallFigures

__all__ = ["CommitFigures", "Figures", "Timeline", "timeline_of"]

_INTEGERS = ("turn", "message", "time", "tokens", "cached", "whole", "shown", "model", *KINDS)
_AMOUNTS = ("cost", "cost_unmanaged", "dollars", "dollars_unmanaged", "billed")
_UNKNOWN = -1.0
"""An amount that is not known."""
_WITHOUT_MODEL = frozenset({"digest", "first-characters"})
"""Authors of summaries that call no model."""
_CHECKPOINT = "checkpoint"
"""The policy whose summaries have no task in the journal."""
_AT_ONCE = Lock()
"""One fold at a time: folds compete with the pages for the processor."""


class CommitFigures(Struct, frozen=True, gc=False):
    """One commit that changed the view of a call."""

    call: int
    """Index of the first call that saw it, from 0."""
    first: int
    """Number of its first edit."""
    last: int
    """Number of its last edit."""
    tokens_before: int
    """Tokens of the view before it."""
    tokens_after: int
    """Tokens of the view after it."""
    policies: str
    """Names of its policies, or its author, separated by commas."""


class Figures:
    """The figures of the first calls of a conversation, a column for each kind of figure. Columns only grow."""

    def __init__(self) -> None:
        self.count = 0
        """The number of calls."""
        self._columns: dict[str, array[int]] = {name: array("q") for name in _INTEGERS}
        self._amounts: dict[str, array[float]] = {name: array("d") for name in _AMOUNTS}
        self._models: list[str] = []
        self._usage: dict[int, Usage] = {}
        self._estimated: set[int] = set()
        self.commits: list[CommitFigures] = []
        """The commits that changed the view of a call, in order."""

    def __len__(self) -> int:
        return self.count

    def add(self, values: dict[str, int], amounts: dict[str, float], model: str) -> None:
        """Add a call."""
        if model not in self._models:
            self._models.append(model)
        values["model"] = self._models.index(model)
        for name, column in self._columns.items():
            column.append(values.get(name, 0))
        for name, amount in self._amounts.items():
            amount.append(amounts.get(name, _UNKNOWN))
        self.count += 1  # Last, since other threads read below this index.

    def add_usage(self, index: int, usage: Usage, dollars: float | None, *, is_estimate: bool) -> None:
        """Add the billed tokens of a call."""
        self._usage[index] = usage
        self._estimated.discard(index)
        if is_estimate:
            self._estimated.add(index)
        self._amounts["billed"][index] = _UNKNOWN if dollars is None else dollars

    def column(self, name: str) -> Sequence[int]:
        """Return a column: `turn`, `message`, `time`, `tokens`, `cached`, `whole`, `shown`, or a kind of content."""
        return self._columns[name]

    def amounts(self, name: str) -> Sequence[float]:
        """Return a column: `cost` and `cost_unmanaged` in tokens of base input price, `dollars`, `dollars_unmanaged` or
        `billed`. Dollars are below 0 if they are not known.
        """
        return self._amounts[name]

    def index_of(self, turn: int) -> int | None:
        """Return the index of the call with this number; None if it has no reply, or was not folded so far."""
        at = self.place_of(turn)
        return at if at < self.count and self._columns["turn"][at] == turn else None

    def place_of(self, turn: int) -> int:
        """Return the index of the first call with this number or a greater one."""
        return bisect_left(self._columns["turn"], turn, 0, self.count)

    def call(self, index: int) -> CallFigures:
        """Return a call as a replay reports it. `turn` counts the calls with a reply, from 1."""
        figures: dict[str, Any] = {
            **{name: self._columns[name][index] for name in ("message", "tokens", "cached", *KINDS)},
            **{name: self._amounts[name][index] for name in ("cost", "cost_unmanaged")},
        }
        return CallFigures(turn=index + 1, **figures)

    def model(self, index: int) -> str:
        """Return the model that answered a call; "" if it is not known."""
        return self._models[self._columns["model"][index]]

    def usage(self, index: int) -> tuple[Usage | None, bool]:
        """Return the billed tokens of a call, if they are known, and whether they are an estimate."""
        return self._usage.get(index), index in self._estimated

    @property
    def billed_calls(self) -> int:
        """Return the number of calls whose billed dollars are known."""
        return sum(amount >= 0 for amount in self._amounts["billed"][: self.count])

    def billed_prompt(self, first: int, last: int) -> int | None:
        """Return the largest billed prompt, in tokens, of the calls with index `first` to `last` - 1."""
        prompts = [used.prompt_tokens for index in range(first, last) if (used := self._usage.get(index))]
        return max([tokens for tokens in prompts if tokens is not None], default=None)

    def largest(self, first: int, last: int) -> int:
        """Return the index of the call with the most tokens, of those with index `first` to `last` - 1."""
        tokens = self._columns["tokens"][first:last]
        return first + tokens.index(max(tokens))

    def total(self, name: str, first: int = 0, last: int | None = None) -> float:
        """Return the sum of an amount over the calls with index `first` to `last` - 1; unknown ones count as 0."""
        amounts = self._amounts[name][first : self.count if last is None else last]
        if not amounts or min(amounts) >= 0:
            return sum(amounts)
        return sum([amount for amount in amounts if amount > 0])

    @property
    def dollars_saved(self) -> float | None:
        """The US dollars that the views saved, over the calls with a known price; None if there are none."""
        known = [amount for amount in self._amounts["dollars"] if amount >= 0]
        return self.total("dollars_unmanaged") - self.total("dollars") if known else None

    def is_known(self, name: str, first: int, last: int) -> bool:
        """Return whether an amount of all calls with index `first` to `last` - 1 is known."""
        return min(self._amounts[name][first:last], default=0.0) >= 0

    def commits_between(self, first: int, last: int) -> list[CommitFigures]:
        """Return the commits that the calls with index `first` to `last` - 1 saw first."""
        low, high = (bisect_left(self.commits, index, key=lambda commit: commit.call) for index in (first, last))
        return self.commits[low:high]

    def running(self, name: str, bounds: Sequence[int]) -> list[float]:
        """Return the sum of an amount from the first of these bounds up to each of the others."""
        pieces = [self.total(name, low, high) for low, high in pairwise(bounds)]
        return list(accumulate(pieces))


class _Fold:
    """One walk through the past, with the figures of its calls."""

    def __init__(self, walk: Walk, format: Format, profile: Profile, prices: Prices, cost_of: CostOf | None) -> None:
        self.walk, self.figures = walk, Figures()
        self._format, self._profile, self._prices, self._cost_of = format, profile, prices, cost_of
        self._meter, self._clock, self._changes = Meter(prices), CacheClock(prices), ViewChanges()
        self._kinds: dict[ContentKind, int] = dict.fromkeys(KINDS, 0)
        self._whole = self._sent = 0  # tokens of all messages, and of those at the last call
        self._rates: dict[str, Rates | None] = {}
        self._due = 0.0  # cost of the summaries since the last call
        self._summaries: dict[str, str] = {}  # the newest summary of each policy

    def advance(self, is_stopped: Callable[[], bool]) -> None:
        """Fold up to the walk's head."""
        for call in self.walk.calls():
            self._add(call)
            if is_stopped():
                return
        for item in self.walk.rest[1]:
            self._note_bills(item)

    def _add(self, call: PastCall) -> None:
        entries = self.walk.entries()
        for item in call.items:
            if isinstance(item, Row):
                self._whole += item.stamp.tokens if item.stamp.expanded is None else 0
            else:
                self._note(item)
        left, joined = self._changes.update(entries)
        for sign, changed in ((-1, left), (1, joined)):
            for entry in changed:
                self._kinds[content_kind(entry)] += sign * entry.tokens
        view = View(entries, call.turn, _NO_BUDGET)
        reply = call.reply
        cold = self._clock.is_cold(asked_at(call))
        request = self._format.rendered(view, profile=self._profile)
        bill = self._meter.bill(request, self.walk.projection.position, is_cold=cold)
        cached = 0 if cold else self._sent
        new = self._whole - cached
        values: dict[str, int] = {
            "turn": call.turn,
            "message": reply.position,
            "time": reply.stamp.time,
            "tokens": bill.tokens,
            "cached": bill.cached,
            "whole": self._whole,
            "shown": len(entries),
        }
        for kind, tokens in self._kinds.items():
            values[kind] = tokens
        amounts = {
            "cost": bill.cost + self._due,
            "cost_unmanaged": self._prices.read * cached + self._prices.write * new,
        }
        rates = self._rates_of(reply.stamp.model)
        if rates is not None:
            base, read, write, _ = rates
            amounts["dollars"] = read * bill.cached + write * (bill.tokens - bill.cached) + base * self._due
            amounts["dollars_unmanaged"] = read * cached + write * new
        self._sent, self._due = self._whole, 0.0
        self.figures.add(values, amounts, reply.stamp.model)
        if reply.stamp.usage is not None:
            self._add_usage(self.figures.count - 1, reply.stamp.usage, is_interrupted(reply.stamp.stop))

    def _note(self, record: Record) -> None:
        """Add a commit, if it changed the view or reports what a call was billed."""
        self._note_bills(record)
        changed = (record.tokens_before, record.bytes_before) != (record.tokens_after, record.bytes_after)
        if changed and not all(isinstance(edit, Task | Bill) for edit in record.edits):
            self._due += self._summary_cost(record)
            receipt = receipt_of(record)
            self.figures.commits.append(
                CommitFigures(
                    self.figures.count,
                    record.first,
                    record.last,
                    record.tokens_before,
                    record.tokens_after,
                    ", ".join(receipt.policies) or receipt.author,
                )
            )

    def _summary_cost(self, record: Record) -> float:
        """Return the cost of the summaries in a commit, in tokens of base input price, as a replay estimates it.

        The journal has the tokens that the summarizer had to read. It also read the summary before.
        """
        read = {edit.policy: edit.input_tokens for edit in record.edits if isinstance(edit, Task) and edit.input_tokens}
        cost = 0.0
        for edit in record.edits:
            if not isinstance(edit, Summarize) or edit.by in _WITHOUT_MODEL:
                continue
            if edit.policy in read or edit.policy == _CHECKPOINT:
                tokens = read.get(edit.policy, edit.tokens_before)
                if edit.policy in read:
                    tokens += estimate(self._summaries.get(edit.policy, ""))
                cost += self._prices.write * tokens + self._prices.output * estimate(edit.text)
                self._summaries[edit.policy] = edit.text
        return cost

    def _note_bills(self, record: Record) -> None:
        for edit in record.edits:
            if isinstance(edit, Bill) and (index := self.figures.index_of(edit.call)) is not None:
                self._add_usage(index, edit.usage, is_estimate=False)

    def _add_usage(self, index: int, usage: Usage, is_estimate: bool) -> None:
        model = self.figures.model(index)
        cost = self._cost_of(model) if self._cost_of and model else None
        self.figures.add_usage(index, usage, cost(usage) if cost else None, is_estimate=is_estimate)

    def _rates_of(self, model: str) -> Rates | None:
        if model not in self._rates:
            cost = self._cost_of(model) if self._cost_of and model else None
            self._rates[model] = rates_of(cost) if cost else None
        return self._rates[model]


_NO_BUDGET = Budget(NO_WINDOW, 0, 10**15, 10**9)


class Timeline:
    """The figures of one open conversation. A thread folds its past; `follow` starts it, and returns what is there."""

    def __init__(self, chat: Conversation, cost_of: CostOf | None = None) -> None:
        self._session, self._cost_of = chat._session, cost_of
        self._changed = Condition()
        self._fold: _Fold | None = None
        self._place = (0, 0, 0)
        self._is_running = self._is_stopped = False
        self.error = ""
        """Why the newest fold failed; "" if it did not."""

    def follow(self, wait: float = 0.0) -> Figures:
        """Fold what is new, and return the figures so far after at most `wait` seconds."""
        with self._changed:
            if not self._is_running and not self._is_stopped and not self._is_at_head():
                self._is_running, self.error = True, ""
                Thread(target=self._run, name="foveate-timeline", daemon=True).start()
            if wait > 0:
                self._changed.wait_for(lambda: not self._is_running, wait)
        fold = self._fold
        return fold.figures if fold else Figures()

    @property
    def is_complete(self) -> bool:
        """Return whether the figures reach the head."""
        return not self._is_running and self._is_at_head()

    @property
    def progress(self) -> float:
        """Return the share of the messages that are folded, from 0 to 1."""
        fold, position = self._fold, self._session.head.position
        return 1.0 if self.is_complete else fold.walk.projection.position / position if fold and position else 0.0

    def stop(self) -> None:
        """End the fold that is running, and begin no other."""
        self._is_stopped = True

    def _is_at_head(self) -> bool:
        fold, head = self._fold, self._session.head
        if fold is None or self._place != _place(head):
            return False
        return (fold.walk.head.position, fold.walk.head.number) == (head.position, head.number)

    def _run(self) -> None:
        try:
            with _AT_ONCE:
                while not self._is_stopped and not self._is_at_head():
                    self._advance()
        except (StoreError, LateChange) as error:  # The next call of `follow` tries again.
            self._fold, self.error = None, str(error) or "another process changed an earlier call"
        finally:
            with self._changed:
                self._is_running = False
                self._changed.notify_all()

    def _advance(self) -> None:
        session = self._session
        with session.lock:
            head = session.head
            if self._fold is None or self._place != _place(head):
                state = session.state
                walk = session.past.walk()
                self._fold = _Fold(
                    walk, get_format(state.format.name), state.profile, state.model.prices, self._cost_of
                )
                self._place = _place(head)
        fold = self._fold
        before, fold.walk.head = fold.walk.head, head
        try:
            fold.advance(lambda: self._is_stopped)
        except LateChange:
            if before is head:
                raise
            self._fold = None  # Fold again from the beginning.


def _place(head: Head) -> tuple[int, int, int]:
    return head.root, head.branch, head.erased


_timelines: WeakKeyDictionary[Conversation, Timeline] = WeakKeyDictionary()
_timelines_lock = Lock()


def timeline_of(chat: Conversation, cost_of: CostOf | None = None) -> Timeline:
    """Return the timeline of an open conversation. It lives as long as the conversation is open."""
    with _timelines_lock:
        if chat not in _timelines:
            _timelines[chat] = Timeline(chat, cost_of)
        return _timelines[chat]
