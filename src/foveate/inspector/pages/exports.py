"""Routes that send a conversation as a file: HTML or Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from ..saved.export import file_name, html_of
from ..saved.markdown import markdown_of
from .base import in_thread, opened

__all__ = ["routes"]


def routes() -> list[BaseRoute]:
    """Return the routes of files."""
    return [
        Route("/c/{source}/{name:name}/export", send_html, name="export"),
        Route("/c/{source}/{name:name}/export.md", send_markdown, name="export_markdown"),
    ]


async def send_html(request: Request) -> Response:
    """Send the conversation as one HTML file."""

    def write() -> str:
        with opened(request) as chat:
            return html_of(chat)

    text = await in_thread(write)
    return Response(text, media_type="text/html", headers=_as_file(file_name(request.path_params["name"])))


async def send_markdown(request: Request) -> Response:
    """Send the conversation as Markdown, piece by piece."""

    def write() -> Iterator[str]:
        with opened(request) as chat:
            yield from markdown_of(chat)

    pieces = write()
    first = await in_thread(next, pieces)  # An unknown name is an error, not a broken file.

    def rest() -> Iterator[str]:
        yield first
        yield from pieces

    name = f"{file_name(request.path_params['name']).removesuffix('.html')}.md"
    return StreamingResponse(rest(), media_type="text/markdown; charset=utf-8", headers=_as_file(name))


def _as_file(name: str) -> dict[str, str]:
    """Return the header that makes a browser save a response under this name."""
    plain = "".join(letter if letter.isascii() and letter not in '"\\' else "_" for letter in name)
    return {"content-disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name)}"}
