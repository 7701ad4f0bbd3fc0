"""Planning: what policies want is tried out, what they ask is answered, and the plan is committed as one record."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from ..core.budget import occupied_tokens
from ..core.edits import INTERRUPTED, Task
from ..core.legalize import ANSWER_ERASED
from ..core.planner import OpenRequest, Plan, Policy, Stage, make_plan
from ..core.summaries import Answer
from ..core.view import View
from ..errors import BadInput, CompactionFailed, ConflictError, IllegalView, StoreError
from .ahead import Asked
from .asking import ROUNDS, Asking, Begun
from .steps import PLANS, Step

__all__ = ["Planning"]

_log = logging.getLogger("foveate")


class _Drawn(NamedTuple):
    """A plan without questions that must be answered now."""

    plan: Plan
    prepared: list[Asked]
    """What was written in the background and is a part of the plan."""


class Planning(Asking):
    """The steps that make a view ready for the next model call."""

    def _require_window(self) -> None:
        if self.floor:
            self.limits.require_window()

    def plan(self) -> Plan:
        """A dry run: what `prepare` would commit now, and what the model would see. Changes nothing."""
        self._require_window()
        plan = make_plan(self.projection, self.trial, self.policies, self.floor)
        ready = [asked.apply for asked in self.ahead.ready(plan, is_forced=plan.is_tight)]
        return make_plan(self.projection, self.trial, [*ready, *self.policies], self.floor) if ready else plan

    def prepare(self) -> Step[View]:
        """Plan, commit and check: the view for the next model call, which begins with it."""
        self._require_window()
        yield from (self.refresh() if self.ahead.is_handed_on else self._follow_head())
        answers: dict[str, Answer] = {}
        begun: Begun = {}
        for _ in range(PLANS):
            try:
                drawn = yield from self._answered(self.policies, self.floor, answers, begun, sends=True)
                yield from self._make(drawn, begun)
                for asked in list(self.ahead.unasked(drawn.plan)):
                    yield from self._drop(asked, "nobody asks for it any more")
                view = self.view() if drawn.plan else drawn.plan.before
                yield from self._note_stand_ins(view)
            except ConflictError:
                yield from self.refresh()
                continue
            break
        else:
            raise ConflictError(f"Other writers kept changing the view of {self.head.name!r}; plan again later.")
        plan = drawn.plan
        if not plan.open_requests:  # What was handed on is done, or nobody wants it any more.
            self.ahead.is_handed_on = False
        if all(entry.message.role == "system" for entry in view.entries):
            raise BadInput("There is nothing to send: append a message first.")
        violations = self._checker.check(view.entries, view.newest_input)
        if violations:
            raise IllegalView(violations)
        self._turn, self._asked, self._requested = view.turn, (self.head.tip, self.head.number), view.call.now
        self._shown = view.entries
        self.limits.estimated(view)
        return view

    def _note_stand_ins(self, view: View) -> Step[None]:
        """Record that a call of the newest reply is shown without its answer: the answer is late from now on, also for
        another process.
        """
        if not _shows_stand_in(view, self.projection.interrupted):
            return
        try:
            yield from self._commit([Task(INTERRUPTED, "done", turn=view.turn)], "prompt", view, view)
        except ConflictError:
            raise
        except StoreError as error:  # Who may only read shows the same; an answer may then move what was shown.
            _log.warning("%s: that a call was shown without its answer is not recorded: %s", self.head.name, error)

    def plan_after_reply(self) -> Step[None]:
        """Let policies act once a reply is recorded, so that those that count do so at their count. No floor:
        nothing is sent.
        """
        if not self.policies or self.limits.window is None:
            return
        counting = [policy for policy in self.policies if not getattr(policy, "before_calls_only", False)]
        if not counting:
            return
        try:
            begun: Begun = {}
            yield from self._make((yield from self._answered(counting, (), {}, begun, sends=False)), begun)
        except ConflictError:  # Whoever came first has planned; the next call plans anew.
            yield from self.refresh()

    def _make(self, drawn: _Drawn, begun: Begun) -> Step[None]:
        """Commit a plan, and put what it leaves open into the background."""
        plan = drawn.plan
        if plan:
            yield from self._commit(plan.edits, "plan", plan.before, plan.after)
        yield from self._end_needless(begun, plan)
        for asked in drawn.prepared:
            self.ahead.used(asked)
        open = self.ahead.may_begin(plan)
        wanted = self._not_needless(open)
        for question in open:
            if question in wanted and self.ahead.elsewhere is None:
                self.ahead.begin(question, self.head.branch, self._call(question.needs.request))
            else:
                self.ahead.put_off(question)
        if self.ahead.elsewhere and wanted:
            yield from self._hand_on(self.ahead.elsewhere, wanted)

    def _not_needless(self, questions: Sequence[OpenRequest]) -> list[OpenRequest]:
        """Of these, what is due, and what is only coming but will come."""
        coming = self._coming() if any(not question.is_due for question in questions) else frozenset()
        return [question for question in questions if question.is_due or question.needs.request.policy in coming]

    def _coming(self) -> frozenset[str]:
        """Policies that would still ask for a summary if the view were full: others make then what they put off, and
        that may make a summary needless.
        """
        now = self.view()
        full = replace(now.budget, window=min(now.tokens, occupied_tokens(now)) - 1, reserve=0, overhead=0, scale=1.0)
        try:
            plan = make_plan(self.projection, lambda shown: replace(self.frame(shown), budget=full), self.policies)
        except CompactionFailed:
            return frozenset()
        return frozenset(question.needs.request.policy for question in plan.open_requests)

    def _answered(
        self,
        policies: Sequence[Policy],
        floor: Sequence[Stage],
        answers: dict[str, Answer],
        begun: Begun,
        *,
        sends: bool,
    ) -> Step[_Drawn]:
        """A plan that needs no answer any more. `answers` and `begun` are added to, so that nothing is asked or counted
        twice where a plan must be made anew. `sends`: a request follows, for which the view must fit.
        """
        yield from self._take_up()
        prepared: list[Asked] = []
        round = 0
        while True:
            frame = partial(self._framed, tasks=self._tasks_without(begun))
            try:
                first = [asked.apply for asked in prepared]
                plan = make_plan(self.projection, frame, [*first, *policies], floor, answers)
            except CompactionFailed as failed:
                if isinstance(failed.task, Task):
                    yield from self._begin([failed.task])  # What was tried is known, though no plan comes of it.
                raise
            is_forced = sends and plan.is_tight
            if ready := [asked for asked in self.ahead.ready(plan, is_forced=is_forced) if asked not in prepared]:
                prepared += ready
            elif running := self.ahead.running(plan) if is_forced else ():
                yield from self._wait_for(running, plan, answers)
            else:
                requests = self.ahead.urgent(plan, is_forced=is_forced)
                if not requests or round == ROUNDS:
                    return _Drawn(plan, prepared)
                round += 1
                yield from self._ask(requests, answers, begun)


def _shows_stand_in(view: View, noted: int) -> bool:
    """Whether a call of the newest reply is shown with a stand-in for its answer, for the first time. `noted`: the
    newest model call of which that is known.
    """
    for entry in reversed(view.entries):
        if entry.kind == "stand-in" and entry.message.result is not None and entry.legalized != ANSWER_ERASED:
            return entry.stamp.turn >= noted
        if entry.message.role == "assistant":
            return False
    return False
