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
from ..ports import Delta
from .sdk import RETRIES, TIMEOUT, SdkModel, fields
from .servers import SERVERS, Server, server_at

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

__all__ = ["OpenAIGatherer", "OpenAIModel", "openai_model"]

# MODULEDOC """Chunks of a streamed chat completion, gathered into the completion they make.
#
# Compatible servers differ: some give calls no index, or all of them the same; some repeat names and ids in every
# piece;
# some have fields of their own, for thoughts and for signatures that must come back. What is known to be text is added
# up, lists of numbered parts are joined by their number, and of anything else the last that was said is kept.
# """
_TEXT = frozenset(
    {"content", "refusal", "reasoning_content", "reasoning", "thinking", "arguments", "input", "text", "summary"}
    | {"data", "transcript"}
)
"""Fields that come in pieces."""
_THOUGHTS = ("reasoning_content", "reasoning")


class OpenAIGatherer:
    """One answer. See `Gatherer`."""

    def __init__(self) -> None:
        self._said: dict[str, Any] = {}
        self._choice: dict[str, Any] = {}
        self._message: dict[str, Any] = {"role": "assistant", "content": None}
        self._calls: list[dict[str, Any]] = []
        self._places: dict[object, int] = {}
        """Where a call is in the list, by the index that its pieces carry."""

    def add(self, event: object) -> list[Delta]:
        """The pieces that this chunk brings."""
        chunk = fields(event)
        choices = chunk.pop("choices", None) or []
        self._said |= {key: value for key, value in chunk.items() if value is not None or key not in self._said}
        pieces: list[Delta] = []
        for choice in choices:
            if choice.get("index", 0):
                continue  # Of several answers the first is the one that is recorded.
            delta = choice.pop("delta", None) or {}
            _merge(self._choice, choice)
            calls = delta.pop("tool_calls", None) or []
            _merge(self._message, delta)
            pieces += _pieces(delta)
            for call in calls:
                pieces += self._call(call)
        return pieces

    def whole(self) -> dict[str, Any] | None:
        """The completion; None while it is not whole: its last chunk says why it ended."""
        if not self._choice.get("finish_reason"):
            return None
        # Pieces of empty text say the same as none, where there are thoughts or calls for them to stand beside.
        message = {key: value for key, value in self._message.items() if value != "" or key not in _THOUGHTS}
        if self._calls:
            message = {**message, "content": message["content"] or None, "tool_calls": self._calls}
        choice = {"index": 0, **self._choice, "message": message}
        return {**self._said, "object": "chat.completion", "choices": [choice]}

    def _call(self, piece: dict[str, Any]) -> list[Delta]:
        call = self._at(piece.pop("index", None), piece)
        before = _function(call).get("name")
        _merge(call, piece)
        name = "" if before else str(_function(call).get("name") or "")
        inner = _function(piece)
        text = inner.get("arguments") or inner.get("input") or ""
        return [Delta("call", text if isinstance(text, str) else "", name)] if name or text else []

    def _at(self, index: object, piece: dict[str, Any]) -> dict[str, Any]:
        """The call that a piece belongs to: the one with its index, or the last one where it has none.

        A piece that names a function and has an id of its own begins a call all the same, and so does one that names a
        function and has no index.
        """
        place = self._places.get(index, -1) if index is not None else len(self._calls) - 1
        if place >= 0:
            call, id = self._calls[place], piece.get("id")
            is_named = bool(_function(piece).get("name"))
            if not is_named or (id == call.get("id") if id else index is not None):
                return call
        self._calls.append({})
        self._places[index] = len(self._calls) - 1
        return self._calls[-1]


def _function(call: dict[str, Any]) -> dict[str, Any]:
    inner = call.get("function") or call.get("custom")
    return inner if isinstance(inner, dict) else {}


def _pieces(delta: dict[str, Any]) -> list[Delta]:
    thought = next((text for key in _THOUGHTS if isinstance(text := delta.get(key), str) and text), "")
    said = [text for key in ("content", "refusal") if isinstance(text := delta.get(key), str) and text]
    return [Delta("reasoning", thought)] * bool(thought) + [Delta("text", text) for text in said]


def _merge(whole: dict[str, Any], piece: dict[str, Any]) -> None:
    """Add what a piece says to what was said before."""
    for key, value in piece.items():
        before = whole.get(key)
        match before, value:
            case str(), str() if key in _TEXT:
                whole[key] = before + value
            case dict(), dict():
                _merge(before, value)
            case list(), list():
                _join(before, value)
            case str(), list() if key in _TEXT:
                whole[key] = [{"type": "text", "text": before}, *value] if before else value
            case list(), str() if key in _TEXT:
                _join(before, [{"type": "text", "text": value}] if value else [])
            case _:
                if value not in (None, "") or before is None:  # Nothing takes nothing back.
                    whole[key] = value


def _join(parts: list[Any], more: list[Any]) -> None:
    """Add parts to a list; one with the number and type of a part that is there is a piece of it."""
    for part in more:
        number = part.get("index") if isinstance(part, dict) else None
        if number is not None:
            same = [one for one in parts if one.get("index") == number and one.get("type") == part.get("type")]
            if same:
                _merge(same[0], part)
                continue
        parts.append(part)


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
