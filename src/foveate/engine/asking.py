"""Asking whoever writes summaries: at once, while a plan waits, or in the background, while the conversation goes on.

The one place where a summarizer is called, and where its answer, failure or silence becomes an `Answer`. When to
ask is decided in `planning.py`, what of it is kept in `ahead.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from inspect import iscoroutine

from msgspec.structs import replace

from ..core.edits import Task
from ..core.planner import OpenRequest, Plan
from ..core.summaries import Answer, Summary, SummaryRequest, read_answer, replace_surrogates
from ..errors import NoSummary
from ..ports import Elsewhere, Handed, Summarizer
from .ahead import Asked
from .appending import Appending
from .steps import Effect, Step

__all__ = ["ROUNDS", "Asking", "Begun", "answer_in"]

_log = logging.getLogger("foveate")

Begun = dict[str, tuple[Task, Task | None]]
"""Attempts that a plan has begun, and what stood before them, by policy."""
_NEEDLESS = "what others did was enough"
ROUNDS = 3
"""How often the answers to a plan's questions may lead to further questions."""


class Asking(Appending):
    """The steps that get a summary."""

    def _begin(self, tasks: Sequence[Task]) -> Step[None]:
        """Write down what is about to be tried, so that an attempt counts even if the process ends in it, or what
        became of it.
        """
        if tasks:
            before = self.view()
            yield from self._commit(tasks, "plan", before, before)

    def _ask(self, requests: Sequence[SummaryRequest], answers: dict[str, Answer], begun: Begun) -> Step[None]:
        """Ask all these, one after the other. `answers` and `begun` are added to."""
        attempts = [request.task for request in requests if request.task]
        for task in attempts:
            before = begun[task.policy][1] if task.policy in begun else self.projection.tasks.get(task.policy)
            begun[task.policy] = (task, before)
        yield from self._begin(attempts)
        for request in requests:
            answers[request.key] = yield from self._summary(request)

    def _end_needless(self, begun: Begun, plan: Plan) -> Step[None]:
        """Write down of attempts of which a plan makes nothing, since others had done enough, that all is as it was."""
        acted = {edit.policy for edit in plan.edits}
        open = [policy for policy, (task, _) in begun.items() if self.projection.tasks.get(policy) == task]
        pending = [begun[policy] for policy in open if policy not in acted]
        yield from self._begin([before or replace(task, state="skipped", reason=_NEEDLESS) for task, before in pending])

    def _tasks_without(self, begun: Begun) -> tuple[Task, ...]:
        """The newest task of each policy, as they stood before this plan asked anything."""
        standing = []
        for policy, task in self.projection.tasks.items():
            own, before = begun.get(policy, (None, None))
            standing.append(before if task == own else task)
        return tuple(task for task in standing if task is not None)

    def _call(self, request: SummaryRequest) -> Effect:
        return partial(self._summarizer_for(request) or _nobody, request)

    def _summarizer_for(self, request: SummaryRequest) -> Summarizer | None:
        return self.spare if request.by_code else self.summarizer

    def _summary(self, request: SummaryRequest, fetch: Effect | None = None) -> Step[Answer]:
        """What the summarizer says to a request. `fetch`: where it was asked already, what brings its answer."""
        if self._summarizer_for(request) is None:
            return Answer(error="there is no summarizer")
        try:
            text = yield fetch or self._call(request)
        except NoSummary as error:
            _log.info("%s: no summary was accepted: %s", self.head.name, error)
            return Answer(
                error=replace_surrogates(f"no summary was accepted: {error}"),
                refused=tuple(map(replace_surrogates, error.refused)),
            )
        except Exception as error:  # Whatever a summarizer does, the conversation stays as it was.
            _log.warning("%s: the summarizer failed: %r", self.head.name, error)
            return Answer(error=replace_surrogates(f"the summarizer raised {type(error).__name__}: {error}"))
        return answer_in(text)

    # ------------------------------------------------------------------------------------------------ the background

    def _take_up(self) -> Step[None]:
        """Take in what was written in the background. It is kept until it is wanted, or dropped, which is noted."""
        if not self.ahead.policies:
            return
        view = self.view()
        for asked in self.ahead.ended(view.turn):
            yield from self._take(asked)
        for asked, why in self.ahead.faulty(view, self.head.branch):
            yield from self._drop(asked, why)

    def _take(self, asked: Asked) -> Step[None]:
        job = asked.job
        if job is None:
            return
        answer = Answer(error="no answer came in time")
        if job.done():
            answer = yield from self._summary(asked.request, job.result)
        else:
            job.cancel()
        if asked.answered(answer):
            self.ahead.further(asked, self._call(asked.request))

    def _wait_for(self, running: Sequence[Asked], plan: Plan, answers: dict[str, Answer]) -> Step[None]:
        """The view does not fit without these: wait for them, as long as whoever runs them has patience.

        What comes to nothing has failed what is due now, and the policy says what follows from that.
        """
        view = self.view()
        for asked in running:
            while job := asked.job:
                yield job.wait
                yield from self._take(asked)
            if why := asked.fault(view, self.head.branch):
                _log.debug("%s: a summary that was waited for failed: %s", self.head.name, why)
                self.ahead.dropped(asked, view.turn)
                failed = replace(asked.answer, text="", error=why)
                answers.update((request.key, failed) for request in asked.asked_again(plan))

    def _hand_on(self, elsewhere: Elsewhere, questions: Sequence[OpenRequest]) -> Step[None]:
        """Have somebody else write these, in another process; what they do is found in the journal."""
        policies = tuple(dict.fromkeys(question.needs.request.policy for question in questions))
        budget = self.limits.budget()
        head, is_known = self.head, self.limits.window is not None
        wanted = Handed(
            head.tenant,
            head.name,
            head.number,
            policies,
            budget.window if is_known else None,
            budget.reserve if is_known else None,
            self.format.name,
        )
        try:
            yield partial(elsewhere.hand_on, wanted)
        except Exception as error:  # The database of the queue is down, for example: the conversation goes on without.
            _log.warning("%s: a summary could not be handed on: %s", head.name, error)
        else:
            self.ahead.is_handed_on = True

    def _drop(self, asked: Asked, why: str) -> Step[None]:
        _log.debug("%s: a summary for %s is dropped: %s", self.head.name, asked.needs.request.policy, why)
        yield from self._begin(asked.notes(why))
        self.ahead.dropped(asked, self.next_turn())


def answer_in(text: object) -> Answer:
    """What a summarizer returned, as an answer."""
    if iscoroutine(text):
        text.close()
        return Answer(error="the summarizer must be awaited, which only an async conversation can do")
    said = text if isinstance(text, Summary) else Summary(text) if isinstance(text, str) else None
    if said is None:
        return Answer(error=f"the summarizer returned {type(text).__name__}, not text")
    written = read_answer(said.text)
    nothing = "" if written else "the summarizer returned nothing"
    return Answer(written, nothing, replace_surrogates(said.by), tuple(map(replace_surrogates, said.refused)))


def _nobody(request: SummaryRequest) -> str:
    raise NoSummary((f"there is nobody who could write a summary for {request.policy}",))
