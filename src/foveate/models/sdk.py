"""Base class of models that use an official SDK: clients, waiting, streams."""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from typing import Any

from ..errors import BadSetting, BrokenStream
from ..formats import gather
from ..ports import Delta, Gatherer, StreamEnd
from ..ports.reply_streams import AsyncReplyStream, ReplyStream

__all__ = ["RETRIES", "TIMEOUT", "SdkModel", "broken_stream", "check_settings"]


def broken_stream(model: str, error: Exception | None = None) -> BrokenStream:
    """Return the error for a stream that ended too early. `error` is the cause, if known."""
    cause = getattr(error, "__cause__", None) or error
    why = "the server closed it" if error is None else f"{type(cause).__name__}: {cause}"
    return BrokenStream(
        f"The answer of {model} broke off before it was complete ({why}). The cause is the server or the network. "
        "Nothing of it was recorded; send the request again."
    )


def check_settings(model: object, max_tokens: object, timeout: object, max_retries: object, options: object) -> None:
    """Raise BadSetting for an invalid name, length, time, number of retries or options."""
    if not isinstance(model, str) or not model.strip():
        raise BadSetting(f"A model name must be a text such as claude-haiku-4-5, not {model!r:.60}.")
    if type(max_tokens) is not int or max_tokens < 1:
        raise BadSetting(f"max_tokens= must be a whole number of 1 or more, not {max_tokens!r:.60}.")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < math.inf:
        raise BadSetting(f"timeout= must be a number of seconds above 0, not {timeout!r:.60}.")
    if type(max_retries) is not int or max_retries < 0:
        raise BadSetting(f"max_retries= must be a whole number of 0 or more, not {max_retries!r:.60}.")
    if options is not None and not isinstance(options, Mapping):
        raise BadSetting(f'options= must be a dict such as {{"temperature": 0}}, not {options!r:.60}.')


RETRIES = 2
"""How often the SDK repeats a request that failed for a temporary reason; the SDK's own default."""
TIMEOUT = 600.0
"""Seconds that the SDK waits for the server, or for the next piece of a stream; the SDK's own default."""
_FORMS = 3
"""How many forms of a request are tried until the server accepts one."""


class SdkModel:
    """A model that uses an SDK. Several threads, or one event loop at a time, may share it."""

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
        """Create a model. `api_key` is for the client that this model creates; None uses the environment's."""
        if client is not None and api_key is not None:
            raise BadSetting("api_key= does not apply to client=. Pass the key to the client, or leave client= out.")
        if api_key is not None and (not isinstance(api_key, str) or not api_key.strip()):
            raise BadSetting(f"api_key= of {name} must be a text that is not blank, or None for the environment's key.")
        self.name, self.model = name, name.partition(":")[2]
        check_settings(self.model, max_tokens, timeout, max_retries, options)
        self.max_tokens, self.timeout, self.max_retries = max_tokens, timeout, max_retries
        self.options = dict(options or {})
        """Fields of every request."""
        self.asynchronous = hasattr(type(client), "__aenter__") if client is not None else bool(asynchronous)
        """Whether callers await `complete` and iterate over `stream` with `async for`."""
        self._sdk, self._client_passed = sdk, client
        self._key = api_key
        self._with_key = {"api_key": api_key} if api_key is not None else {}
        self._own: Any = None
        self._loop: object = None
        self._lock = threading.Lock()
        self._known: frozenset[str] | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def complete(self, body: Mapping[str, Any]) -> Any:
        """Send a request and return the SDK's response, as an awaitable if the client is async.

        Raises the SDK's errors.
        """
        if self.asynchronous:
            return self._send_async(body, streams=False)
        return self._send(body, streams=False)

    def stream(self, body: Mapping[str, Any]) -> Any:
        """Yield the answer in pieces, each a Delta, and finally all of it as plain values, in a StreamEnd.

        The iterator, a ReplyStream, is asynchronous if the client is. It sends the request when the first piece is
        requested; closing it ends the request. Its method `partial` returns the response as far as it has arrived.
        Raises what the SDK raises, and BrokenStream if the answer ends before it is complete.
        """
        gatherer = gather(self.format)
        if self.asynchronous:
            return AsyncReplyStream(self._stream_async(body, gatherer), gatherer.partial)
        return ReplyStream(self._stream(body, gatherer), gatherer.partial)

    def check_key(self) -> None:
        """Raise MissingKey if the first request would find no key. An asynchronous model checks at that request."""
        if not self.asynchronous:
            self._client()

    def close(self) -> Any:
        """Close the connections that this model opened. Returns an awaitable if the model is asynchronous."""
        with self._lock:
            client, self._own = self._own, None
        if self.asynchronous:
            return _close_client(client, self._loop)
        if client is not None:
            client.close()
        return None

    # Methods of subclasses.

    def _new_client(self) -> Any:
        """Create a client of the SDK. Raises MissingKey if there is no key."""
        raise NotImplementedError

    def _sender(self, client: Any) -> Callable[..., Any]:
        """Return the client's method that sends a request."""
        raise NotImplementedError

    def _arguments(self, client: Any, body: Mapping[str, Any], streams: bool) -> dict[str, Any]:
        """Return the keyword arguments of that method."""
        raise NotImplementedError

    def _alternative(self, arguments: dict[str, Any], error: Exception) -> dict[str, Any] | None:
        """Return the request in another form, if the server refused this one for its form, else None."""
        return None

    # Sync and async sending.

    def _send(self, body: Mapping[str, Any], *, streams: bool) -> Any:
        send, arguments = self._request(body, streams)
        for _ in range(_FORMS - 1):
            try:
                return send(**arguments)
            except Exception as error:
                if (other := self._alternative(arguments, error)) is None:
                    raise
                arguments = other
        return send(**arguments)

    async def _send_async(self, body: Mapping[str, Any], *, streams: bool) -> Any:
        send, arguments = self._request(body, streams)
        for _ in range(_FORMS - 1):
            try:
                return await send(**arguments)
            except Exception as error:
                if (other := self._alternative(arguments, error)) is None:
                    raise
                arguments = other
        return await send(**arguments)

    def _stream(self, body: Mapping[str, Any], gatherer: Gatherer) -> Generator[Delta | StreamEnd]:
        events = self._send(body, streams=True)
        try:
            for event in events:
                yield from gatherer.feed(event)
        except Exception as error:
            raise self._stream_error(error) from error
        finally:
            events.close()
        yield self._whole(gatherer)

    async def _stream_async(self, body: Mapping[str, Any], gatherer: Gatherer) -> AsyncGenerator[Delta | StreamEnd]:
        events = await self._send_async(body, streams=True)
        try:
            async for event in events:
                for piece in gatherer.feed(event):
                    yield piece
        except Exception as error:
            raise self._stream_error(error) from error
        finally:
            await events.close()
        yield self._whole(gatherer)

    def _request(self, body: Mapping[str, Any], streams: bool) -> tuple[Callable[..., Any], dict[str, Any]]:
        client = self._client()
        send = self._sender(client)
        arguments = {"model": self.model, "timeout": self.timeout, **self._arguments(client, body, streams)}
        if streams:
            arguments["stream"] = True
        if self._known is None:
            self._known = _parameters(send)
        if self._known and (newer := arguments.keys() - self._known):
            # The SDK has no keyword for this newer field, so it goes into `extra_body`.
            arguments["extra_body"] = {key: arguments.pop(key) for key in list(arguments) if key in newer} | (
                arguments.get("extra_body") or {}
            )
        return send, arguments

    def _client(self) -> Any:
        if self._client_passed is not None:
            return self._client_passed
        with self._lock:
            loop = _running() if self.asynchronous else None
            if self._own is None or self._loop is not loop:  # A client's connections belong to one event loop.
                self._own, self._loop = self._new_client(), loop
            return self._own

    def _whole(self, gatherer: Gatherer) -> StreamEnd:
        if (response := gatherer.whole()) is None:
            raise broken_stream(self.name)
        return StreamEnd(response)

    def _stream_error(self, error: Exception) -> Exception:
        """Return the error to raise for a failure within a stream; the server's own errors stay unchanged."""
        if isinstance(error, BrokenStream):  # An event that the server sent reports an error, or is malformed.
            return error
        is_server_error = isinstance(error, self._sdk.APIError) and not isinstance(error, self._sdk.APIConnectionError)
        return error if is_server_error else broken_stream(self.name, error)


async def _close_client(client: Any, loop: object) -> None:
    if client is not None and loop is _running():  # The connections of a closed event loop closed with it.
        await client.close()


def _running() -> object:
    import asyncio

    return asyncio.get_running_loop()


def _parameters(send: Callable[..., Any]) -> frozenset[str]:
    """Return the keywords that a function takes, or an empty set if it takes any."""
    try:
        parameters = inspect.signature(send).parameters.values()
    except (TypeError, ValueError):
        return frozenset()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return frozenset()
    return frozenset(parameter.name for parameter in parameters)
