"""Why an entry looks as it does, in sentences a person can read."""

from __future__ import annotations

from collections.abc import Mapping

from .edits import Hide, Pin, Replace, Restore, Summarize, Unpin
from .journal import Record
from .view import Entry

__all__ = ["explain"]


def explain(entry: Entry, records: Mapping[int, Record]) -> str:
    """The story of one entry. `records` gives, for the number of an edit, the record it was committed in."""
    what = {
        "message": f"{entry.handle} is a message of role {entry.message.role}",
        "summary": f"m{entry.position}-m{entry.last} are shown as one text",
        "note": f"{entry.handle} is told as a note",
        "stand-in": f"{entry.handle} has a stand-in that nobody said",
    }[entry.kind]
    lines = [f"{what}, {entry.tokens:,} tokens, recorded in turn {entry.stamp.turn}."]
    lines += [_sentence(number, records.get(number)) for number in entry.edits]
    if entry.mended:
        lines.append(f"Changed for its provider: {entry.mended}.")
    if entry.pinned:
        lines.append("Pinned: no policy may shrink or hide it.")
    if len(lines) == 1:
        lines.append("It is shown as it was appended.")
    return "\n".join(lines)


def _sentence(number: int, record: Record | None) -> str:
    if record is None:
        return f"Edit {number} changed it."
    edit = record.edits[number - record.first]
    verb = {
        Replace: "replaced",
        Hide: "hid a part of",
        Summarize: "summarised",
        Restore: "restored",
        Pin: "pinned",
        Unpin: "unpinned",
    }[type(edit)]
    who = edit.policy or record.author or "an edit"
    size = ""
    if isinstance(edit, Replace | Hide | Summarize) and edit.tokens_before:
        size = f" ({edit.tokens_before:,} -> {edit.tokens_after:,} tokens)"
    reason = f": {edit.reason}" if edit.reason else ""
    return f"Edit {number}, turn {record.turn}: {who} {verb} it{size}{reason}."
