"""Compatible servers: addresses, keys, and errors for missing ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from foveate import open_model
from foveate.errors import BadSetting
from foveate.models import PROVIDERS
from foveate.models.openai import openai_model
from foveate.models.servers import SERVERS, Server, find_server
from foveate.testing import ScriptedModel
from foveate.testing.server import StubServer

from .serving import BODY

KEYS = sorted({variable for server in SERVERS.values() for variable in server.keys} | {"OPENAI_ADMIN_KEY"})


@pytest.fixture(autouse=True)
def _bare(monkeypatch: Any) -> None:
    for variable in (*KEYS, "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)


def client_of(name: str) -> Any:
    """Return the client with which a model sends its first request."""
    pytest.importorskip("openai")
    model: Any = open_model(name)
    return model._client()


@pytest.mark.parametrize("name", [name for name in SERVERS if name not in ("openai", "ollama")])
def test_a_server_of_the_table_gets_its_address_and_key(name: str, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "not for others")
    monkeypatch.setenv(SERVERS[name].keys[-1], "its own")
    client = client_of(f"{name}:m")
    assert (str(client.base_url).rstrip("/"), client.api_key) == (str(SERVERS[name].base_url).rstrip("/"), "its own")
    client.close()


@pytest.mark.parametrize("name", ["anthropic", *SERVERS])
def test_max_retries_applies_to_every_server(name: str):
    pytest.importorskip("anthropic")
    pytest.importorskip("openai")
    model: Any = open_model(f"{name}:m", max_retries=7, api_key="k")
    assert model._client().max_retries == 7
    model.close()


def test_the_first_variable_that_is_set_holds_the_key(monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", "second")
    monkeypatch.setenv("GEMINI_API_KEY", "first")
    client = client_of("google:gemini-2.5-flash")
    assert client.api_key == "first"
    client.close()


def test_a_local_server_needs_no_key_and_gets_none(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "not for others")
    client = client_of("ollama:qwen3")
    assert (str(client.base_url), client.api_key) == ("http://localhost:11434/v1/", "none")
    client.close()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "anthropic:m",
            "anthropic:m needs a key, and ANTHROPIC_API_KEY is not set. Set it in the environment, or pass the model "
            'as foveate.open_model("anthropic:m", api_key=...).',
        ),
        (
            "openai:m",
            "openai:m needs a key, and OPENAI_API_KEY is not set. Set it in the environment, or pass the model as "
            'foveate.open_model("openai:m", api_key=...).',
        ),
        ("google:m", "google:m needs a key, and GEMINI_API_KEY or GOOGLE_API_KEY is not set."),
        ("xai:m", "xai:m needs a key, and XAI_API_KEY is not set."),
    ],
)
def test_the_first_request_names_the_variable_of_a_missing_key(name: str, says: str, monkeypatch):
    pytest.importorskip("anthropic")
    pytest.importorskip("openai")
    monkeypatch.setenv("HOME", "/nowhere")
    model: Any = open_model(name)
    for ask in (model.complete, lambda body: list(model.stream(body))):
        with pytest.raises(BadSetting) as caught:
            ask(BODY)
        assert str(caught.value).startswith(says)


@pytest.mark.parametrize("key", ["", "mine"])
def test_base_url_selects_another_server(key: str, monkeypatch):
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with StubServer({"/mine/v1": ScriptedModel(["In short."], "openai")}) as server:
        model = openai_model("qwen", base_url=f"{server.url}/mine/v1", max_tokens=7)
        response = model.complete(BODY)
        model.close()
    assert response.choices[0].message.content == "In short."
    [received] = server.received
    assert (received.path, received.headers["authorization"]) == (
        "/mine/v1/chat/completions",
        f"Bearer {key or 'none'}",
    )
    assert received.values == {"model": "qwen", "max_tokens": 7, **BODY}


def test_the_host_of_a_client_selects_the_server_entry():
    assert find_server("api.mistral.ai") is SERVERS["mistral"]
    assert find_server("") is find_server("api.openai.com") is find_server("x.openai.azure.com") is SERVERS["openai"]
    assert find_server("localhost") == find_server("evil-api.openai.com") == Server("")


def test_requests_avoid_fields_that_a_server_refuses(monkeypatch):
    arguments: dict[str, Any] = {}
    for name in SERVERS:
        monkeypatch.setenv((SERVERS[name].keys or ("X",))[0], "k")
        model: Any = open_model(f"{name}:m", max_tokens=5)
        arguments[name] = model._arguments(model._client(), BODY, True)
        model.close()
    lengths = {name: next(key for key in one if key.startswith("max_")) for name, one in arguments.items()}
    assert {name for name, word in lengths.items() if word == "max_completion_tokens"} == {"openai", "xai", "groq"}
    assert {name for name, one in arguments.items() if "stream_options" not in one} == {"mistral"}


def test_the_page_of_models_has_every_provider_with_its_key_and_address():
    page = (Path(__file__).resolve().parent.parent.parent / "docs" / "guides" / "models.md").read_text(encoding="utf-8")
    rows = {row.split("`")[1].rstrip(":"): row for row in page.splitlines() if row.startswith("| `") and ":` |" in row}
    assert list(rows) == list(PROVIDERS)
    for name, server in SERVERS.items():
        assert [what for what in (*server.keys, server.base_url) if what and f"`{what}`" not in rows[name]] == []
