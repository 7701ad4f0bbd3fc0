"""What models of the official SDKs have in common: whose client it is, who waits, how a stream is followed.

Knows neither of the SDKs; `anthropic.py` and `openai.py` say what a request is called and how its pieces are gathered.
"""

from __future__ import annotations

import copy
import inspect
import math
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Protocol

from ..errors import BadSetting, BrokenStream
from ..ports import Delta, Whole

__all__ = ["RETRIES", "TIMEOUT", "Gatherer", "SdkModel", "broken", "checked", "fields"]


# MODULEDOC """Streams of events gathered into a whole response: what the gatherers of both APIs share."""
class Gatherer(Protocol):
    """Takes one event of a stream after another."""

    def add(self, event: object) -> list[Delta]:
        """The pieces that this event brings."""
        ...

    def whole(self) -> dict[str, Any] | None:
        """The response that a request without a stream would have had; None while it is not whole."""
        ...


def fields(event: Any) -> dict[str, Any]:
    """What an event says, without the fields that were never set."""
    if isinstance(event, Mapping):
        return copy.deepcopy(dict(event))
    # No warnings: a block newer than the SDK dumps well, but pydantic remarks on it.
    said: dict[str, Any] = event.model_dump(exclude_unset=True, mode="json", by_alias=True, warnings=False)
    return said


def broken(model: str, error: Exception | None = None) -> BrokenStream:
    """The error for a stream that ended too early, because of `error` if that is known."""
    cause = getattr(error, "__cause__", None) or error
    why = "the server closed it" if error is None else f"{type(cause).__name__}: {cause}"
    return BrokenStream(
        f"The answer of {model} broke off before it was whole ({why}): the fault of the server, or of the network in "
        "between. Nothing of it was recorded; ask again."
    )


# MODULEDOC """What every model is told, looked at before anything is sent."""
def checked(model: object, max_tokens: object, timeout: object, max_retries: object, options: object) -> None:
    """Raises BadSetting for a name, a length, a time, a number of retries or options that make no sense."""
    if not isinstance(model, str) or not model.strip():
        raise BadSetting(f"A model is named by a text such as claude-haiku-4-5, not {model!r:.60}.")
    if type(max_tokens) is not int or max_tokens < 1:
        raise BadSetting(f"max_tokens= is a whole number of 1 or more, not {max_tokens!r:.60}.")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < math.inf:
        raise BadSetting(f"timeout= is a number of seconds above 0, not {timeout!r:.60}.")
    if type(max_retries) is not int or max_retries < 0:
        raise BadSetting(f"max_retries= is a whole number of 0 or more, not {max_retries!r:.60}.")
    if options is not None and not isinstance(options, Mapping):
        raise BadSetting(f'options= is a dict such as {{"temperature": 0}}, not {options!r:.60}.')


RETRIES = 2
"""How often the SDK sends a request again that failed for a reason that may pass; its own default."""
TIMEOUT = 600.0
"""Seconds that the SDK waits for the server, or for the next piece of a stream; its own default."""
_FORMS = 3
"""How often a request is sent at most, until it has a form that the server takes."""


class SdkModel:
    """A model whose requests one of the SDKs sends. For several threads, or for one event loop at a time."""

    format: str

    def __init__(
        self,
        name: str,
        client: Any,
        sdk: Any,
        *,
        asynchronous: bool,
        max_tokens: int,
        timeout: float,
        max_retries: int,
        options: Mapping[str, Any] | None,
        api_key: str | None = None,
    ) -> None:
        """`api_key`: of the client that this model makes; None: the one of the environment."""
        if client is not None and api_key is not None:
            raise BadSetting("Say api_key= where client= is made, or leave client= out.")
        if api_key is not None and (not isinstance(api_key, str) or not api_key.strip()):
            raise BadSetting(f"api_key= of {name} is a text that is not blank, or None for the environment's.")
        self.name, self.model = name, name.partition(":")[2]
        checked(self.model, max_tokens, timeout, max_retries, options)
        self.max_tokens, self.timeout, self.max_retries = max_tokens, timeout, max_retries
        self.options = dict(options or {})
        self.asynchronous = hasattr(type(client), "__aenter__") if client is not None else bool(asynchronous)
        """Whether what `complete` returns is awaited, and `stream` is iterated over by `async for`."""
        self._sdk, self._handed = sdk, client
        self._key = api_key
        self._with_key = {"api_key": api_key} if api_key is not None else {}
        self._own: Any = None
        self._loop: object = None
        self._lock = threading.Lock()
        self._known: frozenset[str] | None = None

    def complete(self, body: Mapping[str, Any]) -> Any:
        """The SDK's response to this request, to be awaited if the client is async. Raises what the SDK raises."""
        if self.asynchronous:
            return self._answered_later(body, streams=False)
        return self._answered(body, streams=False)

    def stream(self, body: Mapping[str, Any]) -> Any:
        """The answer in pieces, each a Delta, and last, in a Whole, all of it as plain values; an iterator, or one for
        `async for` if the client is async.

        The request is sent when the first piece is asked for. Raises what the SDK raises, and BrokenStream where the
        answer ends before it is whole. Closing the iterator ends the request.
        """
        return self._pieces_later(body) if self.asynchronous else self._pieces(body)

    def close(self) -> Any:
        """Let go of the connections, if this model opened them; to be awaited if it is asynchronous."""
        with self._lock:
            client, self._own = self._own, None
        if self.asynchronous:
            return _closed(client, self._loop)
        if client is not None:
            client.close()
        return None

    # What a leaf says.

    def _made(self) -> Any:
        """A client of the SDK. Raises BadSetting where it has no key."""
        raise NotImplementedError

    def _sender(self, client: Any) -> Callable[..., Any]:
        """The method of a client that sends a request."""
        raise NotImplementedError

    def _asked(self, client: Any, body: Mapping[str, Any], streams: bool) -> dict[str, Any]:
        """The keyword arguments of that method."""
        raise NotImplementedError

    def _gatherer(self) -> Gatherer:
        """What makes a response of the events of a stream."""
        raise NotImplementedError

    def _instead(self, asked: dict[str, Any], error: Exception) -> dict[str, Any] | None:
        """The same request in a form that a server may take which refused this one; None if that is not why."""
        return None

    # Who waits.

    def _answered(self, body: Mapping[str, Any], *, streams: bool) -> Any:
        send, asked = self._request(body, streams)
        for _ in range(_FORMS - 1):
            try:
                return send(**asked)
            except Exception as error:
                if (other := self._instead(asked, error)) is None:
                    raise
                asked = other
        return send(**asked)

    async def _answered_later(self, body: Mapping[str, Any], *, streams: bool) -> Any:
        send, asked = self._request(body, streams)
        for _ in range(_FORMS - 1):
            try:
                return await send(**asked)
            except Exception as error:
                if (other := self._instead(asked, error)) is None:
                    raise
                asked = other
        return await send(**asked)

    def _pieces(self, body: Mapping[str, Any]) -> Iterator[Delta | Whole]:
        events, gathered = self._answered(body, streams=True), self._gatherer()
        try:
            for event in events:
                yield from gathered.add(event)
        except Exception as error:
            raise self._cut(error) from error
        finally:
            events.close()
        yield self._whole(gathered)

    async def _pieces_later(self, body: Mapping[str, Any]) -> AsyncIterator[Delta | Whole]:
        events, gathered = await self._answered_later(body, streams=True), self._gatherer()
        try:
            async for event in events:
                for piece in gathered.add(event):
                    yield piece
        except Exception as error:
            raise self._cut(error) from error
        finally:
            await events.close()
        yield self._whole(gathered)

    def _request(self, body: Mapping[str, Any], streams: bool) -> tuple[Callable[..., Any], dict[str, Any]]:
        client = self._client()
        send = self._sender(client)
        asked = {"model": self.model, "timeout": self.timeout, **self._asked(client, body, streams)}
        if streams:
            asked["stream"] = True
        if self._known is None:
            self._known = _parameters(send)
        if self._known and (newer := asked.keys() - self._known):
            # A field that this SDK has no keyword for travels all the same.
            asked["extra_body"] = {key: asked.pop(key) for key in list(asked) if key in newer} | (
                asked.get("extra_body") or {}
            )
        return send, asked

    def _client(self) -> Any:
        if self._handed is not None:
            return self._handed
        with self._lock:
            loop = _running() if self.asynchronous else None
            if self._own is None or self._loop is not loop:  # The connections of a client belong to one event loop.
                self._own, self._loop = self._made(), loop
            return self._own

    def _whole(self, gathered: Gatherer) -> Whole:
        if (response := gathered.whole()) is None:
            raise broken(self.name)
        return Whole(response)

    def _cut(self, error: Exception) -> Exception:
        """What is raised for what happened in the middle of a stream: the server's own error as it is."""
        is_told = isinstance(error, self._sdk.APIError) and not isinstance(error, self._sdk.APIConnectionError)
        return error if is_told else broken(self.name, error)


async def _closed(client: Any, loop: object) -> None:
    if client is not None and loop is _running():  # Those of an event loop that is over went with it.
        await client.close()


def _running() -> object:
    import asyncio

    return asyncio.get_running_loop()


def _parameters(send: Callable[..., Any]) -> frozenset[str]:
    """The keywords that a function takes; none where it takes any."""
    try:
        parameters = inspect.signature(send).parameters.values()
    except (TypeError, ValueError):
        return frozenset()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return frozenset()
    return frozenset(one.name for one in parameters)
