"""Pages and forms for actions: each form leads back to a page that says what happened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from markupsafe import Markup
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from ...conversation import Conversation
from ...core.edits import Bill, Edit, Record, Span, Summarize, Task, named_messages
from ...core.handles import Handle, parse_handle
from ...core.messages import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from ...core.receipts import Receipt, receipt_of
from ...errors import FoveateError
from ..changes.actions import ACTIONS, CONFIRM, perform, preview_erasure, problem_of
from ..changes.planning import dry_run, read_settings
from ..content import FOLDED, render_diff
from ..content.characters import visible
from ..notices import Notice
from .base import form, in_thread, link, number, opened, page, page_of, source_of, sources_of, tenant_of

__all__ = ["RECEIPTS", "routes"]

RECEIPTS: Final = 50
"""Receipts on a page of the journal."""
_MAX_EDITS: Final = 500
"""Edits after which a page of the journal has no further receipt."""
_MAX_FOUND: Final = 20
"""Conversations that the command palette offers."""
_MAX_CHANGES: Final = 200
"""Changed places that the page of a plan shows. It counts the others."""
_MAX_WHY: Final = 200
"""Sentences that the page of a range of messages shows. It counts the others."""
_MAX_DIFF: Final = 20_000
"""Characters of a message that a diff compares."""


def routes() -> list[BaseRoute]:
    """Return the routes of actions."""
    at = "/c/{source}/{name:name}"
    return [
        Route(f"{at}/act/{{action}}", act, name="act", methods=["POST"]),
        Route(f"{at}/plan", show_plan, name="plan"),
        Route(f"{at}/erase", show_erasure, name="erase"),
        Route(f"{at}/journal", show_journal, name="journal"),
        Route(f"{at}/more", show_message, name="more"),
        Route("/palette", find_conversations, name="palette"),
    ]


# --------------------------------------------------------------------------------------------------------- the forms


async def act(request: Request) -> Response:
    """Do what a form asks for, and lead back to the conversation."""
    fields = await form(request)
    action, source = request.path_params["action"], source_of(request)
    if action not in ACTIONS:
        raise HTTPException(404, f"There is no action {action[:80]!r}.")
    if source.is_read_only:
        raise HTTPException(403, f"{source.title} is read-only.")

    def run() -> tuple[Notice, str]:
        with opened(request) as chat:
            try:
                outcome = perform(chat, action, fields)
            except FoveateError as error:
                return Notice(problem_of(error), is_problem=True), chat.name
            undo = (source.key, chat.name, outcome.first, outcome.last) if outcome.first else ()
            return Notice(outcome.text, False, *undo), outcome.name or chat.name

    notice, name = await in_thread(run)
    known = page_of(request).notices.add(tenant_of(request), notice)
    return RedirectResponse(_place_after(request, action, fields, notice, name, known), status_code=303)


def _place_after(request: Request, action: str, fields: dict[str, str], notice: Notice, name: str, known: str) -> str:
    """Return the address to show after an action: the page of the form, or the conversation at the message."""
    values: dict[str, object] = {"source": request.path_params["source"], "name": name, "notice": known}
    if notice.is_problem and action == "apply":
        chosen = {key: fields.get(key, "") for key in ("policy", "model", "window", "summarizer")}
        return link(request, "plan", **values, **chosen)
    if notice.is_problem and action == "erase":
        return link(request, "erase", **values, m=fields.get("m", ""))
    if fields.get("back") == "journal":
        return link(request, "journal", **values)
    handle = fields.get("m", "").partition("-")[0].partition(".")[0]
    is_plain = handle.startswith("m") and handle[1:].isdigit()
    turn = fields.get("turn", "") if fields.get("turn", "").isdigit() and name == request.path_params["name"] else ""
    if not is_plain:
        return link(request, "conversation", **values, turn=turn)
    return f"{link(request, 'conversation', **values, turn=turn, m=handle[1:])}#{handle}"


# --------------------------------------------------------------------------------------------------------- the pages


async def show_plan(request: Request) -> Response:
    """Show what the plan of the next request would change: a dry run."""
    query = request.query_params
    fields = [query.get(key, "")[:300] for key in ("policy", "model", "window", "summarizer")]

    def read() -> dict[str, Any]:
        with opened(request) as chat:
            values: dict[str, Any] = {"name": chat.name, "problem": "", "run": None, "place": ""}
            settings = read_settings(chat)
            choice = settings.choice
            try:
                choice = settings.chosen(*fields)
                values["run"], values["place"] = dry_run(chat, choice)
            except FoveateError as error:
                values["problem"] = problem_of(error)
            return values | {"settings": settings, "choice": choice}

    values = await in_thread(read)
    return page(
        request,
        "plan.html.j2",
        title=f"Plan of {values['name']}",
        source=source_of(request),
        diff=_diff,
        most=_MAX_CHANGES,
        **values,
    )


async def show_erasure(request: Request) -> Response:
    """Show what erasing messages would erase, and ask for a word that confirms it."""
    handle = request.query_params.get("m", "")[:80].strip()

    def read() -> dict[str, Any]:
        with opened(request) as chat:
            values: dict[str, Any] = {"name": chat.name, "problem": "", "preview": None}
            try:
                if handle:
                    values["preview"] = preview_erasure(chat, handle)
            except FoveateError as error:
                values["problem"] = problem_of(error)
            return values

    values = await in_thread(read)
    title = f"Erase {handle or 'messages'} of {values['name']}"
    return page(request, "erase.html.j2", title=title, source=source_of(request), handle=handle, word=CONFIRM, **values)


class JournalEntry(Struct, frozen=True):
    """A record of the journal, as its page shows it."""

    receipt: Receipt
    edits: tuple[tuple[int, str, str, str, str], ...]
    """Number, kind, handle of the message or range, policy and reason of each edit."""


async def show_journal(request: Request) -> Response:
    """Show the newest receipts, or those before an edit, each with its edits."""
    before = number(request, "before", 0)

    def read() -> dict[str, Any]:
        with opened(request) as chat:
            newest = chat._session.head.number
            records = _records_before(chat, before or newest + 1)
            edits = accumulate((min(len(record.edits), RECEIPTS) for record in records), initial=0)
            records = [record for record, above in zip(records, edits, strict=False) if above < _MAX_EDITS]
            ids = named_messages(edit for record in records for edit in record.edits[:RECEIPTS])
            positions = chat._session.state.store.locate(chat._session.head, ids) if ids else {}
            return {"name": chat.name, "newest": newest, "shown": [_listed(record, positions) for record in records]}

    values = await in_thread(read)
    return page(request, "journal.html.j2", title=f"Receipts of {values['name']}", source=source_of(request), **values)


def _records_before(chat: Conversation, before: int) -> list[Record]:
    """Return up to `RECEIPTS` records that changed the view before an edit, the newest first."""
    found: list[Record] = []
    window = 4 * RECEIPTS
    while before > 1 and len(found) < RECEIPTS:
        after = max(0, before - 1 - window)
        records = [record for record in chat._session.records(after) if record.first < before]
        if after and not records:  # One record is longer than the window.
            window *= 4
            continue
        changing = [record for record in records if not all(isinstance(edit, Task | Bill) for edit in record.edits)]
        found += reversed(changing)
        before = records[0].first if records else 1
    return found[:RECEIPTS]


def _listed(record: Record, positions: Mapping[str, int]) -> JournalEntry:
    edits = [
        (at, type(edit).__name__.lower(), _handle(edit, positions), edit.policy, edit.reason)
        for at, edit in list(record.numbered())[:RECEIPTS]
    ]
    return JournalEntry(receipt_of(record), tuple(edits))


def _handle(edit: Edit, positions: Mapping[str, int]) -> str:
    """Return the handle of the message or range that an edit names; "" for none, or for several that are no range."""
    ids = named_messages([edit])[: 2 if isinstance(edit, Summarize) else None]  # It also names what it keeps.
    known = [positions[id] for id in ids if id in positions]
    is_range = isinstance(edit, Summarize) or isinstance(getattr(edit, "target", None), Span)
    if len(known) != len(ids) or not known or (len(known) > 1 and not is_range):
        return ""
    return str(Handle(known[0], known[-1]))


async def show_message(request: Request) -> Response:
    """Show all actions of one message, and why it looks as it does."""
    handle = request.query_params.get("m", "")[:80].strip()

    def read() -> dict[str, Any]:
        with opened(request) as chat:
            try:
                why, named = chat.explain(handle).split("\n"), parse_handle(handle)
                return {"name": chat.name, "why": why, "problem": "", "first": named.first, "end": named.last}
            except FoveateError as error:
                return {"name": chat.name, "why": [], "problem": problem_of(error)}

    values = await in_thread(read)
    return page(
        request,
        "more.html.j2",
        title=f"{handle} of {values['name']}",
        source=source_of(request),
        handle=handle,
        most=_MAX_WHY,
        last=handle.rpartition("-")[2].partition(".")[0],  # A fork begins after one whole message.
        **values,
    )


async def find_conversations(request: Request) -> Response:
    """Return names and addresses of conversations, as JSON for the command palette."""
    query = request.query_params.get("q", "")[:200]

    def read() -> list[dict[str, str]]:
        found = []
        for key, source in sources_of(request).items():
            for row in source.list(query, 0, _MAX_FOUND).rows:
                url = link(request, "conversation", source=key, name=row.name)
                found.append({"title": row.title or row.name, "source": source.title, "url": url})
        return found[:_MAX_FOUND]

    return JSONResponse(await in_thread(read))


# ------------------------------------------------------------------------------------------------------------- texts


def _diff(before: Message | None, after: Message | None) -> Markup:
    """Return the difference of two messages as HTML; one message alone as its text."""
    if before is None or after is None:
        return Markup('<pre class="c-diff">{}</pre>').format(visible(_text_of(before or after)))
    return render_diff(_text_of(before), _text_of(after), FOLDED)


def _text_of(message: Message | None) -> str:
    """Return the text of a message, cut to a size that a page shows."""
    return "\n".join(_pieces(message.parts))[:_MAX_DIFF] if message is not None else ""


def _pieces(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        match part:
            case Text(text=text) | Reasoning(text=text):
                yield text
            case ToolCall(name=name, arguments=arguments):
                yield f"{name}({arguments})"
            case ToolResult(content=content):
                yield from _pieces(content)
            case Media(mime=mime):
                yield f"({mime or 'media'})"
            case Opaque(kind=kind):
                yield f"({kind})"
