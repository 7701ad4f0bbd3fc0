"""HTTP clients for the SDKs of providers: every request shows the view in place of the messages.

The program and its framework keep their own lists of messages, which stay whole. No class of messages is converted, so
one client object serves every framework that takes one: `OpenAI(http_client=http_client(store="sqlite:///chats.db"))`.

The model may call the tool `expand`: the client answers it, and the program sees one answer without the call. If a view
cannot be made, the request is sent as the program made it, and a warning says why.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, overload

from ..errors import BadSetting, MissingExtra
from ..requests import CONVERSATION_HEADER, WireRequest, beta_header
from ..requests.aws_signature import scope_of, sign
from .sdk_requests import SdkRequests

if TYPE_CHECKING:
    import httpx
    import httpx2

__all__ = ["async_http_client", "conversation", "http_client"]

_name: ContextVar[str] = ContextVar("foveate_conversation", default="")


@overload
def http_client(
    *, library: Literal["httpx2"] = "httpx2", transport: httpx2.BaseTransport | None = None, **options: Any
) -> httpx2.Client: ...
@overload
def http_client(
    *, library: Literal["httpx"], transport: httpx.BaseTransport | None = None, **options: Any
) -> httpx.Client: ...


def http_client(*, library: Literal["httpx", "httpx2"] = "httpx2", transport: Any = None, **options: Any) -> Any:
    """Return an `httpx.Client` for the SDK of OpenAI, Anthropic or Google. Closing it closes the store.

    `library`: `httpx2`, which the SDKs use from OpenAI 3 and Anthropic 2 on, or `httpx` for older ones and for Google.
    `transport`: what sends the requests, by default the library's `HTTPTransport`. `options`: those of `Conversations`,
    such as `store`, `window` and `policy`. Raises BadSetting.
    """
    httpx = _import(library)
    kind = _subclass(_Transport, httpx.BaseTransport)
    sender = kind(httpx, SdkRequests({"expand": None, **options}), transport or httpx.HTTPTransport())
    return httpx.Client(transport=sender, timeout=httpx.Timeout(600, connect=5))


@overload
def async_http_client(
    *, library: Literal["httpx2"] = "httpx2", transport: httpx2.AsyncBaseTransport | None = None, **options: Any
) -> httpx2.AsyncClient: ...
@overload
def async_http_client(
    *, library: Literal["httpx"], transport: httpx.AsyncBaseTransport | None = None, **options: Any
) -> httpx.AsyncClient: ...


def async_http_client(*, library: Literal["httpx", "httpx2"] = "httpx2", transport: Any = None, **options: Any) -> Any:
    """Return an `httpx.AsyncClient` for asynchronous clients. The arguments are those of `http_client`."""
    httpx = _import(library)
    kind = _subclass(_Transport, httpx.AsyncBaseTransport)
    sender = kind(httpx, SdkRequests({"expand": None, **options}), transport or httpx.AsyncHTTPTransport())
    return httpx.AsyncClient(transport=sender, timeout=httpx.Timeout(600, connect=5))


def _import(library: str) -> ModuleType:
    if library not in ("httpx", "httpx2"):
        raise BadSetting(f'library= must be "httpx2" or "httpx", not {library!r:.100}.')
    try:
        return importlib.import_module(library)
    except ModuleNotFoundError as error:
        other = "httpx" if library == "httpx2" else "httpx2"
        if _is_installed(other):  # The SDK is older or newer than the caller assumes.
            raise BadSetting(
                f'{library} is not installed, but {other} is. Pass library="{other}": SDKs before OpenAI 3 and '
                "Anthropic 2 use httpx, later ones httpx2."
            ) from error
        raise MissingExtra(f"A client of {library}, which the SDK of OpenAI or Anthropic brings,", "openai") from error


def _is_installed(library: str) -> bool:
    try:
        importlib.import_module(library)
    except ModuleNotFoundError:
        return False
    return True


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


class _Transport:
    """Sends each request with its view, and the smaller one if the provider refuses it as too long."""

    def __init__(self, httpx: ModuleType, views: SdkRequests, inner: Any) -> None:
        self._httpx, self._views, self._inner = httpx, views, inner

    def handle_request(self, request: Any) -> Any:
        call = self._views.begin(*_request_parts(request, request.read(), _name.get()))
        while call is not None:
            response = self._send(request, call)
            if response.status_code == 200 and call.is_stream:
                return self._streamed(response, request, call)
            content = response.read()
            if response.status_code != 200 and not call.refused(response.status_code, content):
                return _changed_response(self._httpx, response, content=content)
            shown = call.received(content) if response.status_code == 200 else None
            if shown is not None:
                return _changed_response(self._httpx, response, content=shown)
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()
        self._views.close()

    async def handle_async_request(self, request: Any) -> Any:
        parts = _request_parts(request, await request.aread(), _name.get())
        call = await asyncio.to_thread(self._views.begin, *parts)
        while call is not None:
            response = await self._send(request, call)
            if response.status_code == 200 and call.is_stream:
                return self._streamed(response, request, call)
            content = await response.aread()
            if response.status_code != 200 and not await asyncio.to_thread(call.refused, response.status_code, content):
                return _changed_response(self._httpx, response, content=content)
            shown = await asyncio.to_thread(call.received, content) if response.status_code == 200 else None
            if shown is not None:
                return _changed_response(self._httpx, response, content=shown)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()
        await asyncio.to_thread(self._views.close)

    def _send(self, request: Any, call: WireRequest) -> Any:
        """Send the request with its view; return the response, or an awaitable of it."""
        changed = _changed_request(self._httpx, request, call)
        if isinstance(self, self._httpx.AsyncBaseTransport):
            return self._inner.handle_async_request(changed)
        return self._inner.handle_request(changed)

    def _streamed(self, response: Any, request: Any, call: WireRequest) -> Any:
        kind = _subclass(_AnswerStream, self._httpx.SyncByteStream, self._httpx.AsyncByteStream)
        stream = kind(response.stream, call, partial(self._send, request, call))
        return _changed_response(self._httpx, response, stream=stream)


@cache
def _subclass(kind: type, *bases: type) -> Any:
    """Return the class as one of the library's own, which checks the classes of its streams."""
    return type(kind.__name__, (kind, *bases), {})


def _request_parts(request: Any, content: bytes, name: str) -> tuple[str, str, bytes, str, str]:
    """Return path, query, body, the name of the conversation, and the credential.

    The name is `name`, unless the request has another.
    """
    name = request.headers.pop(CONVERSATION_HEADER, "") or name
    path = request.url.path if request.method == "POST" else ""
    return (path, request.url.query.decode(), content, name, request.headers.get("authorization", ""))


def _changed_request(httpx: ModuleType, request: Any, call: WireRequest) -> Any:
    """Return the request with the view. It asks for an answer that is not compressed, which can be read on the way."""
    dropped = {b"content-length", b"accept-encoding", b"anthropic-beta" if call.betas else b""}
    headers = [(name, value) for name, value in request.headers.raw if name.lower() not in dropped]
    if call.betas:
        value = beta_header(request.headers.get("anthropic-beta", ""), call.betas)
        headers.append((b"anthropic-beta", value.encode()))
    if scope := scope_of(request.headers.get("authorization", "")):
        texts = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
        headers = sign(scope, request.method, str(request.url), texts, call.content)
    return httpx.Request(
        request.method, request.url, headers=headers, content=call.content, extensions=request.extensions
    )


def _changed_response(httpx: ModuleType, response: Any, **body: Any) -> Any:
    """Return the response with a body that was read, or with a stream that is."""
    dropped = (b"content-length", b"transfer-encoding", b"content-encoding") if "content" in body else ()
    headers = [(name, value) for name, value in response.headers.raw if name.lower() not in dropped]
    return httpx.Response(response.status_code, headers=headers, extensions=response.extensions, **body)


class _AnswerStream:
    """The bytes of one answer, for synchronous and for asynchronous clients."""

    def __init__(self, inner: Any, call: WireRequest, send: Callable[[], Any]) -> None:
        """`inner`: the stream of the first response. `send`: sends `call` again, for a follow-up."""
        self._inner, self._call, self._send = inner, call, send
        self._has_ended = False

    def __iter__(self) -> Iterator[bytes]:
        call = self._call
        while True:
            for piece in self._inner:
                if shown := call.feed(piece):
                    yield shown
            self._has_ended = True
            if rest := call.ended():
                yield rest
            while call.follow_up is not None:
                self._inner.close()
                response = self._send()
                self._inner = response.stream
                if response.status_code == 200:
                    self._has_ended = False
                    break
                content = response.read()
                if not call.refused(response.status_code, content):
                    yield call.failure(response.status_code, content)
                    return
            else:
                return

    def close(self) -> None:
        self._inner.close()
        if not self._has_ended and self._call.is_complete:  # SDKs stop reading at the answer's end.
            self._has_ended = True
            self._call.ended()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        call = self._call
        while True:
            async for piece in self._inner:
                if shown := call.feed(piece):
                    yield shown
            self._has_ended = True
            if rest := await asyncio.to_thread(call.ended):
                yield rest
            while call.follow_up is not None:
                await self._inner.aclose()
                response = await self._send()
                self._inner = response.stream
                if response.status_code == 200:
                    self._has_ended = False
                    break
                content = await response.aread()
                if not await asyncio.to_thread(call.refused, response.status_code, content):
                    yield call.failure(response.status_code, content)
                    return
            else:
                return

    async def aclose(self) -> None:
        await self._inner.aclose()
        if not self._has_ended and self._call.is_complete:
            self._has_ended = True
            await asyncio.to_thread(self._call.ended)
