"""Replay of one recording: repeats every model call as far as its request.

The messages are appended in order. Before each message of the assistant, the conversation is prepared and rendered as
for a real call. The replay measures the cost of the request, and whether the view still shows what the recorded answer
used. The measurements do not influence the replay: a policy sees only earlier messages.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from time import process_time
from typing import Any

import msgspec

from ..conversation import Conversation
from ..core.budget import measure_excess
from ..core.call_context import Prices
from ..core.economy import is_cold
from ..core.edits import Bill, Edit, Restore, Summarize, Task, ends_of
from ..core.messages import Message
from ..core.planner import Policy
from ..core.profiles import profile_for
from ..core.receipts import Receipt
from ..core.stamps import Usage
from ..core.view import View
from ..core.wire import encode_message
from ..open import Options, cost_of, open_conversation, open_summarizer
from ..policies import DEFAULT_PRESET, PolicyChoice
from ..ports import Store, Summarizer
from ..settings import load
from .lookup import Lookup
from .measure import DEFAULT_PRICES, Meter, RecordedRequests, UnmanagedRequests, percentile
from .recordings.recording import RecordedMessage, Recording
from .recordings.source import readable_path
from .references import UsedReferences, things_in_calls
from .result import CallFigures, EditFigures, ReplayResult, Row
from .summaries import BilledSummarizer, ImmediateCall
from .views import ViewLog

__all__ = [
    "dollars",
    "edit_figures",
    "policy_name",
    "replay",
]


def edit_figures(
    receipts: Iterable[Receipt], turns: Sequence[int], positions: Mapping[str, int]
) -> Iterator[EditFigures]:
    """Return the figures of every commit that changed the view of a call. No call sees a plan after the last answer.

    `turns` are the conversation's numbers of the calls, ascending. `positions` are those of the messages, by id.
    """
    for receipt in receipts:
        call = bisect_left(turns, receipt.turn)
        changed = (receipt.tokens_before, receipt.bytes_before) != (receipt.tokens_after, receipt.bytes_after)
        if call < len(turns) and changed:
            positions_touched = [
                positions[id] for edit in receipt.edits for id in _message_ids(edit) if id in positions
            ]
            yield EditFigures(
                turn=call + 1,
                edits=len(receipt.edits),
                tokens_before=receipt.tokens_before,
                tokens_after=receipt.tokens_after,
                first_position=min(positions_touched, default=0),
                policies=", ".join(receipt.policies) or receipt.author,
            )


def _message_ids(edit: Edit) -> list[str]:
    """Return the ids of the messages, or of the first messages of spans, that an edit names."""
    match edit:
        case Restore(targets=places):
            pass
        case Summarize(span=span):
            places = (span,)
        case Task() | Bill():
            places = ()
        case _:
            places = (edit.target,)
    return [ends_of(place)[0] for place in places]


def dollars(model: str, requests: Iterable[tuple[int, int]], *, written: int = 0) -> float | None:
    """Return the cost of requests, given as (tokens, cached tokens), at this model's current prices in US dollars.

    `written` are tokens of output, such as those of summaries. The model's answers are not priced, because they are the
    same under every policy.

    Returns None if the model has no name or no known price, or `genai-prices` is not installed (`pip install
    "foveate[prices]"`). A model without a price for cache writes pays the price of input for them.
    """
    cost = cost_of(model) if model else None
    if cost is None:
        return None
    usages = [Usage(0, cached, tokens - cached, 0) for tokens, cached in requests]
    return sum([cost(usage) or 0.0 for usage in (*usages, Usage(0, 0, 0, written))], 0.0)


_REFUSALS = 5
"""The number of the second checker's findings to keep as text."""
_READ_BACK = 16
"""Messages that are read back from the history at once."""
_STEP = 1_000
"""Milliseconds between messages if the recording has no times."""


def replay(
    recording: Recording | Iterable[Message],
    *,
    policy: PolicyChoice = DEFAULT_PRESET,
    window: int = 200_000,
    provider: str = "openai",
    prices: Prices = DEFAULT_PRICES,
    check: Callable[[str, bytes], Sequence[object]] | None = None,
    store: str | Store = "memory:",
    name: str = "",
    transcript: str = "",
    summarizer: Summarizer | None = None,
    views: bool = False,
    progress: Callable[[int, int], object] | None = None,
    names_model: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> ReplayResult:
    """Replay a recording, or the messages of a conversation, under one policy.

    `window` is in tokens. `provider` (`openai`, `openai_responses`, `anthropic` or `gemini`) selects the format to
    render. `prices` are those of reading and writing cached input. `check` gets the provider's name and the JSON bytes
    of every request body, and returns the problems, such as `foveate.testing.check_body`; without it no view counts as
    illegal. `store` and `name`
    select where the conversation is stored; if the name exists, the next free one is used. `transcript` is the
    recording's name in the row. `summarizer` writes the summaries that a policy requests; the default, for policies
    that require summaries, takes the first characters of each message. Summaries are billed as if a model had written
    them. `views` keeps the view of each call in the result. `progress` is called before each message, with the number
    of messages taken and the number of all; an error that it raises stops the replay. `names_model`: the requests name
    the recording's model, so that the stored replies do; the format must be the model's. `settings`: values of
    mechanisms that take precedence over those of the policy, such as `{"prune": {"protect": 20_000}}`. Raises
    DoesNotFit if a system prompt and a pending request are larger than the window.
    """
    recorded, path, model, notes = _parts_of(recording)
    label = transcript or PurePath(readable_path(path)).stem or "conversation"
    clock = _Clock()
    if summarizer is None and _requires_summaries(policy, settings):
        summarizer = open_summarizer("first-characters")
    billed_summarizer = BilledSummarizer(summarizer, prices) if summarizer else None
    chat = _open(
        name or f"{label} / {policy_name(policy)}",
        store,
        provider,
        window,
        model,
        policy,
        prices,
        clock,
        billed_summarizer,
        settings,
    )
    with chat:
        log = ViewLog() if views else None
        wanted = things_in_calls(entry.message for entry in recorded)
        run = _Run(chat, clock, provider, prices, check, billed_summarizer, log, model if names_model else "", wanted)
        for taken, entry in enumerate(recorded):
            if progress:
                progress(taken, len(recorded))
            run.take(entry)
        return run.result(label, policy_name(policy), window, model, notes)


def policy_name(policy: PolicyChoice) -> str:
    """Return the name of a policy in a row: its own name, or the names of its functions or types."""
    if isinstance(policy, str):
        return policy
    return "+".join(map(_name_of, policy)) if isinstance(policy, Sequence) else _name_of(policy)


def _name_of(policy: str | Policy) -> str:
    if isinstance(policy, str):
        return policy
    return getattr(policy, "__name__", "") or type(policy).__name__.lstrip("_").lower()


def _requires_summaries(policy: PolicyChoice, settings: Mapping[str, Any] | None) -> bool:
    """Return whether this policy, with the effective settings, requires summaries."""
    policies = load(policy=policy, environ=os.environ, folder=Path(), settings=settings).policies
    return any(getattr(each, "needs_summarizer", False) for each in policies)


class _Clock:
    """The recording's clock, which makes a replay reproducible."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    def advance(self, time: int | None) -> None:
        self.now = self.now + _STEP if time is None else max(self.now, time)


class _Run:
    """State of a replay."""

    def __init__(
        self,
        chat: Conversation,
        clock: _Clock,
        provider: str,
        prices: Prices,
        check: Callable[[str, bytes], Sequence[object]] | None,
        summarizer: BilledSummarizer | None,
        views: ViewLog | None,
        model: str,
        wanted: frozenset[str],
    ) -> None:
        self._chat, self._clock, self._provider, self._prices, self._check = chat, clock, provider, prices, check
        self._summarizer = summarizer
        self._views, self._model = views, model or None
        self._messages: list[Message] = []
        self._positions: dict[str, int] = {}  # id -> position
        self._lookup = Lookup(chat.originals, prices, wanted)
        self._meter = Meter(prices)
        self._unmanaged, self._recorded = UnmanagedRequests(), RecordedRequests()
        self._times: list[int] = []
        self._calls: list[CallFigures] = []
        self._turns: list[int] = []  # the conversation's number of each call
        self._refusals: list[str] = []
        self._illegal = self._over = self._rewrites = 0
        self._seconds = 0.0  # CPU time since the last call
        self._has_question = False

    def take(self, recorded: RecordedMessage) -> None:
        """Add the next message. Before an assistant message, make the model call that it answers."""
        message = recorded.message
        used = self._lookup.read(message)
        if is_reply := message.role == "assistant" and self._is_askable():
            self._ask(used)
        self._clock.advance(recorded.time)
        began = process_time()
        added = self._chat.record(message) if is_reply else self._chat.append(message, origin=recorded.origin)[-1]
        self._seconds += process_time() - began
        self._messages.append(message)
        self._unmanaged.add(message)
        self._recorded.add(message, is_summary=recorded.origin == "summary")
        if recorded.time is not None:
            self._times.append(recorded.time)
        self._positions[added] = len(self._messages)

    def _is_askable(self) -> bool:
        """Return whether the view holds a message to answer, that is, any but system prompts."""
        self._has_question = self._has_question or any(not entry.is_system for entry in self._chat.view.entries)
        return self._has_question

    def _ask(self, used: UsedReferences) -> None:
        """Render the request of the next model call, and measure it."""
        began = process_time()
        view = self._chat.prepare(model=self._model, window=self._chat.budget.window if self._model else None)
        request = self._chat.format.rendered(view, profile=self._chat._agent.profile)
        milliseconds = (self._seconds + process_time() - began) * 1000
        self._seconds = 0.0
        cold = is_cold(view, self._prices)
        self._unmanaged.request(is_cold=cold)
        self._recorded.request(is_cold=cold)
        bill = self._meter.bill(request, len(self._messages), is_cold=cold)
        misses = self._lookup.compare(view, bill, used)
        self._turns.append(view.turn)
        self._rewrites += bill.rewritten
        self._over += bool(measure_excess(view))
        self._judge(view)
        if self._views is not None:
            self._views.add(view.entries)
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
        """Give the request to the second checker."""
        if self._check is None:
            return
        body = self._chat.format.body(view, profile=self._chat._agent.profile)
        if findings := self._check(self._provider, body):
            self._illegal += 1
            room = _REFUSALS - len(self._refusals)
            self._refusals += [f"call {len(self._turns)}: {finding}" for finding in findings[:room]]

    def result(self, transcript: str, policy: str, window: int, model: str, notes: Mapping[str, int]) -> ReplayResult:
        """Return the figures of all messages added."""
        unmanaged_costs = self._unmanaged.costs(self._prices)
        calls = tuple(
            msgspec.structs.replace(call, cost_unmanaged=cost, tokens_unmanaged=tokens)
            for call, cost, (tokens, _) in zip(self._calls, unmanaged_costs, self._unmanaged.requests, strict=True)
        )
        edits = tuple(edit_figures(self._chat.journal.receipts(), self._turns, self._positions))
        cost, whole = sum([call.cost for call in calls]), sum(unmanaged_costs)
        times = [call.milliseconds for call in calls]
        lookup = self._lookup
        billed = [(call.tokens, call.cached) for call in calls]
        written = 0
        if self._summarizer:
            billed += self._summarizer.requests
            written = self._summarizer.written
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
            cost_all_in=(cost + lookup.fetches.cost) / whole if whole else 1.0,
            expansions=lookup.fetches.expansions,
            edits=len({edit.turn for edit in edits}),
            prefix_rewrites=self._rewrites,
            references=lookup.recall.used,
            recall_visible=lookup.recall.visible_share,
            said_references=lookup.said.used,
            said_visible=lookup.said.visible_share,
            quoted_lines=lookup.quoted.used,
            quoted_visible=lookup.quoted.visible_share,
            recall_reachable=lookup.recall.reachable_share,
            illegal_views=self._illegal,
            lost_messages=self._lost(),
            ms_per_turn_p50=percentile(times, 50),
            ms_per_turn_p99=percentile(times, 99),
            model_calls=self._summarizer.calls if self._summarizer else 0,
            over_budget=self._over,
            window=window,
            provider=self._provider,
            model=model,
            money=dollars(model, billed, written=written),
            money_unmanaged=dollars(model, self._unmanaged.requests),
            kept_apart=dict(notes),
            compactions=self._recorded.compactions,
            cost_recorded=self._recorded.cost(self._prices) if self._recorded.compactions else None,
            money_recorded=(
                dollars(model, self._recorded.requests, written=self._recorded.written)
                if self._recorded.compactions
                else None
            ),
            began=min(self._times, default=None),
            ended=max(self._times, default=None),
        )
        if self._views is not None:
            self._views.records = self._chat.journal.records()
        return ReplayResult(row, calls, edits, tuple(self._refusals), self._views, self._chat.tip)

    def _lost(self) -> int:
        """Return how many messages differ when they are read back from the history."""
        lost = len(self._messages)
        for start in range(0, len(self._messages), _READ_BACK):
            messages = self._messages[start : start + _READ_BACK]
            stored = self._chat.history(start + 1, start + len(messages))
            lost -= sum(
                [encode_message(row.message) == encode_message(m) for row, m in zip(stored, messages, strict=False)]
            )
        return lost


def _parts_of(
    recording: Recording | Iterable[Message],
) -> tuple[Sequence[RecordedMessage], str, str, Mapping[str, int]]:
    if isinstance(recording, Recording):
        return recording.messages, recording.path, recording.model, recording.notes
    return [RecordedMessage(message, 0) for message in recording], "", "", {}


def _open(
    name: str,
    store: str | Store,
    provider: str,
    window: int,
    model: str,
    policy: PolicyChoice,
    prices: Prices,
    clock: _Clock,
    summarizer: Summarizer | None,
    settings: Mapping[str, Any] | None,
) -> Conversation:
    """Open a new conversation, under this name or the next free one."""
    number = 1
    while True:
        chat = open_conversation(
            name if number == 1 else f"{name} ({number})",
            store=store,
            format=provider,
            window=window,
            policy=policy,
            summarizer=summarizer,
            expand=True,  # Replays count what an agent would expand.
            # A recording may pair a model with another provider: only the model's rules count here.
            options=Options(
                profile=profile_for(provider, model),
                prices=prices,
                clock=clock,
                settings=settings,
                background=ImmediateCall,
                tenant="",
                counter="characters",  # One yardstick for all recordings, and for what no view shows.
            ),
        )
        if not chat._agent.head.position:
            return chat
        chat.close()
        number += 1
