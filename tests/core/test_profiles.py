"""Windows and requirements of models, by their names."""

from __future__ import annotations

import pytest

from foveate.core.profiles import PROFILES, WINDOWS, profile_for, window_of, window_prefix


@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("claude-haiku-4-5-20251001", 200_000),
        ("claude-opus-5-5", 1_000_000),
        ("gpt-4o-mini", 128_000),
        ("gpt-5.2", 272_000),
        ("gpt-5.4-mini", 272_000),
        ("gpt-6.1-sol", 922_000),
        ("o3-pro", 200_000),
        ("gemini-3.8-flash", 1_000_000),
        ("grok-4-0709", 256_000),
        ("grok-4-1-fast-reasoning", 2_000_000),
        ("grok-4.7", 500_000),
        ("llama-3.3-70b", None),
        ("", None),
    ],
)
def test_the_longest_known_prefix_gives_the_window(name: str, window: int | None):
    assert window_of(name) == window


@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("anthropic:claude-haiku-4-5", 200_000),
        ("openrouter:anthropic/claude-opus-4.6", 1_000_000),
        ("google:models/gemini-2.5-pro", 1_048_576),
        ("ollama:gpt-oss:20b", 131_072),
        ("gpt-oss:20b", 131_072),
        ("ollama:llama3.2:1b", None),
    ],
)
def test_a_model_name_may_have_a_path_and_a_provider(name: str, window: int | None):
    assert window_of(name) == window


def test_models_that_bind_reasoning_are_known_by_any_name():
    for name in ("claude-opus-5-5", "anthropic:claude-opus-5-5-20260901", "anthropic/claude-opus-5.5"):
        assert profile_for("anthropic", name).binds_reasoning
    assert profile_for("anthropic", "claude-opus-5") == PROFILES["anthropic"]


def test_no_window_repeats_the_one_of_a_shorter_prefix():
    """A prefix that ends in a hyphen is the default of a vendor, which models under it may repeat."""
    repeated = [name for name, window in WINDOWS.items() if window_of(name[:-1]) == window]
    assert [name for name in repeated if not (window_prefix(name[:-1]) or "").endswith("-")] == []
