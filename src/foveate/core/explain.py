"""Explanations of entries, in sentences that a person can read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import structs

from ..errors import CompactionFailed
from .edits import Bill, Edit, Hide, Pin, Record, Replace, Restore, Summarize, Target, Task, Unpin, path_of
from .handles import Handle
from .planner import Policy
from .projection import Projection
from .stamps import is_interrupted
from .summaries import Answer, NeedsSummary
from .view import Entry, View

__all__ = ["RELEASED", "explain", "explain_hidden", "explain_other_policies"]


RELEASED = "Content of its original was released, and the store has only an outline in its place."
"""The sentence about a released message."""


def explain(entry: Entry, records: Mapping[int, Record], *, is_released: bool = False) -> str:
    """Return the explanation of one entry.

    `records`: the record of each edit, by the number of the edit. `is_released`: whether its original was released.
    """
    number = "are" if entry.last > entry.position else "is"
    subject = {
        "message": f"{entry.handle} is a message of role {entry.message.role}",
        "summary": f"{Handle(entry.position, entry.last)} {number} shown as one text",
        "note": f"{entry.handle} is shown as a note",
        "stand-in": f"{entry.handle} has a stand-in answer",
        "continuation": f"{entry.handle} continues with further calls",
    }[entry.kind]
    lines = [f"{subject}, {entry.tokens:,} tokens, recorded in turn {entry.stamp.turn}."]
    lines += [_sentence(number, records.get(number)) for number in entry.edits]
    if entry.legalized:
        lines.append(f"Changed for its provider: {entry.legalized}.")
    for pin in entry.pins:
        subject = f"Part {'.'.join(str(index + 1) for index in pin.path)} is pinned" if pin.path else "Pinned"
        lines.append(f"{subject}{f' by {pin.policy}' if pin.policy else ''}: no policy may shrink or hide it.")
    if is_released:
        lines.append(RELEASED)
    if len(lines) == 1:
        lines.append("It is shown as it was appended.")
    if is_interrupted(entry.stamp.stop):
        lines.insert(1, "The caller stopped this reply: it ends where it had arrived.")
    return "\n".join(lines)


def explain_hidden(handle: str | int, edits: Iterable[int], records: Mapping[int, Record]) -> str:
    """Return the explanation of messages without an entry. `edits`: numbers of those that hide them, if known."""
    lines = [_sentence(number, records.get(number)) for number in edits]
    if not lines:
        return f"{handle} is not shown: its content is blank or an edit hides it."
    return "\n".join([f"{handle} is not shown.", *lines])


def explain_other_policies(
    entry: Entry,
    projection: Projection,
    frame: Callable[[tuple[Entry, ...]], View],
    policies: Sequence[Policy],
) -> Iterator[str]:
    """Yield a sentence for each other policy: what it would do if the message had no pin and no edits.

    Calls the policies with the same view, but with the message as it was appended.
    """
    if entry.span is not None and len(policies) > 1:
        yield "The other policies do not see the messages that it replaces."
    if entry.outline is None or not (entry.pins or entry.shrunk):
        return
    draft = projection.copy()
    undone: tuple[Edit, ...] = (*(Unpin(Target(entry.id, pin.path)) for pin in entry.pins), Restore((), entry.edits))
    draft.apply(Record(draft.number + 1, undone, 0, 0, "", draft.position))
    view = structs.replace(frame(draft.entries()), is_trial=True)
    why = "it is pinned" if entry.pins else "policies do not change shrunk content"
    for policy in policies:
        shrinking = [edit for edit in _without_asking(policy, view) if isinstance(edit, Replace | Hide | Summarize)]
        edits = [edit for edit in shrinking if edit.policy]
        wanted = next((edit for edit in edits if _names(edit, entry)), None)
        for name in dict.fromkeys(edit.policy for edit in edits):
            if name in entry.shrunk_by:
                continue
            if wanted and wanted.policy == name:
                yield f"{name} would act on it too ({wanted.reason}), but {why}."
            else:
                yield f"{name} has no reason to act on it now."


def _without_asking(policy: Policy, view: View) -> Iterator[Edit]:
    try:
        for wanted in policy(view):
            if isinstance(wanted, NeedsSummary):
                answered = wanted.then(Answer(error="this is only a question"))
                yield from (edit for edit in answered if not isinstance(edit, NeedsSummary))
            else:
                yield wanted
    except CompactionFailed:  # Only a trial: nothing is sent.
        return


def _names(edit: Edit, entry: Entry) -> bool:
    return isinstance(edit, Replace | Hide) and isinstance(edit.target, Target) and edit.target.message == entry.id


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
        Task: "tried to compact",
        Bill: "billed",
    }[type(edit)]
    if isinstance(edit, Hide) and not path_of(edit):
        verb = "hid"
    who = edit.policy or record.author or "an edit"
    size = ""
    if isinstance(edit, Replace | Hide | Summarize) and edit.tokens_before:
        size = f" ({edit.tokens_before:,} -> {edit.tokens_after:,} tokens)"
    reason = f": {edit.reason}" if edit.reason else ""
    return f"Edit {number}, turn {record.turn}: {who} {verb} it{size}{reason}.{_author(edit)}"


def _author(edit: Edit) -> str:
    """Return who wrote a summary, and why earlier summarizers failed."""
    if not isinstance(edit, Replace | Summarize):
        return ""
    written = f" The text was written by {edit.by}." if edit.by else ""
    return written + (f" Earlier summarizers failed: {'; '.join(edit.refused)}." if edit.refused else "")
