"""The context meter: content by kind, bill and savings, in small stories with sums by hand."""

from __future__ import annotations

import asyncio
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate import Media, Reasoning, ToolCall, Usage, assistant, open_conversation, user
from foveate import tool_result as result
from foveate.core.call_context import Budget, CallContext
from foveate.core.context import Context, measure_context, tokens_by_kind
from foveate.core.totals import ModelTotals
from foveate.core.view import View
from foveate.open import grouped
from foveate.testing import agent_run
from foveate.testing.strategies import histories
from foveate.testing.usage import Meter
from foveate.types import PartRetention, Prices, Totals

TOOLS = [{"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}]


def opened(**options):
    ticks = iter(range(1, 10**6))
    return open_conversation(
        "c", **grouped({"clock": lambda: next(ticks), **{"window": 10_000, "policy": "none", **options}})
    )


def told(chat) -> dict[str, int]:
    return dict(chat.context().kinds)


def test_an_empty_conversation_has_an_empty_context():
    context = opened().context()
    assert (context.kinds, context.tokens, context.share) == ({}, 0, 0.0)
    assert (context.window, context.reserve, context.free) == (10_000, 1_000, 9_000)
    assert (context.last, context.cached, context.cost, context.saved) == (None, None, 0, 0)


def test_each_token_of_a_request_belongs_to_one_kind():
    chat = opened(format="anthropic")
    chat.append(user("a" * 400, Media("image/png", "base64", "AAAA")))
    chat.prepare(system="s" * 40, tools=TOOLS)
    chat.record(
        assistant("b" * 80, ToolCall("c1", "read", "{}"), reasoning=Reasoning("c" * 120, "signed", "", "anthropic"))
    )
    chat.append(result("c1", "d" * 800))
    kinds = told(chat)
    assert list(kinds) == ["system", "tools", "user", "assistant", "reasoning", "calls", "results", "media"]
    assert (kinds["user"], kinds["media"], kinds["results"]) == (100, 1_604, 204)
    assert (kinds["reasoning"], kinds["assistant"], kinds["calls"]) == (34, 20, 2)
    assert sum(kinds.values()) == chat.view.tokens + chat.budget.overhead


def test_shrunk_and_expanded_content_have_their_own_kinds():
    chat = opened(policy="keep-last-1")
    chat.append("Read them.")
    for name in ("a", "b", "c"):
        chat.prepare()
        chat.record(assistant("", ToolCall(name, "read", "{}")))
        chat.append(result(name, f"{name}\n" * 400))
    chat.prepare()
    assert {"shrunk", "results"} < told(chat).keys()
    assert "expanded" not in told(chat)
    chat.expand("m3")
    assert told(chat)["expanded"] == chat.history(3, 3)[0].stamp.tokens
    assert chat.context().tokens_whole == sum(row.stamp.tokens for row in chat.history())


def test_a_copy_at_the_end_counts_as_expanded():
    chat = opened(policy="keep-last-1")
    chat.append("Read them.")
    for name in ("a", "b"):
        chat.prepare()
        chat.record(assistant("", ToolCall(name, "read", "{}")))
        chat.append(result(name, f"{name}\n" * 400))
    chat.prepare()
    before = chat.context().tokens_whole
    chat.expand("m3", where="tail")
    assert told(chat)["expanded"] > 200
    assert chat.context().tokens_whole == before


def test_a_refused_expansion_counts_as_a_result():
    chat = opened(expand=True)
    chat.append("Have it back.")
    chat.prepare()
    chat.record(assistant("", ToolCall("x", "expand", '{"handle":"m99"}')))
    assert "expanded" not in told(chat)
    assert told(chat)["results"] > 10


def test_a_summary_has_its_own_kind():
    chat = opened(summarizer=lambda request: "They talked about the weather.")
    for number in range(12):
        chat.append(f"What of day {number}? " * 20)
        chat.record(assistant("Rain. " * 40))
    chat.compact()
    kinds = told(chat)
    assert kinds["summaries"] > 0
    assert sum(kinds.values()) == chat.view.tokens


def test_parts_of_plugins_have_their_own_kind():
    chat = opened(policy="retain")
    chat.append(
        {"role": "user", "content": [{"type": "text", "text": "Why?"}, {"type": "text", "text": "page: " + "p" * 94}]},
        kept=[PartRetention(), PartRetention(calls=3, plugin="page")],
    )
    assert told(chat) == {"user": 1, "plugins": 29}


def test_shares_relate_to_the_window_and_free_excludes_the_reserve():
    context = Context({"user": 1_500, "system": 500}, 10_000, 1_000, 1, 1, 500, 1_500, None, Totals(), Prices())
    assert (context.tokens, context.tokens_shown, context.share, context.free) == (2_000, 1_500, 0.2, 7_000)


def test_share_is_none_without_a_window():
    chat = opened(window=None, policy="off")
    chat.append("Hello.")
    context = chat.context()
    assert (context.window, context.share, context.free, context.tokens) == (None, None, None, 6)


def test_cached_covers_the_newest_call_and_all_calls():
    chat = opened()
    for usage in (Usage(100, 0, 100, 10), Usage(50, 150, 0, 10)):
        chat.append("Hello.")
        chat.prepare()
        chat.record(assistant("Hi."), usage=usage)
    context = chat.context()
    assert (context.cached, context.cached_overall) == (0.75, 150 / 400)
    assert context.last == Usage(50, 150, 0, 10)
    assert context.cost == 150 + 0.1 * 150 + 1.25 * 100 + 5 * 20


def test_cached_is_none_if_the_provider_does_not_report_it():
    chat = opened()
    chat.append("Hello.")
    chat.prepare()
    chat.record(assistant("Hi."), usage=Usage(100))
    assert chat.context().cached is None


MINE = ModelTotals(calls_billed=1, usage=Usage(1_000_000), tokens_saved=30_000, tokens_rebilled=1_000)
TOTALS = Totals(
    tokens_whole=50_000,
    tokens_sent=20_000,
    tokens_rebilled=1_000,
    calls_billed=1,
    usage=Usage(1_000_000),
    by_model={"mine": MINE},
)


def view(scale: float = 1.0) -> View:
    return View((), 1, Budget(10_000, 1_000, 10**6, 10, scale=scale), CallContext(prices=Prices(0.1, 1.25)))


def test_saved_is_unread_minus_rewritten_tokens():
    context = measure_context(view(), TOTALS, messages=0)
    assert context.saved == pytest.approx(0.1 * 30_000 - 1.15 * 1_000)


def test_saved_is_scaled_to_the_provider():
    assert measure_context(view(2.0), TOTALS, messages=0).saved == pytest.approx(2 * (0.1 * 30_000 - 1.15 * 1_000))


def test_the_history_is_scaled_to_the_provider():
    context = measure_context(view(2.0), Totals(tokens_history=300), messages=0, cost_of=lambda name: dollars)
    assert context.tokens_whole == 600
    doubled = measure_context(view(2.0), TOTALS, messages=0, cost_of=lambda name: dollars)
    assert doubled.dollars_saved == pytest.approx(doubled.saved * 3 / 1_000_000)
    assert doubled.dollars == pytest.approx(3.0)  # The provider already counted the bill.


def test_saved_is_negative_if_edits_cost_more_than_they_save():
    assert measure_context(view(), Totals(tokens_whole=100, tokens_sent=100, tokens_rebilled=50), messages=0).saved < 0


def dollars(usage: Usage) -> float:
    """Three dollars for a million tokens of input."""
    return ((usage.input or 0) + 0.1 * (usage.cache_read or 0) + 1.25 * (usage.cache_write or 0)) * 3 / 1_000_000


@cache
def billed(policy: str, window: int) -> Context:
    """Return the context of 60 calls under this policy, billed by a provider with a cache."""
    chat, meter = opened(format="anthropic", policy=policy, window=window), Meter(marks=True)
    for message in agent_run(60, seed=3):
        if message.role == "assistant":
            bill = meter.take(chat.prompt(system="You mend programs."))
            chat.record(message, usage=Usage(bill.plain, bill.read, bill.written, 0))
        else:
            chat.append(message)
    return chat.context()


@pytest.mark.parametrize("policy", ["balanced", "frugal", "keep-last-5", "keep-last-1", "prune"])
def test_saved_equals_the_difference_of_two_bills(policy):
    whole, small = billed("off", 10**7), billed(policy, 20_000)
    assert small.saved == pytest.approx(whole.cost - small.cost, rel=0.15)
    assert (whole.saved, whole.totals.tokens_saved) == (0, 0)


def test_dollars_saved_uses_the_prices_of_the_model():
    context = measure_context(view(), TOTALS, messages=0, cost_of=lambda name: dollars)
    assert context.dollars == pytest.approx(3.0)
    assert context.dollars_saved == pytest.approx(context.saved * 3 / 1_000_000)


def test_dollars_are_none_without_a_price():
    context = measure_context(view(), TOTALS, messages=0, cost_of=lambda name: lambda usage: None)
    assert (context.dollars, context.dollars_saved, context.unpriced) == (None, None, ("mine",))


def test_each_call_has_the_price_of_its_model():
    """A local model before and between: it costs no dollars, and no one else's price."""
    chat = opened(window=100_000, model="local", policy="keep-last-1")
    prices = {"cheap": 1e-6, "dear": 1e-5}
    for number, model in enumerate(["local", "cheap", "dear", "cheap"]):
        chat.append("Read it.")
        chat.prompt(model=model)
        chat.record(assistant("", ToolCall(f"c{number}", "read", "{}")), usage=Usage(100, 0, 0, 10))
        chat.append(result(f"c{number}", "word " * 2_000))

    def cost_of(name):
        price = prices.get(name)
        return price and (lambda usage: price * ((usage.input or 0) + (usage.cache_read or 0) + (usage.output or 0)))

    context = chat.context(cost_of=cost_of)
    assert dict(context.dollars_by_model) == pytest.approx({"cheap": 220e-6, "dear": 1_100e-6})
    assert context.dollars == pytest.approx(1_320e-6)
    assert context.unpriced == ("local",)
    by_model = context.totals.by_model
    assert sum(model.tokens_saved for model in by_model.values()) == context.totals.tokens_saved > 0
    assert sum(model.tokens_rebilled for model in by_model.values()) == context.totals.tokens_rebilled
    assert by_model["local"].tokens_saved == 0 < by_model["dear"].tokens_saved < by_model["cheap"].tokens_saved


def test_only_new_messages_are_counted_for_the_next_meter():
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text) // 4

    chat = opened(counter=count)
    chat.append([user("An old question."), assistant("An old answer.")])
    chat.context()
    chat.append(user("A new question."))
    counted.clear()
    assert chat.context().kinds["user"] > chat.context().kinds["assistant"]
    assert set(counted) == {"A new question."}


def test_an_async_conversation_has_the_same_context():
    async def ask() -> Context:
        from foveate import open_async_conversation

        chat = await open_async_conversation("c", window=10_000, policy="none")
        await chat.append("Hello.")
        try:
            return await chat.context()
        finally:
            await chat.close()

    assert asyncio.run(ask()).kinds == {"user": 6}


@given(histories(), st.sampled_from(["anthropic", "openai"]), st.sampled_from(["none", "keep-last-1", "balanced"]))
def test_the_kinds_sum_to_the_whole_request(messages, format, policy):
    with opened(format=format, policy=policy, window=50_000) as chat:
        for message in messages:
            chat.append(message)
        for entry in chat.view:
            kinds = tokens_by_kind(entry)
            assert sum(kinds.values()) == entry.tokens
            assert all(tokens >= 0 for tokens in kinds.values())
