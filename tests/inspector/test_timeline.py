"""The figures of stored conversations: those that a replay reported for the same recording."""

from __future__ import annotations

import threading
from itertools import accumulate
from pathlib import Path

import msgspec
import pytest

from foveate import assistant, open_conversation, user
from foveate.conversation.sync import Conversation
from foveate.core.context import CostOf
from foveate.core.stamps import Usage
from foveate.inspector.views.spending import spending_of_conversation, spending_of_messages
from foveate.inspector.views.timeline import Figures, Timeline, timeline_of
from foveate.open import Options, open_store
from foveate.replay.recordings import read_recording
from foveate.replay.recordings.recording import RecordedMessage, Recording
from foveate.replay.result import ReplayResult
from foveate.replay.run import replay
from foveate.stores.memory import MemoryStore
from foveate.testing import agent_run


def stored(recording, policy: str, window: int = 40_000) -> tuple[ReplayResult, Conversation]:
    store = open_store("memory:")
    result = replay(recording, policy=policy, window=window, provider="anthropic", store=store, name="run")
    return result, opened(store, window)


def opened(store, window: int = 40_000, name: str = "run") -> Conversation:
    options = Options(counter="characters", tenant="")
    return open_conversation(
        name, store=store, format="anthropic", policy="off", window=window, expand=True, options=options
    )


def figures_of(chat: Conversation, cost_of: CostOf | None = None) -> Figures:
    timeline = Timeline(chat, cost_of)
    figures = timeline.follow(wait=60)
    assert (timeline.error, timeline.is_complete, timeline.progress) == ("", True, 1.0)
    return figures


def compared(result: ReplayResult, figures: Figures, cost: float = 1e-9) -> None:
    """Compare the figures call by call. `cost`: the largest relative difference of the cost of a call."""
    assert len(figures) == len(result.calls)
    for index, call in enumerate(result.calls):
        own = figures.call(index)
        expected = msgspec.structs.replace(call, milliseconds=0.0, misses=0, cost=own.cost, tokens_unmanaged=0)
        assert own == expected
        assert own.cost == pytest.approx(call.cost, rel=cost)
    edits = [(plan.turn, plan.edits, plan.tokens_before, plan.tokens_after, plan.policies) for plan in result.edits]
    assert edits == [
        (commit.call + 1, commit.last - commit.first + 1, commit.tokens_before, commit.tokens_after, commit.policies)
        for commit in figures.commits
    ]


@pytest.mark.parametrize("policy", ["balanced", "prune", "keep-last-5", "prune-and-compact", "off"])
def test_figures_of_a_store_are_those_of_its_replay(policy):
    result, chat = stored(agent_run(60, seed=2, result_chars=(50, 3_000)), policy, window=20_000)
    # A summary's framing counts as its previous summary, which a replay leaves out.
    compared(result, figures_of(chat), cost=0.02)


@pytest.mark.parametrize("policy", ["balanced", "off"])
def test_figures_after_pauses_are_those_of_a_replay(policy):
    messages = list(agent_run(60, seed=3))
    times = accumulate(600_000 if place % 10 == 0 else 1_000 for place in range(len(messages)))
    recorded = tuple(RecordedMessage(message, 1, time) for message, time in zip(messages, times, strict=True))
    result, chat = stored(Recording("run.jsonl", "chat-completions", recorded), policy)
    figures = figures_of(chat)
    compared(result, figures, cost=0.02)
    assert sum(not call.cached for call in result.calls) > 5
    spending = spending_of_conversation(chat)
    assert spending.cost_unmanaged == pytest.approx(figures.total("cost_unmanaged"))
    if policy == "off":  # Without summaries, which the spending leaves out.
        assert spending.cost == pytest.approx(figures.total("cost"))
        by_time = spending_of_messages(messages, times=[row.time for row in recorded])
        assert by_time.cost == pytest.approx(result.row.cost_unmanaged)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["balanced", "prune", "keep-last-5", "prune-and-compact"])
def test_figures_of_recorded_sessions_are_those_of_replays(policy, transcripts: Path):
    files = sorted((transcripts / "neutral").rglob("*.jsonl"))
    for path in files[:: max(1, len(files) // 8)]:
        result, chat = stored(read_recording(path), policy)
        compared(result, figures_of(chat), cost=0.02)


def test_figures_continue_when_the_conversation_grows():
    _, chat = stored(agent_run(40, seed=2), "balanced")
    timeline = Timeline(chat)
    before = timeline.follow(60)
    count, cost = len(before), before.total("cost")
    for number in range(3):
        chat.append(user(f"question {number}"))
        chat.prepare()
        chat.record(assistant("answer"), usage=Usage(100, 2_000, 30, 40))
    after = timeline.follow(60)
    assert (after is before, len(after)) == (True, count + 3)
    assert after.total("cost") > cost
    assert list(after.amounts("cost")) == list(figures_of(chat).amounts("cost"))
    assert [after.usage(index)[0] is not None for index in (count - 1, count, count + 2)] == [False, True, True]
    assert after.billed_prompt(count, count + 3) == 2_130


def test_usage_reported_late_replaces_the_estimate():
    chat = opened(MemoryStore())
    for number in range(2):
        chat.append(user(f"question {number}"))
        chat.prepare()
        chat.record(assistant("half an ans"), interrupted=True)
    timeline = Timeline(chat)
    figures = timeline.follow(60)
    assert [figures.usage(0)[1], figures.usage(1)[1]] == [True, True]
    chat.bill(1, Usage(7, 0, 0, 3))
    timeline.follow(60)
    assert figures.usage(0) == (Usage(7, 0, 0, 3), False)
    assert figures.usage(1)[1]


def test_dollars_are_those_of_the_model_of_each_call():
    def cost_of(model: str):
        price = {"claude-opus-4-5": 5.0, "claude-haiku-4-5": 1.0}.get(model)
        return price and (
            lambda used: price * ((used.input or 0) + 0.1 * (used.cache_read or 0) + 2 * (used.cache_write or 0))
        )

    chat = opened(MemoryStore(), name="two models")
    for model in ("claude-opus-4-5", "claude-haiku-4-5", "unknown"):
        chat.append(user("x" * 396))  # 103 tokens
        chat.prepare(model=model)
        chat.record({"role": "assistant", "content": "yes", "usage": {"input_tokens": 50, "output_tokens": 1}})
    figures = figures_of(chat, cost_of)
    assert [figures.model(index) for index in range(3)] == ["claude-opus-4-5", "claude-haiku-4-5", "unknown"]
    first, second, third = (figures.call(index) for index in range(3))
    assert (first.tokens, second.cached) == (103, 103)
    new = second.tokens - 103
    assert list(figures.amounts("dollars")) == pytest.approx([5 * 2 * 103, 0.1 * 103 + 2 * new, -1])
    assert list(figures.amounts("dollars_unmanaged")) == pytest.approx([5 * 2 * 103, 0.1 * 103 + 2 * new, -1])
    assert list(figures.amounts("billed")) == [250, 50, -1]
    assert figures.billed_calls == 2
    assert third.tokens > second.tokens


def test_an_erased_message_leaves_the_figures():
    _, chat = stored(agent_run(30, seed=2, result_chars=(400, 800)), "off")
    timeline = Timeline(chat)
    before = timeline.follow(60)
    chat.privacy.erase("m5")
    after = timeline.follow(60)
    assert after is not before
    assert after.column("tokens")[-1] < before.column("tokens")[-1]


def test_folding_does_not_hold_the_lock_of_the_conversation():
    _, chat = stored(agent_run(30, seed=2), "balanced")
    entered, go_on = threading.Event(), threading.Event()
    read = chat._agent.store.messages

    def slow(head, first, last):
        entered.set()
        assert go_on.wait(30)
        return read(head, first, last)

    chat._agent.store.messages = slow
    timeline = Timeline(chat)
    timeline.follow()
    assert entered.wait(30)
    chat._agent.store.messages = read
    chat.append(user("while it folds"))
    assert (timeline.is_complete, timeline.progress) == (False, 0.0)
    go_on.set()
    timeline.follow(60)
    assert timeline.follow(60) is not None
    assert timeline.is_complete


def test_failing_store_is_reported_and_tried_again():
    _, chat = stored(agent_run(10, seed=2), "balanced")
    store = chat._agent.store
    read = store.messages

    def broken(head, first, last):
        from foveate.errors import StoreError

        raise StoreError("The disk is gone.")

    store.messages = broken
    timeline = Timeline(chat)
    assert len(timeline.follow(60)) == 0
    assert timeline.error == "The disk is gone."
    store.messages = read
    assert len(timeline.follow(60)) > 5
    assert timeline.error == ""


def test_each_open_conversation_has_one_timeline():
    _, chat = stored(agent_run(5, seed=2), "off")
    assert timeline_of(chat) is timeline_of(chat)
