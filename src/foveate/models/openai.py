"""Models of OpenAI's chat completions and of compatible servers, through the official SDK.

The format `openai` renders the request. The client is responsible for retries and proxies. The table in `servers.py`
lists how the servers differ.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..core.needs import CACHE_KEY
from ..errors import BadSetting, MissingExtra, MissingKey
from .sdk import RETRIES, TIMEOUT, SdkModel
from .servers import SERVERS, Server, find_server

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

__all__ = ["OpenAIModel", "openai_model"]

MAX_TOKENS = 8_192
"""Default maximal length of an answer, including thoughts."""
_LENGTHS = ("max_tokens", "max_completion_tokens")
_UNKNOWN = re.compile(
    r"unsupported|(?:not|n't) support|not (?:permitted|allowed)|forbidden|unrecogni[sz]ed|unknown|unexpected",
    re.IGNORECASE,
)
"""Phrases by which servers report that they do not know a field."""


def openai_model(
    model: str,
    client: OpenAI | AsyncOpenAI | None = None,
    *,
    server: str = "openai",
    base_url: str | None = None,
    asynchronous: bool = False,
    max_tokens: int = MAX_TOKENS,
    timeout: float = TIMEOUT,
    max_retries: int = RETRIES,
    options: Mapping[str, Any] | None = None,
    api_key: str | None = None,
) -> OpenAIModel:
    """Return a model of the chat completions, such as `gpt-4.1-mini`.

    `client` is an SDK client, sync or async, with its own address and retries. If it is async, callers await `complete`
    and iterate over `stream` with `async for`. Without it, the model creates a client for its first request, async if
    `asynchronous`: for `server`, an entry of `servers.SERVERS` (`google`, `xai`, ...), with the key in that server's
    environment variable, or for the compatible server at `base_url`, such as `http://localhost:8000/v1`, with
    `OPENAI_API_KEY` if that is set. `api_key` replaces the environment's key. `max_tokens` limits one answer. `timeout`
    is in seconds until the answer, or the next piece of a stream. `options` go with every request, such as
    `{"prompt_cache_key": "support", "reasoning_effort": "low"}`; the request's own fields win over them. Raises
    MissingExtra if the SDK is not installed, BadSetting for an invalid argument.
    """
    sdk = import_sdk("A model from OpenAI or from a compatible server", client, "chat", base_url)
    if server not in SERVERS:
        raise BadSetting(f"Server {server!r:.60} is unknown. Use one of: {', '.join(SERVERS)}.")
    return OpenAIModel(
        f"{server}:{model}",
        client,
        sdk,
        base_url=base_url,
        asynchronous=asynchronous,
        max_tokens=max_tokens,
        timeout=timeout,
        max_retries=max_retries,
        options=options,
        api_key=api_key,
    )


class OpenAIModel(SdkModel):
    """A model of the chat completions (see `openai_model`)."""

    format = "openai"
    """The format of its requests."""

    def __init__(self, name: str, client: Any, sdk: Any, *, base_url: str | None, **settings: Any) -> None:
        super().__init__(name, client, sdk, **settings)
        self._base_url = base_url
        self._server: Server | None = None
        self._refused: set[str] = set()
        """Fields that this server refused."""

    def _new_client(self) -> Any:
        kind = self._sdk.AsyncOpenAI if self.asynchronous else self._sdk.OpenAI
        server = SERVERS[self.name.partition(":")[0]]
        return create_client(kind, self.name, server, self._base_url, self._key, self.max_retries)

    def _sender(self, client: Any) -> Callable[..., Any]:
        send: Callable[..., Any] = client.chat.completions.create
        return send

    def _arguments(self, client: Any, body: Mapping[str, Any], streams: bool) -> dict[str, Any]:
        if self._server is None:
            host = getattr(getattr(client, "base_url", None), "host", "")
            named = SERVERS[self.name.partition(":")[0]]
            self._server = find_server(host) if named.base_url is None or self._base_url else named
        arguments = with_options(body, self.options)
        if CACHE_KEY in self._refused:
            arguments.pop(CACHE_KEY, None)
        if not arguments.keys() & set(_LENGTHS):
            word = self._server.length
            arguments[_other_length(word) if word in self._refused else word] = self.max_tokens
        if streams and self._server.takes_stream_options and "stream_options" not in arguments.keys() | self._refused:
            arguments["stream_options"] = {"include_usage": True}
        return arguments

    def _alternative(self, arguments: dict[str, Any], error: Exception) -> dict[str, Any] | None:
        """Return the request without an added field that the server does not know, or with the field's other name."""
        message = f"{error} {getattr(error, 'body', '')}"
        if getattr(error, "status_code", None) not in (400, 422) or not _UNKNOWN.search(message):
            return None
        if arguments.get("stream_options") == {"include_usage": True} and re.search(
            "stream_options|include_usage", message
        ):
            self._refused.add("stream_options")
            return {key: value for key, value in arguments.items() if key != "stream_options"}
        if CACHE_KEY in message and CACHE_KEY in arguments.keys() - self.options.keys():
            self._refused.add(CACHE_KEY)
            return {key: value for key, value in arguments.items() if key != CACHE_KEY}
        for word in _LENGTHS:
            is_own = self._server is not None and self._server.length == word and word not in self.options
            if is_own and word in arguments and word not in self._refused and f"'{word}'" in message:
                self._refused.add(word)
                return {_other_length(key) if key == word else key: value for key, value in arguments.items()}
        return None


def with_options(body: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request with options that it does not have itself. Only a key of the cache replaces its own."""
    merged = {**options, **body}
    if CACHE_KEY in options:
        merged[CACHE_KEY] = options[CACHE_KEY]
    return merged


def _other_length(length: str) -> str:
    return _LENGTHS[1 - _LENGTHS.index(length)]


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
        raise MissingKey(name, server.keys)
    # Without an address, the SDK takes it from the environment, or OpenAI's.
    return kind(base_url=base_url or server.base_url, api_key=keys[0] if keys else "none", max_retries=max_retries)
