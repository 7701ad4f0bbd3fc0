"""Prices of model calls from `genai-prices`."""

from __future__ import annotations

import sys
from decimal import Decimal
from typing import Any

import pytest

from foveate.core.stamps import Usage
from foveate.open import cost_of

genai_prices: Any = pytest.importorskip("genai_prices")
MILLION = 1_000_000


def prices_of(model: str, provider: str) -> Any:
    return genai_prices.calc_price(genai_prices.Usage(), model, provider_id=provider).model_price


def test_input_output_cache_reads_and_writes_have_their_own_prices():
    price, cost = prices_of("claude-haiku-4-5", "anthropic"), cost_of("anthropic:claude-haiku-4-5")
    assert cost is not None
    each = [
        Usage(MILLION, output=0),
        Usage(0, MILLION, output=0),
        Usage(0, 0, MILLION, output=0),
        Usage(0, output=MILLION),
    ]
    prices = [price.input_mtok, price.cache_read_mtok, price.cache_write_mtok, price.output_mtok]
    assert [cost(usage) for usage in each] == [pytest.approx(float(one)) for one in prices]
    assert cost(Usage(MILLION, MILLION, MILLION, MILLION)) == pytest.approx(float(sum(prices, Decimal())))
    assert len(set(prices)) == 4


def test_cache_writes_without_a_price_are_charged_as_input():
    price, cost = prices_of("gpt-4.1-mini", "openai"), cost_of("openai:gpt-4.1-mini")
    assert cost is not None
    assert price.cache_write_mtok is None
    assert cost(Usage(0, 0, MILLION, 0)) == pytest.approx(float(price.input_mtok))


@pytest.mark.parametrize("usage", [Usage(), Usage(5), Usage(output=5), Usage(None, 7, None, 5)])
def test_a_usage_without_token_counts_has_no_price(usage: Usage):
    cost = cost_of("openai:gpt-4.1-mini")
    assert cost is not None
    assert cost(usage) is None


@pytest.mark.parametrize(
    "name",
    ["google:gemini-2.5-flash", "xai:grok-4.7", "mistral:mistral-large-latest", "openrouter:openai/gpt-4o", "gpt-4o"],
)
def test_models_of_every_provider_have_their_prices(name: str):
    cost = cost_of(name)
    assert cost is not None
    assert (cost(Usage(MILLION, output=MILLION)) or 0) > 0


@pytest.mark.parametrize("name", ["ollama:gpt-4o", "openai:none-such", "x:y", "", ":", "anthropic:", "google:gemma-3"])
def test_a_model_without_a_known_price_has_none(name: str):
    assert cost_of(name) is None


@pytest.mark.parametrize("name", ["deepseek-r1:8b", "deepseek-r1:latest", "google/gemini-2.0-flash-exp:free"])
def test_a_tagged_model_has_not_the_price_of_its_namesake(name: str):
    """Models of Ollama, and free ones of OpenRouter, cost as much as those that are paid for."""
    assert cost_of(name) is None
    assert cost_of(name.partition(":")[0]) is not None


def test_without_the_package_no_model_has_a_price(monkeypatch):
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert cost_of("openai:gpt-4.1-mini") is None
