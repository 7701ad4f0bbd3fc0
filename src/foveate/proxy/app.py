"""The application of a proxy: its routes, its own pages, and the errors that it answers itself."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route, WebSocketRoute

from ..errors import BadSetting, MissingExtra
from ..open import open_store
from ..ports import Store
from ..requests import BEDROCK_PATHS, NotContinued, api_of
from ..requests.access import is_local_name, is_loopback, token_key
from .client import BodyTooLarge, ClientGone, ClientRequest, SlowBody
from .collector import spare_collector
from .metrics import Metrics
from .records import RequestRecord, write_log
from .settings import TOKEN, ProxySettings
from .turns import Refused, Turns, copy
from .upstream import Upstream
from .web_socket import Connection

__all__ = ["build_app", "worker_app"]

_JSON = (b"content-type", b"application/json")


def build_app(settings: ProxySettings) -> Starlette:
    """Return the ASGI application. Its lifespan opens and closes the store."""
    proxy, pages = _Proxy(settings), _Pages(settings)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        # After a power cut, the client's next list brings the last moments again.
        store = open_store(settings.store, synchronous="normal")
        upstream = Upstream(settings)
        proxy.upstream, proxy.turns = upstream, Turns(settings, store, upstream)
        pages.store = store
        try:
            yield
        finally:
            await upstream.close()
            proxy.turns.close()
            store.close()

    routes = [
        Route("/foveate/status", proxy),
        Mount("/foveate", pages),
        Route("/{path:path}", proxy),
        WebSocketRoute("/{path:path}", _Sockets(settings, proxy)),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


def worker_app() -> Starlette:
    """Return the application of a worker process, with the settings that its parent left in the environment."""
    settings = ProxySettings.from_environment()
    write_log(is_json=settings.is_log_json)
    app = build_app(settings)
    spare_collector()
    return app


class _Proxy:
    """Serves requests. It is an ASGI application."""

    upstream: Upstream
    turns: Turns

    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        self._metrics = Metrics(settings.counters)
        self._active = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        client = ClientRequest(scope, receive, send, self._settings.max_seconds)
        if client.path == "/health":
            await client.answer(200, [_JSON], b'{"status":"ok"}')
            return
        self._active += 1
        self._metrics.add("foveate_requests_active")
        try:
            await self._serve(client)
        finally:
            self._active -= 1
            self._metrics.add("foveate_requests_active", amount=-1)

    async def _serve(self, client: ClientRequest) -> None:
        tenant = _tenant_of(client, self._settings)
        if not isinstance(tenant, _Refusal) and client.path in ("/metrics", "/foveate/status"):
            await self._show(client, tenant)
            return
        api = api_of(client.path, client.query) if client.method == "POST" else None
        record = RequestRecord(client, api.format if api else "other")
        try:
            if isinstance(tenant, _Refusal):
                await self._refuse(client, record, *tenant)
            elif self._active > self._settings.max_requests:
                await self._refuse(client, record, 503, "The proxy serves too many requests. Try again later.")
            elif client.path.startswith(BEDROCK_PATHS) and not self._settings.bedrock:
                message = "The region of Amazon Bedrock is not known. Start the proxy with AWS_REGION."
                await self._refuse(client, record, 501, message)
            elif api is None:
                await self._pass(client, record)
            else:
                await self.turns.serve(client, api, tenant, record)
        except (BadSetting, MissingExtra) as error:
            record.outcome, record.reason = "failed", str(error)
            if not client.status:
                await self._answer_error(client, record, 403, f"The request cannot be signed. {error}")
        except BodyTooLarge:
            await self._refuse(client, record, 413, f"The body has more than {self._settings.max_body:,} bytes.")
        except Refused as error:
            await self._refuse(client, record, 502, f"foveate cannot make a view. {error}")
        except NotContinued as error:
            await self._refuse(client, record, 503, str(error))
        except SlowBody:
            await self._refuse(client, record, 408, "The body of the request stopped coming.")
        except ClientGone:
            record.outcome = record.outcome if record.is_complete else "gone"
        except (aiohttp.ClientError, TimeoutError) as error:
            shown = str(error)
            if client.query:  # Google takes a key in it.
                shown = shown.replace(f"?{client.query}", "")
            record.outcome, record.reason = "failed", f"{type(error).__name__}: {shown}"[:300]
            if not client.status:  # Otherwise the connection ends here, as the provider's did.
                status = 504 if isinstance(error, TimeoutError) else 502
                await self._answer_error(client, record, status, f"The provider did not answer. {record.reason}")
        finally:
            record.finish(self._metrics)

    async def _pass(self, client: ClientRequest, record: RequestRecord) -> None:
        """Send a request on as it is, in both directions byte for byte."""
        has_body = {"content-length", "transfer-encoding"} & client.values.keys()
        is_signed = self.upstream.signs(client)
        whole = await client.read(self._settings.max_body) if has_body and is_signed else b""

        async def exchange() -> None:
            body = None if not has_body else whole if is_signed else client.pieces()
            async with self.upstream.send(client, body) as answer:
                record.answered(answer.status)
                await copy(client, answer, record)

        if not has_body:
            await client.read(0)
        await client.while_connected(exchange())

    async def _show(self, client: ClientRequest, tenant: str) -> None:
        if not self._settings.shows_totals_to(tenant):
            message = f"These are totals of all tenants. Send the token that the proxy has in {TOKEN}."
            error = {"type": _KINDS[403], "message": f"foveate: {message}"}
            await client.answer(403, [_JSON], json.dumps({"error": error}).encode())
            return
        if client.path == "/metrics":
            kind = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
            await client.answer(200, [kind], self._metrics.text().encode())
            return
        totals = {
            "conversations": await self.turns.count(tenant),
            "requests": self._metrics.total("foveate_requests_total"),
            "managed": self._metrics.total("foveate_requests_total", outcome="managed"),
            "unchanged": self._metrics.total("foveate_requests_total", outcome="unchanged"),
            "tokens_whole": self._metrics.total("foveate_tokens_whole_total"),
            "tokens_sent": self._metrics.total("foveate_tokens_sent_total"),
            "expansions": self._metrics.total("foveate_expansions_total"),
            "priced": self._metrics.total("foveate_priced_total"),
        }
        shown = {key: int(value) for key, value in totals.items()} | {
            "dollars_whole": round(self._metrics.total("foveate_dollars_whole_total"), 6),
            "dollars_spent": round(self._metrics.total("foveate_dollars_spent_total"), 6),
        }
        await client.answer(200, [_JSON], json.dumps(shown).encode())

    async def _refuse(self, client: ClientRequest, record: RequestRecord, status: int, message: str) -> None:
        record.outcome, record.reason = "refused", record.reason or message
        await self._answer_error(client, record, status, message)

    async def _answer_error(self, client: ClientRequest, record: RequestRecord, status: int, message: str) -> None:
        """Answer with an error in the shape of the API that the client uses."""
        error: dict[str, Any] = {"type": _KINDS.get(status, "api_error"), "message": f"foveate: {message}"}
        body: dict[str, Any]
        if record.api == "gemini":
            body = {"error": {"code": status, "message": error["message"], "status": _STATES.get(status, "INTERNAL")}}
        elif client.path.startswith(BEDROCK_PATHS):
            body = {"message": error["message"]}
        elif record.api == "anthropic" or "anthropic-version" in client.values:
            body = {"type": "error", "error": error}
        else:
            body = {"error": {**error, "param": None, "code": None}}
        headers = [_JSON, (b"connection", b"close"), *record.headers()]  # The rest of the body is not read.
        if status == 503:
            headers.append((b"retry-after", b"5"))
        await client.answer(status, headers, json.dumps(body).encode())


class _Pages:
    """The inspector's pages of the stored conversations. It is an ASGI application."""

    store: Store

    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        self._app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._app is None:
            self._app = self._built()
        await self._app(scope, receive, send)

    def _built(self) -> Any:
        """Build the pages at the first request, because most proxies never show one."""
        from ..inspector import Access, build_app

        settings = self._settings
        access = Access(tokens=settings.tokens, tenant=settings.tenant, secret=settings.secret)
        try:
            return build_app(self.store, access=access)
        except MissingExtra as error:
            return PlainTextResponse(f"foveate: {error}", 501)


class _Sockets:
    """Serves WebSocket connections. It is an ASGI application."""

    def __init__(self, settings: ProxySettings, proxy: _Proxy) -> None:
        self._settings, self._proxy = settings, proxy
        self._open = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        client = ClientRequest({**scope, "method": "GET"}, receive, send, self._settings.max_seconds)
        api = api_of(client.path)
        tenant = _tenant_of(client, self._settings)
        if isinstance(tenant, _Refusal):
            await _refuse_handshake(send, *tenant)
        elif api is None or api.format != "openai_responses":
            await _refuse_handshake(send, 426, "The proxy speaks WebSocket at /v1/responses only. Use HTTP.")
        elif self._open >= self._settings.max_requests:
            await _refuse_handshake(send, 503, "The proxy has too many connections. Try again later.")
        else:
            self._open += 1
            try:
                await send({"type": "websocket.accept"})
                await Connection(self._proxy, scope, receive, send, self._settings.max_body).serve()
            finally:
                self._open -= 1


async def _refuse_handshake(send: Any, status: int, message: str) -> None:
    error = {"type": _KINDS.get(status, "invalid_request_error"), "message": f"foveate: {message}"}
    body = json.dumps({"error": {**error, "param": None, "code": None}}).encode()
    headers = [_JSON, *([(b"upgrade", b"HTTP/1.1")] if status == 426 else [])]
    await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body})


_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    413: "request_too_large",
    421: "invalid_request_error",
    503: "overloaded_error",
    504: "timeout_error",
}
"""Types of errors by status, in Anthropic's words. Source: Anthropic's page on errors."""
_STATES = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 413: "INVALID_ARGUMENT", 503: "UNAVAILABLE"}
_STATES |= {408: "DEADLINE_EXCEEDED", 421: "INVALID_ARGUMENT", 502: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}
"""Names of errors by status, in Google's words. Source: google.rpc.Code."""


_HEADER = "x-foveate-token"
"""The header with a client's token. It is not sent on."""


class _Refusal(NamedTuple):
    """The answer to a request that is not served."""

    status: int
    message: str


def _tenant_of(client: ClientRequest, settings: ProxySettings) -> str | _Refusal:
    """Return the tenant whose conversations a request may use, or why it is refused."""
    if settings.tokens:
        token = client.values.get(_HEADER, "")
        tenant = settings.tokens.get(token_key(token))
        if tenant is None:
            return _Refusal(401, f"The proxy needs a token. Send it in the header {_HEADER}.")
    elif not is_loopback(settings.host):
        return _Refusal(401, "The proxy has no tokens, so it serves programs on its own computer only.")
    else:
        tenant = settings.tenant
        if not is_local_name(client.values.get("host", "")):
            return _Refusal(
                421, "The proxy serves localhost. Use http://127.0.0.1 or http://localhost in the base URL."
            )
    if "origin" in client.values:
        return _Refusal(403, "The proxy serves no web pages. Send requests without the header Origin.")
    return tenant
