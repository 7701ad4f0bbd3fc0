"""Edits on request and erasing: what a handle names is expanded, edited, undone, or erased for good."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from typing import get_args

from msgspec.structs import replace

from ..core.edits import (
    Bill,
    Edit,
    Hide,
    Path,
    Pin,
    Record,
    Replace,
    Restore,
    Span,
    Summarize,
    SummaryRole,
    Target,
    Task,
    Unpin,
    named_messages,
    paths_overlap,
)
from ..core.effective_edits import EffectiveEdits, gaps, inverse_edits, remade_covers
from ..core.enrich import hides_lasting, lasting_message, retained_parts, transient_paths
from ..core.handles import Handle, parse_handle
from ..core.originals import content_paths, released_form
from ..core.projection import Projection
from ..core.rendering import can_apply
from ..core.snapshots import Cover
from ..errors import BadEdit, BadInput, ConflictError, NotExpandable, UnknownHandle
from ..ports import Erasure, StoredMessage
from .journal_search import number_before, records_between
from .loading import row_of
from .state import PLANS, State
from .withheld import WithheldOriginals

__all__ = ["Editor", "Eraser"]

_ID = re.compile("[0-9a-f]{40}")
_ROWS = 100
"""Messages weighed at a time."""

_UNDOES = re.compile(r"undoes edits? (\d+)(?: to (\d+))?$")
"""The reason that an undo gives to its edits."""


class Editor:
    """Changes what one conversation shows, on request."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.withheld = WithheldOriginals(state)
        """Originals that are kept from the model."""

    # ------------------------------------------------------------------------------------------------------- handles

    def rows_of(self, handle: str | int) -> tuple[Handle, list[StoredMessage]]:
        """Return the messages that a handle, a message's id or its number names, as appended."""
        state = self._state
        parsed = self.parse(handle)
        if parsed.last > (last := state.head.position):
            known = f"messages m1 to m{last}" if last else "no messages"
            raise UnknownHandle(str(handle), f"This conversation has {known}.")
        return parsed, state.store.messages(state.head, parsed.first, parsed.last)

    def parse(self, handle: str | int) -> Handle:
        """Return the handle that a handle, a message's id or its number stands for. Raises UnknownHandle."""
        state = self._state
        if isinstance(handle, str) and _ID.fullmatch(handle):
            places = state.store.locate(state.head, [handle])
            if handle not in places:
                raise UnknownHandle(handle, "No message of this conversation has this id.")
            return Handle(places[handle], places[handle])
        if type(handle) is int:
            if not 1 <= handle <= state.head.position:
                raise UnknownHandle(str(handle), f"This conversation has messages 1 to {state.head.position}.")
            return Handle(handle, handle)
        return parse_handle(handle)  # type: ignore[arg-type]

    def handle_at(self, index: int) -> str:
        """Return the handle of the message at an index, from 0, of the view that was prepared last."""
        shown = self._state.prepared
        if not 0 <= index < len(shown) or not shown[index].position:
            raise UnknownHandle(str(index), f"The last view has messages 0 to {len(shown) - 1}.")
        return str(Handle(shown[index].position, max(shown[index].position, shown[index].last)))

    # --------------------------------------------------------------------------------------------------------- edits

    def edit(self, edits: Sequence[Edit], author: str = "edit") -> Record:
        """Commit edits. Raises BadEdit, and changes nothing, if one cannot apply."""
        if not edits:
            raise BadEdit("There is no edit to commit. Pass one edit at least.")
        state = self._state
        state.follow_head()
        for _ in range(PLANS):
            self._validate(edits, author)
            try:
                return self.commit(edits, author)
            except ConflictError:
                state.refresh()
        raise ConflictError(f"Other writers kept changing the view of {state.head.label}. Try again later.")

    def commit(self, edits: Sequence[Edit], author: str) -> Record:
        """Commit edits that can apply. Raises ConflictError if another writer came first."""
        state = self._state
        before = state.view()
        draft = self._draft(edits, before.call.now)
        return state.commit(edits, author, before, state.frame(draft.entries()), draft)

    def _draft(self, edits: Sequence[Edit], now: int) -> Projection:
        """Return the projection as it would be with these edits."""
        state = self._state
        draft = state.projection.copy()
        trial = Record(state.head.number + 1, state.marked(edits), state.begun() + 1, now, "", draft.position)
        state.loader.fold(draft, trial)
        return draft

    def _validate(self, edits: Sequence[Edit], author: str) -> None:
        state = self._state
        named = named_messages(edits)
        places = state.store.locate(state.head, named)
        unknown = [id for id in named if id not in places]
        if unknown:
            raise BadEdit(f"This conversation has no message with the id {unknown[0]!r}.")
        unpinned = {edit.target.message for edit in edits if isinstance(edit, Unpin)}
        for edit in edits:
            if isinstance(edit, Replace | Hide) and isinstance(edit.target, Target):
                position = places[edit.target.message]
                is_protected = state.projection.is_protected(position, edit.target.path)
                if is_protected or state.projection.refuses(edit):
                    raise BadEdit(
                        f"m{position} is a system prompt or the last user input, which the model must see unchanged."
                    )
                if isinstance(edit, Replace) or edit.target.path:
                    self._require_effect(edit, position)
                elif state.projection.is_pinned(edit.target.message) and edit.target.message not in unpinned:
                    raise BadEdit(f"m{position} is pinned; unpin it first.")
            if isinstance(edit, Summarize) and not edit.text.strip():
                raise BadEdit("A summary needs a text. To show nothing instead of a span, hide it.")
            if isinstance(edit, Summarize) and edit.role not in (roles := get_args(SummaryRole)):
                raise BadEdit(f"Role of a summary is {edit.role!r:.40}. Set it to one of {', '.join(roles)}.")
            span = _span_of(edit)
            if span and places[span.first] > places[span.last]:
                raise BadEdit(f"The span m{places[span.first]}-m{places[span.last]} ends before it begins.")
            if span and isinstance(edit, Hide) and author == "edit":  # For an undo, a message may be protected now.
                self._require_hideable(places[span.first], places[span.last], unpinned)
            if isinstance(edit, Restore) and any(not 1 <= number <= state.head.number for number in edit.edits):
                raise BadEdit(f"The journal has edits 1 to {state.head.number}; {edit.edits} are not all among them.")

    def _require_hideable(self, first: int, last: int, unpinned: Set[str]) -> None:
        """Raise BadEdit if all messages of a span stay in view. `unpinned`: those that the same commit unpins."""
        projection = self._state.projection
        shown = [entry for entry in projection.entries() if first <= entry.position <= last and entry.kind == "message"]
        if len(shown) > last - first and all(
            projection.is_protected(entry.position) or (projection.is_pinned(entry.id) and entry.id not in unpinned)
            for entry in shown
        ):
            raise BadEdit(
                f"{Handle(first, last)} has nothing to hide: system prompts, the last user input and pins stay in view."
            )

    def _require_effect(self, edit: Replace | Hide, position: int) -> None:
        (row,) = self._state.store.messages(self._state.head, position, position)
        if not can_apply(row_of(row).message, edit):
            raise BadEdit(
                f"m{position} cannot be edited like this. Either it has no such part, or the part is reasoning, which "
                "stays with the calls it led to. A call or a result is hidden only with its message, and the new "
                "arguments of a call are one text, a JSON object."
            )

    # ----------------------------------------------------------------------------------------------------- expanding

    def expand(self, handle: str | int, reason: str = "") -> list[StoredMessage]:
        """Show the originals that a handle names again from the next view on, and return them."""
        parsed, rows = self.rows_of(handle)
        self.require_expandable(handle, parsed, rows)
        targets = tuple(_targets(parsed, rows))
        self.edit([Restore(targets, reason=reason or f"{handle} was asked for")], "expand")
        return rows

    def require_expandable(self, handle: str | int, parsed: Handle, rows: Sequence[StoredMessage]) -> None:
        """Raise NotExpandable if a handle names nothing hidden or shrunk, or an original that is withheld.

        A block that a plugin added for a limited number of calls counts only if the handle names it.
        """
        entries = self._state.followed().entries()
        inside = [entry for entry in entries if parsed.first <= entry.position <= parsed.last]
        shown = {entry.position for entry in inside if entry.outline is not None}
        hidden = [row for row in rows if row.position not in shown and (parsed.path or not _is_transient(row))]
        shrunk = [
            entry
            for entry in inside
            if any(paths_overlap(path, parsed.path) for path in entry.shrunk) and (parsed.path or hides_lasting(entry))
        ]
        changed: dict[str, list[Path]] = {row.id: [parsed.path] for row in hidden}
        for entry in shrunk:
            changed[entry.id] = [path for path in entry.shrunk if paths_overlap(path, parsed.path)]
        lasting = not parsed.path
        released = {row.id for row in rows if row.id in changed and _is_released(row, changed[row.id], lasting=lasting)}
        withheld = self.withheld.among(hidden) | {entry.id for entry in shrunk if not entry.expandable}
        if withheld - released:
            raise NotExpandable(str(handle), "its original is kept from the model; `original` reads it")
        if changed and changed.keys() <= released:
            raise NotExpandable(str(handle), "its original was released, and the store has only an outline of it")
        if not shrunk and not hidden:
            is_part_hidden = len(shown) < len(rows) or any(entry.shrunk for entry in inside)
            blocks = f", apart from blocks of plugins. Name one of these, such as m{parsed.first}.2"
            raise NotExpandable(str(handle), f"it is shown whole{blocks if is_part_hidden and not parsed.path else ''}")

    # ------------------------------------------------------------------------------------------------------- undoing

    def undo(self, first: int, last: int) -> Record:
        """Undo the edits with these numbers: what they changed is shown as it is without them."""
        if inverse := self._inverse(first, last):
            return self.edit(inverse, "undo")
        self._require_no_release(records_between(self._state.store, self._state.head, first, last), first, last)
        raise BadEdit(f"Edits {first} to {last} changed nothing that can be undone.")

    def _require_no_release(self, records: Sequence[Record], first: int, last: int) -> None:
        """Raise BadEdit if one of these edits released an original: nothing undoes that."""
        released = (pair for record in records for pair in record.releases())
        gone = [id for number, id, _ in released if first <= number <= last]
        if places := self._state.store.locate(self._state.head, gone) if gone else {}:
            handles = ", ".join(f"m{position}" for position in sorted(places.values()))
            raise BadEdit(
                f"Edits {first} to {last} cannot be undone: they released the originals of {handles}, and the store "
                f"has only outlines of them. Undo other edits by their numbers."
            )

    def _inverse(self, first: int, last: int) -> list[Edit]:
        """Return the edits that undo these ones; none if they are without effect."""
        state = self._state
        if not 1 <= first <= last <= state.head.number:
            raise BadEdit(f"The journal has edits 1 to {state.head.number}, not all of {first} to {last}.")
        records = self._records_about(first, last)
        numbered = [pair for record in records for pair in record.numbered()]
        places = state.store.locate(state.head, named_messages(edit for _, edit in numbered))
        undone = _with_repeats(first, last, records)
        now, then = EffectiveEdits(numbered, places), EffectiveEdits(numbered, places, without=undone)
        if remade := remade_covers(now, then):
            kept = self._kept_in(remade, records)
            now, then = EffectiveEdits(numbered, places, (), kept), EffectiveEdits(numbered, places, undone, kept)
        between = gaps(now, then)
        ends = sorted({end for spans in between.values() for span in spans for end in span})
        rows = state.store.get_many(state.head, ends)
        inverse = inverse_edits(now, then, between, {row.position: row.id for row in rows})
        reason = f"undoes edits {first} to {last}" if first < last else f"undoes edit {first}"
        return [edit if edit.reason else replace(edit, reason=reason) for edit in inverse]

    def _kept_in(self, numbers: Set[int], records: Sequence[Record]) -> dict[int, Set[int]]:
        """Return the positions that stayed visible in these ranges when they were made, such as pins, by number.

        Folds the history up to there, as nothing else says what was shown then.
        """
        loader, past = self._state.loader, self._state.empty()
        kept: dict[int, Set[int]] = {}
        for record in records:
            wanted = [number for number, _ in record.numbered() if number in numbers]
            if wanted:
                loader.fold_up_to(past, record.position, record.last)
                kept.update((number, past.holes_of(number)) for number in wanted)
        return kept

    def undo_newest(self) -> Record:
        """Undo the newest change that is in effect, except an undo. Raises BadInput without one."""
        state = self._state
        state.follow_head()
        undone: set[int] = set()
        unknown = 0  # Newer undos whose edits do not name what they undid: the next older changes.
        last = state.head.number
        while last > 0:
            for record in reversed(records_between(state.store, state.head, max(1, last - _ROWS), last)):
                numbers = {number for number, edit in record.numbered() if not isinstance(edit, Task | Bill)}
                last = record.first - 1
                if numbers <= undone or record.author == "retention":  # That changes no view.
                    continue
                if record.author == "undo":
                    targets = _targets_of_undo(record)
                    undone |= targets
                    unknown += not targets
                elif unknown:
                    unknown -= 1
                else:
                    inverse = self._inverse(record.first, record.last)
                    if inverse and self._changes_view(inverse):
                        return self.edit(inverse, "undo")
                    self._require_no_release([record], record.first, record.last)
        raise BadInput("There is nothing to undo: no edit changes the view.")

    def _changes_view(self, edits: Sequence[Edit]) -> bool:
        """Return whether the view would look different with these edits."""
        before = self._state.projection
        after = self._draft(edits, self._state.view().call.now)

        def looks(projection: Projection) -> list[object]:
            return [(entry.position, entry.last, entry.message, entry.pins) for entry in projection.entries()]

        return looks(before) != looks(after)

    def _records_about(self, first: int, last: int) -> list[Record]:
        """Return the part of the journal that decides what undoing these edits means.

        An edit that hides or replaces is undone in its place. One that restores or pins changed earlier edits of the
        same messages, which were made after these messages came.
        """
        state = self._state
        records = records_between(state.store, state.head, first, state.head.number)
        edits = [edit for record in records for number, edit in record.numbered() if first <= number <= last]
        cancelled = {number for edit in edits if isinstance(edit, Restore) for number in edit.edits}
        named = named_messages(edit for edit in edits if isinstance(edit, Restore | Pin | Unpin))
        since = min({first, *cancelled})
        if places := state.store.locate(state.head, named) if named else {}:
            since = min(since, 1 + number_before(state.store, state.head, min(places.values())))
        return records if since == first else records_between(state.store, state.head, since, state.head.number)


def _targets_of_undo(record: Record) -> set[int]:
    """Return the numbers of the edits that an undo names; none if it only repeats older edits."""
    targets: set[int] = set()
    for edit in record.edits:
        if match := _UNDOES.match(edit.reason):
            targets.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return targets


def _with_repeats(first: int, last: int, records: Sequence[Record]) -> set[int]:
    """Return these edits and the same edits that undoing others has made again since.

    An undo gives a reason to an edit without one; a `Restore` in it makes nothing again.
    """
    undone = set(range(first, last + 1))
    numbered = [(record.author, number, edit) for record in records for number, edit in record.numbered()]
    originals = {replace(edit, reason="") for _, number, edit in numbered if number in undone}
    for author, number, edit in numbered:
        is_repeat = author == "undo" and number > last and not isinstance(edit, Restore)
        if is_repeat and replace(edit, reason="") in originals:
            undone.add(number)
    return undone


def _targets(parsed: Handle, rows: Sequence[StoredMessage]) -> Iterator[Target | Span]:
    """Yield what an expansion restores: all of it, without the blocks that plugins added for a limited time.

    A part that the handle names is restored in any case.
    """
    whole: list[StoredMessage] = []
    for row in rows:
        message = row_of(row).message if row.stamp.retention and not parsed.path else None
        transient = transient_paths(message, row.stamp) if message else frozenset[Path]()
        if message is None or not transient:
            whole.append(row)
            continue
        yield from _as_targets(whole)
        whole = []
        prefix = next(iter(transient))[:-1]
        paths = ((*prefix, index) for index in range(len(retained_parts(message))))
        yield from (Target(row.id, path) for path in paths if path not in transient)
    yield from _as_targets(whole, parsed.path)


def _as_targets(rows: Sequence[StoredMessage], path: Path = ()) -> list[Target | Span]:
    if len(rows) > 1:
        return [Span(rows[0].id, rows[-1].id)]
    return [Target(row.id, path) for row in rows]


def _is_released(row: StoredMessage, named: Sequence[Path], *, lasting: bool) -> bool:
    """Return whether all content at these paths was released. `lasting`: apart from transient blocks of plugins."""
    if not row.is_released:
        return False
    message, stamp = row_of(row).message, row.stamp
    left = transient_paths(message, stamp) if lasting else ()
    paths = [at for at in content_paths(message) if at not in left and any(paths_overlap(at, path) for path in named)]
    is_own = stamp.origin == "user" and not all(map(stamp.is_added, paths))
    return not is_own and released_form(message, stamp, paths) is message


def _is_transient(row: StoredMessage) -> bool:
    """Return whether plugins added all of a message for a limited number of calls."""
    return row.stamp.retention is not None and not lasting_message(row_of(row).message, row.stamp).parts


def _span_of(edit: Edit) -> Span | None:
    match edit:
        case Summarize(span=span) | Hide(target=Span() as span):
            return span
        case _:
            return None


class Eraser:
    """Erases messages of one conversation, and shows again what an erased summary covered, if it fits."""

    def __init__(self, state: State, editor: Editor) -> None:
        self._state, self._editor = state, editor

    def erase(self, handle: str | int, who: str, reason: str) -> Erasure:
        """Erase the messages that a handle names, with everything in the tree of forks that was made of them."""
        state = self._state
        parsed = self._editor.parse(handle)
        if parsed.path:
            raise BadInput(f"{handle} names a part, and only whole messages are erased: erase m{parsed.first}.")
        state.refresh()  # In a store that was rolled back, the handle may name another message.
        self._editor.rows_of(handle)
        erased = state.store.erase(
            state.head, [(parsed.first, parsed.last)], who=who, reason=reason, time=state.clock()
        )
        state.refresh()
        if erased.number:
            self.restore_uncovered()
        return erased

    def restore_uncovered(self) -> None:
        """Show the originals of erased summaries, the newest first, as far as they fit.

        The others stay hidden, under a note that something was erased; they can be expanded.
        """
        state = self._state
        lost, view = state.projection.erased_summaries(), state.view()
        room, numbers = view.budget.usable - view.tokens, list[int]()
        tops = [cover for cover in lost if not any(_lies_in(cover, other) for other in lost)]
        for top in sorted(tops, key=lambda cover: cover.last, reverse=True):
            tokens = self._weigh(top, room)
            if tokens <= room:
                room -= tokens
                numbers += [cover.number for cover in lost if cover.lies_in(top.first, top.last)]
        if numbers:
            reason = "the messages behind their summaries were erased"
            self._editor.edit([Restore(edits=tuple(sorted(numbers)), reason=reason)], "erase")

    def _weigh(self, cover: Cover, room: int) -> int:
        """Return the tokens of a span's originals; if they exceed the room, some larger number."""
        tokens = 0
        for first in range(cover.first, cover.last + 1, _ROWS):
            rows = self._state.store.messages(self._state.head, first, min(first + _ROWS - 1, cover.last))
            tokens += sum(row.stamp.tokens for row in rows if row.body)
            if tokens > room:
                break
        return tokens


def _lies_in(cover: Cover, other: Cover) -> bool:
    return cover is not other and cover.lies_in(other.first, other.last) and cover.number < other.number
