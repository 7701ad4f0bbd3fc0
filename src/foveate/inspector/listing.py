"""The list of conversations."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from .pages import in_thread, number, page, sources_of
from .sources import Listing, Source

__all__ = ["PAGE", "routes"]

PAGE: Final = 50
"""Conversations on a page."""


class Shown(Struct, frozen=True):
    """One source and a page of its conversations."""

    source: Source
    listing: Listing
    first: int


def routes() -> list[BaseRoute]:
    """Return the routes of the list."""
    return [Route("/", show_list, name="list")]


async def show_list(request: Request) -> Response:
    """Show a page of the conversations."""
    query = request.query_params.get("q", "")[:200]
    chosen = request.query_params.get("source", "")
    first = number(request, "from", 0)
    sources = sources_of(request)

    def read() -> list[Shown]:
        return [
            Shown(source, source.list(query, first if key == chosen else 0, PAGE), first if key == chosen else 0)
            for key, source in sources.items()
            if not chosen or key == chosen
        ]

    shown = await in_thread(read)
    return page(request, "list.html.j2", title="Conversations", query=query, chosen=chosen, shown=shown, size=PAGE)
