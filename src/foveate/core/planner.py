"""From a view and its policies to a plan: the edits to commit, tried out and measured, nothing changed.

Policies run one after the other, each on the view that the edits before it would leave. Then, if the view is over its
budget, the stages of the floor are climbed until it is near its target; each must make the view smaller or is passed
over. What a policy may not touch (pinned, system prompts, the last user input), what it does not see and what changes
nothing is left out of the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ..errors import BadSetting, DoesNotFit
from .budget import NEAR, aim_at, measure_excess
from .edits import Edit, Hide, Pin, Record, Replace, Restore, Span, Summarize, Target, Task, Unpin, named_messages
from .projection import Projection
from .rendering import can_apply
from .summaries import Answer, NeedsSummary, SummaryRequest
from .view import Entry, View

__all__ = ["OpenRequest", "Plan", "Policy", "Stage", "answer_edits", "make_plan"]

Policy = Callable[[View], Iterable[Edit | NeedsSummary]]
"""Looks at a view and returns edits, with a reason. Must return the same edits for the same view."""


class Stage(Struct, frozen=True):
    """One step of the floor, climbed if those before were not enough."""

    free: Policy
    """Frees what it can of what is over the budget of the view that it is given."""
    is_last_resort: bool = False
    """Climbed only while the view does not fit; other stages are climbed until it is near its target."""


class OpenRequest(Struct, frozen=True, eq=False):
    """A summary that a policy asks for, and the view it was asked of: as the policy's own edits leave it."""

    needs: NeedsSummary
    view: View

    @property
    def is_due(self) -> bool:
        """Whether the edits are wanted now."""
        return self.needs.when != "ahead"


class Plan(Struct, frozen=True, eq=False):
    """What would be committed, and what the model would see then. A plan that is not applied is a dry run."""

    edits: tuple[Edit, ...]
    before: View
    after: View
    open_requests: tuple[OpenRequest, ...] = ()
    """What is not answered. `edits` are what can be done without it."""
    is_tight: bool = False
    """Whether the view did not fit when the policies were done: the floor had to act, if there is one."""

    def __bool__(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.edits)

    @property
    def due(self) -> tuple[OpenRequest, ...]:
        """The questions whose edits are wanted now."""
        return tuple(question for question in self.open_requests if question.is_due)

    @property
    def requests(self) -> tuple[SummaryRequest, ...]:
        """Summaries that are needed before the plan is complete."""
        return tuple(question.needs.request for question in self.due)

    @property
    def tokens_saved(self) -> int:
        return self.before.tokens - self.after.tokens


def make_plan(
    projection: Projection,
    frame: Callable[[tuple[Entry, ...]], View],
    policies: Sequence[Policy],
    floor: Sequence[Stage] = (),
    answers: Mapping[str, Answer] = {},
) -> Plan:
    """The plan for the view that `projection` shows now.

    `frame` puts entries into a view with its turn, budget and moment. `answers`: to earlier requests, by their keys.
    Raises DoesNotFit if no stage of a non-empty floor brings the view within its budget, and BadSetting for a policy
    that returns something else than edits.
    """

    def seen(shown: Projection) -> View:
        view, withheld = frame(shown.entries()), shown.withheld()
        return replace(view, withheld=withheld) if withheld else view

    before = view = seen(projection)
    draft = projection
    edits: list[Edit] = []
    questions: list[OpenRequest] = []

    def attempt(asked_for: list[Edit]) -> tuple[Projection, View, list[Edit]]:
        was = _touched(view, asked_for) if asked_for else {}
        wanted = [edit for edit in asked_for if _is_allowed(edit, draft, was)]
        while wanted:
            trial = draft.copy()
            record = Record(draft.number + 1, tuple(wanted), before.turn, before.call.now, "", draft.position)
            shown_again = draft.needs(record)
            trial.apply(record)
            if any(trial.missing(*run) for run in shown_again):  # Hidden and restored at once: only the store has it.
                wanted = [edit for edit in wanted if not isinstance(edit, Restore)]
                continue
            after = seen(trial)
            change = _Change(view, after, was, _touched(after, wanted), trial)
            effective = [edit for edit in wanted if change.is_made_by(edit)]
            if len(effective) == len(wanted):
                return trial, after, [change.measured(edit) for edit in wanted]
            wanted = effective  # Once more without what changed nothing: edits are numbered without gaps.
        return draft, view, []

    for policy in policies:
        wanted, asked = _wanted(policy, view, answers)
        draft, view, made = attempt(wanted)
        edits += made
        questions += [OpenRequest(needs, view) for needs in asked]
    over = measure_excess(view)
    is_tight = bool(over)
    for stage in floor if over else ():
        if not measure_excess(view if stage.is_last_resort else aim_at(view, over, NEAR)):
            continue
        goal = view if stage.is_last_resort else aim_at(view, over)
        trial, after, made = attempt(_wanted(stage.free, goal, answers)[0])
        if made and _is_smaller(after, goal):
            draft, view = trial, after
            edits += made
    if floor and (over := measure_excess(view)):
        raise _does_not_fit(view, "tokens" if over.tokens else "bytes" if over.bytes else "images")
    return Plan(tuple(edits), before, view, tuple(questions), is_tight)


def answer_edits(question: NeedsSummary, answers: Mapping[str, Answer]) -> tuple[list[Edit], list[NeedsSummary]]:
    """The edits that come of a question, as far as it is answered, and what else it has to ask."""
    return _taken(lambda view: (question,), (question,), answers)


def _wanted(policy: Policy, view: View, answers: Mapping[str, Answer]) -> tuple[list[Edit], list[NeedsSummary]]:
    """What a policy wants to be done, and what it asks before it can say more."""
    return _taken(policy, policy(view), answers)


def _taken(
    policy: Policy, given: Iterable[Edit | NeedsSummary], answers: Mapping[str, Answer]
) -> tuple[list[Edit], list[NeedsSummary]]:
    edits: list[Edit] = []
    questions: list[NeedsSummary] = []

    def take(given: Iterable[Edit | NeedsSummary], asked: tuple[str, ...]) -> None:
        for wanted in _returned(policy, given):
            if not isinstance(wanted, NeedsSummary):
                edits.append(wanted)
            elif (answer := answers.get(key := wanted.request.key)) is None:
                questions.append(wanted)
            elif key not in asked:  # Who asks the same again, knowing the answer, would ask for ever.
                take(_signed(wanted.then(answer), answer), (*asked, key))

    take(given, ())
    return edits, questions


def _signed(edits: Iterable[Edit | NeedsSummary], answer: Answer) -> Iterable[Edit | NeedsSummary]:
    """The same edits; those made of an answer tell who wrote it."""
    if not answer.by and not answer.refused:
        return edits
    signed = []
    for edit in edits:
        if isinstance(edit, Replace | Summarize) and not edit.by:
            edit = replace(edit, by=answer.by, refused=answer.refused)
        signed.append(edit)
    return signed


def _returned(policy: Policy, given: Iterable[Edit | NeedsSummary]) -> list[Edit | NeedsSummary]:
    try:
        wanted = list(given)
    except TypeError:
        if isinstance(given, Iterable):
            raise  # A mistake inside of the policy is told as it is.
        wanted = [given]
    for one in wanted:
        if not isinstance(one, Edit | NeedsSummary):
            name = getattr(policy, "__qualname__", type(policy).__name__)
            raise BadSetting(f"The policy {name} returned {one!r:.60}. A policy returns edits, or nothing: ().")
    return wanted


def _is_smaller(after: View, before: View) -> bool:
    """Progress: less of something that is over, and more of nothing that is."""
    over = measure_excess(before)
    sizes = [
        (over.tokens, before.tokens, after.tokens),
        (over.bytes, before.bytes, after.bytes),
        (over.images, before.images, after.images),
    ]
    changes = [now - then for excess, then, now in sizes if excess]
    return min(changes, default=0) < 0 and max(changes, default=0) <= 0


def _does_not_fit(view: View, unit: str) -> DoesNotFit:
    budget = view.budget
    if unit == "tokens":
        needed = int((view.tokens + budget.overhead) * budget.scale)
        return DoesNotFit(needed, budget.window - budget.reserve, unit)
    if unit == "bytes":
        return DoesNotFit(view.bytes + budget.overhead_bytes, budget.max_bytes, unit)
    return DoesNotFit(view.images, budget.max_images, unit)


def _touched(view: View, edits: Iterable[Edit]) -> dict[str, Entry]:
    """The entries that edits name, or whose place a summary takes, by id; those that show nothing too."""
    named = set(named_messages(edits))
    entries = (*view.entries, *view.withheld)
    return {entry.id: entry for entry in entries if entry.id in named and entry.kind != "stand-in"}


def _is_allowed(edit: Edit, projection: Projection, entries: dict[str, Entry]) -> bool:
    match edit:
        case Replace(target=target) | Hide(target=Target() as target):
            entry = entries.get(target.message)
            if entry is None or entry.source is None or entry.is_pinned(target.path):
                return False
            if projection.refuses(edit):
                return False
            return (isinstance(edit, Hide) and not target.path) or can_apply(entry.source, edit)
        case Hide(target=span) | Summarize(span=span):
            has_content = isinstance(edit, Hide) or bool(edit.text.strip())
            return has_content and projection.run_of(span) is not None
        case Restore(targets=targets):  # What is hidden comes back only where the store is at hand: `expand`, `undo`.
            is_known = all(projection.run_of(named) is not None for named in targets)
            is_known = is_known and all(1 <= number <= projection.number for number in edit.edits)
            shown = projection.needs(Record(0, (edit,), 0, 0, "", projection.position))
            return is_known and all(projection.holds_all(first, last) for first, last in shown)
        case Pin(target=target) | Unpin(target=target):
            return projection.holds(target.message)
        case Task():
            return True


class _Change(NamedTuple):
    """What a plan makes of a view."""

    before: View
    after: View
    was: dict[str, Entry]
    now: dict[str, Entry]
    trial: Projection

    def is_made_by(self, edit: Edit) -> bool:
        """Whether the edit had a share in it; where several may have, all are taken to."""
        match edit:
            case Replace(target=target) | Hide(target=Target() as target):
                return _look(self.was.get(target.message)) != _look(self.now.get(target.message))
            case Pin(target=target) | Unpin(target=target):
                old, new = self.was.get(target.message), self.now.get(target.message)
                return (old.pins if old else ()) != (new.pins if new else ())
            case Task():
                return True
            case Hide(target=span) | Summarize(span=span):
                return self._within(self.before, span) != self._within(self.after, span)
            case Restore():
                return [_look(entry) for entry in self.before] != [_look(entry) for entry in self.after]

    def measured(self, edit: Edit) -> Edit:
        """The edit with the tokens of what it touches, before and after."""
        match edit:
            case Replace(target=target) | Hide(target=Target() as target):
                old, new = self.was.get(target.message), self.now.get(target.message)
                tokens = (old.tokens if old else 0, new.tokens if new else 0)
            case Summarize(span=span) | Hide(target=Span() as span):
                sizes = [[entry.tokens for entry in self._within(view, span)] for view in (self.before, self.after)]
                tokens = (sum(sizes[0]), sum(sizes[1]))
            case _:
                return edit
        return replace(edit, tokens_before=tokens[0], tokens_after=tokens[1])

    def _within(self, view: View, span: Target | Span) -> list[Entry]:
        first, last = self.trial.run_of(span) or (1, 0)
        return [entry for entry in view.entries if first <= entry.position <= last]


def _look(entry: Entry | None) -> tuple[object, ...] | None:
    if entry is None:
        return None
    return entry.id, entry.kind, entry.message, entry.shrunk, entry.renewed
