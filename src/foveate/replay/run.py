"""One recording through one conversation: every model call of it made again, as far as one can without a model.

The messages are appended in their order. Before each message of the assistant the conversation is settled and rendered
as for a real call; what that would have cost, and whether the view still showed what the recorded answer used, is
measured beside it. Nothing that is measured flows back: a policy sees only what came before.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from time import process_time

import msgspec

from ..conversation import Conversation
from ..core.budget import measure_excess
from ..core.edits import Edit, Restore, Span, Summarize, Task
from ..core.messages import Message
from ..core.planner import Policy
from ..core.profiles import profile_for
from ..core.receipts import Receipt
from ..core.sizes import estimate, tokens_of
from ..core.stamps import Usage
from ..core.summaries import Summary, SummaryRequest
from ..core.view import Prices, View
from ..core.wire import encode_message
from ..open import Options, cost_of, open_conversation, open_summarizer
from ..policies import DEFAULT_PRESET
from ..ports import Store, Summarizer
from ..settings import load
from .lookup import Lookup
from .measure import DEFAULT_PRICES, Everything, Meter, percentile
from .recordings.recording import Recorded, Recording
from .references import Used
from .result import CallFigures, EditFigures, Replayed, Row

__all__ = ["Billed", "Check", "PolicyLike", "Written", "dollars", "edit_figures", "policy_name", "replay"]


# MODULEDOC """What the commits of a replay changed, told by the calls that saw it."""
def edit_figures(
    receipts: Iterable[Receipt], turns: Sequence[int], positions: Mapping[str, int]
) -> Iterator[EditFigures]:
    """The figures of every commit that changed what some call saw; what was planned after the last answer, none did.

    `turns`: what the conversation calls each of the calls, ascending. `positions`: of the messages, by id.
    """
    for receipt in receipts:
        call = bisect_left(turns, receipt.turn)
        changed = (receipt.tokens_before, receipt.bytes_before) != (receipt.tokens_after, receipt.bytes_after)
        if call < len(turns) and changed:
            touched = [positions[id] for edit in receipt.edits for id in _named(edit) if id in positions]
            yield EditFigures(
                turn=call + 1,
                edits=len(receipt.edits),
                tokens_before=receipt.tokens_before,
                tokens_after=receipt.tokens_after,
                first_position=min(touched, default=0),
                policies=", ".join(receipt.policies) or receipt.author,
            )


def _named(edit: Edit) -> list[str]:
    """Ids of the messages, or of the beginnings of spans, that an edit names."""
    match edit:
        case Restore(targets=places):
            pass
        case Summarize(span=span):
            places = (span,)
        case Task():
            places = ()
        case _:
            places = (edit.target,)
    return [place.first if isinstance(place, Span) else place.message for place in places]


# MODULEDOC """US dollars, where the recording names a model whose prices are known.
#
# The relative cost of `measure.py` compares policies; money tells a person what it means. Only input is priced: what
# the
# model answered is the same under every policy.
# """
def dollars(model: str, requests: Iterable[tuple[int, int]]) -> float | None:
    """What requests of so many (tokens, cached tokens) cost at this model's prices of today.

    None where the model is not named or not known, or `genai-prices` is not installed (`pip install
    "foveate[prices]"`). A model without a price for writing its cache writes it at the price of input.
    """
    cost = cost_of(model) if model else None
    if cost is None:
        return None
    return sum([cost(Usage(0, cached, tokens - cached, 0)) or 0.0 for tokens, cached in requests], 0.0)


# MODULEDOC """Summaries in a replay: written without a model, and billed as if a model had written them.
#
# What a real model would say is not known, so a replay shows what a policy does and costs, not how good its summaries
# are: the stand-in keeps the first characters of each message.
# """
class Billed:
    """A summarizer that keeps account of what its calls would have cost."""

    def __init__(self, summarizer: Summarizer, prices: Prices) -> None:
        self._summarizer = summarizer
        self._prices = prices
        self._due = 0.0
        self.name = getattr(summarizer, "name", "")
        self.needs_no_model = getattr(summarizer, "needs_no_model", False)
        self.calls = 0
        """How many summaries were asked for."""

    def __call__(self, request: SummaryRequest) -> str | Summary | Awaitable[str | Summary]:
        """The summary. Its input is billed like any other that is not cached yet, its output as output."""
        self.calls += 1
        read = sum(tokens_of(message) for message in request.messages) + estimate(request.previous)
        self._due += self._prices.write * read
        text = self._summarizer(request)
        written = text.text if isinstance(text, Summary) else text
        self._due += self._prices.output * estimate(written if isinstance(written, str) else "")
        return text

    def due(self) -> float:
        """The cost of what was asked since this was called last, in tokens of base input price."""
        due, self._due = self._due, 0.0
        return due


class Written:
    """What is asked for ahead of time in a replay: it is written at once, so that a replay is the same again."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._answer: object = None
        self._error: Exception | None = None
        try:
            self._answer = call()
        except Exception as error:
            self._error = error

    def done(self) -> bool:
        """It is."""
        return True

    def result(self) -> object:
        """What was written, or what was raised instead."""
        if self._error:
            raise self._error
        return self._answer

    def wait(self) -> None:
        """Nothing is left to wait for."""

    def cancel(self) -> None:
        """It is there already."""


Check = Callable[[str, bytes], Sequence[object]]
"""A second checker: the provider's name and a request body as its JSON bytes in, what is wrong with it out."""

PolicyLike = str | Policy | Sequence[Policy]
"""What `open_conversation` takes as a policy: a name, or callables."""

_REFUSALS = 5
"""How many of the second checker's findings are kept in words."""
_STEP = 1_000
"""Milliseconds from one message to the next where a recording does not tell."""


def replay(
    recording: Recording | Iterable[Message],
    *,
    policy: PolicyLike = DEFAULT_PRESET,
    window: int = 200_000,
    provider: str = "openai",
    prices: Prices = DEFAULT_PRICES,
    check: Check | None = None,
    store: str | Store = "memory:",
    name: str = "",
    transcript: str = "",
    summarizer: Summarizer | None = None,
) -> Replayed:
    """Replay a recording, or the messages of a conversation, under one policy.

    `window` is in tokens; `provider` (`openai` or `anthropic`) is whose format is rendered; `prices` are for reading
    and writing cached input. `check` looks at every request body; without it no view counts as illegal. `store` and
    `name` say where the conversation is kept: where one of that name exists, under the next free one. `transcript` is
    what the row calls the recording. `summarizer` writes the summaries that a policy asks for; by default the first
    characters of each message, for policies that cannot do without. They are billed as if a model had written them.
    Raises DoesNotFit where a system prompt and a pending request are larger than the window.
    """
    recorded, path, model, notes = _parts_of(recording)
    label = transcript or PurePath(path).stem or "conversation"
    clock = _Clock()
    if summarizer is None and _needs_summarizer(policy):
        summarizer = open_summarizer("first-characters")
    billed = Billed(summarizer, prices) if summarizer else None
    chat = _open(
        name or f"{label} / {policy_name(policy)}", store, provider, window, model, policy, prices, clock, billed
    )
    with chat:
        run = _Run(chat, clock, provider, prices, check, billed)
        for one in recorded:
            run.take(one)
        return run.result(label, policy_name(policy), window, model, notes)


def policy_name(policy: PolicyLike) -> str:
    """What a policy is called in a row: its name, or the names of its functions."""
    if isinstance(policy, str):
        return policy
    several = policy if isinstance(policy, Sequence) else (policy,)
    return "+".join(getattr(one, "__name__", type(one).__name__) for one in several)


def _needs_summarizer(policy: PolicyLike) -> bool:
    """Whether this policy, with what settings say, cannot do without summaries."""
    policies = load(policy=policy, environ=os.environ, folder=Path()).policies()
    return any(getattr(one, "needs_summarizer", False) for one in policies)


class _Clock:
    """The time of the recording, so that a replay is the same today and tomorrow."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    def advance(self, time: int | None) -> None:
        self.now = self.now + _STEP if time is None else max(self.now, time)


class _Run:
    """A replay under way."""

    def __init__(
        self,
        chat: Conversation,
        clock: _Clock,
        provider: str,
        prices: Prices,
        check: Check | None,
        summarizer: Billed | None,
    ) -> None:
        self._chat, self._clock, self._provider, self._prices, self._check = chat, clock, provider, prices, check
        self._summarizer = summarizer
        self._messages: list[Message] = []
        self._positions: dict[str, int] = {}  # id -> position
        self._lookup = Lookup(chat.originals, prices)
        self._meter = Meter(prices)
        self._everything = Everything()
        self._calls: list[CallFigures] = []
        self._turns: list[int] = []  # what the conversation itself calls each of the calls
        self._refusals: list[str] = []
        self._illegal = self._over = self._rewrites = 0
        self._seconds = 0.0  # CPU time spent since the last call
        self._may_ask = False

    def take(self, recorded: Recorded) -> None:
        """Take in the next message; if it is the assistant's, after making the model call that it answers."""
        message = recorded.message
        used = self._lookup.read(message)
        if asked := message.role == "assistant" and self._is_askable():
            self._ask(used)
        self._clock.advance(recorded.time)
        began = process_time()
        added = self._chat.record(message) if asked else self._chat.append(message, origin=recorded.origin)[-1]
        self._seconds += process_time() - began
        self._messages.append(message)
        self._everything.add(message)
        self._positions[added] = len(self._messages)

    def _is_askable(self) -> bool:
        """Whether there is anything to answer yet: not before the first message that is shown and no system prompt."""
        self._may_ask = self._may_ask or any(entry.message.role != "system" for entry in self._chat.view.entries)
        return self._may_ask

    def _ask(self, used: Used) -> None:
        """Make the next model call as far as its request, and measure it."""
        began = process_time()
        view = self._chat.prepare()
        request = self._chat.format.rendered(view, profile=self._chat.profile)
        milliseconds = (self._seconds + process_time() - began) * 1000
        self._seconds = 0.0
        self._everything.request()
        bill = self._meter.bill(request, len(self._messages))
        misses = self._lookup.look(view, bill, used)
        self._turns.append(view.turn)
        self._rewrites += bill.rewritten
        self._over += bool(measure_excess(view))
        self._judge(view)
        figures = CallFigures(
            turn=len(self._turns),
            message=len(self._messages) + 1,
            tokens=bill.tokens,
            cached=bill.cached,
            cost=bill.cost + (self._summarizer.due() if self._summarizer else 0.0),
            milliseconds=milliseconds,
            misses=misses,
            **self._lookup.tokens(),
        )
        self._calls.append(figures)

    def _judge(self, view: View) -> None:
        """Hand the request to the second checker."""
        if self._check is None:
            return
        body = self._chat.format.body(view, profile=self._chat.profile)
        if findings := self._check(self._provider, body):
            self._illegal += 1
            room = _REFUSALS - len(self._refusals)
            self._refusals += [f"call {len(self._turns)}: {finding}" for finding in findings[:room]]

    def result(self, transcript: str, policy: str, window: int, model: str, notes: Mapping[str, int]) -> Replayed:
        """The figures of everything taken in."""
        sent = self._everything.costs(self._prices)
        calls = tuple(
            msgspec.structs.replace(call, cost_unmanaged=cost) for call, cost in zip(self._calls, sent, strict=True)
        )
        edits = tuple(edit_figures(self._chat.receipts(), self._turns, self._positions))
        cost, whole = sum([call.cost for call in calls]), sum(sent)
        times = [call.milliseconds for call in calls]
        found = self._lookup
        row = Row(
            transcript=transcript,
            policy=policy,
            messages=len(self._messages),
            calls=len(calls),
            input_tokens=sum([call.tokens for call in calls]),
            peak_tokens=max([call.tokens for call in calls], default=0),
            cost=cost,
            cost_unmanaged=whole,
            cost_ratio=cost / whole if whole else 1.0,
            cost_all_in=(cost + found.mending.cost) / whole if whole else 1.0,
            expansions=found.mending.expansions,
            edits=len({edit.turn for edit in edits}),
            prefix_rewrites=self._rewrites,
            references=found.recall.used,
            recall_visible=found.recall.visible_share,
            said_references=found.said.used,
            said_visible=found.said.visible_share,
            quoted_lines=found.quoted.used,
            quoted_visible=found.quoted.visible_share,
            recall_reachable=found.recall.reachable_share,
            illegal_views=self._illegal,
            lost_messages=self._lost(),
            ms_per_turn_p50=percentile(times, 50),
            ms_per_turn_p99=percentile(times, 99),
            model_calls=self._summarizer.calls if self._summarizer else 0,
            over_budget=self._over,
            window=window,
            provider=self._provider,
            model=model,
            money=dollars(model, [(call.tokens, call.cached) for call in calls]),
            money_unmanaged=dollars(model, self._everything.requests),
            kept_apart=dict(notes),
        )
        return Replayed(row, calls, edits, tuple(self._refusals))

    def _lost(self) -> int:
        """How many messages cannot be read back from the history as they were."""
        kept = [encode_message(row.message) for row in self._chat.history()]
        there = sum([encode_message(message) == body for message, body in zip(self._messages, kept, strict=False)])
        return len(self._messages) - there


def _parts_of(recording: Recording | Iterable[Message]) -> tuple[Sequence[Recorded], str, str, Mapping[str, int]]:
    if isinstance(recording, Recording):
        return recording.messages, recording.path, recording.model, recording.notes
    return [Recorded(message, 0) for message in recording], "", "", {}


def _open(
    name: str,
    store: str | Store,
    provider: str,
    window: int,
    model: str,
    policy: PolicyLike,
    prices: Prices,
    clock: _Clock,
    summarizer: Summarizer | None,
) -> Conversation:
    """A new conversation, under this name or the next free one."""
    number = 1
    while True:
        chat = open_conversation(
            name if number == 1 else f"{name} ({number})",
            store=store,
            format=provider,
            window=window,
            policy=policy,
            summarizer=summarizer,
            # A recording may pair a model with another provider: only the model's rules count here.
            options=Options(
                profile=profile_for(provider, model), prices=prices, clock=clock, background=Written, tenant=""
            ),
        )
        if not chat.head.position:
            return chat
        chat.close()
        number += 1
