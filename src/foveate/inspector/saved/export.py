"""Saved conversations: one self-contained HTML file each, to keep or to attach to an issue."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from urllib.parse import quote

from ...conversation import Conversation
from ...core.call_context import NO_WINDOW
from ...core.plurals import plural
from ...core.scripts import MARKS
from ...open import cost_of
from ...replay.numbers import count, dollars, percent
from ...replay.report import join_words
from ...replay.result import KIND_NAMES, EditFigures, ReplayResult, Row
from ...replay.views import ViewLog
from ..sources import Item, Preparing, Source
from ..views.timeline import Figures, timeline_of
from .files import self_contained
from .report import detail_of
from .viewer import viewer_of

__all__ = ["LIMIT", "file_name", "html_files", "html_of", "saved_replay"]

LIMIT = 5_000_000
"""Bytes of the rows in a file, about."""
CALLS = 2_000
"""Newest calls whose views a file holds."""
_WAIT = 600.0
"""Seconds in which the figures of a very long conversation must be there; after it the file has those so far."""
_AS_IT_WAS = "as it was"
_LONGEST_NAME = 120
"""Bytes of a file's name without its ending. File systems allow 255, and some programs put more into the name."""
_REFUSED = re.compile(rf"(?:[^\w{MARKS} ()+,=@^.~-])+")


def html_of(chat: Conversation, *, limit: int = LIMIT) -> str:
    """Return the HTML file of a conversation: figures, charts, and the views of its newest calls.

    `limit`: bytes of the rows of messages. The file says what it leaves out.
    """
    saved = saved_replay(chat)
    row = saved.row
    facts = [
        plural(row.messages, "message"),
        plural(row.calls, "model call"),
        *([f"window of {count(row.window)} tokens"] if row.window else []),
        *([f"{percent(row.cost_ratio)} of the cost of sending everything"] if row.cost_unmanaged else []),
        *([f"{dollars(row.money)} of {dollars(row.money_unmanaged)}"] if row.money is not None else []),
        *([row.model] if row.model else []),
    ]
    return self_contained(
        "saved.html.j2",
        css=("style.css", "content.css", "rows.css", "report.css"),
        js=("report.js", "viewer.js"),
        title=chat.name,
        facts=facts,
        detail=detail_of([saved]) if saved.calls else None,
        kinds=KIND_NAMES,
        viewer=viewer_of([saved], limit=limit),
    )


def saved_replay(chat: Conversation) -> ReplayResult:
    """Return the figures and the newest views of a stored conversation, in the form of a replay's result.

    Recall and other figures that only a replay measures are None.
    """
    figures = timeline_of(chat, cost_of).follow(_WAIT)
    session = chat._session
    with session.lock:
        walk = session.past.walk()
    log = ViewLog()
    first = max(0, figures.count - CALLS)
    for index, _ in enumerate(walk.calls()):
        if index >= first:
            log.add(walk.entries())
    log.records = chat.journal.records()
    return ReplayResult(_row(chat, figures), tuple(map(figures.call, range(figures.count))), _edits(figures), (), log)


def file_name(name: str) -> str:
    """Return a name for a conversation's file: without a folder, and without characters that a file system refuses.

    Letters of any script stay, as far as the file system can write them.
    """
    plain = _REFUSED.sub(lambda refused: _quoted(refused[0]), unicodedata.normalize("NFC", name))
    try:
        plain.encode(sys.getfilesystemencoding())
    except UnicodeEncodeError:
        plain = _quoted(plain)
    plain = plain.lstrip(". ").encode()[:_LONGEST_NAME].decode(errors="ignore").rstrip()
    return f"{plain or 'conversation'}.html"


def _quoted(text: str) -> str:
    return quote(text, safe=" ()+,=@^-", errors="replace").replace("%", "~")


def html_files(sources: Sequence[Source], *, name: str | None) -> Iterator[tuple[str, str]]:
    """Yield the file name and the HTML of each conversation of these sources, or of those with this name."""
    used: set[str] = set()
    for source in sources:
        for item in _items(source):
            if name is not None and name not in (item.name, item.title):
                continue
            file = file_name(item.title or item.name)
            while file.lower() in used:  # Two sources may have the same name, and some systems ignore case.
                file = f"{file.removesuffix('.html')}~.html"
            used.add(file.lower())
            yield file, _text_of(source, item.name)


def _items(source: Source) -> Iterator[Item]:
    at = 0
    while rows := source.list("", at, _PAGE).rows:
        yield from rows
        at += len(rows)


def _text_of(source: Source, name: str) -> str:
    while True:
        with suppress(Preparing), source.open(name) as chat:  # A recording is replayed first; `open` waits a while.
            return html_of(chat)


_PAGE = 100
"""Conversations listed at a time."""


def _row(chat: Conversation, figures: Figures) -> Row:
    """Return the figures of a stored conversation as a row."""
    cost, whole = figures.total("cost"), figures.total("cost_unmanaged")
    ratio = cost / whole if whole else 1.0
    tokens = list(figures.column("tokens"))[: figures.count]
    priced = figures.count > 0 and all(amount >= 0 for amount in figures.amounts("dollars")[: figures.count])
    models = {model for index in range(figures.count) if (model := figures.model(index))}
    budget = chat.budget
    return Row(
        transcript=chat.name,
        policy=_AS_IT_WAS,
        messages=len(chat),
        calls=figures.count,
        input_tokens=sum(tokens),
        peak_tokens=max(tokens, default=0),
        cost=cost,
        cost_unmanaged=whole,
        cost_ratio=ratio,
        cost_all_in=ratio,
        expansions=0,
        edits=len({commit.call for commit in figures.commits}),
        prefix_rewrites=0,
        references=0,
        recall_visible=None,
        said_references=0,
        said_visible=None,
        quoted_lines=0,
        quoted_visible=None,
        recall_reachable=None,
        illegal_views=0,
        lost_messages=0,
        ms_per_turn_p50=0.0,
        ms_per_turn_p99=0.0,
        window=budget.window if budget.window < NO_WINDOW else 0,
        provider=chat.format.name,
        model=join_words(sorted(models)) if models else "",
        money=figures.total("dollars") if priced else None,
        money_unmanaged=figures.total("dollars_unmanaged") if priced else None,
    )


def _edits(figures: Figures) -> tuple[EditFigures, ...]:
    return tuple(
        EditFigures(
            turn=commit.call + 1,
            edits=commit.last - commit.first + 1,
            tokens_before=commit.tokens_before,
            tokens_after=commit.tokens_after,
            first_position=0,
            policies=commit.policies,
        )
        for commit in figures.commits
        if commit.call < figures.count
    )
