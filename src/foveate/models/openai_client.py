"""Clients of OpenAI's SDK, for all models that use it."""

from __future__ import annotations

import os
from typing import Any

from ..errors import BadSetting, MissingExtra, MissingKey
from .servers import Server

__all__ = ["MAX_TOKENS", "create_client", "import_sdk"]

MAX_TOKENS = 8_192
"""Default maximal length of an answer, including thoughts."""


def import_sdk(purpose: str, client: object, resource: str, base_url: str | None) -> Any:
    """Return the SDK, and check the arguments of a model that uses it.

    `purpose`: the kind of model, for errors. `client`, `base_url`: the arguments of the model. `resource`: the
    attribute of a client that sends its requests. Raises MissingExtra if the SDK is not installed, and BadSetting for a
    client of another kind or one with an address.
    """
    try:
        import openai
    except ImportError:
        raise MissingExtra(purpose, "openai") from None
    if client is not None and not hasattr(client, resource):
        raise BadSetting(f"client= must be an OpenAI or an AsyncOpenAI, not {type(client).__name__}.")
    if client is not None and base_url is not None:
        raise BadSetting("base_url= does not apply to client=. Pass it to the client, or leave client= out.")
    return openai


def create_client(kind: Any, name: str, server: Server, base_url: str | None, key: str | None, max_retries: int) -> Any:
    """Return a client of this kind (`OpenAI` or `AsyncOpenAI`) for a server.

    `name`: the name of the model, for errors. `base_url` replaces the address of the server; there, no key is needed.
    `key`: None takes the key from the environment. Raises MissingKey if the server needs a key and there is none.
    """
    keys = [value for value in (key, *map(os.environ.get, server.keys)) if value]
    if server.keys and not keys and base_url is None:
        raise MissingKey(name, server.keys, "OpenAI(api_key=..., base_url=...)")
    # Without an address, the SDK takes it from the environment, or OpenAI's.
    return kind(base_url=base_url or server.base_url, api_key=keys[0] if keys else "none", max_retries=max_retries)
