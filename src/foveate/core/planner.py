"""From a view and its policies to a plan: the edits to commit, tried out and measured, nothing changed.

Policies run one after the other, each on the view that the edits before it would leave. Then, if the view is over its
budget, the rungs of the floor are climbed until it is not; each must make the view smaller or is passed over. What a
policy may not touch (pinned, system prompts, the last user input) or what changes nothing is left out of the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec import Struct

from ..errors import DoesNotFit
from .budget import is_over
from .edits import Edit, Hide, Pin, Replace, Restore, Span, Summarize, Target, Unpin, named_by
from .journal import Record
from .projection import Projection
from .view import Entry, View

__all__ = ["Plan", "Policy", "draw_up"]

Policy = Callable[[View], Iterable[Edit]]
"""Looks at a view and returns edits, with a reason. Must return the same edits for the same view."""


class Plan(Struct, frozen=True, eq=False):
    """What would be committed, and what the model would see then. A plan that is not applied is a dry run."""

    edits: tuple[Edit, ...]
    before: View
    after: View

    def __bool__(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.edits)

    @property
    def tokens_saved(self) -> int:
        return self.before.tokens - self.after.tokens


def draw_up(
    projection: Projection,
    frame: Callable[[tuple[Entry, ...]], View],
    policies: Sequence[Policy],
    floor: Sequence[Policy] = (),
) -> tuple[Plan, Projection]:
    """The plan for the view that `projection` shows now, and the projection as the plan would leave it.

    `frame` puts entries into a view with its turn, budget and moment. Raises DoesNotFit if no rung of a non-empty
    floor brings the view within its budget.
    """
    before = view = frame(projection.entries())
    draft = projection
    edits: list[Edit] = []

    def attempt(policy: Policy) -> tuple[Projection, View, list[Edit]]:
        asked_for = list(policy(view))
        if not asked_for:
            return draft, view, []
        entries = _touched(view, asked_for)
        wanted = [edit for edit in asked_for if _is_allowed(edit, draft, entries)]
        if not wanted:
            return draft, view, []
        trial = draft.copy()
        trial.apply(Record(draft.number + 1, tuple(wanted), view.turn, view.moment.now, "", draft.position))
        after = frame(trial.entries())
        return trial, after, _measured(wanted, view, entries, _touched(after, wanted))

    for policy in policies:
        draft, view, made = attempt(policy)
        edits += made
    for rung in floor:
        if not is_over(view):
            break
        trial, after, made = attempt(rung)
        if made and _is_smaller(after, view):
            draft, view = trial, after
            edits += made
    if floor and (over := is_over(view)):
        raise _does_not_fit(view, "tokens" if over.tokens else "bytes" if over.bytes else "images")
    return Plan(tuple(edits), before, view), draft


def _is_smaller(after: View, before: View) -> bool:
    """Progress: less of something that is over, and more of nothing that is."""
    over = is_over(before)
    sizes = [(over.tokens, after.tokens, before.tokens), (over.bytes, after.bytes, before.bytes)]
    sizes.append((over.images, after.images, before.images))
    return any(excess and now < then for excess, now, then in sizes)


def _does_not_fit(view: View, unit: str) -> DoesNotFit:
    budget = view.budget
    if unit == "tokens":
        needed = int((view.tokens + budget.overhead) * budget.scale)
        return DoesNotFit(needed, budget.window - budget.reserve, unit)
    if unit == "bytes":
        return DoesNotFit(view.bytes + budget.overhead_bytes, budget.max_bytes, unit)
    return DoesNotFit(view.images, budget.max_images, unit)


def _touched(view: View, edits: Iterable[Edit]) -> dict[str, Entry]:
    """The entries that edits name, or whose place a summary takes, by id."""
    named = set(named_by(edits))
    return {entry.id: entry for entry in view.entries if entry.id in named and entry.kind != "stand-in"}


def _is_allowed(edit: Edit, projection: Projection, entries: dict[str, Entry]) -> bool:
    match edit:
        case Replace(target=target) | Hide(target=Target() as target):
            entry = entries.get(target.message)
            return entry is not None and not entry.pinned and not projection.is_protected(entry.position)
        case Hide() | Summarize() | Restore() | Pin() | Unpin():
            return True


def _measured(edits: list[Edit], before: View, was: dict[str, Entry], now: dict[str, Entry]) -> list[Edit]:
    """The edits with the tokens of what they touch, before and after."""

    def measure(edit: Edit) -> Edit:
        match edit:
            case Replace(target=target) | Hide(target=Target() as target):
                old, new = was.get(target.message), now.get(target.message)
                tokens = (old.tokens if old else 0, new.tokens if new else 0)
            case Summarize(span=span) | Hide(target=Span() as span):
                inside = _between(before, span)
                new = now.get(span.first)
                tokens = (sum(entry.tokens for entry in inside), new.tokens if new and new.kind == "summary" else 0)
            case _:
                return edit
        return msgspec.structs.replace(edit, tokens_before=tokens[0], tokens_after=tokens[1])

    return [measure(edit) for edit in edits]


def _between(view: View, span: Span) -> list[Entry]:
    ids = [entry.id for entry in view.entries]
    if span.first not in ids or span.last not in ids:
        return []
    first, last = ids.index(span.first), len(ids) - 1 - ids[::-1].index(span.last)
    return list(view.entries[first : last + 1])
