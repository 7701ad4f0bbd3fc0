"""Access to a proxy: tokens and tenants, and programs on this computer but no web pages."""

from __future__ import annotations

from typing import NamedTuple

from ..requests.access import is_local_name, is_loopback, token_key
from .client import ClientRequest
from .settings import ProxySettings

__all__ = ["HEADER", "Refusal", "tenant_of"]

HEADER = "x-foveate-token"
"""The header with a client's token. It is not sent on."""


class Refusal(NamedTuple):
    """The answer to a request that is not served."""

    status: int
    message: str


def tenant_of(client: ClientRequest, settings: ProxySettings) -> str | Refusal:
    """Return the tenant whose conversations a request may use, or why it is refused."""
    if settings.tokens:
        token = client.values.get(HEADER, "")
        tenant = settings.tokens.get(token_key(token))
        if tenant is None:
            return Refusal(401, f"The proxy needs a token. Send it in the header {HEADER}.")
    elif not is_loopback(settings.host):
        return Refusal(401, "The proxy has no tokens, so it serves programs on its own computer only.")
    else:
        tenant = settings.tenant
        if not is_local_name(client.values.get("host", "")):
            return Refusal(421, "The proxy serves localhost. Use http://127.0.0.1 or http://localhost in the base URL.")
    if "origin" in client.values:
        return Refusal(403, "The proxy serves no web pages. Send requests without the header Origin.")
    return tenant
