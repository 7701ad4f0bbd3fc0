"""HTTP clients for the SDKs of providers: every request shows the view in place of the messages.

The program and its framework keep their own lists of messages, which stay whole. No class of messages is converted, so
one client object serves every framework that takes one: `OpenAI(http_client=http_client(store="sqlite:///chats.db"))`.

If a view cannot be made, the request is sent as the program made it, and a warning says why.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from types import ModuleType
from typing import Any, Final, Literal, NamedTuple

from .sdk_requests import SdkRequest, SdkRequests

__all__ = ["HEADER", "async_http_client", "conversation", "http_client"]

HEADER: Final = "x-foveate-conversation"
"""The request header with the name of the conversation. It is not sent on."""
_name: ContextVar[str] = ContextVar("foveate_conversation", default="")

Library = Literal["httpx", "httpx2"]


def http_client(*, library: Library = "httpx2", transport: Any = None, **options: Any) -> Any:
    """Return an `httpx.Client` for the SDK of OpenAI or Anthropic. Closing it closes the store.

    `library`: `httpx2`, which the SDKs use from OpenAI 3 and Anthropic 2 on, or `httpx` for older ones. `transport`:
    what sends the requests, by default the library's `HTTPTransport`. `options`: those of `Conversations`, such as
    `store`, `window` and `policy`. Raises BadSetting.
    """
    httpx = importlib.import_module(library)
    views = SdkRequests(options)
    client = _transports(httpx).Sync(views, transport or httpx.HTTPTransport())
    return httpx.Client(transport=client, timeout=httpx.Timeout(600, connect=5))


def async_http_client(*, library: Library = "httpx2", transport: Any = None, **options: Any) -> Any:
    """Return an `httpx.AsyncClient` for `AsyncOpenAI` or `AsyncAnthropic`. The arguments are those of `http_client`."""
    httpx = importlib.import_module(library)
    views = SdkRequests(options)
    client = _transports(httpx).Async(views, transport or httpx.AsyncHTTPTransport())
    return httpx.AsyncClient(transport=client, timeout=httpx.Timeout(600, connect=5))


@contextmanager
def conversation(name: str) -> Iterator[None]:
    """Name the conversation of the requests in this block, in this task or thread.

    Without a name, requests with the same first message belong to one conversation.
    """
    token = _name.set(name)
    try:
        yield
    finally:
        _name.reset(token)


class _Classes(NamedTuple):
    Sync: Any
    Async: Any


@cache
def _transports(httpx: ModuleType) -> _Classes:
    """Return the two transports, as subclasses of this library's own."""

    class Stream(httpx.SyncByteStream):  # type: ignore[name-defined]
        def __init__(self, inner: Any, call: SdkRequest) -> None:
            self._inner, self._call = inner, call

        def __iter__(self) -> Iterator[bytes]:
            for piece in self._inner:
                self._call.feed(piece)
                yield piece
            self._call.ended()

        def close(self) -> None:
            self._inner.close()

    class AsyncStream(httpx.AsyncByteStream):  # type: ignore[name-defined]
        def __init__(self, inner: Any, call: SdkRequest) -> None:
            self._inner, self._call = inner, call

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._inner:
                self._call.feed(piece)
                yield piece
            await asyncio.to_thread(self._call.ended)

        async def aclose(self) -> None:
            await self._inner.aclose()

    class Sync(httpx.BaseTransport):  # type: ignore[name-defined]
        def __init__(self, views: SdkRequests, inner: Any) -> None:
            self._views, self._inner = views, inner

        def handle_request(self, request: Any) -> Any:
            call = self._views.begin(*_parts_of(request, request.read()))
            while call is not None:
                response = self._inner.handle_request(_changed(httpx, request, call))
                if response.status_code == 200 and call.is_stream:
                    return _answer(httpx, response, stream=Stream(response.stream, call))
                content = response.read()
                if response.status_code == 200:
                    call.received(content)
                elif call.refused(response.status_code, content):
                    continue
                return _answer(httpx, response, content=content)
            return self._inner.handle_request(request)

        def close(self) -> None:
            self._inner.close()
            self._views.close()

    class Async(httpx.AsyncBaseTransport):  # type: ignore[name-defined]
        def __init__(self, views: SdkRequests, inner: Any) -> None:
            self._views, self._inner = views, inner

        async def handle_async_request(self, request: Any) -> Any:
            call = await asyncio.to_thread(self._views.begin, *_parts_of(request, await request.aread()))
            while call is not None:
                response = await self._inner.handle_async_request(_changed(httpx, request, call))
                if response.status_code == 200 and call.is_stream:
                    return _answer(httpx, response, stream=AsyncStream(response.stream, call))
                content = await response.aread()
                if response.status_code == 200:
                    await asyncio.to_thread(call.received, content)
                elif await asyncio.to_thread(call.refused, response.status_code, content):
                    continue
                return _answer(httpx, response, content=content)
            return await self._inner.handle_async_request(request)

        async def aclose(self) -> None:
            await self._inner.aclose()
            await asyncio.to_thread(self._views.close)

    return _Classes(Sync, Async)


def _parts_of(request: Any, content: bytes) -> tuple[str, bytes, str]:
    name = request.headers.pop(HEADER, "") or _name.get()
    return (request.url.path if request.method == "POST" else "", content, name)


def _changed(httpx: ModuleType, request: Any, call: SdkRequest) -> Any:
    """Return the request with the view. It asks for an answer that is not compressed, which can be read on the way."""
    dropped = {b"content-length", b"accept-encoding", b"anthropic-beta" if call.betas else b""}
    headers = [(name, value) for name, value in request.headers.raw if name.lower() not in dropped]
    if call.betas:
        betas = [beta.strip() for beta in request.headers.get("anthropic-beta", "").split(",")]
        headers.append((b"anthropic-beta", ",".join(dict.fromkeys(filter(None, [*betas, *call.betas]))).encode()))
    return httpx.Request(
        request.method, request.url, headers=headers, content=call.content, extensions=request.extensions
    )


def _answer(httpx: ModuleType, response: Any, **body: Any) -> Any:
    """Return the response with a body that was read, or with a stream that is."""
    dropped = (b"content-length", b"transfer-encoding", b"content-encoding") if "content" in body else ()
    headers = [(name, value) for name, value in response.headers.raw if name.lower() not in dropped]
    return httpx.Response(response.status_code, headers=headers, extensions=response.extensions, **body)
