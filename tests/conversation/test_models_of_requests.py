"""The profile follows the request: each prompt may name its model and its window."""

from __future__ import annotations

import asyncio
import json
import random

import pytest

from foveate import Message, Usage, open_conversation, user
from foveate.core.edits import Replace, Target
from foveate.core.messages import Reasoning, Text
from foveate.core.needs import Needs
from foveate.errors import BadSetting, DoesNotFit
from foveate.testing import answer, call, check_body, say
from foveate.testing.moves import MOVES, history_of

THOUGHT = Reasoning("Let me see.", "c2ln", format="anthropic")
BETA = "thinking-binding-controls-2026-08-01"


def opened(**options):
    return open_conversation("c", **{"model": "claude-opus-5", "policy": "none", **options})


def test_model_of_a_request_gives_its_window_and_prices():
    chat = opened(window=50_000)
    chat.append("Hi")
    view = chat.prepare(model="claude-haiku-4-5")
    assert (view.budget.window, view.call.model, view.call.prices.read) == (200_000, "claude-haiku-4-5", 0.1)
    assert chat.prepare(model="claude-opus-5-5").call.prices.read == 0.05
    assert chat.prepare().budget.window == 50_000
    assert chat.prepare(window=30_000).budget.window == 30_000
    assert chat.prepare().budget.window == 50_000


def test_smaller_window_of_a_request_makes_the_view_fit():
    chat = opened()
    for number in range(40):
        chat.append([user("word " * 800)] if number % 2 else [user("more"), say("word " * 800)])
    assert chat.prepare().tokens > 20_000
    small = chat.prepare(window=10_000)
    assert small.tokens <= small.budget.usable
    assert chat.prepare().tokens == small.tokens  # What was hidden stays hidden; the journal says so.


@pytest.mark.parametrize("format", ["openai", "openai_responses"])
def test_requests_of_a_conversation_have_one_key_for_the_cache(format, tmp_path):
    url = f"sqlite:///{tmp_path}/c.db"
    with open_conversation("c", store=url, format=format, model="gpt-5.6-luna") as chat:
        chat.append("Hi")
        key = chat.prompt()["prompt_cache_key"]
        assert chat.needs == Needs(options={"prompt_cache_key": key})
        assert "prompt_cache_key" not in chat.prompt(model="gpt-5.5")
        assert "prompt_cache_key" not in json.loads(chat.body())
        assert chat.fork("d").prompt()["prompt_cache_key"] == key  # A fork reads what its trunk has cached.
        assert chat.prepare().call.prices.cache_seconds == 1800
    with open_conversation("c", store=url, format=format, model="gpt-5.6-luna") as chat:
        assert chat.prompt()["prompt_cache_key"] == key
    with open_conversation("e", store=url, format=format, model="gpt-5.6-luna") as chat:
        chat.append("Hi")
        assert chat.prompt()["prompt_cache_key"] != key
    assert len(key) <= 64


def test_model_of_another_format_is_refused():
    chat = opened()
    chat.append("Hi")
    with pytest.raises(BadSetting, match=r"Model 'gpt-5.5' uses the format 'openai', not 'anthropic'"):
        chat.prompt(model="gpt-5.5")
    assert chat.prepare().call.model == "claude-opus-5"


@pytest.mark.parametrize(
    "wrong", [{"model": 7}, {"window": 0}, {"window": "big"}, {"window": 900_000, "model": "gpt-4o"}]
)
def test_wrong_model_or_window_is_refused(wrong):
    chat = open_conversation("c", model="gpt-5.5")
    chat.append("Hi")
    with pytest.raises(BadSetting):
        chat.prompt(**wrong)


def test_unknown_model_has_the_window_of_the_opening():
    chat = open_conversation("c", format="openai", window=50_000)
    chat.append("Hi")
    assert chat.prepare(model="ollama:llama3").budget.window == 50_000


def test_window_of_an_opening_without_a_model_is_a_limit_for_all():
    chat = open_conversation("c", format="openai", window=50_000)
    chat.append("Hi")
    assert chat.prepare(model="gpt-5.5").budget.window == 50_000
    assert chat.prepare(model="gpt-5.5", window=60_000).budget.window == 60_000
    chat = open_conversation("c", format="openai", window=500_000)
    chat.append("Hi")
    assert chat.prepare(model="gpt-4o").budget.window == 128_000


def test_body_and_plan_take_a_model():
    chat = opened()
    chat.append("word " * 9_000)
    chat.append([say("well"), user("and?")])
    assert chat.plan(window=6_000).after.tokens < chat.plan().after.tokens
    assert chat.view.budget.window == 1_000_000
    assert len(chat.body(window=6_000)) < 20_000


def bound_history(chat) -> None:
    chat.append(user("go"))
    chat.record(Message("assistant", (THOUGHT, *call("a").parts)))
    chat.append([answer("a", "line\n" * 900)])
    chat.record(Message("assistant", (THOUGHT, Text("Done."))))
    chat.append("And now?")


def reasoning_in(body: bytes) -> int:
    return body.count(b'"type":"thinking"')


def test_bound_reasoning_follows_the_model_of_the_request():
    """After an edit, only models since 5.1 lose the reasoning behind it."""
    chat = opened(policy="keep-last-1", window=100_000)
    bound_history(chat)
    chat.edit(Replace(Target(chat.history()[2].id), (Text("[cleared]"),)))
    assert reasoning_in(chat.body()) == 2
    assert reasoning_in(chat.body(model="claude-opus-5-5")) == 1
    assert reasoning_in(chat.body()) == 2
    for model in ("claude-sonnet-6", "claude-haiku-4-5", None):
        assert check_body("anthropic", chat.body(model=model)) == []


def test_needs_of_bound_reasoning_are_a_beta_and_an_option():
    chat = opened()
    bound_history(chat)
    request = chat.prompt(model="claude-opus-5-5")
    assert chat.needs.betas == (BETA,)
    added = chat.needs.added_to({**request, "thinking": {"type": "enabled", "budget_tokens": 2_000}, "betas": ["x"]})
    assert added["thinking"] == {
        "type": "enabled",
        "budget_tokens": 2_000,
        "block_binding": {"prefix_mismatch_behavior": "drop_block"},
    }
    assert added["betas"] == ["x", BETA]
    assert added["messages"] == request["messages"]
    chat.prompt()
    assert chat.needs == Needs()
    assert chat.needs.added_to({"a": 1}) == {"a": 1}


def test_request_without_reasoning_needs_nothing():
    chat = opened(model="claude-opus-5-5")
    chat.append("Hi")
    chat.prompt()
    assert not chat.needs


def test_calibration_is_kept_for_each_model():
    chat = opened(store="memory:")
    chat.append("word " * 1_000)
    estimated = chat.prepare(model="claude-opus-5-5").tokens
    chat.record(say("one"), usage=Usage(input=2 * estimated, output=5))
    chat.append("more")
    assert chat.prepare(model="claude-opus-5-5").budget.scale == pytest.approx(2)
    assert chat.prepare().budget.scale == 1
    chat.record(say("two"), usage=Usage(input=chat.view.tokens, output=5))
    chat.append("more")
    assert chat.prepare(model="claude-opus-5-5").budget.scale == pytest.approx(2)


def test_calibration_of_each_model_survives_a_snapshot(tmp_path):
    store = f"sqlite:///{tmp_path / 'c.db'}"
    chat = opened(store=store)
    for number, model in enumerate(("claude-opus-5-5", "claude-haiku-4-5", "claude-opus-5-5"), 2):
        chat.append("word " * 1_000)
        estimated = chat.prepare(model=model).tokens
        chat.record(say("so"), usage=Usage(input=number * estimated, output=5))
    chat._agent.save_snapshot()
    chat.close()
    again = opened(store=store)
    again.append("more")
    scales = [
        again.prepare(model=name).budget.scale for name in ("claude-opus-5-5", "claude-haiku-4-5", "claude-sonnet-5")
    ]
    assert scales == pytest.approx([4, 3, 1])


def test_usage_is_summed_for_each_model():
    chat = opened()
    for model in ("claude-opus-5-5", None, "claude-opus-5-5"):
        chat.append("Hi")
        chat.prompt(model=model)
        chat.record(say("Hello."), usage=Usage(input=10, output=2))
    totals = chat.totals()
    assert totals.usage == Usage(input=30, output=6)
    assert {name: (model.calls_billed, model.usage) for name, model in totals.by_model.items()} == {
        "claude-opus-5-5": (2, Usage(input=20, output=4)),
        "claude-opus-5": (1, Usage(input=10, output=2)),
    }
    assert [row.stamp.model for row in chat.history() if row.stamp.usage] == [
        *("claude-opus-5-5", "claude-opus-5", "claude-opus-5-5"),
    ]


def test_cache_of_another_model_is_cold():
    chat = opened()
    for model in (None, "claude-haiku-4-5", None):
        chat.append("Hi")
        assert (chat.prepare(model=model).call.idle is None) == (len(chat) < 4)
        chat.record(say("Hello."))


def test_smaller_retry_keeps_the_model_of_the_request():
    chat = opened()
    chat.append([user("word " * 4_000), say("well"), user("word " * 4_000), say("well"), user("and?")])
    chat.prompt(model="claude-haiku-4-5")
    chat.retry_smaller(ValueError("prompt is too long: 9000 tokens > 6000 maximum"))
    assert (chat.view.call.model, chat.view.budget.window) == ("claude-haiku-4-5", 6_000)
    assert chat.prepare().budget.window == 1_000_000
    assert chat.prepare(model="claude-haiku-4-5").budget.window == 6_000


def test_async_prompts_take_a_model():
    chat = opened()
    chat.append("Hi")

    async def ask() -> None:
        await chat.aio.prompt(model="claude-haiku-4-5")

    asyncio.run(ask())
    assert chat.view.call.model == "claude-haiku-4-5"


@pytest.mark.parametrize("seed", range(12))
def test_every_request_of_changing_models_is_legal(seed: int):
    numbers = random.Random(seed)
    chat = opened(policy=numbers.choice(["balanced", "keep-last-1", "prune", "recap"]), window=8_000)
    moves = [(numbers.randrange(len(MOVES)), numbers.randrange(16), numbers.randrange(16)) for _ in range(40)]
    chat.append("go")
    for message in history_of(moves):
        if message.role == "tool" and message.result is None:
            continue
        chat.append(message)
        number = chat._agent.head.number
        model = numbers.choice(["claude-opus-5-5", "claude-haiku-4-5", "claude-sonnet-6", None])
        window = numbers.choice([None, 3_000, 20_000])
        try:
            body = chat.body(model=model, window=window)
        except DoesNotFit:
            continue
        assert check_body("anthropic", body) == []
        if chat._agent.head.number == number and json.loads(body)["messages"][-1]["role"] == "user":
            assert chat.body(model=model, window=window) == body
    assert chat.journal.verify() == []
