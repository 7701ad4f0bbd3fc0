"""Working beside a conversation that others hold: summing it up in another process, while no call is being made here.

What its policies ask for is answered and committed as one plan. Nothing is sent, so there is no floor; no attempt is
written down before a summarizer is asked, since whoever calls this counts attempts and tries again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..core.edits import Record, Summarize, Task
from ..core.planner import Plan, Policy, make_plan
from ..core.summaries import Answer
from ..errors import ConflictError, NoSummary
from .asking import ROUNDS, answer_in
from .compacting import Compacting
from .steps import PLANS, Step

__all__ = ["Beside"]


class Beside(Compacting):
    """The step of whoever sums a conversation up for others."""

    def relieve(self, *, since: int | None, is_wanted: bool, focus: str = "") -> Step[Record | None]:
        """Do what policies ask a summarizer for, what is only coming too. None where there is nothing to do.

        `since`: number of the newest edit when somebody wanted it, where that is known: a summary behind it is taken
        for what was wanted.
        `is_wanted`: the oldest part is summed up although no policy asks for it now, as `compact` does. `focus`: so it
        is, and dwells on that. Raises what the summarizer raises, and NoSummary where nothing of it can be taken; then
        nothing was written. Raises ConflictError where others kept being first.
        """
        answers: dict[str, Answer] = {}
        for _ in range(PLANS):
            yield from self.refresh()
            if since is not None and (yield from self._is_summed_up(since)):
                return None
            try:
                return (yield from self._relieved(is_wanted, focus, answers))
            except ConflictError:
                continue
        raise ConflictError(f"Other writers kept changing the view of {self.head.name!r}; try again later.")

    def _is_summed_up(self, since: int) -> Step[bool]:
        records = yield partial(self.store.records, self.head, since)
        return any(isinstance(edit, Summarize) for _, record in records for edit in record.edits)

    def _relieved(self, is_wanted: bool, focus: str, answers: dict[str, Answer]) -> Step[Record | None]:
        policies: Sequence[Policy] = () if focus else self.policies
        plan, is_asked = yield from self._drawn_with(policies, answers)
        if is_asked:
            return (yield from self._commit(plan.edits, "plan", plan.before, plan.after)) if plan else None
        if not (is_wanted or focus):
            return None
        plan, is_asked = yield from self._drawn_with([self._by_hand(focus)], answers)
        if any(isinstance(edit, Summarize) for edit in plan.edits):
            return (yield from self._commit(plan.edits, "compact", plan.before, plan.after))
        if failures := [edit.reason for edit in plan.edits if isinstance(edit, Task) and edit.state == "failed"]:
            raise NoSummary(failures)
        return None

    def _drawn_with(self, policies: Sequence[Policy], answers: dict[str, Answer]) -> Step[tuple[Plan, bool]]:
        """A plan whose questions are answered, and whether it had any. `answers` are added to."""
        first = make_plan(self.projection, self.frame, policies)
        is_asked = bool(self._not_needless(first.open_requests))  # Answers may be there already, from another attempt.
        for _ in range(ROUNDS):
            plan = make_plan(self.projection, self.frame, policies, (), answers)
            for question in (wanted := self._not_needless(plan.open_requests)):
                answers[question.needs.request.key] = answer_in((yield self._call(question.needs.request)))
            if not wanted:
                break
        plan = make_plan(self.projection, self.frame, policies, (), answers)
        return plan, is_asked
