"""Windows and requirements of models, by their names."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from foveate.core.profiles import (
    PROFILES,
    WINDOWS,
    adjusted_to_model,
    claude_version,
    is_window_documented,
    profile_for,
    window_of,
    window_prefix,
)


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
        ("deepseek-v4-pro-0813", 1_000_000),
        ("kimi-k2.7-code", 256_000),
        ("MiniMax-M2.7", 196_000),
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
        ("openrouter:z-ai/glm-5.3-flash", 1_000_000),
        ("deepseek-ai/DeepSeek-V4.1-Flash", 1_000_000),
        ("deepseek:deepseek-chat", 128_000),
        ("ollama:deepseek-r1:8b", None),
        ("ollama:llama3.2:1b", None),
    ],
)
def test_a_model_name_may_have_a_path_and_a_provider(name: str, window: int | None):
    assert window_of(name) == window


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("claude-opus-5-5", (5, 5)),
        ("claude-sonnet-6", (6, 0)),
        ("claude-fable-5-1@20260831", (5, 1)),
        ("claude-opus-4-20250514", (4, 0)),
        ("claude-opus-4-1-20250805", (4, 1)),
        ("claude-3-5-sonnet-20241022", (3, 5)),
        ("claude-3-opus-20240229", (3, 0)),
        ("claude-4-opus", (4, 0)),
        ("claude-2.1", (2, 1)),
        ("claude-opus-latest", (99, 0)),
        ("us.anthropic.claude-haiku-5-5-20260901-v1:0", (5, 5)),
        ("openrouter:anthropic/claude-opus-5.5", (5, 5)),
        ("claude-opus-5-5[1m]", (5, 5)),
        ("gpt-5.5", None),
        ("", None),
    ],
)
def test_version_of_a_claude_is_read_from_its_name(name: str, version: tuple[int, int] | None):
    assert claude_version(name) == version


@pytest.mark.parametrize("family", ["opus", "sonnet", "haiku", "fable", "mythos", "saga"])
def test_every_claude_since_5_1_binds_reasoning(family: str):
    for version in ("5-1", "5-5", "5-5-20260901", "6", "6-20270101", "7-2"):
        assert profile_for("anthropic", f"claude-{family}-{version}").binds_reasoning
    for version in ("4-5", "4-20250514", "5", "5-20260101"):
        assert not profile_for("anthropic", f"claude-{family}-{version}").binds_reasoning


@pytest.mark.parametrize(
    ("model", "is_last"),
    [("claude-opus-4-6", True), ("claude-haiku-4-6", False), ("claude-haiku-5", True), ("claude-sonnet-4-5", False)],
)
def test_requests_to_claude_since_4_6_end_with_the_user(model: str, is_last: bool):
    assert profile_for("anthropic", model).user_last is is_last


@pytest.mark.parametrize("format", ["openai", "openai_responses"])
def test_gpt_since_5_6_wants_a_key_for_its_cache(format: str):
    """Source: OpenAI's page on prompt caching. These models cache at breakpoints, and match them by a key."""
    names = ("gpt-5.6", "gpt-5.6-luna", "gpt-6", "gpt-6-mini", "gpt-7.1", "openrouter:openai/gpt-5.6-sol")
    assert [profile_for(format, name).cache_key for name in names] == [True] * 6
    names = ("gpt-5", "gpt-5.5-pro", "gpt-5-2025-08-07", "gpt-35-turbo", "gpt-oss:120b", "claude-opus-5-5", "llama", "")
    assert [profile_for(format, name).cache_key for name in names] == [False] * 8
    strict = replace(PROFILES[format], strict=True)
    assert not adjusted_to_model(strict, "gpt-5.6").cache_key


def test_claude_and_gemini_take_no_key():
    assert not profile_for("anthropic", "gpt-5.6").cache_key
    assert not profile_for("gemini", "gpt-5.6").cache_key


def test_no_other_format_binds_reasoning():
    assert profile_for("openai", "openrouter:anthropic/claude-opus-5-5") == PROFILES["openai"]


@pytest.mark.parametrize(
    ("models", "is_open", "alternates", "call_id_size"),
    [
        (("", "gpt-6", "openai:gpt-4o", "ft:gpt-4o:org::1", "azure/o4-mini", "chatgpt-4o-latest"), False, False, 0),
        (("xai:grok-4.7", "google:gemini-2.5-pro", "openrouter:anthropic/claude-opus-5-5"), False, False, 0),
        (("ollama:qwen3:8b", "Qwen/Qwen3.6-27B", "gpt-oss:20b", "deepseek:deepseek-chat"), True, False, 0),
        (("llama-4", "accounts/fireworks/models/kimi-k2", "google/gemma-4-31b-it", "gemma4:12b"), True, False, 0),
        (("google/gemma-3-27b-it", "ollama:gemma3:27b", "gemma-7b-it"), True, True, 0),
        (("mistral:open-mixtral-8x22b", "mistralai/Ministral-3-14B", "ollama:devstral"), True, True, 9),
    ],
)
def test_open_models_have_the_rules_of_chat_templates(
    models: tuple[str, ...], is_open: bool, alternates: bool, call_id_size: int
):
    """Sources: the chat templates that llama.cpp ships, and the validators of `mistral-common`."""
    for model in models:
        profile = profile_for("openai", model)
        assert (profile.system_places, profile.user_first) == (("first", True) if is_open else ("any", False)), model
        assert (profile.plain_contents, profile.alternates) == (is_open, alternates), model
        assert profile.call_id_size == call_id_size, model
        assert profile_for("openai_responses", model).system_places == "any"


def test_windows_of_newer_models_follow_their_family():
    names = ("claude-sonnet-6", "claude-haiku-4-6", "claude-sonnet-4-6", "claude-haiku-5", "gpt-7-mini", "gpt-neox-20b")
    assert [window_of(name) for name in names] == [1_000_000, 200_000, 1_000_000, 1_000_000, 922_000, None]
    assert window_of("azure/gpt-35-turbo") == 16_385  # Azure's name of 3.5, no successor of GPT-6.


def test_windows_of_newer_models_are_a_guess():
    known = ("claude-opus-5-5", "gpt-6", "gemini-2.5-pro", "claude-opus-6", "gpt-7", "gemini-9", "llama", "GLM-5.3")
    assert [is_window_documented(name) for name in known] == [True] * 3 + [False] * 5


def test_no_window_repeats_the_one_of_a_shorter_prefix():
    """A prefix that ends in a hyphen is the default of a vendor, which models under it may repeat."""
    repeated = [name for name, window in WINDOWS.items() if window_of(name[:-1]) == window]
    assert [name for name in repeated if not (window_prefix(name[:-1]) or "").endswith("-")] == []
