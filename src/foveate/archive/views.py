"""Saved views, held against the journal that they are made of.

A conversation is gone on with from a saved view, which carries the edits that count in it. Its hash tells damage; who
means to deceive makes another hash. So its edits are compared with those of the journal, whose chain proves them.
"""

from __future__ import annotations

from msgspec.structs import replace

from ..core.edits import Edit, Hide, Replace, Summarize
from ..core.redacted_form import erased_edit
from ..core.snapshots import Snapshot
from ..errors import Damaged
from ..ports import Database, Finding, Head
from .exporting import records_of

__all__ = ["verify_view"]

_Sized = Replace | Hide | Summarize
"""Edits that are measured."""


def verify_view(store: Database, head: Head) -> list[Finding]:
    """Whether the saved view of a conversation tells its edits as the journal does: what is wrong, nothing if all is
    well.

    Not whether it shows the messages it should: that takes the whole history. Reads the journal, a piece at a time. A
    view that another version of foveate saved is not looked at, since it is not used either.
    """
    try:
        saved = store.snapshot(head)
        snapshot = Snapshot.decode(saved[2]) if saved else None
        if snapshot is None:
            return []
        told = _edits_of(snapshot)
        for _, record in records_of(store, head, 0) if told else ():
            for number, edit in record.numbered():
                if number in told and not _is_as_told(told.pop(number), edit):
                    return [Finding("snapshot", f"it tells edit {number} as another one than the journal does")]
    except Damaged as error:
        return [Finding("snapshot", f"it cannot be held against the journal: {error}")]
    if told:
        return [Finding("snapshot", f"it tells an edit {min(told)}, which the journal does not have")]
    return []


def _is_as_told(told: Edit, edit: Edit) -> bool:
    """Whether an edit of a saved view is that of the journal. One without sizes may be it though that has them: once
    views were saved before their edits were measured.
    """
    bare, proven = erased_edit(told), erased_edit(edit)
    if isinstance(bare, _Sized) and isinstance(proven, _Sized) and not (bare.tokens_before or bare.tokens_after):
        proven = replace(proven, tokens_before=0, tokens_after=0)
    return bare == proven


def _edits_of(snapshot: Snapshot) -> dict[int, Edit]:
    """The edits that count in it, by number."""
    told: dict[int, Edit] = {number: edit for slot in snapshot.kept for number, edit in slot.edits}
    return told | {cover.number: cover.edit for cover in snapshot.covers}
