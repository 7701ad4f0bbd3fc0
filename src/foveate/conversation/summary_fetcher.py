"""The summaries that a plan asks for: attempts are recorded, summarizers called, and failures counted.

The answer, failure or silence of a summarizer becomes an `Answer`. The conversation goes on without a summary, so the
log warns: once for each cause.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from inspect import iscoroutine
from typing import Any

from msgspec.structs import replace

from ..core.edits import Edit, Replace, Summarize, Task
from ..core.planner import Plan
from ..core.summaries import Answer, Summary, SummaryRequest, not_text, read_answer, replace_surrogates
from ..errors import NoSummary
from ..policies.binding import with_statements
from ..policies.summary_input import with_digest_of_left_out
from ..ports import Summarizer
from .calls import Caller
from .state import State

__all__ = ["Attempts", "SummaryFetcher"]

Attempts = dict[str, tuple[Task, Task | None]]
"""Attempts that a plan has begun, and the task before each, by policy."""
_NEEDLESS = "what others did was enough"


class SummaryFetcher:
    """Calls the summarizers of one conversation."""

    def __init__(
        self, state: State, caller: Caller, summarizer: Summarizer | None, spare: Summarizer | None, user: str
    ) -> None:
        """`spare`: writes without a model, for policies that ask for that."""
        self.summarizer = summarizer
        self.failures = _SummaryFailures()
        """The failures that were logged."""
        self._state, self._caller, self._spare, self._user = state, caller, spare, user

    def record_tasks(self, tasks: Sequence[Task]) -> None:
        """Record attempts: before they begin, so that they count even if the process ends, or with their outcome."""
        if tasks:
            before = self._state.view()
            self._state.commit(tasks, "plan", before, before)
            self.failures.log_edits(self._state.head.log_name, tasks)

    def ask(self, requests: Sequence[SummaryRequest], answers: dict[str, Answer], attempts: Attempts) -> None:
        """Fetch all these summaries, one after the other. `answers` and `attempts` are added to."""
        tasks = [request.task for request in requests if request.task]
        for task in tasks:
            known = attempts.get(task.policy)
            before = known[1] if known else self._state.projection.tasks.get(task.policy)
            attempts[task.policy] = (task, before)
        self.record_tasks(tasks)
        for request in requests:
            answers[request.key] = self.summary(request)

    def end_needless(self, attempts: Attempts, plan: Plan) -> None:
        """Restore the tasks of attempts that a plan does not use, since other policies did enough."""
        acted = {edit.policy for edit in plan.edits}
        tasks = self._state.projection.tasks
        open = [policy for policy, (task, _) in attempts.items() if tasks.get(policy) == task]
        pending = [attempts[policy] for policy in open if policy not in acted]
        self.record_tasks([before or replace(task, state="skipped", reason=_NEEDLESS) for task, before in pending])

    def tasks_before(self, attempts: Attempts) -> tuple[Task, ...]:
        """Return the newest task of each policy from before this plan asked anything."""
        tasks = []
        for policy, task in self._state.projection.tasks.items():
            own, before = attempts.get(policy, (None, None))
            tasks.append(before if task == own else task)
        return tuple(task for task in tasks if task is not None)

    def call_for(self, request: SummaryRequest) -> Callable[[], object]:
        """Return a function that calls the summarizer for this request."""
        head = self._state.head
        request = replace(request, conversation=head.name, tenant=head.tenant, user=self._user)
        return partial(_call_summarizer, self._summarizer_for(request) or _no_summarizer, request)

    def call(self, request: SummaryRequest) -> Answer:
        """Call the summarizer, and raise what it raises."""
        return _answer_in(self._caller.call(self.call_for(request)))

    def _summarizer_for(self, request: SummaryRequest) -> Summarizer | None:
        return self._spare if request.by_code else self.summarizer

    def summary(self, request: SummaryRequest, fetch: Callable[[], object] | None = None) -> Answer:
        """Return the answer to a request. `fetch`: returns the answer of a job that has ended."""
        answer = self._fetch(request, fetch)
        self.failures.log_answer(self._state.head.log_name, request, answer)
        return answer

    def _fetch(self, request: SummaryRequest, fetch: Callable[[], object] | None) -> Answer:
        if self._summarizer_for(request) is None:
            return Answer(error="there is no summarizer")
        try:
            return _answer_in(self._caller.call(fetch or self.call_for(request)))
        except NoSummary as error:
            return Answer(
                error=replace_surrogates(f"no summary was accepted: {error}"),
                refused=tuple(map(replace_surrogates, error.refused)),
            )
        except Exception as error:  # The conversation stays as it was after any failure.
            return Answer(error=replace_surrogates(f"the summarizer raised {type(error).__name__}: {error}"))


def _call_summarizer(summarizer: Summarizer, request: SummaryRequest) -> object:
    """Call a summarizer. One without a model reads all messages itself."""
    if request.by_code or getattr(summarizer, "needs_no_model", False) is True:
        return summarizer(request)
    return summarizer(with_statements(with_digest_of_left_out(request)))


def _answer_in(text: Any) -> Answer:
    """Return a summarizer's return value as an answer."""
    if iscoroutine(text):
        text.close()
        return Answer(error="the summarizer must be awaited, which only an async conversation can do")
    summary = text if isinstance(text, Summary) else Summary(text) if isinstance(text, str) else None
    if summary is None:
        return Answer(error=f"the summarizer {not_text(text)}")
    written = read_answer(summary.text)
    error = "" if written else "the summarizer returned nothing"
    return Answer(written, error, replace_surrogates(summary.by), tuple(map(replace_surrogates, summary.refused)))


def _no_summarizer(request: SummaryRequest) -> str:
    raise NoSummary((f"no summarizer is set that could write a summary for {request.policy}",))


_log = logging.getLogger("foveate")

_CAUSES_MAX = 100
"""Causes that are logged for one conversation, at most."""
_LONGEST = 400
"""Characters of a cause in the log, at most."""
_SAME = 100
"""Characters by which two causes are compared."""
_BEGIN = re.compile(r"(?:no summary was accepted: |the summarizer |[^\s:]+(?::[^\s:]+)*: )+")
"""Names of writers, and words around a cause. The same cause is reported with and without them."""
_NUMBERED = re.compile(r"(?<!\S)(?!\d{1,3}\W*(?!\S))\S*\d\S*")
"""Words with digits, such as ids of requests and counts, which differ from one failure to the next. A number of up to
three digits stays: it may be a status of HTTP.
"""
_AFTER = "This cause is logged once."


class _SummaryFailures:
    """The causes that were logged for one conversation."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def log_answer(self, conversation: str, request: SummaryRequest, answer: Answer) -> None:
        """Log why a request has no answer, or why the first summarizers that were asked have none."""
        causes = _failures(answer.by, answer.refused) or ([answer.error] if answer.error else [])
        if not (new := self._new(causes)):
            return
        policy = request.policy
        if answer.error:
            _log.warning("%s: %s has no summary: %s. %s", conversation, policy, new, _AFTER)
        else:
            _log.warning("%s: %s wrote the summary for %s, since %s. %s", conversation, answer.by, policy, new, _AFTER)
        self._new([answer.error])  # A policy reports it again, as the reason of its attempt.

    def log_edits(self, conversation: str, edits: Iterable[Edit]) -> None:
        """Log why policies refused summaries, as far as these edits say so."""
        for edit in edits:
            match edit:
                case Task(state="failed", reason=reason):
                    causes = [reason]
                case Replace(by=by, refused=refused) | Summarize(by=by, refused=refused):
                    causes = _failures(by, refused)
                case _:
                    continue
            if new := self._new(causes):
                _log.warning("%s: %s did not use a summary: %s. %s", conversation, edit.policy, new, _AFTER)

    def _new(self, causes: Iterable[str]) -> str:
        """Return the causes that were not logged yet, as one text, and note that they are."""
        new = []
        for cause in causes:
            key = _NUMBERED.sub("#", _BEGIN.sub("", cause, count=1) or cause)[:_SAME]
            if cause and key not in self._logged and len(self._logged) < _CAUSES_MAX:
                self._logged.add(key)
                new.append(" ".join(cause.split())[:_LONGEST].rstrip(". "))
        return "; ".join(new)


def _failures(by: str, refused: Iterable[str]) -> list[str]:
    """Return the refusals that are failures: the writer of the text also reports the sentences it dropped."""
    return [why for why in refused if not (by and why.startswith(f"{by}: dropped "))]
