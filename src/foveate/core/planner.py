"""The planner: it turns a view and policies into a plan and changes nothing.

Policies run one after the other. Each sees the view after the edits of the policies before it. If the view then exceeds
its budget, the planner runs the stages of the floor until the view is near its target; it skips stages that do not make
the view smaller. The plan leaves out edits of protected content (pins, system prompts, the last user input), edits of
unknown content, and edits without an effect.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ..errors import BadEdit, BadSetting, DoesNotFit
from .budget import NEAR, aim_at, measure_excess
from .economy import is_cold
from .edits import (
    SAVED,
    Bill,
    Edit,
    Hide,
    Pin,
    Record,
    Replace,
    Restore,
    Span,
    Summarize,
    Target,
    Task,
    Unpin,
    named_messages,
)
from .plurals import plural
from .projection import Projection
from .rendering import can_apply
from .stored_form import stored_edits
from .summaries import Answer, NeedsSummary, SummaryRequest
from .view import Entry, View

__all__ = ["Begun", "CostlyPolicy", "OpenRequest", "Plan", "Policy", "Stage", "answer_edits", "make_plan"]

Policy = Callable[[View], Iterable[Edit | NeedsSummary]]
"""A function that reads a view and returns edits with reasons. Equal views must give equal edits."""


class CostlyPolicy:
    """A policy that can leave out the edits of messages that other policies edit: their texts would be made in vain."""

    def __init__(self, edits: Callable[[View, Set[str]], Iterable[Edit | NeedsSummary]]) -> None:
        """`edits`: returns the edits for a view, but for those of messages with these ids."""
        self.edits_besides = edits

    def __call__(self, view: View) -> Iterable[Edit | NeedsSummary]:
        """Return all edits for a view."""
        return self.edits_besides(view, frozenset())


class Stage(Struct, frozen=True):
    """One stage of the floor. It runs if the stages before it were not enough."""

    free: Policy
    """Frees as much as it can of the excess of its view."""
    is_last_resort: bool = False
    """Run only while the view does not fit. Other stages run until the view is near its target."""


class OpenRequest(Struct, frozen=True, eq=False):
    """A summary request without an answer, and the view it was made for: after the policy's own edits."""

    needs: NeedsSummary
    """The request, and the edits that follow its answer."""
    view: View
    """The view it was made for."""

    @property
    def is_due(self) -> bool:
        """Return whether the edits are needed now."""
        return self.needs.when != "ahead"


class Begun(Struct, frozen=True, eq=False):
    """A plan up to the first policy with an open request, from which the plan with the answer is continued."""

    before: View
    """The view of the plan."""
    policies: tuple[Policy, ...]
    """The policies up to that one."""
    draft: Projection
    """The projection with the edits of the policies before it."""
    view: View
    """The view for which it was called."""
    edits: tuple[Edit, ...]
    """The edits before it."""
    items: list[Edit | NeedsSummary]
    """The edits and requests that it returned."""

    def fits(self, before: View, policies: Sequence[Policy]) -> bool:
        """Return whether a plan of these policies for this view begins in the same way.

        Only the clock may go on, unless the cache has become cold meanwhile.
        """
        known, call = self.before, before.call
        return (
            tuple(policies[: len(self.policies)]) == self.policies
            and replace(call, now=known.call.now, idle=known.call.idle) == known.call
            and is_cold(before, call.prices) == is_cold(known, call.prices)
            and all(getattr(before, fact) == getattr(known, fact) for fact in _FACTS)
        )


_FACTS = [fact for fact in View.__struct_fields__ if fact not in ("call", "marks", "_memo")]


class Plan(Struct, frozen=True, eq=False):
    """The edits to commit, and the views before and after. A plan that is not applied is a dry run."""

    edits: tuple[Edit, ...]
    """The edits to commit, in order."""
    before: View
    """The view before the edits."""
    after: View
    """The view after the edits."""
    open_requests: tuple[OpenRequest, ...] = ()
    """Requests without an answer. `edits` do not depend on them."""
    is_tight: bool = False
    """Whether the view did not fit after the policies, so that the floor had to act."""
    begun: Begun | None = None
    """The plan up to the first open request."""

    def __str__(self) -> str:
        """Return one short line, such as `turn 7: 3 edits by prune, 12,400 -> 8,210 tokens, 1 summary needed`."""
        policies = ", ".join(dict.fromkeys(edit.policy for edit in self.edits if edit.policy))
        facts = [f"{plural(len(self.edits), 'edit')}{f' by {policies}' if policies else ''}"]
        facts += [f"{self.before.tokens:,} -> {self.after.tokens:,} tokens"]
        if needed := len(self.due):
            facts += [f"{plural(needed, 'summary')} needed"]
        return f"turn {self.before.turn}: {', '.join(facts)}"

    def __repr__(self) -> str:
        return f"<Plan of {self}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what there is to read. Only the conversation that made the plan continues it."""
        return type(self), (self.edits, self.before, self.after, self.open_requests, self.is_tight)

    def __bool__(self) -> bool:
        """Return whether there are edits to commit."""
        return bool(self.edits)

    @property
    def due(self) -> tuple[OpenRequest, ...]:
        """Return the open requests whose edits are needed now."""
        return tuple(question for question in self.open_requests if question.is_due)

    @property
    def requests(self) -> tuple[SummaryRequest, ...]:
        """Return the summaries that the plan needs before it is complete."""
        return tuple(question.needs.request for question in self.due)

    @property
    def tokens_saved(self) -> int:
        """Return the tokens that the edits save."""
        return self.before.tokens - self.after.tokens


def make_plan(
    projection: Projection,
    frame: Callable[[tuple[Entry, ...]], View],
    policies: Sequence[Policy],
    floor: Sequence[Stage] = (),
    answers: Mapping[str, Answer] = {},
    *,
    marked: Callable[[Sequence[Edit]], Sequence[Edit]] = list,
    is_draft: Callable[[Plan], bool] = lambda plan: False,
    begun: Begun | None = None,
) -> Plan:
    """Return the plan for the current view of `projection`.

    `frame` makes a view of entries, with turn, budget and call context. `answers`: answers to earlier requests, by key.
    `marked`: returns edits as they are committed. `is_draft`: returns whether the plan of the policies will be made
    again with further answers; the floor, whose edits would be in vain, is then left out. `begun`: of the same plan
    without these answers, to call no policy twice. Raises DoesNotFit if no stage of a non-empty floor brings the view
    within its budget. Raises BadSetting if a policy returns anything but edits.
    """

    def seen(shown: Projection) -> View:
        view, withheld = frame(shown.entries()), shown.withheld()
        return replace(view, withheld=withheld) if withheld else view

    before = view = seen(projection)
    draft = projection
    edits: list[Edit] = []
    open_requests: list[OpenRequest] = []

    def try_edits(requested: Sequence[Edit]) -> tuple[Projection, View, list[Edit]]:
        requested = marked(requested)
        was = _touched(view, requested) if requested else {}
        wanted = [edit for edit in requested if _is_allowed(edit, draft, was)]
        while wanted:
            trial = draft.copy()
            record = Record(draft.number + 1, tuple(wanted), before.turn, before.call.now, "", draft.position)
            shown_again = draft.needs(record)
            trial.apply(record)
            # Hidden and restored at once: only the store has the message.
            if any(trial.missing(*run) for run in shown_again):
                wanted = [edit for edit in wanted if not isinstance(edit, Restore)]
                continue
            after = seen(trial)
            change = _Change(view, after, was, _touched(after, wanted), trial, {})
            effective = [edit for edit in wanted if change.is_made_by(edit)]
            if len(effective) == len(wanted):
                return trial, after, [change.measured(edit) for edit in wanted]
            wanted = effective  # Try again without the ineffective edits: numbers of edits have no gaps.
        return draft, view, []

    done, known = 0, None
    if begun is not None and begun.fits(before, policies):
        done, known = len(begun.policies) - 1, begun.items
        draft, view, edits = begun.draft, begun.view, [*begun.edits]
    begun = None
    for number, policy in enumerate(policies[done:], done + 1):
        items = _checked(policy, policy(view)) if known is None else known
        known = None
        wanted, requests = _resolve(policy, items, answers)
        if requests and begun is None:
            begun = Begun(before, tuple(policies[:number]), draft, view, tuple(edits), items)
        draft, view, effective = try_edits(wanted)
        edits += effective
        open_requests += [OpenRequest(needs, view) for needs in requests]
    over = measure_excess(view)
    is_tight = bool(over)
    plan = Plan(tuple(edits), before, view, tuple(open_requests), is_tight, begun)
    if not over or not floor or is_draft(plan):
        return plan
    for stage in floor:
        if not measure_excess(view if stage.is_last_resort else aim_at(view, over, NEAR)):
            continue
        goal = view if stage.is_last_resort else aim_at(view, over)
        trial, after, effective = try_edits(_resolve(stage.free, stage.free(goal), answers)[0])
        if effective and _is_smaller(after, goal):
            draft, view = trial, after
            edits += effective
    if over := measure_excess(view):
        raise _does_not_fit(view, "tokens" if over.tokens else "bytes" if over.bytes else "images")
    return replace(plan, edits=tuple(edits), after=view)


def answer_edits(request: NeedsSummary, answers: Mapping[str, Answer]) -> tuple[list[Edit], list[NeedsSummary]]:
    """Return the edits that follow a request, as far as it is answered, and the requests that are still open."""
    return _resolve(lambda view: (request,), (request,), answers)


def _resolve(
    policy: Policy, returned: Iterable[Edit | NeedsSummary], answers: Mapping[str, Answer]
) -> tuple[list[Edit], list[NeedsSummary]]:
    edits: list[Edit] = []
    open_requests: list[NeedsSummary] = []
    for item in _with_answers(policy, returned, answers, ()):
        if isinstance(item, NeedsSummary):
            open_requests.append(item)
        else:
            edits.append(item)
    return edits, open_requests


def _with_answers(
    policy: Policy,
    returned: Iterable[Edit | NeedsSummary],
    answers: Mapping[str, Answer],
    answered: tuple[str, ...],
) -> Iterator[Edit | NeedsSummary]:
    """Yield the same items, with what follows from its answer in place of each request that is answered."""
    for item in _checked(policy, returned):
        if (
            not isinstance(item, NeedsSummary)
            or not answers
            or (answer := answers.get(key := item.request.key)) is None
        ):
            yield item
        elif key not in answered:  # A policy that repeats an answered request would repeat it forever.
            follows = _with_author(item.then(answer), answer)
            yield from _with_answers(policy, follows, answers, (*answered, key))


def _with_author(edits: Iterable[Edit | NeedsSummary], answer: Answer) -> Iterable[Edit | NeedsSummary]:
    """Return the same edits, with the author of the answer in those made from it."""
    if not answer.by and not answer.refused:
        return edits
    named = []
    for edit in edits:
        if isinstance(edit, Replace | Summarize) and not edit.by:
            edit = replace(edit, by=answer.by, refused=(*answer.refused, *edit.refused))
        named.append(edit)
    return named


def _checked(policy: Policy, returned: Iterable[Edit | NeedsSummary]) -> list[Edit | NeedsSummary]:
    try:
        items = list(returned)
    except TypeError:
        if isinstance(returned, Iterable):
            raise  # Raise an error inside the policy unchanged.
        items = [returned]
    return [item if isinstance(item, NeedsSummary) else _checked_edit(policy, item) for item in items]


def _checked_edit(policy: Policy, item: Any) -> Edit:
    """Return an edit as a store reads it back. Another value, or a wrong field, is a fault of the policy."""
    name = getattr(policy, "__qualname__", type(policy).__name__)
    if not isinstance(item, Edit):
        raise BadSetting(f"Policy {name} returned {item!r:.60}. Return edits, or () for none.")
    try:
        (edit,) = stored_edits((item,))
    except BadEdit as error:
        raise BadSetting(f"Policy {name} returned a wrong edit. {error}") from error
    return item if edit == item else edit


def _is_smaller(after: View, before: View) -> bool:
    """Return whether a stage made progress: less of a unit in excess, and not more of any."""
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
        return DoesNotFit(*budget.needed(view.tokens), unit)
    if unit == "bytes":
        return DoesNotFit(view.bytes + budget.overhead_bytes, budget.max_bytes, unit)
    return DoesNotFit(view.images, budget.max_images, unit)


def _touched(view: View, edits: Iterable[Edit]) -> dict[str, Entry]:
    """Return the entries that edits name or that a summary replaces, by id, including entries that show nothing."""
    named = set(named_messages(edits))
    entries = (*view.entries, *view.withheld)
    return {entry.id: entry for entry in entries if entry.id in named and entry.kind != "stand-in"}


def _is_allowed(edit: Edit, projection: Projection, entries: dict[str, Entry]) -> bool:
    match edit:
        case Replace(target=target) | Hide(target=Target() as target):
            entry = entries.get(target.message)
            if entry is None or entry.outline is None or entry.is_pinned(target.path):
                return False
            if projection.refuses(edit):
                return False
            return (isinstance(edit, Hide) and not target.path) or can_apply(entry.outline, edit)
        case Hide(target=span) | Summarize(span=span):
            has_content = isinstance(edit, Hide) or bool(edit.text.strip())
            return has_content and projection.range_of(span) is not None
        case Restore(targets=targets):  # Hidden messages come back only with access to the store: `expand`, `undo`.
            is_known = all(projection.range_of(named) is not None for named in targets)
            is_known = is_known and all(1 <= number <= projection.number for number in edit.edits)
            shown = projection.needs(Record(0, (edit,), 0, 0, "", projection.position))
            return is_known and all(projection.holds_all(first, last) for first, last in shown)
        case Pin(target=target) | Unpin(target=target):
            return projection.holds(target.message)
        case Task():
            return True
        case Bill():  # Only a program reports usage.
            return False


class _Change(NamedTuple):
    """The effect of a plan on a view."""

    before: View
    after: View
    old_entries: dict[str, Entry]
    new_entries: dict[str, Entry]
    trial: Projection
    placed: dict[int, tuple[list[int], list[Entry]]]
    """For each of the two views, by identity: its entries by position. Filled when a span is looked up."""

    def is_made_by(self, edit: Edit) -> bool:
        """Return whether the edit contributed to the change. If several edits may have, all of them did."""
        match edit:
            case Replace(target=target) | Hide(target=Target() as target):
                return _look(self.old_entries.get(target.message)) != _look(self.new_entries.get(target.message))
            case Pin(target=target) | Unpin(target=target):
                old, new = self.old_entries.get(target.message), self.new_entries.get(target.message)
                return (old.pins if old else ()) != (new.pins if new else ())
            case Task() | Bill():
                return True
            case Hide(target=span) | Summarize(span=span):
                return self._within(self.before, span) != self._within(self.after, span)
            case Restore():
                return [_look(entry) for entry in self.before] != [_look(entry) for entry in self.after]

    def measured(self, edit: Edit) -> Edit:
        """Return the edit with the tokens of its targets before and after, also in its reason."""
        match edit:
            case Replace(target=target) | Hide(target=Target() as target):
                old, new = self.old_entries.get(target.message), self.new_entries.get(target.message)
                tokens = (old.tokens if old else 0, new.tokens if new else 0)
            case Summarize(span=span) | Hide(target=Span() as span):
                sizes = [[entry.tokens for entry in self._within(view, span)] for view in (self.before, self.after)]
                tokens = (sum(sizes[0]), sum(sizes[1]))
            case _:
                return edit
        reason = edit.reason.replace(SAVED, str(tokens[0] - tokens[1]))
        return replace(edit, reason=reason, tokens_before=tokens[0], tokens_after=tokens[1])

    def _within(self, view: View, span: Target | Span) -> list[Entry]:
        first, last = self.trial.range_of(span) or (1, 0)
        if id(view) not in self.placed:
            entries = sorted(view.entries, key=lambda entry: entry.position)
            self.placed[id(view)] = [entry.position for entry in entries], entries
        positions, entries = self.placed[id(view)]
        return entries[bisect_left(positions, first) : bisect_right(positions, last)]


def _look(entry: Entry | None) -> tuple[object, ...] | None:
    if entry is None:
        return None
    return entry.id, entry.kind, entry.message, entry.shrunk, entry.expandable, entry.renewed
