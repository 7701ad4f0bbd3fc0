"""Models with the official SDKs: real clients, sync and async, and a provider on the loopback address."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from foveate import open_model, user
from foveate.errors import BadSetting, MissingExtra
from foveate.formats import get_format
from foveate.models import get_model, is_model_name
from foveate.models.anthropic import anthropic_model
from foveate.models.known import check_model
from foveate.models.openai import openai_model
from foveate.models.responses import responses_model
from foveate.summarizers import SummaryRequest, model_summarizer
from foveate.testing import Failure, ScriptedModel, SlowReply
from foveate.testing.server import StubServer

from .serving import BODY, BOTH, model_at, serving


def text_of(model: Any, response: object) -> str:
    return get_format(model.format).parse_reply(response)[0].text


def test_the_anthropic_sdk_sends_a_request():
    with serving(["In short."], "anthropic", max_tokens=99) as (server, model):
        assert (model.name, model.format) == ("anthropic:m", "anthropic")
        assert text_of(model, model.complete(BODY)) == "In short."
        assert [(one.path, one.values) for one in server.received] == [
            ("/v1/messages", {"model": "m", "max_tokens": 99, **BODY})
        ]


def test_the_openai_sdk_sends_a_request():
    with serving(["In short."], "openai", max_tokens=99) as (server, model):
        assert (model.name, model.format) == ("openai:m", "openai")
        assert text_of(model, model.complete(BODY)) == "In short."
        assert [(one.path, one.values) for one in server.received] == [
            ("/v1/chat/completions", {"model": "m", "max_tokens": 99, **BODY})
        ]


@BOTH
def test_an_async_client_is_awaited(provider: str):
    async def run() -> str:
        with StubServer(ScriptedModel(["In short."], provider)) as server:
            model = model_at(server, provider, asynchronous=True)
            async with model._client_passed:
                return text_of(model, await model.complete(BODY))

    assert asyncio.run(run()) == "In short."


@BOTH
def test_options_go_with_every_request_that_does_not_set_them(provider: str):
    options = {"temperature": 0, "max_tokens": 9}
    with serving(["one", "two"], provider, options=options) as (server, model):
        model.complete(BODY)
        model.complete({**BODY, "temperature": 1, "model": "other", "max_tokens": 5})
    assert [one.values for one in server.received] == [
        {"model": "m", "max_tokens": 9, "temperature": 0, **BODY},
        {"model": "other", "max_tokens": 5, "temperature": 1, **BODY},
    ]


@BOTH
def test_a_field_without_an_sdk_keyword_travels_in_the_body(provider: str):
    with serving(["one"], provider, options={"newer": {"deep": [1]}, "extra_body": {"newest": 2}}) as (server, model):
        model.complete(BODY)
    assert {"newer": {"deep": [1]}, "newest": 2}.items() <= server.received[0].values.items()


@pytest.mark.parametrize(
    ("client", "word"),
    [
        (SimpleNamespace(base_url=SimpleNamespace(host="api.openai.com")), "max_completion_tokens"),
        (SimpleNamespace(base_url=SimpleNamespace(host="mine.openai.azure.com")), "max_completion_tokens"),
        (SimpleNamespace(base_url=SimpleNamespace(host="api.x.ai")), "max_completion_tokens"),
        (SimpleNamespace(base_url=SimpleNamespace(host="localhost")), "max_tokens"),
        (SimpleNamespace(), "max_completion_tokens"),
    ],
)
def test_the_length_has_the_name_that_the_server_uses(client: Any, word: str):
    asked: list[dict[str, Any]] = []
    client.chat = SimpleNamespace(completions=SimpleNamespace(create=lambda **arguments: asked.append(arguments)))
    openai_model("o9", client, max_tokens=7).complete(BODY)
    openai_model("o9", client).complete({**BODY, "max_completion_tokens": 5})
    assert asked[0] == {"model": "o9", word: 7, "timeout": 600.0, **BODY}
    assert asked[1] == {"model": "o9", "max_completion_tokens": 5, "timeout": 600.0, **BODY}


def test_a_refused_length_name_is_replaced_from_then_on():
    refusal = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    )
    with serving([Failure(400, message=refusal), "one", "two"], "openai") as (server, model):
        assert [text_of(model, model.complete(BODY)) for _ in range(2)] == ["one", "two"]
    lengths = [sorted(one.values.keys() & {"max_tokens", "max_completion_tokens"}) for one in server.received]
    assert lengths == [["max_tokens"], ["max_completion_tokens"], ["max_completion_tokens"]]


@pytest.mark.parametrize(("format", "opened"), [("openai", openai_model), ("openai_responses", responses_model)])
def test_options_replace_the_key_of_the_cache(format: str, opened: Any):
    asked: list[dict[str, Any]] = []
    create = SimpleNamespace(create=lambda **arguments: asked.append(arguments))
    client = SimpleNamespace(chat=SimpleNamespace(completions=create), responses=create)
    opened("gpt-5.6", client, options={"prompt_cache_key": "mine"}).complete({**BODY, "prompt_cache_key": "foveate-1"})
    opened("gpt-5.6", client).complete({**BODY, "prompt_cache_key": "foveate-1"})
    assert [one["prompt_cache_key"] for one in asked] == ["mine", "foveate-1"]


def test_a_refused_key_of_the_cache_is_left_out_from_then_on():
    body = {**BODY, "prompt_cache_key": "foveate-1"}
    refusal = Failure(400, message="Unrecognized request argument supplied: prompt_cache_key")
    with serving([refusal, "one", "two"], "openai") as (server, model):
        assert [text_of(model, model.complete(body)) for _ in range(2)] == ["one", "two"]
    assert ["prompt_cache_key" in one.values for one in server.received] == [True, False, False]


def test_a_length_that_is_too_large_keeps_its_name():
    sdk = pytest.importorskip("openai")
    refusal = "'max_tokens' or 'max_completion_tokens' is too large: 8192. The maximum context length is 4096 tokens."
    with serving([Failure(400, message=refusal)], "openai") as (server, model):
        with pytest.raises(sdk.BadRequestError, match="too large"):
            model.complete(BODY)
        assert len(server.received) == 1


@BOTH
def test_errors_of_the_sdk_are_raised_unchanged(provider: str):
    sdk = pytest.importorskip(provider)
    with serving([Failure(529, message="overloaded")], provider) as (_, model):
        with pytest.raises(sdk.APIStatusError, match="overloaded") as caught:
            model.complete(BODY)
        assert caught.value.status_code == 529
        with pytest.raises(sdk.BadRequestError, match="role"):
            model.complete({"messages": [{"role": "robot", "content": "x"}]})


@BOTH
def test_temporary_failures_are_retried_after_the_given_delay(provider: str):
    script = [Failure(429, retry_after=0.01), Failure(500, retry_after=0.01), "In short."]
    with serving(script, provider, max_retries=2) as (server, model):
        assert text_of(model, model.complete(BODY)) == "In short."
    assert [one.headers["x-stainless-retry-count"] for one in server.received] == ["0", "1", "2"]
    assert len({one.body for one in server.received}) == 1


@BOTH
def test_a_server_that_never_answers_times_out(provider: str):
    sdk = pytest.importorskip(provider)
    with serving([SlowReply("x", 600)], provider, timeout=0.1) as (_, model), pytest.raises(sdk.APITimeoutError):
        model.complete(BODY)


@BOTH
def test_a_summary_goes_through_the_real_client(provider: str):
    with serving(['{"summary": "All is said."}'], provider) as (server, model):
        summarize: Any = model_summarizer(model, get_format(provider))
        summary = summarize(SummaryRequest("compact", (user("Hello."),), 100))
        assert (summary.text, summary.by) == ("All is said.", f"{provider}:m")
        assert b"cache_control" not in server.received[0].body


def test_a_model_is_named_by_its_provider():
    known = (
        "anthropic:claude-haiku-4-5",
        "openai:a:b",
        "google:gemini-2.5-flash",
        "xai:grok-4.7",
        "ollama:llama3.2:1b",
    )
    unknown = ("openai:", "openai: ", "gpt", "x:y", ":y")
    assert [is_model_name(name) for name in known + unknown] == [True] * len(known) + [False] * len(unknown)
    pytest.importorskip("anthropic")
    pytest.importorskip("openai")
    assert open_model("anthropic:claude-haiku-4-5").name == "anthropic:claude-haiku-4-5"
    named = get_model("openai:gpt-4.1-mini", max_tokens=9, timeout=3.0, max_retries=0, options={"seed": 1})
    assert (named.name, named.model, named.max_tokens, named.timeout, named.max_retries, named.options) == (
        *("openai:gpt-4.1-mini", "gpt-4.1-mini", 9, 3.0, 0, {"seed": 1}),
    )
    for wrong in ("gpt", "", None, 7, "anthropic"):
        with pytest.raises(
            BadSetting,
            match=r"Model .* is unknown. Write PROVIDER:MODEL, .*: anthropic, openai, openai-responses, google",
        ):
            get_model(wrong)  # type: ignore[arg-type]


@BOTH
def test_the_error_for_a_missing_sdk_names_its_extra(provider: str, monkeypatch):
    monkeypatch.setitem(sys.modules, provider, None)
    with pytest.raises(MissingExtra, match=rf'pip install "foveate\[{provider}\]"') as caught:
        get_model(f"{provider}:m")
    assert caught.value.extra == provider


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"max_tokens": 0}, "max_tokens="),
        ({"max_tokens": True}, "max_tokens="),
        ({"timeout": 0}, "timeout="),
        ({"timeout": float("inf")}, "timeout="),
        ({"timeout": "1"}, "timeout="),
        ({"max_retries": -1}, "max_retries="),
        ({"max_retries": None}, "max_retries="),
        ({"options": ["x"]}, "options="),
    ],
)
def test_invalid_settings_are_refused(wrong: dict[str, Any], says: str):
    pytest.importorskip("anthropic")
    with pytest.raises(BadSetting, match=says):
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
    with pytest.raises(BadSetting, match=r"Server 'mine' is unknown\. Use one of: openai, google"):
        openai_model("m", server="mine")
    for wrong in (" ", ""):
        with pytest.raises(BadSetting, match="model name must be a text"):
            openai_model(wrong)


def test_a_model_name_imports_no_sdk():
    code = (
        "import sys, foveate.models as m; m.is_model_name('openai:x'); print({'openai', 'anthropic'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("provider", ["anthropic", "openai", "xai", "google"])
def test_api_key_wins_over_the_environment_and_is_never_shown(provider: str, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "XAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "of the environment")
    model: Any = get_model(f"{provider}:m", api_key="s3cret")
    client = model._client()
    assert client.api_key == "s3cret"
    assert "s3cret" not in repr(model)
    model.close()
    with pytest.raises(BadSetting, match=r"api_key= of .* must be a text that is not blank"):
        get_model(f"{provider}:m", api_key=" ")


def test_bound_reasoning_may_be_dropped_by_the_api():
    """The system prompt may change between requests. Anthropic refuses that unless the request allows the drop."""
    sdk = pytest.importorskip("anthropic")
    block = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [block, {"type": "text", "text": "b"}]},
        {"role": "user", "content": "c"},
    ]
    with StubServer(ScriptedModel(["In short."] * 4, "anthropic")) as server:
        client = sdk.Anthropic(api_key="none", base_url=server.url)
        for name, options in (
            ("claude-opus-5-5", {}),
            ("claude-opus-5-5", {"thinking": {"type": "disabled"}}),
            ("claude-opus-5", {}),
        ):
            anthropic_model(name, client, options=options).complete({"messages": messages})
        anthropic_model("claude-opus-5-5", client).complete({"messages": messages[:1]})
        client.close()
        first, *others = server.received
    assert first.values["thinking"] == {
        "type": "adaptive",
        "block_binding": {"prefix_mismatch_behavior": "drop_block"},
    }
    assert first.headers["anthropic-beta"] == "thinking-binding-controls-2026-08-01"
    assert [one.headers.get("anthropic-beta") for one in others] == [None] * 3


def test_only_gemini_models_take_the_format_gemini():
    check_model("gemini-3-pro", "gemini", None)
    check_model("vertex/gemini-3-pro", "gemini", None)
    for model in ("claude-opus-5-5", "gpt-5.4"):
        with pytest.raises(BadSetting, match="not 'gemini'"):
            check_model(model, "gemini", None)
