"""The page of one conversation: its timeline, and the messages as the model saw them at a call."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ...conversation import Conversation
from ...core.call_context import Budget
from ...core.messages import Message, Part, ToolCall
from ...core.profiles import window_of
from ...errors import BadInput
from ...open import cost_of
from ...replay.result import KIND_NAMES
from ..content import FOLDED, Limits, headline, render, render_diff
from ..views.chart import Chart, chart_of
from ..views.entries import KINDS, EntryRow, index_at, readable
from ..views.moments import Moment, moments_of
from ..views.places import Place
from ..views.timeline import Figures, Timeline, timeline_of
from .base import fragment, in_thread, link, number, opened, page, source_of
from .contents import links_to

__all__ = ["routes"]

STEP = 40
"""Rows in one response."""
SPAN = 20_000
"""Rows among which a page scrolls; the rest is on further pages."""
_WAIT = 0.12
"""Seconds that a page waits for the figures. A script fetches them later."""
_DIFF = Limits(400, 1_000, 60_000)
"""How much of the difference of original and shown form a page has."""


def routes() -> list[BaseRoute]:
    """Return the routes of a conversation's page."""
    base = "/c/{source}/{name:name}"
    return [
        Route(base, show_conversation, name="conversation"),
        Route(f"{base}/rows", show_rows, name="rows"),
        Route(f"{base}/sizes", show_sizes, name="sizes"),
        Route(f"{base}/chart", show_chart, name="chart"),
        Route(f"{base}/entry", show_entry, name="entry"),
        Route(f"{base}/covered", show_covered, name="covered"),
    ]


async def show_conversation(request: Request) -> Response:
    """Show the view of a call, or of the coming one, below the timeline."""

    def read() -> dict[str, Any]:
        with opened(request) as chat:
            return _page_values(request, chat)

    return page(request, "conversation.html.j2", source=source_of(request), **await in_thread(read))


async def show_rows(request: Request) -> Response:
    """Show some rows of a view: `at` is the index of the first, or `from` and `to` are positions of messages."""

    def read() -> dict[str, Any]:
        with opened(request) as chat:
            moment = _moment(chat, _turn(request))
            if moment is None:
                raise HTTPException(503, "The history is still being read. Try again in a moment.")
            first = number(request, "at", 0)
            last = first + STEP
            if "from" in request.query_params:
                first = index_at(moment.view, moment.places, number(request, "from", 1, least=1))
                until = number(request, "to", len(chat)) + 1
                last = min(index_at(moment.view, moment.places, until), first + 5 * STEP)
            return _row_values(request, chat, moment, first, last)

    return fragment(request, "rows_part.html.j2", source=source_of(request), **await in_thread(read))


async def show_sizes(request: Request) -> Response:
    """Show the numbers above the rows of the coming call."""

    def read() -> dict[str, Any]:
        with opened(request) as chat:
            moment = moments_of(chat).at()
            assert moment is not None  # That of the coming call is always known.
            return {"messages": len(chat), "moment": moment, "call": None, **_view_values(moment)}

    return fragment(request, "sizes.html.j2", **await in_thread(read))


async def show_chart(request: Request) -> Response:
    """Show the charts of some calls: `first` and `last` are numbers of calls."""

    def read() -> dict[str, Any]:
        with opened(request) as chat:
            return _chart_values(request, chat, timeline_of(chat, cost_of), wait=2.0) | {"title": chat.name}

    values = await in_thread(read)
    return fragment(request, "_chart.html.j2", source=source_of(request), **values)


async def show_entry(request: Request) -> Response:
    """Show one entry: why it looks so, its original, and the difference."""
    key = request.query_params.get("key", "")

    def read() -> dict[str, Any]:
        with opened(request) as chat:
            moment = _moment(chat, _turn(request))
            position = number(request, "m", 0)
            if moment is None:
                raise HTTPException(503, "The history is still being read. Try again in a moment.")
            rows = _rows_at(chat, moment, position)
            row = next((each for each in rows if each.key == key), rows[0] if rows else None)
            if row is None:
                raise HTTPException(404, f"The view of turn {moment.turn} does not show message {position}.")
            return _entry_values(request, chat, moment, row)

    values = await in_thread(read)
    if request.headers.get("x-part"):
        return fragment(request, "_entry.html.j2", source=source_of(request), **values)
    return page(request, "entry.html.j2", source=source_of(request), **values)


async def show_covered(request: Request) -> Response:
    """Show messages as they were appended: what a summary, a fold or a gap stands for."""
    first, last = number(request, "first", 1, least=1), number(request, "last", 1, least=1)

    def read() -> dict[str, Any]:
        with opened(request) as chat:
            end = min(last, len(chat), first + STEP - 1)
            rows = moments_of(chat).appended(first, end)
            more = end + 1 if end < min(last, len(chat)) else None
            return {
                "title": chat.name,
                "rows": rows,
                "first": first,
                "last": last,
                "more": more,
                "turn": _turn(request),
                **_drawing(request, None),
            }

    values = await in_thread(read)
    if request.headers.get("x-part"):
        return fragment(request, "_covered.html.j2", source=source_of(request), **values)
    return page(request, "covered.html.j2", source=source_of(request), **values)


# -------------------------------------------------------------------------------------------------------------- values


def _turn(request: Request) -> int | None:
    """Return the call that a request names; None for the coming one."""
    return number(request, "turn", 0) or None


def _moment(chat: Conversation, turn: int | None) -> Moment | None:
    """Return the view of a call; None if reading it would take long. Raises HTTPException 404."""
    try:
        return moments_of(chat).at(turn)
    except BadInput as error:
        raise HTTPException(404, str(error)) from error


def _page_values(request: Request, chat: Conversation) -> dict[str, Any]:
    timeline = timeline_of(chat, cost_of)
    turn = _turn(request)
    timeline.follow()
    moment = _moment(chat, turn)
    values = _chart_values(request, chat, timeline, wait=_WAIT)
    values |= {"title": chat.name, "messages": len(chat), "turn": turn, "moment": moment}
    values["place"] = str(moment.place if moment else Place.of(chat._agent.head))
    if moment is None:
        return values | {"rows": [], "total": 0, "at": 0, "step": STEP, "span": SPAN, **_drawing(request, turn)}
    at = number(request, "at", 0, most=max(0, len(moment.places) - 1))
    if position := number(request, "m", 0):
        at = min(index_at(moment.view, moment.places, position), max(0, len(moment.places) - 1))
        at -= at % STEP
    return values | _row_values(request, chat, moment, at, at + STEP) | _view_values(moment)


def _view_values(moment: Moment) -> dict[str, Any]:
    view, budget = moment.view, moment.view.budget
    model = next((entry.stamp.model for entry in reversed(view.entries) if entry.stamp.model), "")
    return {
        "tokens": view.tokens,
        "model": model if window_of(model) == budget.window else "",  # The window of a program may be smaller.
        "window": budget.window if budget.has_window else 0,
        "usable": _usable(budget),
        "changed": sum(1 for entry in view if entry.edits),
        "pinned": sum(1 for entry in view if entry.pins),
    }


def _usable(budget: Budget) -> int:
    return max(0, budget.usable) if budget.has_window else 0


def _row_values(request: Request, chat: Conversation, moment: Moment, first: int, last: int) -> dict[str, Any]:
    rows = moments_of(chat).rows(moment, moment.places[first:last])
    return {
        "title": chat.name,
        "rows": rows,
        "at": first,
        "total": len(moment.places),
        "step": STEP,
        "span": SPAN,
        "turn": None if moment.is_next else moment.turn,
        **_drawing(request, moment.turn if not moment.is_next else 0),
    }


def _drawing(request: Request, turn: int | None) -> dict[str, Any]:
    """Return the functions that draw the parts of a row. `turn`: as for `links_to`."""

    def draw(row: EntryRow, part: Part, path: str) -> Markup:
        own = row.key.startswith("m")
        links = links_to(request, row.position, turn=(turn or 0) if own else None) if _is_addressable(row) else None
        form = "plain" if row.kind in ("digest", "fold", "placeholder") else ""
        content = render(part, path=path, call=row.call, links=links, limits=FOLDED, form=form)
        if isinstance(part, ToolCall):
            return Markup('<p class="calls">calls <b>{}</b></p>').format(part.name) + content
        return content

    return {"draw": draw, "headline": _headline, "urls": Urls(request, turn)}


class Urls:
    """The addresses in a row. A page that is saved as a file passes None instead."""

    def __init__(self, request: Request, turn: int | None) -> None:
        names = {"source": request.path_params["source"], "name": request.path_params["name"]}
        self._link = partial(link, request, **names, turn=turn or None)

    def entry(self, row: EntryRow) -> str:
        """Return the address of everything about a row."""
        return str(self._link("entry", m=row.position, key=None if row.key == f"m{row.position}" else row.key))

    def covered(self, first: int, last: int) -> str:
        """Return the address of these messages as they were appended."""
        return str(self._link("covered", first=first, last=last))

    def view(self, turn: int | None = None, **query: object) -> str:
        """Return the address of the view of a call; None for the coming one."""
        return str(self._link("conversation", **{**query, "turn": turn or None}))


def _is_addressable(row: EntryRow) -> bool:
    """Return whether a page can show single parts of a row: those of the first entry at its position."""
    return row.key == f"m{row.position}" or row.key.startswith("o")


def _headline(row: EntryRow) -> Markup:
    """Return a row in one line: of a result its call and its beginning."""
    pieces: list[Markup] = []
    if row.call is not None:
        pieces.append(headline(ToolCall("", row.call.name, row.call.arguments)))
    pieces += [headline(part) for part in row.parts[:3]]
    return Markup(" ").join(pieces)


def _rows_at(chat: Conversation, moment: Moment, position: int) -> list[EntryRow]:
    entries = moment.view.entries
    places = [index for index, entry in enumerate(entries) if entry.position == position]
    return [row for row in moments_of(chat).rows(moment, places) if isinstance(row, EntryRow)]


def _entry_values(request: Request, chat: Conversation, moment: Moment, row: EntryRow) -> dict[str, Any]:
    appended = None
    diff: Markup | None = None
    if row.last == row.position and row.kind not in ("stand-in", "summary", "fold"):
        appended = next(iter(moments_of(chat).appended(row.position, row.position)), None)
    if appended is not None and row.is_changed:
        diff = render_diff(_text(appended), _text(row), _DIFF)
    return {
        "title": chat.name,
        "row": row,
        "appended": appended,
        "diff": diff,
        "facts": _facts(chat, row),
        "turn": None if moment.is_next else moment.turn,
        "meaning": KINDS[row.kind],
        **_drawing(request, None if moment.is_next else moment.turn),
    }


def _text(row: EntryRow) -> str:
    return readable(Message(row.role, row.parts))


def _facts(chat: Conversation, row: EntryRow) -> list[tuple[str, str]]:
    """Return facts about the appended message that its row does not show."""
    entry = next(iter(chat.history(row.position, row.position)), None)
    if entry is None:
        return []
    stamp = entry.stamp
    facts = [("Id", entry.id), ("Origin", stamp.origin), ("Source", stamp.source), ("Model", stamp.model)]
    if stamp.usage is not None:
        figures = {name: value for name in stamp.usage.__struct_fields__ if (value := getattr(stamp.usage, name))}
        facts.append(("Billed", ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in figures.items())))
    if stamp.stop is not None:
        facts.append(("Stop", f"{stamp.stop.kind} ({stamp.stop.raw})" if stamp.stop.raw else stamp.stop.kind))
    if stamp.metadata:
        facts.append(("Metadata", stamp.metadata[:2_000]))
    if stamp.step:
        facts.append(("Step of a run", stamp.step))
    return [(name, value) for name, value in facts if value]


# --------------------------------------------------------------------------------------------------------------- chart


def _chart_values(request: Request, chat: Conversation, timeline: Timeline, *, wait: float) -> dict[str, Any]:
    figures = timeline.follow(wait)
    budget = chat.budget
    turn = _turn(request)
    first, last = _range(request, figures)
    chart = chart_of(
        figures,
        first=first,
        last=last,
        turn=turn,
        window=budget.window if budget.has_window else 0,
        usable=_usable(budget),
    )
    turns = list(figures.column("turn")[-1:])
    newest = turns[0] if turns else 0
    return {
        "chart": chart,
        "is_zoomed": (first, last) != (0, len(figures)),
        "chart_data": json.dumps(chart.data, separators=(",", ":")) if chart else "",
        "is_complete": timeline.is_complete,
        "progress": timeline.progress,
        "error": timeline.error,
        "turn": turn,
        "newest": newest,
        "calls": len(figures),
        "neighbours": _neighbours(figures, turn, timeline.is_complete),
        "call": _call_values(figures, turn),
        "sums": _sums(figures, chart),
        "urls": Urls(request, turn),
        "kind_names": KIND_NAMES,
    }


def _range(request: Request, figures: Figures) -> tuple[int, int]:
    """Return the indices of the calls that a chart shows."""
    first, last = number(request, "first", 0), number(request, "last", 0)
    if not last or not len(figures):
        return 0, len(figures)
    low, high = figures.place_of(first), figures.place_of(last + 1)
    return (low, high) if high > low else (0, len(figures))


def _neighbours(figures: Figures, turn: int | None, is_complete: bool) -> tuple[int | None, int | None]:
    """Return the calls before and after a call; 0 stands for the coming one, None for none."""
    turns, total = figures.column("turn"), len(figures)
    if turn is not None and not is_complete and (not total or turn >= turns[total - 1]):
        return turn - 1 or None, turn + 1  # Calls without a reply are not known so far.
    if not total:
        return None, None
    if turn is None:
        return (turns[total - 1] if is_complete else None), None
    at = figures.place_of(turn)
    after = at + 1 if at < total and turns[at] == turn else at
    return (turns[at - 1] if at else None), (turns[after] if after < total else 0)


def _call_values(figures: Figures, turn: int | None) -> dict[str, Any] | None:
    """Return the figures of a call, next to what was billed; None if they are not known."""
    index = None if turn is None else figures.index_of(turn)
    if index is None:
        return None
    usage, is_estimate = figures.usage(index)
    dollars = figures.amounts("dollars")[index]
    billed = figures.amounts("billed")[index]
    return {
        "figures": figures.call(index),
        "whole": figures.column("whole")[index],
        "time": figures.column("time")[index],
        "model": figures.model(index),
        "usage": usage,
        "is_estimate": is_estimate,
        "dollars": dollars if dollars >= 0 else None,
        "dollars_whole": figures.amounts("dollars_unmanaged")[index] if dollars >= 0 else None,
        "billed": billed if billed >= 0 else None,
        "commits": figures.commits_between(index, index + 1),
    }


def _sums(figures: Figures, chart: Chart | None) -> dict[str, Any] | None:
    if chart is None:
        return None
    cost, whole = figures.total("cost"), figures.total("cost_unmanaged")
    known = chart.unit == "dollars"
    return {
        "cost": cost,
        "whole": whole,
        "share": cost / whole if whole else None,
        "dollars": figures.total("dollars") if known else None,
        "dollars_whole": figures.total("dollars_unmanaged") if known else None,
        "billed": figures.total("billed") if figures.billed_calls else None,
        "billed_calls": figures.billed_calls,
        "commits": len(figures.commits),
    }
