"""Saved views, held against the journal that they are made of.

A conversation is gone on with from a saved view, which carries the edits that count in it. Its hash tells damage; who
means to deceive makes another hash. So its edits are compared with those of the journal, whose chain proves them.
"""

from __future__ import annotations

from msgspec.structs import replace

from ..core.edits import Edit, Hide, Replace, Summarize
from ..core.outlines import erased_edit
from ..core.snapshots import Snapshot
from ..errors import Damaged
from ..ports import Finding, Head, Store
from .exporting import records_of

__all__ = ["verify_view"]


def verify_view(store: Store, head: Head) -> list[Finding]:
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
                if number in told and _said(told.pop(number)) != _said(edit):
                    return [Finding("snapshot", f"it tells edit {number} as another one than the journal does")]
    except Damaged as error:
        return [Finding("snapshot", f"it cannot be held against the journal: {error}")]
    if told:
        return [Finding("snapshot", f"it tells an edit {min(told)}, which the journal does not have")]
    return []


def _said(edit: Edit) -> Edit:
    """What of an edit decides what is shown. Its sizes do not: they are measured once it is made, and whoever made it
    may have saved the view without them.
    """
    bare = erased_edit(edit)
    return replace(bare, tokens_before=0, tokens_after=0) if isinstance(bare, Replace | Hide | Summarize) else bare


def _edits_of(snapshot: Snapshot) -> dict[int, Edit]:
    """The edits that count in it, by number."""
    told: dict[int, Edit] = {number: edit for slot in snapshot.kept for number, edit in slot.edits}
    return told | {cover.number: cover.edit for cover in snapshot.covers}
