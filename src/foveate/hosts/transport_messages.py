"""Requests and responses of `httpx` and `httpx2`, with the body of a view."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ..requests import CONVERSATION_HEADER, WireRequest, beta_header

__all__ = ["changed_request", "changed_response", "request_parts"]


def request_parts(request: Any, content: bytes, name: str) -> tuple[str, bytes, str]:
    """Return the path, the body, and the name of the conversation: `name`, unless the request has another."""
    name = request.headers.pop(CONVERSATION_HEADER, "") or name
    return (request.url.path if request.method == "POST" else "", content, name)


def changed_request(httpx: ModuleType, request: Any, call: WireRequest) -> Any:
    """Return the request with the view. It asks for an answer that is not compressed, which can be read on the way."""
    dropped = {b"content-length", b"accept-encoding", b"anthropic-beta" if call.betas else b""}
    headers = [(name, value) for name, value in request.headers.raw if name.lower() not in dropped]
    if call.betas:
        value = beta_header(request.headers.get("anthropic-beta", ""), call.betas)
        headers.append((b"anthropic-beta", value.encode()))
    return httpx.Request(
        request.method, request.url, headers=headers, content=call.content, extensions=request.extensions
    )


def changed_response(httpx: ModuleType, response: Any, **body: Any) -> Any:
    """Return the response with a body that was read, or with a stream that is."""
    dropped = (b"content-length", b"transfer-encoding", b"content-encoding") if "content" in body else ()
    headers = [(name, value) for name, value in response.headers.raw if name.lower() not in dropped]
    return httpx.Response(response.status_code, headers=headers, extensions=response.extensions, **body)
