"""Pages of single parts: long texts by pages, images, and downloads."""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ...conversation import Conversation
from ...core.messages import Media, Message, ToolCall, ToolResult
from ...errors import BadInput
from ..content import Links, file_of, part_at, render_page, text_of
from ..views.moments import moments_of
from .base import fragment, in_thread, link, number, opened, page, source_of

__all__ = ["call_of", "links_to", "message_at", "routes"]


def routes() -> list[BaseRoute]:
    """Return the routes of parts."""
    return [
        Route("/c/{source}/{name:name}/content", show_content, name="content"),
        Route("/c/{source}/{name:name}/media", send_media, name="media"),
    ]


def links_to(request: Request, message: int, *, turn: int | None = None) -> Links:
    """Return the URLs of pages with more of a message's parts.

    `turn`: of the message as the model saw it at this call, or at the next one for 0; None: as it was appended.
    """
    values = {"source": request.path_params["source"], "name": request.path_params["name"], "m": message, "turn": turn}
    return Links(
        lambda part, *, first=1, **query: link(
            request, "content", **values, part=part, first=None if first == 1 else first, **query
        ),
        lambda part: link(request, "media", **values, part=part),
    )


def message_at(chat: Conversation, position: int, turn: int | None) -> Message:
    """Return a message as it was appended, or as a view shows it.

    `turn`: the number of the call, or 0 for the next one. Raises LookupError if there is no such message, BadInput if
    there was no such call, and HTTPException 503 while the view of that call is not known.
    """
    if turn is None:
        if not 1 <= position <= len(chat):
            raise LookupError(position)
        return chat.history(position, position)[0].message
    moment = moments_of(chat).at(turn or None)
    if moment is None:
        raise HTTPException(503, "The history is still being read. Try again in a moment.")
    for entry in moment.view:
        if entry.position == position:
            return entry.message
    raise LookupError(position)


def call_of(chat: Conversation, message: Message, position: int) -> ToolCall | None:
    """Return the call that a message answers, if it is near: its arguments choose the form of the result."""
    result = message.parts[0] if message.parts else None
    if not isinstance(result, ToolResult):
        return None
    for entry in reversed(chat.history(max(1, position - _CALL_IS_NEAR), position)):
        for call in entry.message.calls:
            if call.call_id == result.call_id:
                return call
    return None


_CALL_IS_NEAR = 50
"""Messages before a result among which its call is looked for."""


async def show_content(request: Request) -> Response:
    """Show a page of one part, or send its text as a file (`form=file`)."""
    position, first = number(request, "m", 0), number(request, "first", 1, least=1)
    turn = number(request, "turn", 0) if request.query_params.get("turn") else None
    path, form, at = (request.query_params.get(key, "") for key in ("part", "form", "at"))

    def read() -> Any:
        try:
            with opened(request) as chat:
                message = message_at(chat, position, turn)
                call = call_of(chat, message, position)
            if form == "file":
                return text_of(message, path)
            return render_page(
                message, path, links=links_to(request, position, turn=turn), call=call, first=first, form=form, at=at
            )
        except (LookupError, BadInput) as error:
            raise HTTPException(404, f"Message {position} has no part {path[:40]!r}.") from error

    content = await in_thread(read)
    if form == "file":
        headers = {"content-disposition": f'attachment; filename="m{position}-{path}.txt"'}
        return Response(content.encode("utf-8", "replace"), media_type="application/octet-stream", headers=headers)
    values = {"source": source_of(request), "name": request.path_params["name"], "content": content}
    if request.headers.get("x-part"):
        return fragment(request, "content_part.html.j2", **values)
    return page(request, "content.html.j2", title=f"Message {position}", position=position, **values)


async def send_media(request: Request) -> Response:
    """Send an image, or anything else as a download."""
    position, path = number(request, "m", 0), request.query_params.get("part", "")
    turn = number(request, "turn", 0) if request.query_params.get("turn") else None

    def read() -> Response:
        try:
            with opened(request) as chat:
                part = part_at(message_at(chat, position, turn), path)
        except (LookupError, BadInput) as error:
            raise HTTPException(404, f"Message {position} has no part {path[:40]!r}.") from error
        file = file_of(part) if isinstance(part, Media) else None
        if file is None:
            raise HTTPException(404, f"Part {path[:40]!r} of message {position} has no bytes.")
        return Response(file.body, headers=file.headers)

    return await in_thread(read)
