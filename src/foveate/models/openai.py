"""Models of OpenAI's chat completions, and of the many servers that speak the same, through the official SDK.

Knows how one request is sent, and in which words. What is in it is rendered by the format `openai`; retries and
proxies are the client's. What servers differ in is in the table of `servers.py`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import BadSetting, MissingExtra
from ._openai_stream import OpenAIGatherer
from ._sdk import RETRIES, TIMEOUT, SdkModel
from .servers import SERVERS, Server, server_at

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

__all__ = ["OpenAIModel", "openai_model"]

MAX_TOKENS = 8_192
"""Length of an answer at most, thoughts included."""
_LENGTHS = ("max_tokens", "max_completion_tokens")
_UNKNOWN = re.compile(
    r"unsupported|(?:not|n't) support|not (?:permitted|allowed)|forbidden|unrecogni[sz]ed|unknown|unexpected",
    re.IGNORECASE,
)
"""How servers say that they do not know a field."""


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
    """A model of the chat completions, such as `gpt-4.1-mini`.

    `client`: the SDK's, sync or async, with its own address and retries; what `complete` returns is awaited, and
    `stream` is iterated over by `async for`, if it is async. By default one is made when the first request is sent,
    async if `asynchronous`, for the `server` of the table (`google`, `xai`, ...: see `servers.SERVERS`) with the key
    that the environment holds for it, or for the compatible server at `base_url`, such as `http://localhost:8000/v1`,
    with `OPENAI_API_KEY` if that is set. `max_tokens`: of one answer. `timeout`: seconds until the answer, or the next
    piece of a stream. `api_key`: instead of the environment's. `options`: said with every request, such as
    `{"prompt_cache_key": "support", "reasoning_effort": "low"}`; what a request says itself goes before them. Raises
    MissingExtra where the SDK is not installed, and BadSetting for what makes no sense.
    """
    try:
        import openai
    except ImportError:
        raise MissingExtra("A model of OpenAI's, or of a server that is compatible with it,", "openai") from None
    if server not in SERVERS:
        raise BadSetting(f"There is no server {server!r:.60}; those of the table: {', '.join(SERVERS)}.")
    if client is not None and not hasattr(client, "chat"):
        raise BadSetting(f"client= is an OpenAI or an AsyncOpenAI, not {type(client).__name__}.")
    if client is not None and base_url is not None:
        raise BadSetting("Say base_url= where client= is made, or leave client= out.")
    return OpenAIModel(
        f"{server}:{model}",
        client,
        openai,
        base_url=base_url,
        asynchronous=asynchronous,
        max_tokens=max_tokens,
        timeout=timeout,
        max_retries=max_retries,
        options=options,
        api_key=api_key,
    )


class OpenAIModel(SdkModel):
    """See `openai_model`."""

    format = "openai"

    def __init__(self, name: str, client: Any, sdk: Any, *, base_url: str | None, **settings: Any) -> None:
        super().__init__(name, client, sdk, **settings)
        self._base_url = base_url
        self._server: Server | None = None
        self._refused: set[str] = set()
        """Fields that this server does not take, as it turned out."""

    def _made(self) -> Any:
        kind = self._sdk.AsyncOpenAI if self.asynchronous else self._sdk.OpenAI
        server = SERVERS[self.name.partition(":")[0]]
        held = [key for key in (self._key, *map(os.environ.get, server.keys)) if key]
        where = self._base_url or server.base_url
        if where is None:
            try:
                return kind(max_retries=self.max_retries, **self._with_key)
            except self._sdk.OpenAIError as error:
                if "api_key" not in str(error):
                    raise
                raise self._keyless(server) from None
        if server.keys and not held and self._base_url is None:
            raise self._keyless(server)
        return kind(base_url=where, api_key=held[0] if held else "none", max_retries=self.max_retries)

    def _keyless(self, server: Server) -> BadSetting:
        return BadSetting(
            f"{self.name} needs a key, and {' or '.join(server.keys)} is not set. Set it in the environment, or "
            "hand in api_key=, or client=OpenAI(api_key=..., base_url=...)."
        )

    def _sender(self, client: Any) -> Callable[..., Any]:
        send: Callable[..., Any] = client.chat.completions.create
        return send

    def _asked(self, client: Any, body: Mapping[str, Any], streams: bool) -> dict[str, Any]:
        if self._server is None:
            host = getattr(getattr(client, "base_url", None), "host", "")
            named = SERVERS[self.name.partition(":")[0]]
            self._server = server_at(host) if named.base_url is None or self._base_url else named
        asked: dict[str, Any] = {**self.options, **body}
        if not asked.keys() & set(_LENGTHS):
            word = self._server.length
            asked[_other(word) if word in self._refused else word] = self.max_tokens
        if streams and self._server.tells_usage and "stream_options" not in asked.keys() | self._refused:
            asked["stream_options"] = {"include_usage": True}
        return asked

    def _gatherer(self) -> OpenAIGatherer:
        return OpenAIGatherer()

    def _instead(self, asked: dict[str, Any], error: Exception) -> dict[str, Any] | None:
        """Without a field that was added here, or with its other name, where the server does not know it."""
        said = f"{error} {getattr(error, 'body', '')}"
        if getattr(error, "status_code", None) not in (400, 422) or not _UNKNOWN.search(said):
            return None
        if asked.get("stream_options") == {"include_usage": True} and re.search("stream_options|include_usage", said):
            self._refused.add("stream_options")
            return {key: value for key, value in asked.items() if key != "stream_options"}
        for word in _LENGTHS:
            is_own = self._server is not None and self._server.length == word and word not in self.options
            if is_own and word in asked and word not in self._refused and f"'{word}'" in said:
                self._refused.add(word)
                return {_other(key) if key == word else key: value for key, value in asked.items()}
        return None


def _other(length: str) -> str:
    return _LENGTHS[1 - _LENGTHS.index(length)]
