"""Live pages: updates of a conversation as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from ...errors import StoreError
from ...ports import Database, Head
from ..views.places import Place
from ..watchers import News, read_updates
from .base import in_thread, page_of, source_of, tenant_of

__all__ = ["routes", "stream"]


def routes() -> list[BaseRoute]:
    """Return the routes of live pages."""
    return [Route("/c/{source}/{name:name}/events", show_events, name="events")]


async def show_events(request: Request) -> Response:
    """Answer with a stream of events. `Last-Event-ID`, or `seen` of the query, continues an earlier one."""
    text = request.headers.get("last-event-id") or request.query_params.get("seen", "")

    source, name = source_of(request), request.path_params["name"]

    def open_store() -> tuple[Database, Head]:
        with source.open(name) as chat:
            return chat._session.state.store, chat._session.head

    store, head = await in_thread(open_store)

    def look(seen: Place) -> News:
        nonlocal store
        try:
            return read_updates(store, head.tenant, head.name, seen)
        except StoreError:  # The source opens a file again that was replaced.
            store, _ = open_store()
            return read_updates(store, head.tenant, head.name, seen)

    async def read(seen: Place) -> News:
        return await in_thread(look, seen)

    key = (tenant_of(request), source.key, head.name)
    watchers = page_of(request).watchers
    news = watchers.watch(key, read, Place.of(head), Place.read(text), partial(_disconnected, request))
    return StreamingResponse(stream(news), media_type="text/event-stream", headers={"x-accel-buffering": "no"})


async def _disconnected(request: Request) -> None:
    """Return when the page is gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def stream(news: AsyncIterator[News]) -> AsyncIterator[bytes]:
    """Yield news as server-sent events: one message for each place, a comment where nothing happened."""
    yield b"retry: 2000\n\n"
    async for place, updates in news:
        if not updates:
            yield f"id: {place}\n: \n\n".encode()
            continue
        data: list[dict[str, Any]] = [msgspec.to_builtins(update) for update in updates]
        yield f"id: {place}\ndata: {msgspec.json.encode(data).decode()}\n\n".encode()
