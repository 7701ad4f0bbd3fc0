"""The search in one conversation: the messages that have some words, whether the model sees them or not."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ...conversation import Conversation
from ...errors import StoreError
from ...expand.originals import author_of, decoded
from ...expand.search import snippet_of
from ...stores.words import terms
from ..views.entries import KINDS, EntryRow, GapRow, index_at
from ..views.moments import moments_of
from .base import in_thread, opened, page, source_of

__all__ = ["routes"]

_MOST: Final = 50
"""Messages on the page."""


class Found(Struct, frozen=True):
    """A message that has words of the search."""

    position: int
    turn: int
    """The model call after which it came."""
    who: str
    """The tool it came from, or the role of its author."""
    line: int
    """The line with the first of the words in the snippet, from 1."""
    snippet: str
    form: str
    """How the next call shows it."""
    key: str
    """The row of the view that shows it, or stands for it."""
    has_all: bool
    """Whether it has all words of the search; else some, or words with a typing error."""


def routes() -> list[BaseRoute]:
    """Return the route of the search."""
    return [Route("/c/{source}/{name:name}/search", show_found, name="search")]


async def show_found(request: Request) -> Response:
    """Show the messages that have the words of the query, the best first."""
    words = request.query_params.get("q", "")[:200]

    def read() -> dict[str, Any]:
        with opened(request) as chat:
            try:
                return {"name": chat.name, "found": _found(chat, words), "problem": ""}
            except StoreError as error:  # It keeps no index.
                return {"name": chat.name, "found": [], "problem": str(error)}

    values = await in_thread(read)
    title = f"Search in {values['name']}"
    return page(request, "search.html.j2", title=title, source=source_of(request), query=words, most=_MOST, **values)


def _found(chat: Conversation, words: str) -> list[Found]:
    """Return the best messages with these words, one more than the page shows if there are more."""
    session = chat._session
    with session.lock:
        state = session.state
        state.follow_head()
        scores = {match.position: match.score for match in state.store.search(session.head, words, _MOST + 1)}
        stored = {row.position: row for row in state.store.get_many(session.head, [*scores])} if scores else {}
    moment = moments_of(chat).at()
    assert moment is not None  # That of the coming call is always known.
    due = [stored[at] for at in scores if at in stored and stored[at].body]
    own = {entry.position: index for index, entry in enumerate(moment.view) if entry.outline is not None}
    last = len(moment.places) - 1
    rows = [
        own[at] if at in own else moment.places[min(index_at(moment.view, moment.places, at), last)]
        for at in (row.position for row in due)
    ]
    shown = moments_of(chat).rows(moment, rows)
    wanted = terms(words)
    return [
        Found(
            row.position,
            row.stamp.turn,
            author_of(row),
            *snippet_of(decoded(row), wanted),
            _form_of(place),
            place.key,
            scores[row.position] >= 1,
        )
        for row, place in zip(due, shown, strict=True)
    ]


def _form_of(row: EntryRow | GapRow) -> str:
    """Return how a row shows a message, in a few words."""
    if isinstance(row, GapRow):
        return "not shown"
    return f"in the {row.kind} {row.handle}" if row.last > row.position else KINDS[row.kind]
