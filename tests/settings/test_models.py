"""The name of a model chooses format, window, prices and profile; contradictions are refused."""

from __future__ import annotations

import pytest

import foveate
from foveate import Options, open_conversation
from foveate.errors import BadSetting
from foveate.models.known import format_of_model, prices_of_model
from foveate.types import Prices


@pytest.mark.parametrize(
    ("model", "format", "window"),
    [
        ("claude-sonnet-4-5", "anthropic", 200_000),
        ("anthropic:claude-opus-5", "anthropic", 1_000_000),
        ("gpt-4o", "openai", 128_000),
        ("openai:gpt-5-mini", "openai", 272_000),
        ("openrouter:anthropic/claude-sonnet-4-5", "openai", 200_000),
        ("google:gemini-2.5-pro", "openai", 1_048_576),
        ("o3", "openai", 200_000),
    ],
)
def test_a_model_chooses_format_and_window(model, format, window):
    chat = open_conversation("c", model=model)
    assert (chat.format.name.removesuffix("_chat"), chat.view.budget.window) == (format, window)


def test_a_model_chooses_prices_and_profile():
    assert prices_of_model("gpt-4.1") == Prices(read=0.25, write=1.0, output=4.0)
    assert prices_of_model("openai:gpt-5-mini").read == 0.1
    assert prices_of_model("claude-sonnet-4-5") == prices_of_model("unheard-of") == Prices()
    assert open_conversation("c", model="claude-fable-5-1")._agent.profile.binds_reasoning


@pytest.mark.parametrize(
    ("model", "prices"),
    [
        ("claude-fable-5-2", Prices(read=0.025)),
        ("claude-mythos-5-2", Prices(read=0.025)),
        ("gpt-6.1-terra", Prices(read=0.05, write=1.25, output=5.0, cache_seconds=1800, long_from=272_000)),
        ("anthropic/claude-haiku-5.5", Prices(long_from=100_000, long_factor=5.0)),
        ("gemini-4-argon", Prices(read=0.05, write=1.0, output=5.0)),
        ("deepseek/deepseek-v4.1-flash", Prices(read=0.02, write=1.0, output=4.0, cache_seconds=3600)),
        ("moonshotai/Kimi-K3", Prices(read=0.1, write=1.0, output=5.0)),
    ],
)
def test_newer_models_of_a_family_have_their_own_prices(model, prices):
    assert prices_of_model(model) == prices


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4-5", "llama-4", "local:claude-like", ""])
def test_the_format_of_an_unknown_model_is_the_default(model):
    assert format_of_model(model) is None
    assert open_conversation("c", model=model, window=9_000).format.name.startswith("openai")


@pytest.mark.parametrize(("model", "format"), [("claude-sonnet-4-5", "openai"), ("gpt-4o", "anthropic")])
def test_a_format_that_is_not_the_models_is_refused(model, format):
    with pytest.raises(BadSetting, match=f"Model '{model}' uses the format .*, not '{format}'. Leave format= out"):
        open_conversation("c", model=model, format=format)


def test_a_window_larger_than_the_models_is_refused():
    with pytest.raises(
        BadSetting, match="Window of 400,000 tokens is larger than that of model 'gpt-4o', which is 128"
    ):
        open_conversation("c", model="gpt-4o", window=400_000)
    assert open_conversation("c", model="gpt-4o", window=100_000).view.budget.window == 100_000
    assert open_conversation("c", model="claude-opus-99", window=5_000_000).view.budget.window == 5_000_000


def test_a_window_that_is_not_known_is_refused_before_a_store_is_opened(tmp_path):
    with pytest.raises(BadSetting, match=r"Window of model 'llama-4' is not known\. Pass window="):
        open_conversation("c", model="llama-4", store=f"sqlite:///{tmp_path}/chat.db")
    assert list(tmp_path.iterdir()) == []
    assert open_conversation("c", policy="off").format.name.startswith("openai")


def test_the_source_of_a_format_that_the_model_chooses_is_the_model(loaded):
    format = loaded('model = "claude-sonnet-4-5"\n').values["format"]
    assert (format.value, format.source) == ("anthropic", "model claude-sonnet-4-5")
    assert loaded('model = "claude-sonnet-4-5"\nformat = "openai"\n')["format"] == "openai"


def test_options_are_checked_like_keywords():
    with pytest.raises(BadSetting, match="reserve="):
        open_conversation("c", window=9_000, options=Options(reserve=-1))
    with pytest.raises(BadSetting, match="options= must be an Options"):
        open_conversation("c", window=9_000, options={"reserve": 5})  # type: ignore[arg-type]
    assert open_conversation("c", window=9_000, options=Options(reserve=5)).view.budget.reserve == 5


def test_every_option_is_documented():
    source = foveate.open.options.__file__
    with open(source, encoding="utf-8") as file:
        text = file.read()
    documented = [f"{name}: " in text.split("class Options")[1] for name in Options.__struct_fields__]
    assert all(documented)
