"""Summarizers by name: the known names, their parts, and the places for a name."""

from __future__ import annotations

from typing import Any

import pytest

from foveate import open_conversation, user
from foveate.errors import BadSetting, MissingExtra
from foveate.models.anthropic import AnthropicModel
from foveate.open import open_summarizer
from foveate.settings import load
from foveate.summarizers import Summary, SummaryRequest, first_characters, summarizer_named
from foveate.testing import BodyChecker, StubAnthropic, agent_run, text_of

REQUEST = SummaryRequest("compact", (user("Mend the login. " * 30),), 200)


@pytest.mark.parametrize("name", ["first-characters", "first_characters", "first_chars"])
def test_first_characters_has_three_spellings(name: str):
    assert open_summarizer(name) == first_characters()


def test_the_digest_is_backed_by_first_characters():
    told: Any = summarizer_named("digest")
    assert told.name == "digest -> first-characters"
    assert told(REQUEST) == Summary(told(REQUEST).text, "digest")


def test_a_model_is_cached_and_backed_by_the_digest(monkeypatch):
    pytest.importorskip("anthropic")
    client = StubAnthropic(['{"summary": "The login is to be mended."}', OSError("no quota")])
    monkeypatch.setattr(AnthropicModel, "_new_client", lambda self: client)
    told: Any = open_summarizer("anthropic:claude-haiku-4-5")
    assert told.name == "anthropic:claude-haiku-4-5 -> digest -> first-characters"
    for _ in range(2):
        assert told(REQUEST) == Summary("The login is to be mended.", "anthropic:claude-haiku-4-5")
    assert len(client.requests) == 1
    assert client.requests[0]["model"] == "claude-haiku-4-5"
    other = SummaryRequest("compact", (user("Mend the logout. " * 30),), 200)
    assert told(other).refused == ("anthropic:claude-haiku-4-5: OSError: no quota",)
    assert told(other).by == "digest"


def test_several_models_are_asked_in_order(monkeypatch):
    """The MemberJunction document: models with priorities, and failover."""
    pytest.importorskip("anthropic")
    client = StubAnthropic([OSError("no quota"), '{"summary": "The login is to be mended."}'])
    monkeypatch.setattr(AnthropicModel, "_new_client", lambda self: client)
    told: Any = open_summarizer("anthropic:claude-haiku-4-5, anthropic:claude-sonnet-4-5")
    assert told(REQUEST).by == "anthropic:claude-sonnet-4-5"
    assert told.name.startswith("anthropic:claude-haiku-4-5 -> anthropic:claude-sonnet-4-5 -> digest")
    assert [request["model"] for request in client.requests] == ["claude-haiku-4-5", "claude-sonnet-4-5"]
    with pytest.raises(BadSetting, match="There is no summarizer 'anthropic:a,digest'"):
        open_summarizer("anthropic:a,digest")


def test_without_a_key_or_a_network_the_conversation_goes_on(monkeypatch):
    pytest.importorskip("anthropic")
    for variable in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    with open_conversation(
        "c", format="anthropic", window=8_000, policy="balanced", summarizer="anthropic:claude-haiku-4-5"
    ) as chat:
        chat.append(agent_run(3, seed=1))
        for number in range(8):
            chat.append([user(f"Question {number}?"), *agent_run(2, seed=number)[1:]])
            chat.append(text_of(700, number))
            assert BodyChecker("anthropic").check(chat.prompt()) == []
        told = [receipt for receipt in chat.journal.receipts() if "compact" in receipt.policies]
        assert told
        assert {receipt.by for receipt in told} == {("digest",)}
        assert all(why.startswith("anthropic:claude-haiku-4-5: ") for receipt in told for why in receipt.refused)


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(
        BadSetting, match=r"There is no summarizer 'gpt'\. Known: digest, first-characters, a model such"
    ):
        open_summarizer("gpt")
    with pytest.raises(BadSetting, match="There is no summarizer 'cohere:x'"):
        open_summarizer("cohere:x")


def test_a_missing_sdk_is_reported_when_opening(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openai", None)
    with pytest.raises(MissingExtra, match=r"foveate\[openai\]"):
        open_conversation("c", window=9_000, summarizer="openai:gpt-4.1-mini")


def test_a_file_and_the_environment_name_a_model_without_its_sdk(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "anthropic", None)
    (tmp_path / "foveate.toml").write_text('summarizer = "anthropic:claude-haiku-4-5"\n')
    assert load(environ={}, folder=tmp_path)["summarizer"] == "anthropic:claude-haiku-4-5"
    assert load(environ={"FOVEATE_SUMMARIZER": "openai:o9"}, folder=tmp_path)["summarizer"] == "openai:o9"
    with pytest.raises(BadSetting, match="Environment FOVEATE_SUMMARIZER is 'gpt'"):
        load(environ={"FOVEATE_SUMMARIZER": "gpt"}, folder=tmp_path)
