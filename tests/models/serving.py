"""Models with the official SDKs, connected to a provider on the loopback address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from foveate.models.anthropic import anthropic_model
from foveate.models.openai import openai_model
from foveate.testing import ScriptedModel
from foveate.testing.server import StubServer

BODY = {"messages": [{"role": "user", "content": "Sum up."}]}
BOTH = pytest.mark.parametrize("provider", ["anthropic", "openai"])


def model_at(server: StubServer, provider: str, *, asynchronous: bool = False, **settings: Any) -> Any:
    """Return a model with an SDK client for this server. It does not retry unless `settings` do."""
    sdk = pytest.importorskip(provider)
    retries = settings.pop("max_retries", 0)
    kind = ("Async" if asynchronous else "") + {"anthropic": "Anthropic", "openai": "OpenAI"}[provider]
    where = server.url if provider == "anthropic" else f"{server.url}/v1"
    client = getattr(sdk, kind)(api_key="none", base_url=where, max_retries=retries)
    factory = anthropic_model if provider == "anthropic" else openai_model
    return factory("m", client, **settings)


@contextmanager
def serving(script: Any, provider: str, **settings: Any) -> Iterator[tuple[StubServer, Any]]:
    """Provide a server with this script, and a model for it."""
    with StubServer(ScriptedModel(script, provider)) as server:
        model = model_at(server, provider, **settings)
        yield server, model
        if not model.asynchronous:
            model._client_passed.close()
