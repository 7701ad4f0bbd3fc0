"""The list of conversations: a page of each source at once, and the figures of its rows after the first paint."""

from __future__ import annotations

import time
from typing import Final

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ...conversation import Conversation
from ...core.budget import measure_excess
from ...core.edits import INTERRUPTED, NOT_OFFERED
from ...errors import Damaged, FoveateError
from ...open import cost_of
from ..sources import Listing, Source
from ..views.timeline import timeline_of
from .base import fragment, in_thread, name_in_path, number, page, sources_of

__all__ = ["PAGE", "Figures", "figures_of", "routes"]

PAGE: Final = 50
"""Conversations on a page."""
_FIRST: Final = 12
"""Conversations of each source on the page of all sources."""
_SECONDS: Final = 0.4
"""Time in which one request measures conversations. The script asks again for the rest."""
_MAX_READ: Final = 20_000
"""Messages up to which a conversation is read for the savings in a list."""
_MAX_WAIT: Final = 30.0
"""Seconds to wait for the figures of a conversation of this size, on a busy computer."""


_NOTES: Final = (INTERRUPTED, NOT_OFFERED)
"""Tasks that only note something about a call."""


class Shown(Struct, frozen=True):
    """One source and a page of its conversations."""

    source: Source
    listing: Listing
    first: int
    size: int


class Figures(Struct, frozen=True):
    """The figures of one conversation in a list."""

    turns: int | None = None
    """Model calls with an answer; None if the conversation is too long to count them here."""
    shown: int | None = None
    """Tokens of the view of the next call; None if the conversation was not read."""
    whole: int | None = None
    """Tokens of the whole history."""
    saved: int | None = None
    """Tokens that were not sent, summed over the calls."""
    dollars: float | None = None
    """The money that this saved, by estimate; None without a known price."""
    model: str = ""
    """The model that answered last; "" if it is not known."""
    health: str = ""
    """A fault, or work that is under way; "" for neither."""
    is_problem: bool = False
    """Whether that is a fault."""


def routes() -> list[BaseRoute]:
    """Return the routes of the list."""
    return [Route("/", show_list, name="list"), Route("/figures", show_figures, name="figures")]


async def show_list(request: Request) -> Response:
    """Show a page of the conversations: some of each source, or a page of one."""
    query = request.query_params.get("q", "")[:200]
    chosen = request.query_params.get("source", "")
    first = number(request, "from", 0)
    sources = sources_of(request)
    if chosen not in sources:
        chosen, first = "", 0
    only = len(sources) == 1 or chosen
    size = PAGE if only else _FIRST

    def read() -> list[Shown]:
        return [_shown(source, query, first, size) for key, source in sources.items() if not chosen or key == chosen]

    shown = await in_thread(read)
    return page(
        request, "list.html.j2", title="Conversations", query=query, chosen=chosen, shown=shown, now=time.time() * 1000
    )


def _shown(source: Source, query: str, first: int, size: int) -> Shown:
    """Return a page of a source; the last one if the list ends before it."""
    listing = source.list(query, first, size)
    if first and not listing.rows:
        first = max(0, listing.total - 1) // size * size
        listing = source.list(query, first, size)
    return Shown(source, listing, first, size)


async def show_figures(request: Request) -> Response:
    """Return the figures of conversations as cells of their rows: as many as can be measured in a short time.

    The query names the source and the conversations, these as in their links. The answer is JSON: the cells by name.
    """
    key = request.query_params.get("source", "")
    source = sources_of(request).get(key)
    if source is None:
        raise HTTPException(404, f"There is no source {key[:80]!r}.")
    names = request.query_params.getlist("name")[:PAGE]

    def read() -> dict[str, Figures]:
        found: dict[str, Figures] = {}
        end = time.monotonic() + _SECONDS
        for name in names:
            found[name] = _figures(source, name_in_path(name))
            if time.monotonic() > end:
                break
        return found

    measured = await in_thread(read)
    cells = {name: bytes(fragment(request, "figures.html.j2", one=one).body).decode() for name, one in measured.items()}
    return Response(msgspec.json.encode(cells), media_type="application/json")


def _figures(source: Source, name: str) -> Figures:
    if not source.is_known(name):
        return Figures(health="not read yet")
    try:
        with source.open(name) as chat:
            return figures_of(chat)
    except Damaged:
        return Figures(health="broken chain", is_problem=True)
    except FoveateError as error:
        return Figures(health=str(error)[:120], is_problem=True)


def figures_of(chat: Conversation) -> Figures:
    """Return the figures of a conversation. Reads its history once, if it has at most 20,000 messages."""
    view = chat.view
    model = next((entry.stamp.model for entry in reversed(view.entries) if entry.stamp.model), "")
    health, is_problem = _health(chat)
    if len(chat) > _MAX_READ:
        return Figures(shown=view.tokens, model=model, health=health, is_problem=is_problem)
    totals = chat.totals()
    return Figures(
        turns=totals.calls,
        shown=view.tokens,
        whole=totals.tokens_history,
        saved=max(0, totals.tokens_saved),
        dollars=_dollars_saved(chat) if any(map(cost_of, totals.by_model)) else None,
        model=model,
        health=health,
        is_problem=is_problem,
    )


def _dollars_saved(chat: Conversation) -> float | None:
    """Return the savings that the chart of the conversation shows; None if they are not known."""
    timeline = timeline_of(chat, cost_of)
    figures = timeline.follow(_MAX_WAIT)
    return figures.dollars_saved if timeline.is_complete else None


def _health(chat: Conversation) -> tuple[str, bool]:
    """Return what is wrong or under way with a conversation, and whether it is a fault."""
    view = chat.view
    if view.budget.has_window and measure_excess(view):
        return "over the window", True
    tasks = [task for task in chat._session.state.projection.tasks.values() if task.policy not in _NOTES]
    if any(task.state == "failed" for task in tasks):
        return "summary failed", True
    if any(task.state == "pending" for task in tasks):
        return "summary waiting", False
    return "", False
