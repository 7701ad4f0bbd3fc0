"""The connection to the providers, and the headers that pass in each direction."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from ..requests import BEDROCK_PATHS
from ..requests.aws_signature import Scope, is_signature, sign
from .client import ClientRequest, Header
from .settings import ProxySettings

__all__ = ["Upstream", "decompressed", "is_encoded", "response_headers"]

_CONNECTION = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
"""Headers of one connection only. Source: RFC 9110, section 7.6.1."""
_NOT_SENT_ON = _CONNECTION | {b"host", b"expect"}
_OWN = b"x-foveate-"
_OF_GOOGLE = ("/v1beta/", "/v1alpha/", "/upload/")
"""How paths of the Gemini API begin. Others have the same with another version."""
_OF_CODE_ASSIST = ("/v1internal:", "/v1internal/")
"""How paths of Code Assist begin."""
_CONNECT_SECONDS = 10
_ENCODINGS_MAX = 3
"""Encodings of a request's body. Each costs as much as the largest body."""
_AUTOMATIC = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that aiohttp would add."""


class _Attempt:
    """One attempt to send a request."""

    is_reused = False
    """Whether its connection carried another request before."""


async def _note_reuse(session: object, context: Any, details: object) -> None:
    context.trace_request_ctx.is_reused = True


class Upstream:
    """Sends requests to the providers. Made in a running event loop."""

    def __init__(self, settings: ProxySettings) -> None:
        self._settings = settings
        trace = aiohttp.TraceConfig()
        trace.on_connection_reuseconn.append(_note_reuse)
        self._session = aiohttp.ClientSession(
            trace_configs=[trace],
            auto_decompress=False,
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_AUTOMATIC,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=settings.max_seconds),
            read_bufsize=2**18,
        )
        # aiohttp would read the environment for each request, and add logins of a netrc file to it.
        # AWS has a host for calls of models, and one for all else.
        self._bedrock = settings.bedrock, settings.bedrock.replace("://bedrock-runtime", "://bedrock", 1)
        bases = (settings.anthropic, settings.openai, settings.gemini, settings.code_assist, *self._bedrock)
        self._proxies = {base: _proxy_for(URL(base)) for base in bases}

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    def _base(self, client: ClientRequest) -> str:
        """Return the URL of the provider whose API a request uses."""
        if client.path.startswith(BEDROCK_PATHS):
            return self._bedrock[not client.path.startswith(BEDROCK_PATHS[0])]
        if client.path.startswith(_OF_CODE_ASSIST):
            return self._settings.code_assist
        if "anthropic-version" in client.values or client.path.endswith("/v1/messages"):
            return self._settings.anthropic
        is_google = bool(client.values.get("x-goog-api-key")) or client.path.startswith(_OF_GOOGLE)
        is_google |= client.method == "POST" and ":" in client.path.rpartition("/")[2]  # `models/NAME:METHOD`
        return self._settings.gemini if is_google else self._settings.openai

    def signs(self, client: ClientRequest) -> bool:
        """Return whether the proxy signs a request: for AWS, if it has no token."""
        authorization = client.values.get("authorization", "")
        is_aws = bool(self._settings.aws_region) and self._base(client) in self._bedrock
        return is_aws and (not authorization or is_signature(authorization))

    @asynccontextmanager
    async def send(
        self, client: ClientRequest, body: bytes | AsyncIterator[bytes] | None, *, changes: Iterable[Header] = ()
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and yield its answer as the provider begins it.

        `changes`: headers in place of the client's own of the same names; an empty value removes the header. Raises
        aiohttp.ClientError and TimeoutError, and BadSetting or MissingExtra if the request cannot be signed.
        """
        response = await self._answer(client, body, _request_headers(client.headers, dict(changes)))
        async with response:
            yield response

    async def _answer(
        self, client: ClientRequest, body: bytes | AsyncIterator[bytes] | None, headers: list[tuple[str, str]]
    ) -> aiohttp.ClientResponse:
        """Send a request, and return the answer.

        A provider closes a connection that is not used, and a request may cross that. If it gets no byte of an answer
        on such a connection, it goes out on another one. A body that comes in pieces is gone by then.
        """
        base = self._base(client)
        while True:
            attempt = _Attempt()
            if self.signs(client):  # Each time: a signature is valid for a few minutes.
                content = body if isinstance(body, bytes) else b""
                scope = Scope(self._settings.aws_region)
                headers = await asyncio.to_thread(sign, scope, client.method, base + client.target, headers, content)
            try:
                return await self._session.request(
                    client.method,
                    URL(base + client.target, encoded=True),  # Its own path and query.
                    headers=headers,
                    data=body,
                    allow_redirects=False,
                    proxy=self._proxies[base],
                    trace_request_ctx=attempt,
                )
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                if not attempt.is_reused or not isinstance(body, bytes):
                    raise


def _proxy_for(url: URL) -> URL | None:
    """Return the proxy that the environment names for a provider; None if there is none."""
    if url.host is None or proxy_bypass(url.host):
        return None
    proxy = getproxies().get(url.scheme)
    return URL(proxy) if proxy else None


def _request_headers(headers: Iterable[Header], changes: dict[bytes, bytes]) -> list[tuple[str, str]]:
    headers = list(headers)
    dropped = _NOT_SENT_ON | _named_in_connection(headers) | changes.keys()
    sent = [(name, value) for name, value in headers if name not in dropped and not name.startswith(_OWN)]
    return [(_text(name), _text(value)) for name, value in (*sent, *changes.items()) if value or name not in changes]


def response_headers(headers: Iterable[Header], *, is_changed: bool = False) -> list[Header]:
    """Return the headers of a provider's answer for the client. `is_changed`: its bytes may be other ones."""
    headers = [(name.lower(), value) for name, value in headers]
    dropped = _CONNECTION | _named_in_connection(headers)
    if is_changed:
        dropped |= {b"content-length", b"content-encoding"}
    return [(name, value) for name, value in headers if name not in dropped]


def _named_in_connection(headers: Iterable[Header]) -> frozenset[bytes]:
    named = (value.lower().split(b",") for name, value in headers if name == b"connection")
    return frozenset(name.strip() for names in named for name in names)


def _text(value: bytes) -> str:
    try:
        return value.decode()  # aiohttp writes UTF-8.
    except UnicodeDecodeError:
        return value.decode("latin-1")


def is_encoded(response: aiohttp.ClientResponse) -> bool:
    """Return whether an answer is compressed, although the request asked for one that is not."""
    return response.headers.get("content-encoding", "identity").lower() not in ("", "identity")


def decompressed(content: bytes, encoding: str, limit: int) -> bytes:
    """Return the content of a request. Raises ValueError for unknown encodings, wrong bytes, and more than `limit`."""
    names = [name.strip().lower() for name in encoding.split(",")]
    if len(names) > _ENCODINGS_MAX:
        raise ValueError(f"The body has {len(names)} encodings, and at most {_ENCODINGS_MAX} are read.")
    for name in reversed(names):
        match name:
            case "" | "identity":
                continue
            case "gzip" | "x-gzip":
                content = _inflated(content, 31, limit)
            case "deflate":
                content = _inflated(content, 15 if content[:1] == b"\x78" else -15, limit)
            case "zstd":
                content = _zstd(content, limit)
            case _:
                raise ValueError(f"The encoding {name:.40} of a request is not known.")
    return content


def _inflated(content: bytes, bits: int, limit: int) -> bytes:
    reader = zlib.decompressobj(bits)
    try:
        result = reader.decompress(content, limit)
    except zlib.error as error:
        raise ValueError(f"The body cannot be decompressed: {error}.") from error
    return _complete(result, reader.eof, limit)


def _zstd(content: bytes, limit: int) -> bytes:
    import zstandard

    reader = zstandard.ZstdDecompressor(max_window_size=2**27).decompressobj()
    pieces: list[bytes] = []
    size = 0
    view = memoryview(content)
    try:
        for at in range(0, len(view), 2**14):  # In pieces, so that a small body cannot fill the memory.
            pieces.append(reader.decompress(view[at : at + 2**14]))
            size += len(pieces[-1])
            if size > limit:
                break
    except zstandard.ZstdError as error:
        raise ValueError(f"The body cannot be decompressed: {error}.") from error
    return _complete(b"".join(pieces), reader.eof, limit)


def _complete(result: bytes, is_complete: bool, limit: int) -> bytes:
    if len(result) >= limit or not is_complete:
        raise ValueError(f"The body is cut, or has more than {limit:,} bytes.")
    return result
