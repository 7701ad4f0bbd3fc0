"""Summaries that are written while the conversation goes on: what was asked of which view, and what came of it.

A question is put into the background under the name of its policy, one at a time. Its answer is kept until the policy
wants it, and taken only if it still holds. Nothing in here is stored: a process that ends leaves no trace of what it
was preparing. Knows no thread and no task, only jobs that somebody else runs; what is to be done is decided here, and
done in `planning.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from ..core.edits import Edit, Task
from ..core.planner import OpenRequest, Plan, answer_edits
from ..core.summaries import Answer, NeedsSummary, SummaryRequest
from ..core.view import View
from ..errors import CompactionFailed
from ..ports import Background, Elsewhere, Job
from .stale import stale

__all__ = ["Ahead", "Asked"]

_log = logging.getLogger("foveate")
_ROUNDS = 3
"""How often an answer may lead to a further question."""
_PATIENCE = 32
"""Calls of the model after which a job that has not ended is given up."""
_AT_ONCE = 4
"""Jobs that run beside each other, at most."""
_LOOK_AGAIN = 2
"""Calls until it is looked at again whether something that is only coming will come."""
_DOUBLINGS = 5
"""Of the calls to wait after each answer in a row that came to nothing."""


class Asked:
    """One question in the background, and what has come of it."""

    def __init__(self, question: OpenRequest, branch: int, job: Job) -> None:
        self.needs, self.view, self.branch = question.needs, question.view, branch
        self.request: SummaryRequest = question.needs.request
        """What is being asked now: the question itself, or what its answer led to."""
        self.job: Job | None = job
        """None once there is an answer."""
        self.edits: tuple[Edit, ...] = ()
        """What is to be made of the answer."""
        self.answer = Answer()
        """The newest answer."""
        self._answers: dict[str, Answer] = {}

    @property
    def name(self) -> str:
        """What it is known by."""
        return _name_of(self.needs)

    def answered(self, answer: Answer) -> bool:
        """Take an answer in. Says whether it leads to a further question, which is `request` now."""
        self.job, self.answer = None, answer
        self._answers[self.request.key] = answer
        try:
            edits, open = answer_edits(self.needs, self._answers)
        except CompactionFailed as failed:
            edits, open = [failed.task] if isinstance(failed.task, Task) else [], []
        if open and len(self._answers) < _ROUNDS:
            self.request = open[0].request
            return True
        self.edits = tuple(edits)
        return False

    def asked_again(self, plan: Plan) -> list[SummaryRequest]:
        """What a plan asks, now that it is due, in the place of this."""
        return [question.needs.request for question in plan.due if _name_of(question.needs) == self.name]

    def fault(self, view: View, branch: int) -> str:
        """Why nothing will be made of it; "" if it holds, as far as is known."""
        if self.branch != branch:
            return "the conversation departed from the past that it was made of"
        if self.job:
            return ""
        notes = self.notes("")
        if notes and len(notes) == len(self.edits):
            return notes[-1].reason or "it failed"
        return stale(self.view, view, self.edits)

    def notes(self, why: str) -> list[Task]:
        """What is to be written down where nothing is made of it."""
        if self.edits and all(isinstance(edit, Task) for edit in self.edits):
            return [edit for edit in self.edits if isinstance(edit, Task)]
        task = self.needs.request.task
        return [replace(task, state="skipped", reason=why)] if task and why else []

    def apply(self, view: View) -> Iterable[Edit]:
        """A policy: the edits, if they still hold."""
        return () if stale(self.view, view, self.edits) else self.edits


def _name_of(needs: NeedsSummary) -> str:
    """Of questions that count as attempts, each policy may have one in the background; else each is its own."""
    request = needs.request
    return request.policy if request.task else request.key


class Ahead:
    """The questions of one conversation that are in the background, or answered and not used yet."""

    def __init__(self, background: Background | Elsewhere | None) -> None:
        self._background, self._eager = background, getattr(background, "eager", False)
        self.elsewhere: Elsewhere | None = background if hasattr(background, "hand_on") else None
        """Who sums up in another process, if somebody does: nothing is begun here then."""
        self.is_handed_on = False
        """Whether something was handed on, so that the journal may have grown since."""
        self._asked: dict[str, Asked] = {}
        self._calm: dict[str, tuple[int, int]] = {}  # answers in a row that came to nothing, first call to ask again

    @property
    def policies(self) -> tuple[str, ...]:
        """Policies for which something is being prepared, or lies ready."""
        return tuple(dict.fromkeys(asked.needs.request.policy for asked in self._asked.values()))

    # ------------------------------------------------------------------------------------------- what a plan asks

    def ready(self, plan: Plan, *, is_forced: bool) -> list[Asked]:
        """Answers that can be put to use: to what the plan asks for, and all there are where the view does not fit."""
        wanted = _names(plan)
        return [asked for name, asked in self._asked.items() if not asked.job and (is_forced or name in wanted)]

    def running(self, plan: Plan) -> list[Asked]:
        """What the plan asks for and somebody is writing."""
        wanted = _names(plan)
        return [asked for name, asked in self._asked.items() if asked.job and name in wanted]

    def urgent(self, plan: Plan, *, is_forced: bool) -> list[SummaryRequest]:
        """What is to be asked before the plan can be made. `is_forced`: the view does not fit without it."""
        if self._background is None:
            return list(plan.requests)
        running = {asked.name for asked in self.running(plan)}
        due = [question.needs for question in plan.due]
        return [
            needs.request
            for needs in due
            if _name_of(needs) not in running and (is_forced or (needs.when == "now" and not self._eager))
        ]

    def may_begin(self, plan: Plan) -> list[OpenRequest]:
        """What a plan leaves open and the background may take."""
        if self._background is None:
            return []
        waiting = [question for question in plan.open_requests if self._eager or question.needs.when != "now"]
        return [question for question in waiting if self._is_free(question)]

    def _is_free(self, question: OpenRequest) -> bool:
        name = _name_of(question.needs)
        running = sum(asked.job is not None for asked in self._asked.values())
        return name not in self._asked and running < _AT_ONCE and question.view.turn >= self._calm.get(name, (0, 0))[1]

    def begin(self, question: OpenRequest, branch: int, call: Callable[[], object]) -> None:
        """Put a question into the background, if there is room."""
        if not self._is_free(question):
            return
        if job := self._begun(call):
            self._asked[_name_of(question.needs)] = Asked(question, branch, job)
        else:
            self.put_off(question)

    def _begun(self, call: Callable[[], object]) -> Job | None:
        assert callable(self._background), "only a background that is there takes questions"
        try:
            return self._background(call)
        except Exception as error:  # No thread is left, for example: the conversation goes on without.
            _log.warning("a summary could not be begun in the background: %r", error)
            return None

    def put_off(self, question: OpenRequest) -> None:
        """It is not begun, and not looked at again for some calls."""
        name = _name_of(question.needs)
        self._calm[name] = (self._calm.get(name, (0, 0))[0], question.view.turn + _LOOK_AGAIN)

    # ----------------------------------------------------------------------------------------- what comes of it

    def ended(self, turn: int) -> Iterator[Asked]:
        """Those whose job has ended, or is given up at this call."""
        for asked in list(self._asked.values()):
            if asked.job and (asked.job.done() or turn >= asked.view.turn + _PATIENCE):
                yield asked

    def further(self, asked: Asked, call: Callable[[], object]) -> None:
        """Ask on in the background."""
        asked.job = self._begun(call)

    def faulty(self, view: View, branch: int) -> Iterator[tuple[Asked, str]]:
        """Those of which nothing will be made, and why."""
        for asked in list(self._asked.values()):
            if why := asked.fault(view, branch):
                yield asked, why

    def unasked(self, plan: Plan) -> Iterator[Asked]:
        """Answers that nobody will ask for again: they count for no attempt, and were due and are no longer."""
        wanted = _names(plan)
        for name, asked in list(self._asked.items()):
            was_due = asked.needs.when != "ahead" and asked.needs.request.task is None
            if was_due and not asked.job and name not in wanted:
                yield asked

    def used(self, asked: Asked) -> None:
        """It is in the journal now."""
        self._asked.pop(asked.name, None)
        self._calm.pop(asked.name, None)

    def dropped(self, asked: Asked, turn: int) -> None:
        """It came to nothing: each time in a row, the next one is begun twice as many calls later."""
        self._asked.pop(asked.name, None)
        if asked.job:
            asked.job.cancel()
        count = self._calm.get(asked.name, (0, 0))[0]
        recent = {name: calm for name, calm in self._calm.items() if calm[1] + (1 << _DOUBLINGS) > turn}
        self._calm = {**recent, asked.name: (count + 1, turn + (1 << min(count, _DOUBLINGS)))}

    def close(self) -> list[object]:
        """Give up what is running. Waits for nothing; returns what the jobs say to it."""
        return [job.cancel() for asked in list(self._asked.values()) if (job := asked.job)]


def _names(plan: Plan) -> set[str]:
    return {_name_of(question.needs) for question in plan.due}
