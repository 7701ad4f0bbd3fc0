"""Costs of requests in US dollars."""

from __future__ import annotations

import sys

import pytest

from foveate.policies import compact_on_overflow
from foveate.replay.recordings.recording import RecordedMessage, Recording
from foveate.replay.run import dollars, replay
from foveate.testing import agent_run


def test_cached_tokens_are_read_at_their_price_and_the_rest_is_written():
    pytest.importorskip("genai_prices")
    million = 1_000_000
    fresh, cached = dollars("claude-opus-4-5", [(million, 0)]), dollars("claude-opus-4-5", [(million, million)])
    # Anthropic: writing costs 1.25 of the price of input, reading 0.1.
    assert fresh / cached == pytest.approx(12.5)
    assert dollars("claude-opus-4-5", [(million, 400_000), (million, 0)]) == pytest.approx(1.6 * fresh + 0.4 * cached)


def test_cache_writes_without_a_price_are_charged_as_input():
    pytest.importorskip("genai_prices")
    assert dollars("gpt-4o", [(1_000, 0)]) / dollars("gpt-4o", [(1_000, 1_000)]) == pytest.approx(2)


def test_money_of_a_policy_includes_its_summaries():
    """Their input is written, their output costs five times as much. The relative cost includes both, too."""
    pytest.importorskip("genai_prices")
    recorded = [RecordedMessage(message, 0) for message in agent_run(40, seed=5)]
    recording = Recording("a.jsonl", "chat", tuple(recorded), model="claude-opus-4-5")
    row = replay(recording, policy=(compact_on_overflow(keep_recent=0.25),), window=8_000).row
    assert row.model_calls > 0
    assert row.money / row.money_unmanaged == pytest.approx(row.cost_ratio)


@pytest.mark.parametrize("model", ["", "no-such-model-anywhere"])
def test_a_model_without_a_known_price_has_no_cost(model):
    assert dollars(model, []) is None


def test_without_the_package_no_price_is_known(monkeypatch):
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert dollars("claude-opus-4-5", [(1_000, 0)]) is None
