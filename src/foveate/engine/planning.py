"""Planning: what policies want is tried out, what they ask is answered, and the plan is committed as one record."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from inspect import iscoroutine

from ..core.edits import Task
from ..core.journal import Record
from ..core.planner import Plan, Policy, Rung, draw_up
from ..core.projection import Projection
from ..core.summaries import Answer, Summary, SummaryRequest, read_answer
from ..core.view import Entry, View
from ..errors import BadInput, CompactionFailed, IllegalView, StalePlan
from .appending import Appending
from .steps import ATTEMPTS, Step

__all__ = ["Planning"]

_log = logging.getLogger("foveate")
_ROUNDS = 3
"""How often the answers to a plan's questions may lead to further questions."""
_Begun = dict[str, tuple[Task, Task | None]]
"""Attempts that a plan has begun, and what stood before them, by policy."""


class Planning(Appending):
    """The steps that make a view ready for the next model call."""

    def _require_window(self) -> None:
        if self.floor:
            self.limits.require_window()

    def plan(self) -> Plan:
        """A dry run: what `settle` would commit now, and what the model would see. Changes nothing."""
        self._require_window()
        return draw_up(self.projection, self.frame, self.policies, self.floor)[0]

    def settle(self) -> Step[View]:
        """Plan, commit and check: the view for the next model call, which begins with it."""
        self._require_window()
        yield from self._follow_head()
        answers: dict[str, Answer] = {}
        begun: _Begun = {}
        for _ in range(ATTEMPTS):
            try:
                plan, draft = yield from self._answered(self.policies, self.floor, answers, begun)
                if plan:
                    yield from self._commit(plan.edits, "plan", draft, plan.before, plan.after)
            except StalePlan:
                yield from self.refresh()
                continue
            break
        else:
            raise StalePlan(f"Other writers kept changing the view of {self.head.name!r}; plan again later.")
        view = self.view() if plan else plan.before
        if all(entry.message.role == "system" for entry in view.entries):
            raise BadInput("There is nothing to send: append a message first.")
        violations = self._checker.check(view.entries)
        if violations:
            raise IllegalView(violations)
        self._turn, self._asked, self._requested = view.turn, (self.head.tip, self.head.number), view.moment.now
        self._shown = view.entries
        self.limits.estimated(view)
        return view

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
            plan, draft = yield from self._answered(counting, (), {}, {})
            if plan:
                yield from self._commit(plan.edits, "plan", draft, plan.before, plan.after)
        except StalePlan:  # Whoever came first has planned; the next call plans anew.
            yield from self.refresh()

    def _answered(
        self, policies: Sequence[Policy], floor: Sequence[Rung], answers: dict[str, Answer], begun: _Begun
    ) -> Step[tuple[Plan, Projection]]:
        """A plan without open questions. `answers` and `begun` are added to, so that nothing is asked or counted twice
        where a plan must be made anew.
        """
        tasks = self._tasks_without(begun)

        def frame(entries: tuple[Entry, ...]) -> View:
            return self._framed(entries, tasks)

        for round in range(_ROUNDS + 1):
            try:
                plan, draft = draw_up(self.projection, frame, policies, floor, answers)
            except CompactionFailed as failed:
                if isinstance(failed.task, Task):
                    yield from self._begin([failed.task])  # What was tried is known, though no plan comes of it.
                raise
            if not plan.requests or round == _ROUNDS:
                break
            attempts = [request.task for request in plan.requests if request.task]
            for task in attempts:
                before = begun[task.policy][1] if task.policy in begun else self.projection.tasks.get(task.policy)
                begun[task.policy] = (task, before)
            yield from self._begin(attempts)
            for request in plan.requests:
                answers[request.key] = yield from self._summary(request)
        return plan, draft

    def _tasks_without(self, begun: _Begun) -> tuple[Task, ...]:
        """The newest task of each policy, as they stood before this plan asked anything."""
        standing = []
        for policy, task in self.projection.tasks.items():
            own, before = begun.get(policy, (None, None))
            standing.append(before if task == own else task)
        return tuple(task for task in standing if task is not None)

    def _begin(self, tasks: Sequence[Task]) -> Step[None]:
        """Write down what is about to be tried, so that an attempt counts even if the process ends in it, or what
        became of it.
        """
        if tasks:
            before, draft = self.view(), self.projection.copy()
            draft.apply(Record(self.head.number + 1, tuple(tasks), before.turn, before.moment.now, "", draft.position))
            yield from self._commit(tasks, "plan", draft, before, before)

    def _summary(self, request: SummaryRequest) -> Step[Answer]:
        if self.summarizer is None:
            return Answer(error="there is no summarizer")
        try:
            text = yield partial(self.summarizer, request)
        except Exception as error:  # Whatever a summarizer does, the conversation stays as it was.
            _log.warning("%s: the summarizer failed: %r", self.head.name, error)
            return Answer(error=f"the summarizer raised {type(error).__name__}: {error}")
        if iscoroutine(text):
            text.close()
            return Answer(error="the summarizer must be awaited, which only an async conversation can do")
        said = text if isinstance(text, Summary) else Summary(text) if isinstance(text, str) else None
        if said is None:
            return Answer(error=f"the summarizer returned {type(text).__name__}, not text")
        written = read_answer(said.text)
        error = "" if written else "the summarizer returned nothing"
        return Answer(written, error, said.by, said.refused)
