"""Bearer tokens of the MCP server over HTTP."""

from __future__ import annotations

import secrets
from typing import Any

from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from pydantic import AnyHttpUrl

__all__ = ["TokenCheck", "protected"]


class TokenCheck:
    """Accepts one token. It is a `TokenVerifier` of the SDK."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def verify_token(self, token: str) -> AccessToken | None:
        if not secrets.compare_digest(token.encode("utf-8", "backslashreplace"), self._token):
            return None
        return AccessToken(token=token, client_id="foveate", scopes=[])


def protected(token: str, url: str) -> dict[str, Any]:
    """Return the options of a server at this URL that answers only requests with the token."""
    address = AnyHttpUrl(url)
    settings = AuthSettings(issuer_url=address, resource_server_url=address, validate_token_resource=False)
    return {"auth": settings, "token_verifier": TokenCheck(token)}
