"""The application of the inspector: its routes, and errors as pages."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from mimetypes import guess_type

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from ..errors import (
    BadInput,
    ConflictError,
    ConversationBusy,
    FoveateError,
    MissingExtra,
    NoSuchConversation,
    UnknownHandle,
)
from ..ports import Store
from .access import Access, Guard
from .jobs import Jobs
from .pages import actions, comparison, contents, conversation, exports, jobs, listing, live, search, spending
from .pages.base import STATIC, VERSION, Page, page
from .sources import Preparing, Source, Sources, StoreSource, by_key

__all__ = ["app_with", "build_app"]

# A page imports them at the first Markdown or code, because that takes long. That is too late to report a missing one.
if any(find_spec(package) is None for package in ("markdown_it", "pygments")):
    raise MissingExtra("The inspector", "inspect")


def routes() -> list[BaseRoute]:
    """Return the routes of all areas. A new area adds its own here."""
    return [
        *listing.routes(),
        *conversation.routes(),
        *contents.routes(),
        *actions.routes(),
        *search.routes(),
        *live.routes(),
        *spending.routes(),
        *comparison.routes(),
        *exports.routes(),
        *jobs.routes(),
        Route("/static/{file}", _static, name="static"),
    ]


def build_app(store: str | Store | None = None, *, access: Access | None = None) -> Starlette:
    """Return the pages for the conversations of a store, as an ASGI application to run or to mount.

    `store`: a URL as `open_conversation` takes it, or a Store, which stays open; None: no store. `access`: who is
    served (default: programs on this computer).
    """
    return app_with(store, access=access)


def app_with(
    store: str | Store | None = None, *, sources: Sequence[Source] = (), access: Access | None = None
) -> Starlette:
    """Return the application with more conversations: those of `sources`, which every tenant sees."""
    allowed = Access() if access is None else access
    lock = threading.Lock()
    by_tenant: dict[str, Sources] = {}

    def sources_of(tenant: str) -> Sources:
        with lock:
            if tenant not in by_tenant:
                own = [] if store is None else [StoreSource(store, tenant=tenant, is_read_only=allowed.is_read_only)]
                by_tenant[tenant] = by_key([*own, *sources])
            return by_tenant[tenant]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            app.state.page.watchers.stop()
            app.state.jobs.close()
            for found in by_tenant.values():
                for source in found.values():
                    source.close()

    app = Starlette(
        routes=routes(),
        lifespan=lifespan,
        middleware=[Middleware(Guard, access=allowed)],
        exception_handlers={HTTPException: _show_error, FoveateError: _show_error, Preparing: _show_progress},
    )
    app.state.jobs = Jobs()
    app.state.page = Page(app.router, allowed, sources_of)
    return app


async def _static(request: Request) -> Response:
    name = request.path_params["file"]
    if name not in STATIC:
        raise HTTPException(404, f"There is no file {name[:80]!r}.")
    kind = guess_type(name)[0] or "application/octet-stream"
    # Scripts import one another without the version. Browsers ask for these each time.
    is_current = request.query_params.get("v") == VERSION
    headers = {"cache-control": "private, max-age=86400"} if is_current else {}
    return Response(STATIC[name], media_type=kind, headers=headers)


async def _show_progress(request: Request, error: Exception) -> Response:
    """Show how far a replay is. The browser asks again after a second."""
    assert isinstance(error, Preparing)
    if request.headers.get("x-part"):  # A script would put the page into the one that asked.
        return PlainTextResponse(f"{error} Try again in a moment.", 503)
    answer = page(request, "preparing.html.j2", 202, title=error.name, name=error.name, share=error.share)
    answer.headers["refresh"] = "1"
    return answer


async def _show_error(request: Request, error: Exception) -> Response:
    match error:
        case HTTPException(status_code=status):
            pass
        case NoSuchConversation() | UnknownHandle():
            status = 404
        case BadInput():
            status = 400
        case ConflictError() | ConversationBusy():
            status = 409
        case _:
            status = 500
    text = error.detail if isinstance(error, HTTPException) else str(error)
    if request.headers.get("x-part"):
        return PlainTextResponse(text.encode("utf-8", "replace"), status)
    return page(request, "error.html.j2", status, title=f"Error {status}", text=text)
