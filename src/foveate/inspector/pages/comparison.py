"""The page that compares two views: two calls, two policies on the same messages, or two conversations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from markupsafe import Markup
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ...conversation import Conversation
from ...core.handles import Handle
from ...core.messages import Message, Text, ToolCall, ToolResult
from ...core.view import Entry, View
from ...errors import BadInput, BadSetting, NoSuchConversation
from ...replay.lookup import content_kind
from ...replay.result import columns_for
from ..content import FOLDED, headline, render, render_diff
from ..jobs import Job
from ..views.comparison import PairStatus, ViewPair, compare
from ..views.trials import Trial, check_policy, policy_choices
from .base import in_thread, link, number, opened, page, source_of
from .contents import links_to
from .spending import Subject, subject_of, trial_of

__all__ = ["routes"]

_ROWS = 60
"""Rows on a page."""
_STORED = "stored"
"""Stands for the views as they were, among the names of policies."""


class _Side(Struct, frozen=True):
    """One side of the comparison."""

    title: str
    """The call, the policy or the conversation."""
    entries: Sequence[Entry]
    """The view."""
    figures: dict[str, str] = {}
    """Figures of a replay, formatted, by their titles."""


class _Row(Struct, frozen=True):
    """A row of the page: a message, or a summary with the messages that it covers on the other side."""

    status: PairStatus
    left: tuple[Entry, ...]
    right: tuple[Entry, ...]


def routes() -> list[BaseRoute]:
    """Return the route of the page."""
    return [Route("/c/{source}/{name:name}/compare", show_comparison, name="compare")]


async def show_comparison(request: Request) -> Response:
    """Compare what the query names: `left` and `right` (calls), `policies`, or `other` (a conversation)."""
    subject = await in_thread(subject_of, request)
    query = request.query_params
    window = number(request, "window", subject.window, least=1_000, most=10_000_000)
    policies = [name for text in query.getlist("policies") for name in text.split(",") if name]
    call = number(request, "call", 0)
    right = number(request, "right", subject.turns + 1, least=1)
    left = number(request, "left", max(1, right // 2), least=1)
    jobs: list[tuple[str, Job]] = []
    if policies:
        mode, sides, jobs = "policies", *(await _of_policies(request, subject, policies, window, call))
    elif query.get("other"):
        mode, sides = "conversations", await in_thread(_of_conversations, request)
    else:
        mode, sides = "calls", await in_thread(_of_calls, request, left, right)
    show = query.get("show", "")
    first = number(request, "from", 0)
    found = await in_thread(compare, sides[0].entries, sides[1].entries) if sides else None
    rows = _rows([pair for pair in found.pairs if show in ("", pair.status)]) if found else []
    values = {key: value for key, value in query.items() if key not in ("from", "show", "policies")}
    values |= {"source": subject.source, "name": subject.name, "policies": ",".join(policies)}
    return page(
        request,
        "compare.html.j2",
        title=f"Compare {subject.name}",
        subject=subject,
        source=source_of(request),
        mode=mode,
        sides=sides,
        found=found,
        titles=list(dict.fromkeys(title for side in sides for title in side.figures)),
        rows=[_cells(request, row) for row in rows[first : first + _ROWS]],
        total=len(rows),
        first=first,
        size=_ROWS,
        show=show if show in get_args(PairStatus) else "",
        jobs=jobs,
        policies=(*policies, *(_STORED, "balanced")[len(policies) :])[:2],
        choices={_STORED: "The views as they were.", **policy_choices()},
        window=window,
        call=call,
        left=left,
        right=right,
        relatives=await in_thread(_relatives, request),
        here=lambda **changes: link(request, "compare", **(values | changes)),
    )


# ----------------------------------------------------------------------------------------------------------- the sides


def _of_calls(request: Request, left: int, right: int) -> list[_Side]:
    """Return the views of two calls."""
    with opened(request) as chat:
        return [_side(f"call {turn}", _view_at(chat, turn)) for turn in (left, right)]


def _of_conversations(request: Request) -> list[_Side]:
    """Return the newest views of this conversation and of another one of the same source."""
    other = request.query_params["other"]
    with opened(request) as chat:
        left = _side(chat.name, chat.view)
    try:
        with source_of(request).open(other) as chat:
            return [left, _side(chat.name, chat.view)]
    except NoSuchConversation as error:
        raise HTTPException(404, f"There is no conversation {other[:200]!r} in this source.") from error


async def _of_policies(
    request: Request, subject: Subject, policies: Sequence[str], window: int, call: int
) -> tuple[list[_Side], list[tuple[str, Job]]]:
    """Return the views of one call under two policies, and the replays. No views while a replay runs."""
    names = [*policies, *([_STORED] if len(policies) == 1 else [])][:2]
    try:
        jobs = [
            None if name == _STORED else await trial_of(request, subject, check_policy(name), window, patience=0.3)
            for name in names
        ]
    except BadSetting as error:
        raise HTTPException(400, str(error)) from error
    running = [(name, job) for name, job in zip(names, jobs, strict=True) if job is not None]
    if any(job.status != "done" for _, job in running):
        return [], running

    def read() -> list[_Side]:
        return [
            _stored_side(request, call) if job is None else _trial_side(name, job.result, call)
            for name, job in zip(names, jobs, strict=True)
        ]

    return await in_thread(read), running


def _trial_side(policy: str, trial: Trial, call: int) -> _Side:
    """Return the view of a call of a replay, or of the last call for 0."""
    calls = len(trial.views)
    at = min(call or calls, calls)
    row = trial.result.row
    figures = {column.title: column.cell(row) for column in columns_for([row])}
    return _Side(f"{policy}, call {at}", trial.views.at(at) if at else (), figures)


def _stored_side(request: Request, call: int) -> _Side:
    """Return the view of a call with a reply as it was. The number counts such calls, as a replay does."""
    with opened(request) as chat:
        turns = list(dict.fromkeys(row.stamp.turn for row in chat.history() if row.stamp.origin == "assistant"))
        if not turns:
            return _Side("as it was, no call", ())
        at = min(call or len(turns), len(turns))
        return _side(f"as it was, call {at}", _view_at(chat, turns[at - 1]))


def _view_at(chat: Conversation, turn: int) -> View:
    try:
        return chat.as_of(turn)
    except BadInput as error:
        raise HTTPException(404, str(error)) from error


def _side(title: str, view: View) -> _Side:
    return _Side(title, view.entries)


def _relatives(request: Request) -> list[str]:
    """Return the names of the conversation's parent and forks."""
    with opened(request) as chat:
        parent = chat.parent()
        return [*([parent] if parent else []), *chat.children()][:50]


# ------------------------------------------------------------------------------------------------------------ the rows


def _rows(pairs: Sequence[ViewPair]) -> list[_Row]:
    """Return the rows: a summary and the messages that only the other side shows in its place are one row."""
    rows: list[_Row] = []
    for pair in pairs:
        left, right = ((entry,) if entry else () for entry in (pair.left, pair.right))
        before = rows[-1] if rows else None
        if before and pair.covered_by is not None and pair.covered_by in (*before.left[:1], *before.right[:1]):
            rows[-1] = _Row(before.status, (*before.left, *left), (*before.right, *right))
        else:
            rows.append(_Row(pair.status, left, right))
    return rows


def _cells(request: Request, row: _Row) -> dict[str, Any]:
    """Return a row for the template, with the content as markup."""
    is_replaced = bool(row.left and row.right) and row.status in ("left", "right")
    return {
        "status": "changed" if is_replaced else row.status,
        "left": [_cell(request, entry) for entry in row.left[:_SHOWN]],
        "right": [_cell(request, entry) for entry in row.right[:_SHOWN]] if row.status != "same" else [],
        "left_rest": row.left[_SHOWN:],
        "right_rest": row.right[_SHOWN:],
        "diff": _diff(row.left[0], row.right[0]) if row.status == "changed" else Markup(),
    }


_SHOWN = 12
"""Messages under one summary whose content is shown; the others are counted."""


def _cell(request: Request, entry: Entry) -> dict[str, Any]:
    links = links_to(request, entry.position) if entry.span is None else None
    parts = entry.message.parts
    return {
        "entry": entry,
        "kind": content_kind(entry),
        "handle": str(Handle(entry.position, entry.last)),
        "name": "summary" if entry.kind == "summary" else f"{entry.message.role} {entry.tool}".strip(),
        "by": ", ".join(dict.fromkeys(policy or "hand" for policy in entry.shrunk_by)),
        "head": headline(parts[0]) if parts else Markup(),
        "parts": [render(part, path=str(index), links=links) for index, part in enumerate(parts[:6])],
    }


def _diff(left: Entry, right: Entry) -> Markup:
    """Return the difference of the texts of two forms of a message."""
    old, new = _text(left.message), _text(right.message)
    return render_diff(old, new, FOLDED) if old != new else Markup()


def _text(message: Message) -> str:
    return "\n".join(_texts(message))


def _texts(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, Text | ToolResult):
            yield part.text
        elif isinstance(part, ToolCall):
            yield f"{part.name} {part.arguments}"
