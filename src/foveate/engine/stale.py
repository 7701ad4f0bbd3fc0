"""Whether edits that were made of an earlier view still hold: what they are about must be shown as it was.

Pure: two views of the same past in, a reason out. Knows nothing of how the edits came about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from ..core.edits import Edit, Hide, Pin, Replace, Restore, Span, Summarize, Target, Task, Unpin
from ..core.messages import Message, Text
from ..core.sizes import tokens_of
from ..core.view import Entry, View

__all__ = ["stale"]

_LEFT = 0.25
"""Share of what a summary would have freed that it must still free."""


def stale(asked: View, now: View, edits: Sequence[Edit]) -> str:
    """Why edits that were made of `asked` must not be made `now`; "" if they may.

    The messages in a span may be shown shorter by then, if a policy shortened them: what was made of more is no less
    true. A message that is edited by itself must be as it was.
    """
    if not edits:
        return "nothing came of it"
    return next(filter(None, (_fault(asked, now, edit) for edit in edits)), "")


def _fault(asked: View, now: View, edit: Edit) -> str:
    for target in _targets(edit):
        run = _run(asked.entries, target)
        if run is None:
            return "what it stands for is not shown"
        is_exact = isinstance(target, Target)
        for old, new in zip_longest(_within(asked, run), _within(now, run)):
            if old is None or new is None or not _is_as_it_was(old, new, is_exact):
                return f"{(old or new).handle} was changed meanwhile"
        if isinstance(edit, Summarize):
            text = tokens_of(Message("user", (Text(edit.text),)))
            freed, left = (_size(_within(view, run), edit.keep) - text for view in (asked, now))
            if left < max(1, freed * _LEFT):
                return "it would free too little by now"
    return ""


def _targets(edit: Edit) -> tuple[Target | Span, ...]:
    match edit:
        case Replace(target=target) | Hide(target=target) | Pin(target=target) | Unpin(target=target):
            return (target,)
        case Summarize(span=span):
            return (span,)
        case Restore(targets=targets):
            return targets
        case Task():
            return ()


def _run(entries: Sequence[Entry], target: Target | Span) -> tuple[int, int] | None:
    """The positions that a target names, as far as the view tells."""
    first, last = (target.first, target.last) if isinstance(target, Span) else (target.message, target.message)
    shown = [entry for entry in entries if entry.kind != "stand-in"]
    begins = [entry.position for entry in shown if entry.id == first]
    ends = [max(entry.position, entry.last) for entry in shown if (entry.span.last if entry.span else entry.id) == last]
    return (min(begins), max(ends)) if begins and ends else None


def _within(view: View, run: tuple[int, int]) -> list[Entry]:
    return [entry for entry in view.entries if run[0] <= entry.position <= run[1]]


def _is_as_it_was(old: Entry, new: Entry, is_exact: bool) -> bool:
    """Whether an entry shows what it showed; unless `is_exact`, or what a policy made of that."""
    if old is new:
        return True
    if _identity(old) != _identity(new):
        return False
    return old.shrunk == new.shrunk if is_exact else set(old.shrunk) <= set(new.shrunk)


def _identity(entry: Entry) -> tuple[object, ...]:
    """What must not change: which message it is, what became of it by hand, what was asked for, what is held back."""
    by_hand = {path for path, policy in zip(entry.shrunk, entry.shrunk_by, strict=False) if not policy}
    text = entry.message if by_hand or entry.source is None else None
    return entry.id, entry.kind, text, entry.pins, entry.renewed, entry.expandable, by_hand


def _size(entries: Iterable[Entry], keep: Sequence[str]) -> int:
    """Tokens of what goes."""
    gone = [entry for entry in entries if entry.message.role != "system" and not entry.pins]
    return sum(entry.tokens for entry in gone if entry.source is None or entry.id not in keep)
