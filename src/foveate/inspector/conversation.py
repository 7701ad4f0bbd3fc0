"""The page of one conversation."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from .pages import in_thread, opened, page, source_of

__all__ = ["routes"]


def routes() -> list[BaseRoute]:
    """Return the routes of a conversation's page."""
    return [Route("/c/{source}/{name:name}", show_conversation, name="conversation")]


async def show_conversation(request: Request) -> Response:
    """Show the view of the next call."""

    def read() -> dict[str, Any]:
        with opened(request) as chat:
            return {"title": chat.name, "messages": len(chat), "view": chat.view}

    values = await in_thread(read)
    return page(request, "conversation.html.j2", source=source_of(request), **values)
