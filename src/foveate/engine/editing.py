"""Editing by hand: what a handle names is expanded, edits are looked at before they are made, and taken back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from ..core.edits import (
    Edit,
    Hide,
    Pin,
    Record,
    Replace,
    Restore,
    Span,
    Summarize,
    Target,
    Unpin,
    named_messages,
    paths_overlap,
)
from ..core.effective_edits import EffectiveEdits, gaps, inverse_edits
from ..core.handles import Handle, parse_handle
from ..core.projection import Projection
from ..core.rendering import can_apply
from ..core.view import Entry
from ..errors import BadEdit, ConflictError, NotExpandable, UnknownHandle
from ..ports import StoredMessage
from .planning import Planning
from .state import row_of
from .steps import PLANS, Step

__all__ = ["Editing"]

_ID = re.compile("[0-9a-f]{40}")


class Editing(Planning):
    """The steps that change a view because somebody said so."""

    _kept_back: tuple[int | None, int, int, dict[int, str]] = (None, 0, 0, {})
    """Which edits keep originals from the model: on which branch, of messages from where on, up to which edit."""

    def edit(self, edits: Sequence[Edit], author: str = "edit") -> Step[Record]:
        """Commit edits made by hand. Raises BadEdit, and changes nothing, where one cannot apply."""
        if not edits:
            raise BadEdit("There is no edit to commit.")
        yield from self._follow_head()
        for _ in range(PLANS):
            yield from self._validate(edits)
            before = self.view()
            draft = self.projection.copy()
            now = before.call.now
            trial = Record(self.head.number + 1, tuple(edits), self._begun() + 1, now, "", draft.position)
            yield from self._fold(draft, trial)
            try:
                return (yield from self._commit(edits, author, before, self.frame(draft.entries()), draft))
            except ConflictError:
                yield from self.refresh()
        raise ConflictError(f"Other writers kept changing the view of {self.head.name!r}; try again later.")

    def _validate(self, edits: Sequence[Edit]) -> Step[None]:
        wanted = named_messages(edits)
        where = yield partial(self.store.locate, self.head, wanted)
        unknown = [id for id in wanted if id not in where]
        if unknown:
            raise BadEdit(f"This conversation has no message {unknown[0]!r}.")
        unpinned = {edit.target.message for edit in edits if isinstance(edit, Unpin)}
        for edit in edits:
            if isinstance(edit, Replace | Hide) and isinstance(edit.target, Target):
                position = where[edit.target.message]
                if self.projection.is_protected(position, edit.target.path) or self.projection.refuses(edit):
                    raise BadEdit(
                        f"m{position} is a system prompt or the last user input, which the model must see as it was "
                        "said."
                    )
                if isinstance(edit, Replace) or edit.target.path:
                    yield from self._require_effect(edit, position)
                elif self.projection.is_pinned(edit.target.message) and edit.target.message not in unpinned:
                    raise BadEdit(f"m{position} is pinned; unpin it first.")
            if isinstance(edit, Summarize) and not edit.text.strip():
                raise BadEdit("A summary needs a text. To show nothing in place of a span, hide it.")
            span = _span_of(edit)
            if span and where[span.first] > where[span.last]:
                raise BadEdit(f"The span m{where[span.first]}-m{where[span.last]} ends before it begins.")
            if isinstance(edit, Restore) and any(not 1 <= number <= self.head.number for number in edit.edits):
                raise BadEdit(f"The journal has edits 1 to {self.head.number}; {edit.edits} are not all among them.")

    def _require_effect(self, edit: Replace | Hide, position: int) -> Step[None]:
        (row,) = yield partial(self.store.messages, self.head, position, position)
        if not can_apply(row_of(row).message, edit):
            raise BadEdit(
                f"m{position} cannot be edited so. Either it has no such part, or it is reasoning, which stays with "
                "the calls it led to; a call or a result is hidden only with its message; a call's new arguments are "
                "one text, a JSON object."
            )

    def named(self, handle: str | int) -> Step[tuple[Handle, list[StoredMessage]]]:
        """The messages behind a handle, as appended. Also taken: a message's id, and its index in the last view."""
        parsed = yield from self._parsed(handle)
        if parsed.last > self.head.position:
            raise UnknownHandle(str(handle), f"This conversation has messages m1 to m{self.head.position}.")
        rows = yield partial(self.store.messages, self.head, parsed.first, parsed.last)
        return parsed, rows

    def _parsed(self, handle: str | int) -> Step[Handle]:
        if isinstance(handle, str) and _ID.fullmatch(handle):
            where = yield partial(self.store.locate, self.head, [handle])
            if handle not in where:
                raise UnknownHandle(handle, "No message of this conversation has this id.")
            return Handle(where[handle], where[handle])
        if type(handle) is int:
            shown = self.shown
            if not 0 <= handle < len(shown) or not shown[handle].position:
                raise UnknownHandle(str(handle), f"The last view has messages 0 to {len(shown) - 1}.")
            return Handle(shown[handle].position, max(shown[handle].position, shown[handle].last))
        return parse_handle(handle)  # type: ignore[arg-type]

    def expand(self, handle: str | int, reason: str = "") -> Step[list[StoredMessage]]:
        """Show the originals behind a handle again from the next view on, and return them."""
        parsed, rows = yield from self.named(handle)
        yield from self.require_expandable(handle, parsed, rows)
        target = Target(rows[0].id, parsed.path) if len(rows) == 1 else Span(rows[0].id, rows[-1].id)
        yield from self.edit([Restore((target,), reason=reason or f"{handle} was asked for")], "expand")
        return rows

    def require_expandable(self, handle: str | int, parsed: Handle, rows: Sequence[StoredMessage]) -> Step[None]:
        """Raise NotExpandable where nothing of what a handle names is hidden or shrunk, and where it must not come
        back.
        """
        entries = (yield from self.followed()).entries()
        inside = [entry for entry in entries if parsed.first <= entry.position <= parsed.last]
        there = {entry.position for entry in inside if entry.source is not None}
        hidden = [row.id for row in rows if row.position not in there]
        shrunk = [one for one in inside if any(paths_overlap(path, parsed.path) for path in one.shrunk)]
        kept_back = (yield from self.withheld(parsed.first)) if hidden else set()
        if any(not entry.expandable for entry in shrunk) or kept_back & {*hidden}:
            raise NotExpandable(str(handle), "its original is kept from the model; `original` reads it")
        if not shrunk and not hidden:
            raise NotExpandable(str(handle), "it is shown whole")

    def followed(self) -> Step[Projection]:
        """The projection, brought to where the head is."""
        yield from self._follow_head()
        return self.projection

    @property
    def shown(self) -> tuple[Entry, ...]:
        """The view that was settled last; before there was one, all that is visible."""
        return self.projection.entries() if self._shown is None else self._shown

    def withheld(self, since: int = 1) -> Step[set[str]]:
        """Ids of messages, from position `since` on, whose originals a policy keeps from the model, those that are
        hidden now too.
        """
        branch, begun, number, kept = self._kept_back
        if branch != self.head.branch or begun > since:
            found = yield from self._records_since(since, self.head.number)
            kept = {}
        else:
            found = [record for _, record in (yield partial(self.store.records, self.head, number))]
            since = begun
        for record in found:
            for n, edit in record.numbered():
                if isinstance(edit, Replace) and not edit.expandable:
                    kept[n] = edit.target.message
                elif isinstance(edit, Restore):
                    back = {target.message for target in edit.targets if isinstance(target, Target)}
                    kept = {n: id for n, id in kept.items() if n not in edit.edits and id not in back}
        self._kept_back = (self.head.branch, since, self.head.number, kept)
        return set(kept.values())

    def undo(self, first: int, last: int) -> Step[Record]:
        """Take back the edits with these numbers: what they changed is shown as it was without them."""
        if not 1 <= first <= last <= self.head.number:
            raise BadEdit(f"The journal has edits 1 to {self.head.number}, not all of {first} to {last}.")
        records = yield from self._records_about(first, last)
        numbered = [pair for record in records for pair in record.numbered()]
        where = yield partial(self.store.locate, self.head, named_messages(edit for _, edit in numbered))
        gone = _with_remakes(first, last, records)
        now, then = EffectiveEdits(numbered, where), EffectiveEdits(numbered, where, without=gone)
        between = gaps(now, then)
        ends = sorted({end for runs in between.values() for run in runs for end in run})
        rows = yield partial(self.store.get_many, self.head, ends)
        back = inverse_edits(now, then, between, {row.position: row.id for row in rows})
        if not back:
            raise BadEdit(f"Edits {first} to {last} changed nothing that could be taken back.")
        said = f"undoes edits {first} to {last}" if first < last else f"undoes edit {first}"
        return (yield from self.edit([edit if edit.reason else replace(edit, reason=said) for edit in back], "undo"))

    def _records_about(self, first: int, last: int) -> Step[list[Record]]:
        """The part of the journal that tells what taking back these edits comes to.

        What hides or replaces is undone where it stands. What restores or pins had changed what was said before about
        the same messages, and that was said after they came.
        """
        records = yield from self._records_from(first, self.head.number)
        edits = [edit for record in records for number, edit in record.numbered() if first <= number <= last]
        cancelled = {number for edit in edits if isinstance(edit, Restore) for number in edit.edits}
        named = named_messages(edit for edit in edits if isinstance(edit, Restore | Pin | Unpin))
        since = min({first, *cancelled})
        if where := (yield partial(self.store.locate, self.head, named)) if named else {}:
            since = min(since, 1 + (yield from self._number_before(min(where.values()), self.head.number)))
        return records if since == first else (yield from self._records_from(since, self.head.number))


def _with_remakes(first: int, last: int, records: Sequence[Record]) -> set[int]:
    """These edits, and those of them that undoing something else has made again since: they are the same edits.

    An undo gives a reason to an edit that has none; a `Restore` in it takes back, and makes nothing again.
    """
    gone = set(range(first, last + 1))
    numbered = [(record.author, number, edit) for record in records for number, edit in record.numbered()]
    made = {replace(edit, reason="") for _, number, edit in numbered if number in gone}
    for author, number, edit in numbered:
        if author == "undo" and number > last and not isinstance(edit, Restore) and replace(edit, reason="") in made:
            gone.add(number)
    return gone


def _span_of(edit: Edit) -> Span | None:
    match edit:
        case Summarize(span=span) | Hide(target=Span() as span):
            return span
        case _:
            return None
