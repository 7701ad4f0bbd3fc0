"""Access to the inspector: which requests are served, and the headers of every answer.

A page of another site must neither read nor change a conversation. Without tokens only programs on this computer are
served, under a local name, so that a name of another site that points to this computer (DNS rebinding) gets nothing.
With tokens a request needs the cookie that `?token=` sets. A request that changes something must come from a page of
the inspector: the browser says so in its headers, and the form holds a token that no other site can read.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from msgspec import Struct, field

from ..requests.access import is_local_name, is_loopback, token_key

__all__ = ["COOKIE", "HEADERS", "Access", "Guard"]

COOKIE: Final = "foveate_inspector"
"""The cookie of a browser that has shown its token."""
_MONTH: Final = 30 * 24 * 3600
_MAX_TARGET: Final = 8_000
"""Bytes of path and query."""

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # With no-referrer, browsers send the forms of these pages without their origin.
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
"""Headers of every answer, unless the answer has a value of its own."""


class Access(Struct, frozen=True, kw_only=True):
    """The programs and people that an inspector serves, and the conversations that a request sees."""

    tokens: Mapping[str, str] = {}
    """Tenants by the keys of their tokens (`token_key`). Empty: programs on this computer are served, for `tenant`."""
    tenant: str = ""
    """The tenant of requests without tokens."""
    is_read_only: bool = False
    """Whether all actions that change a conversation are refused."""
    secret: str = field(default_factory=lambda: secrets.token_hex(32))
    """The key of the tokens in forms. Several processes that serve the same pages need the same one."""

    def __repr__(self) -> str:
        """Return the settings without keys."""
        facts = f"{len(self.tokens)} tokens, tenant={self.tenant!r}, is_read_only={self.is_read_only}"
        return f"<Access: {facts}>"

    def form_token(self, tenant: str) -> str:
        """Return the token that the forms of a tenant's pages contain."""
        return hmac.new(self.secret.encode(), f"form {tenant}".encode(), "sha256").hexdigest()

    def cookie(self, key: str) -> str:
        """Return the cookie's value for the key of a token. It stays the same when the server starts again."""
        return hmac.new(key.encode(), COOKIE.encode(), "sha256").hexdigest()


class Guard:
    """Refuses requests, and adds the headers to all answers. It is an ASGI middleware.

    `scope["foveate.tenant"]` is the tenant of a request that passed.
    """

    def __init__(self, app: Any, access: Access) -> None:
        self._app, self._access = app, access
        self._cookies = {access.cookie(key): tenant for key, tenant in access.tokens.items()}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def answer(message: Any) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {
                    **message,
                    "headers": [*message["headers"], *(header for header in added if header[0] not in present)],
                }
            await send(message)

        values = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if (refusal := self._refusal(scope, values)) is not None:
            await _answer_text(answer, *refusal)
        elif (tenant := self._tenant(values)) is not None:
            await self._app({**scope, "foveate.tenant": tenant}, receive, answer)
        else:
            await self._log_in(scope, answer)

    def _refusal(self, scope: Any, values: Mapping[str, str]) -> tuple[int, str] | None:
        """Return status and message for a request that is refused, from any sender."""
        if len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"") > _MAX_TARGET:
            return 414, "The address is too long."
        host = values.get("host", "")
        if not self._access.tokens:
            if not is_local_name(host):
                return 421, "The inspector serves localhost. Open it as http://127.0.0.1 or http://localhost."
            client = scope.get("client")
            if client and not is_loopback(client[0]) and client[0] != "testclient":
                return 403, "The inspector has no tokens, so it serves programs on its own computer only."
        if scope["method"] in ("GET", "HEAD"):
            if values.get("sec-fetch-site") == "cross-site" and values.get("sec-fetch-mode") != "navigate":
                return 403, "Another site asked for this page."
            return None
        if scope["method"] != "POST":
            return 405, "The inspector answers GET and POST."
        site, origin = values.get("sec-fetch-site"), values.get("origin")
        # A browser sends the origin `null` with forms of these pages, because they send no referrer.
        is_own = urlsplit(origin).netloc.lower() == host.lower() if origin not in (None, "null") else origin is None
        if site not in (None, "same-origin") or not (is_own or (origin == "null" and site == "same-origin")):
            return 403, "Another site sent this form."
        return None

    def _tenant(self, values: Mapping[str, str]) -> str | None:
        """Return the tenant whose conversations the request sees; None without a valid token."""
        if not self._access.tokens:
            return self._access.tenant
        kind, _, token = values.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self._access.tokens.get(token_key(token.strip()))
        try:
            cookies = SimpleCookie(values.get("cookie", ""))
        except CookieError:
            return None
        return self._cookies.get(cookies[COOKIE].value) if COOKIE in cookies else None

    async def _log_in(self, scope: Any, send: Any) -> None:
        """Set the cookie for the token in the query, and lead to the same page without it."""
        pairs = parse_qsl((scope.get("query_string") or b"").decode("latin-1"), keep_blank_values=True)
        key = token_key(dict(pairs).get("token", ""))
        if scope["method"] != "GET" or key not in self._access.tokens:
            await _answer_text(send, 401, "The inspector needs a token. Open its address with ?token=TOKEN at the end.")
            return
        rest = urlencode([pair for pair in pairs if pair[0] != "token"])
        path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1").partition("?")[0]
        secure = "; Secure" if scope.get("scheme") == "https" else ""
        cookie = (
            f"{COOKIE}={self._access.cookie(key)}; HttpOnly; SameSite=Strict; Max-Age={_MONTH}; "
            f"Path={scope.get('root_path') or '/'}{secure}"
        )
        # Two slashes at the beginning would name another host, and browsers read a backslash as a slash.
        place = "/" + path.lstrip("/\\") + (f"?{rest}" if rest else "")
        await _answer_text(send, 303, "", [(b"location", place.encode()), (b"set-cookie", cookie.encode())])


async def _answer_text(send: Any, status: int, text: str, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    content = text.encode()
    fields = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*fields, *(headers or [])]})
    await send({"type": "http.response.body", "body": content})
