"""Models of the official SDKs: their real clients, sync and async, against a provider on the loopback."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from foveate import BadSetting, MissingExtra, SummaryRequest, user
from foveate.formats import get_format
from foveate.models import is_model_name, model_named
from foveate.models.anthropic import anthropic_model
from foveate.models.openai import openai_model
from foveate.summarizers import model_summarizer

from .provider import Provider, provider

BODY = {"messages": [{"role": "user", "content": "Sum up."}]}


def anthropic_client(one: Provider, *, is_async: bool = False) -> Any:
    sdk = pytest.importorskip("anthropic")
    return (sdk.AsyncAnthropic if is_async else sdk.Anthropic)(api_key="none", base_url=one.url, max_retries=0)


def openai_client(one: Provider, *, is_async: bool = False) -> Any:
    sdk = pytest.importorskip("openai")
    return (sdk.AsyncOpenAI if is_async else sdk.OpenAI)(api_key="none", base_url=f"{one.url}/v1", max_retries=0)


def text_of(name: str, response: object) -> str:
    return get_format(name).parse_reply(response)[0].text


def test_the_anthropic_sdk_carries_a_request_and_the_format_reads_its_response():
    with provider(["In short."]) as one, anthropic_client(one) as client:
        model = anthropic_model("claude-haiku-4-5", client, max_tokens=99)
        assert (model.name, model.format) == ("anthropic:claude-haiku-4-5", "anthropic")
        assert text_of("anthropic", model.complete(BODY)) == "In short."
        assert one.paths == ["/v1/messages"]
        assert one.requests == [{"model": "claude-haiku-4-5", "max_tokens": 99, **BODY}]


def test_the_openai_sdk_carries_a_request_and_the_format_reads_its_response():
    with provider(["In short."], "openai") as one, openai_client(one) as client:
        model = openai_model("gpt-4.1-mini", client, max_tokens=99)
        assert (model.name, model.format) == ("openai:gpt-4.1-mini", "openai")
        assert text_of("openai", model.complete(BODY)) == "In short."
        assert one.paths == ["/v1/chat/completions"]
        assert one.requests == [{"model": "gpt-4.1-mini", "max_tokens": 99, **BODY}]


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_an_async_client_is_awaited(name: str):
    async def run() -> str:
        with provider(["In short."], name) as one:
            made = anthropic_client if name == "anthropic" else openai_client
            async with made(one, is_async=True) as client:
                model = anthropic_model("m", client) if name == "anthropic" else openai_model("m", client)
                return text_of(name, await model.complete(BODY))  # type: ignore[misc]

    assert asyncio.run(run()) == "In short."


def test_a_server_of_ones_own_is_named_by_its_address_and_the_length_is_said_in_the_word_it_knows(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with provider(["In short."], "openai") as one:
        model = openai_model("qwen", base_url=f"{one.url}/v1", max_tokens=7)
        assert text_of("openai", model.complete(BODY)) == "In short."
        assert one.requests[0] == {"model": "qwen", "max_tokens": 7, **BODY}
        model._client.close()


@pytest.mark.parametrize(
    ("client", "word"),
    [
        (SimpleNamespace(base_url=SimpleNamespace(host="api.openai.com")), "max_completion_tokens"),
        (SimpleNamespace(base_url=SimpleNamespace(host="localhost")), "max_tokens"),
        (SimpleNamespace(), "max_completion_tokens"),
    ],
)
def test_openai_is_told_the_length_in_its_own_word(client: Any, word: str):
    asked: list[dict[str, Any]] = []
    client.chat = SimpleNamespace(completions=SimpleNamespace(create=lambda **said: asked.append(said)))
    openai_model("o9", client, max_tokens=7).complete(BODY)
    openai_model("o9", client).complete({**BODY, "max_completion_tokens": 5})
    assert asked[0] == {"model": "o9", word: 7, "timeout": 60.0, **BODY}
    assert asked[1] == {"model": "o9", "max_completion_tokens": 5, "timeout": 60.0, **BODY}


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_what_the_sdk_raises_is_raised(name: str):
    sdk = pytest.importorskip(name)
    with provider([ConnectionError("overloaded")], name) as one:
        client = anthropic_client(one) if name == "anthropic" else openai_client(one)
        with client, pytest.raises(sdk.APIStatusError, match="overloaded"):
            (anthropic_model("m", client) if name == "anthropic" else openai_model("m", client)).complete(BODY)


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_a_server_that_never_answers_is_given_up(name: str):
    sdk = pytest.importorskip(name)
    with provider([], name, hangs=True) as one:
        client = anthropic_client(one) if name == "anthropic" else openai_client(one)
        model: Any = anthropic_model if name == "anthropic" else openai_model
        with client, pytest.raises(sdk.APITimeoutError):
            model("m", client, timeout=0.1).complete(BODY)


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_a_summary_goes_through_the_real_client(name: str):
    with provider(['{"summary": "All is said."}'], name) as one:
        client = anthropic_client(one) if name == "anthropic" else openai_client(one)
        model: Any = anthropic_model if name == "anthropic" else openai_model
        with client:
            summarize: Any = model_summarizer(model("m", client), get_format(name))
            summary = summarize(SummaryRequest("compact", (user("Hello."),), 100))
        assert (summary.text, summary.by) == ("All is said.", f"{name}:m")
        assert "cache_control" not in str(one.requests)


def test_a_model_is_named_by_its_provider():
    assert [is_model_name(name) for name in ("anthropic:claude-haiku-4-5", "openai:a:b", "openai:", "gpt", "x:y")] == [
        *(True, True, False, False, False)
    ]
    pytest.importorskip("anthropic")
    pytest.importorskip("openai")
    assert model_named("anthropic:claude-haiku-4-5").name == "anthropic:claude-haiku-4-5"
    named: Any = model_named("openai:gpt-4.1-mini", max_tokens=9, timeout=3.0)
    assert (named.name, named.max_tokens, named.timeout) == ("openai:gpt-4.1-mini", 9, 3.0)
    with pytest.raises(BadSetting, match=r"There is no model 'gpt'.*PROVIDER:MODEL"):
        model_named("gpt")


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_a_missing_sdk_is_told_with_its_extra(name: str, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=rf'pip install "foveate\[{name}\]"') as caught:
        model_named(f"{name}:m")
    assert caught.value.extra == name


@pytest.mark.parametrize(
    "wrong",
    [{"max_tokens": 0}, {"max_tokens": True}, {"timeout": 0}, {"timeout": float("inf")}, {"timeout": "1"}],
)
def test_numbers_that_make_no_sense_are_refused(wrong: dict[str, Any]):
    pytest.importorskip("anthropic")
    with pytest.raises(BadSetting):
        anthropic_model("m", **wrong)


def test_other_clients_and_names_are_refused():
    pytest.importorskip("anthropic")
    pytest.importorskip("openai")
    with pytest.raises(BadSetting, match="client="):
        anthropic_model("m", 7)  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match="client="):
        openai_model("m", 7)  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match="base_url="):
        openai_model("m", SimpleNamespace(chat=None), base_url="http://localhost/v1")  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match="named by a text"):
        openai_model(" ")


def test_naming_a_model_imports_no_sdk():
    code = (
        "import sys, foveate.models as m; m.is_model_name('openai:x'); print({'openai', 'anthropic'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
