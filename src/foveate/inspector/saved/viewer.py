"""Views of all calls for a saved file: every form of every message once, and the rows of each call as numbers.

A file has a limited size. The rows of the newest views come first; the file counts the others and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup
from msgspec import Struct

from ...core.call_context import NO_WINDOW, Budget
from ...core.messages import Message, Part
from ...core.plurals import plural
from ...core.view import Entry, View
from ...replay.result import ReplayResult
from ..content import FOLDED, Limits, headline, render
from ..templating import environment
from ..views.entries import EntryRow, readable, rows_of

__all__ = ["Viewer", "viewer_of"]

_WHOLE = Limits(400, 1_000, 24_000)
"""How much of a part a row has, if all rows have room."""
_HTML_RATIO = 3
"""Bytes of a row's HTML for each character of its content, at most on average."""
_BARE = 900
"""Bytes of a row without its content."""
_NO_BUDGET = Budget(NO_WINDOW, 0, 10**15, 10**9)


class Viewer(Struct, frozen=True):
    """The views of all calls as HTML, and the numbers that the script needs."""

    shown: Markup
    """The rows of the last view of the first replay."""
    others: Markup
    """All other rows."""
    data: dict[str, Any]
    """For the script: the rows of each call, as numbers."""
    titles: tuple[str, ...]
    """The names of the replays."""
    notes: tuple[str, ...]
    """Sentences about the content that the file leaves out."""


class _Form(Struct):
    """One form of one message, in one or several views."""

    row: EntryRow
    rank: tuple[int, int]
    """The last views first: distance from the end, then place."""


def viewer_of(replays: Sequence[ReplayResult], *, limit: int, is_folded: bool = False) -> Viewer | None:
    """Return the views of replays that kept them; None if there are none.

    `limit`: bytes of all rows together. `is_folded`: show only the beginning of a content, even if all has room.
    """
    kept = [replay for replay in replays if replay.views is not None and len(replay.views)]
    if not kept:
        return None
    forms: dict[Any, int] = {}
    all_forms: list[_Form] = []
    changes = [list(_changes(replay, forms, all_forms)) for replay in kept]
    html, left_out, cut = _rendered(all_forms, limit, is_folded)
    last = _last(changes[0])
    return Viewer(
        _wrapped((number, html[number]) for number in last),
        _wrapped((number, text) for number, text in enumerate(html) if number not in set(last)),
        {
            "scenes": [
                {
                    "turns": [call.turn for call in replay.calls[-len(each) :]],
                    "messages": [call.message for call in replay.calls[-len(each) :]],
                    "tokens": [call.tokens for call in replay.calls[-len(each) :]],
                    "changes": each,
                }
                for replay, each in zip(kept, changes, strict=True)
            ],
        },
        tuple(replay.row.policy for replay in kept),
        tuple(_notes(kept, changes, left_out, cut, limit)),
    )


def _changes(replay: ReplayResult, numbers: dict[Any, int], forms: list[_Form]) -> Iterator[list[Any]]:
    """Yield the change of each view, with a number for each form of a message, and collect the forms."""
    log = replay.views
    assert log is not None
    records = {number: record for record in log.records for number, _ in record.numbered()}
    by_entry: dict[int, int] = {}
    held: list[Entry] = []  # Keeps the entries alive, whose identities are keys.
    entries: list[Entry] = []
    for at, change in enumerate(log.changes, 1):
        distance = len(log) - at
        for entry in entries[change.start : change.start + change.removed]:
            _see(forms[by_entry[id(entry)]], distance + 1, entry.position)
        entries[change.start : change.start + change.removed] = change.added
        places = [
            index
            for index in range(change.start, change.start + len(change.added))
            if id(entries[index]) not in by_entry
        ]
        if places:
            view = View(tuple(entries), at, _NO_BUDGET)
            shaping = {number: records[number] for place in places for number in entries[place].edits}
            for index, row in zip(places, rows_of(view, places, shaping.values()), strict=True):
                assert isinstance(row, EntryRow)
                key = (row.key, row.last, row.kind, row.policy, row.reason, row.is_pinned, row.parts)
                number = numbers.setdefault(key, len(forms))
                if number == len(forms):
                    forms.append(_Form(row, (len(log), row.position)))
                by_entry[id(entries[index])] = number
                held.append(entries[index])
        yield [change.start, change.removed, [by_entry[id(entry)] for entry in change.added]]
    for entry in entries:
        _see(forms[by_entry[id(entry)]], 0, entry.position)


def _see(form: _Form, distance: int, position: int) -> None:
    form.rank = min(form.rank, (distance, position))


def _last(changes: Sequence[Sequence[Any]]) -> list[int]:
    rows: list[int] = []
    for start, removed, added in changes:
        rows[start : start + removed] = added
    return rows


def _rendered(forms: Sequence[_Form], limit: int, is_folded: bool) -> tuple[list[Markup | None], int, int]:
    """Return the HTML of each form or None, and how many were left out, with their content or wholly."""
    characters = sum(sum(len(_text(part)) for part in form.row.parts) + _BARE for form in forms)
    limits = FOLDED.half if is_folded else FOLDED if characters * _HTML_RATIO > limit else _WHOLE
    macro = environment().get_template("_rows.html.j2").module.entry_row  # type: ignore[attr-defined]  # A macro.
    html: list[Markup | None] = [None] * len(forms)
    left_out = cut = 0
    for number in sorted(range(len(forms)), key=lambda number: forms[number].rank):
        row = forms[number].row
        text = Markup(macro(row, _drawing(limits), _headline, None)) if limit > 0 else None
        if text is not None and len(text.encode()) > limit:
            text = Markup(macro(row, _drawing(None), _headline, None))
            cut += 1
        size = len(text.encode()) if text is not None else 0
        if text is None or size > limit:
            limit, left_out = 0, left_out + 1
            continue
        limit -= size
        html[number] = text
    return html, left_out, cut


def _drawing(limits: Limits | None) -> Any:
    def draw(row: EntryRow, part: Part, path: str) -> Markup:
        if limits is None:
            return Markup('<p class="soft">The file has no room for this content.</p>')
        form = "plain" if row.kind in ("digest", "fold", "placeholder") else ""
        return render(part, path=path, call=row.call, limits=limits, form=form)

    return draw


def _headline(row: EntryRow) -> Markup:
    return headline(row.parts[0]) if row.parts else Markup("empty")


def _wrapped(rows: Any) -> Markup:
    return Markup("\n").join(
        Markup('<div class="saved-row" data-form="{}">{}</div>').format(number, text)
        for number, text in rows
        if text is not None
    )


def _text(part: Part) -> str:
    return readable(Message("user", (part,)))


def _notes(
    replays: Sequence[ReplayResult], changes: Sequence[Sequence[Any]], left_out: int, cut: int, limit: int
) -> Iterator[str]:
    size = f"{limit / 1_000_000:g} MB"
    for replay, each in zip(replays, changes, strict=True):
        if missing := len(replay.calls) - len(each):
            under = f" under {replay.row.policy}" if len(replays) > 1 else ""
            yield f"The views of calls 1 to {missing:,}{under} are left out: the file holds the newest."
    if cut:
        yield f"{plural(cut, 'message')} without content: rows have {size} of room."
    if left_out:
        yield f"{plural(left_out, 'message')} left out: rows have {size} of room, and the newest views come first."
