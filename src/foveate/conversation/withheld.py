"""Originals that the model cannot expand or find: a policy withholds them, or the caller removed them from its list."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.edits import CALLER, COMPACTED, Edit, Hide, Record, Replace, Restore, Span, Target, ends_of, named_messages
from ..core.snapshots import ForgottenRange, subtract_range
from ..ports import StoredMessage
from .journal_search import records_since
from .state import State

__all__ = ["WithheldOriginals"]


class WithheldOriginals:
    """The originals of one conversation that are kept from the model, read from the journal when they are needed."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._branch: int | None = None
        self._since, self._number = 0, 0  # the first position and the newest edit that were read
        self._ids: dict[int, str] = {}  # messages with replaced content, by the number of the edit
        self._ranges: list[ForgottenRange] = []  # positions that the caller removed

    def among(self, rows: Sequence[StoredMessage]) -> set[str]:
        """Return the ids of the messages among these whose originals are kept from the model."""
        removed, replaced = self.removed(rows), set(self._ids.values())
        return {row.id for row in rows if row.id in removed or row.id in replaced}

    def removed(self, rows: Sequence[StoredMessage]) -> set[str]:
        """Return the ids of the messages among these that the caller removed from its list."""
        if not rows:
            return set()
        self._read(min(row.position for row in rows))
        return {row.id for row in rows if any(first <= row.position <= last for first, last, _ in self._ranges)}

    def _read(self, since: int) -> None:
        state = self._state
        if self._branch != state.head.branch or self._since > since:
            records = records_since(state.store, state.head, since)
            self._branch, self._since, self._ids, self._ranges = state.head.branch, since, {}, []
        else:
            records = [record for _, record in state.store.records(state.head, self._number)]
        self._number = state.head.number
        if relevant := [record for record in records if any(map(_is_relevant, record.edits))]:
            self._take(relevant)

    def _take(self, records: Sequence[Record]) -> None:
        edits = [(number, edit) for record in records for number, edit in record.numbered() if _is_relevant(edit)]
        places = self._state.store.locate(self._state.head, named_messages(edit for _, edit in edits))

        def range_of(target: Target | Span) -> tuple[int, int]:
            first, last = ends_of(target)
            return places.get(first, 1), places.get(last, 0)

        for number, edit in edits:
            match edit:
                case Replace():
                    self._ids[number] = edit.target.message
                case Hide(target=target):
                    first, last = range_of(target)
                    self._ranges = [known for known in self._ranges if not (first <= known[0] and known[1] <= last)]
                    self._ranges.append((first, last, number))
                case Restore(targets=targets, edits=numbers):
                    restored = {target.message for target in targets if isinstance(target, Target)}
                    self._ids = {n: id for n, id in self._ids.items() if n not in numbers and id not in restored}
                    self._ranges = [known for known in self._ranges if known[2] not in numbers]
                    for target in targets:
                        self._ranges = subtract_range(self._ranges, *range_of(target))
                case _:
                    pass


def _is_relevant(edit: Edit) -> bool:
    match edit:
        case Replace(expandable=expandable):
            return not expandable
        case Hide(target=target, policy=policy, reason=reason):
            return policy == CALLER and reason != COMPACTED and (isinstance(target, Span) or not target.path)
        case _:
            return isinstance(edit, Restore)
