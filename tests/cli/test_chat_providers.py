"""`foveate chat` with the real SDKs and a provider on the loopback."""

from __future__ import annotations

import io
import sys

import pytest

from foveate.testing import ProviderError, ScriptedModel, call, say
from foveate.testing.server import StubServer


@pytest.fixture
def talk(run, tmp_path, monkeypatch):
    """Return a function that chats with a scripted provider: lines -> (exit code, output, errors)."""

    def talk(provider: str, model: str, script: list, *lines: str, **options: object) -> tuple[int, str, str]:
        pytest.importorskip(provider)
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        with StubServer(ScriptedModel(script, provider, window=100_000)) as server:
            variable = provider.upper()
            monkeypatch.setenv(f"{variable}_API_KEY", "none")
            monkeypatch.setenv(f"{variable}_BASE_URL", server.url if provider == "anthropic" else f"{server.url}/v1")
            arguments = [part for key, value in options.items() for part in (f"--{key}", value)]
            ended = run(
                "chat", "c", "--model", f"{provider}:{model}", "--folder", tmp_path, "--store", "memory:", *arguments
            )
            assert server.illegal == []
        return ended

    return talk


@pytest.mark.parametrize(("provider", "model"), [("anthropic", "claude-haiku-4-5"), ("openai", "gpt-4.1")])
def test_chat_with_a_provider_streams_and_shows_dollars(talk, tmp_path, provider, model):
    pytest.importorskip("genai_prices")
    (tmp_path / "a.md").write_text("The ship sails on.\n", encoding="utf-8")
    script = [call("c1", "read_file", path="a.md"), say("It sails."), say("Still.")]
    code, out, err = talk(provider, model, script, "Does it sail?", "And now?", "/cost")
    assert (code, err) == (0, "")
    assert "\n  * read_file a.md  " in out
    assert "\nIt sails.\n" in out
    assert "\nStill.\n" in out
    assert " | cost $0.00" in out
    assert f"\n   {provider}:{model}  " in out.replace("   model  ", "")
    assert "\n   saved, US dollars " in out
    assert "Each call has the price of its own model." in out


def test_chat_continues_after_a_refusal_of_the_provider(talk):
    broken = ProviderError(400, {"type": "error", "error": {"type": "invalid_request_error", "message": "No \x1b[2J."}})
    code, out, err = talk("anthropic", "claude-haiku-4-5", [broken, say("Here I am.")], "Hello?", "Hello?")
    assert (code, err) == (1, "")
    assert "anthropic:claude-haiku-4-5 did not answer: BadRequestError: " in out
    assert "No ␛[2J." in out
    assert "\nHere I am.\n" in out


def test_limit_of_money_ends_an_answer(talk, tmp_path):
    pytest.importorskip("genai_prices")
    script = [call(f"c{number}", "list_files") for number in range(20)]
    code, out, _ = talk("openai", "gpt-4.1", script, "Go on for ever.", **{"limit-money": 0.004})
    assert code == 0, out
    assert "Stopped: the answer reached the limit of money." in out
    assert 1 < out.count("* list_files") < 20


def test_calls_of_another_model_are_not_priced_at_the_present_one(talk, tmp_path):
    """A tour with the demo and one call of a model once cost the tour at the price of that model."""
    pytest.importorskip("genai_prices")
    for number in range(4):
        (tmp_path / f"{number}.md").write_text("The ship sails on.\n" * 200, encoding="utf-8")
    code, out, _ = talk(
        "openai", "gpt-4.1", [say("Hi.")], "/model demo", "tour", "/model openai:gpt-4.1", "hi", "/cost"
    )
    assert code == 0
    assert " (without demo)\n" in out
    bills = {
        words[0]: words[-1].removeprefix("$")
        for line in out[out.index("> /cost") :].splitlines()
        if (words := line.replace("no price", "-").split()) and words[0] in ("demo", "openai:gpt-4.1", "all")
    }
    assert bills["demo"] == "-"
    assert bills["openai:gpt-4.1"] == bills["all"]
    assert 0 < float(bills["all"]) < 0.02
    assert "Dollars leave out the models without a price." in out
