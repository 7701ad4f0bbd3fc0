"""Compaction on request: the oldest part becomes a summary, for the caller or for another process.

It is a plan with one policy, and without a floor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ..core.edits import Record, Summarize, Task
from ..core.planner import OpenRequest, Plan, Policy, make_plan
from ..core.summaries import Answer
from ..errors import BadInput, BadSetting, CompactionFailed, ConflictError, NoSummary
from .state import PLANS, State
from .summary_fetcher import Attempts, SummaryFetcher

__all__ = ["ROUNDS", "Compactor"]

ROUNDS = 3
"""How often the answers to a plan's requests may lead to further requests."""

Needed = Callable[[Sequence[OpenRequest]], list[OpenRequest]]
"""Returns the requests that are due, and those that will become due."""


class Compactor:
    """Compacts one conversation on request."""

    def __init__(self, state: State, fetcher: SummaryFetcher, policies: Sequence[Policy], needed: Needed) -> None:
        self._state, self._fetcher, self._policies, self._needed = state, fetcher, policies, needed

    def compact(self, focus: str = "") -> Record:
        """Show the oldest part as a summary that concentrates on `focus`.

        Raises BadSetting without a summarizer, BadInput if there is nothing to compact, and NoSummary if there is no
        usable summary; the view is unchanged then.
        """
        if self._fetcher.summarizer is None:
            raise BadSetting(
                "Compaction needs a summarizer. Pass summarizer=, a name such as digest or "
                "anthropic:claude-haiku-4-5, or a function that takes a SummaryRequest and returns the text."
            )
        policy = self._manual_policy(focus)
        answers: dict[str, Answer] = {}
        attempts: Attempts = {}
        self._state.follow_head()
        for _ in range(PLANS):
            try:
                return self._compact(policy, answers, attempts)
            except ConflictError:
                self._state.refresh()
        raise self._too_busy()

    def _manual_policy(self, focus: str) -> Policy:
        """Return the conversation's compaction policy, or the default one, for compaction on request."""
        from ..policies.compaction import compact_on_overflow  # Imported only when needed.

        own = (getattr(policy, "by_hand", None) for policy in (*self._policies, compact_on_overflow()))
        make_policy: Callable[[str], Policy] = next(make for make in own if make is not None)
        return make_policy(focus)

    def _compact(self, policy: Policy, answers: dict[str, Answer], attempts: Attempts) -> Record:
        state = self._state
        for _ in range(ROUNDS + 1):
            frame = partial(state.framed, tasks=self._fetcher.tasks_before(attempts))
            try:
                plan = make_plan(state.projection, frame, [policy], (), answers)
            except CompactionFailed as failed:
                if isinstance(failed.task, Task):
                    self._fetcher.record_tasks([failed.task])
                raise NoSummary([failed.reason]) from failed
            self._fetcher.ask(plan.requests, answers, attempts)
            if not plan.requests:
                break
        if any(isinstance(edit, Summarize) for edit in plan.edits):
            self._fetcher.failures.log_edits(state.head.log_name, plan.edits)
            return state.commit(plan.edits, "compact", plan.before, plan.after)
        failures = [edit for edit in plan.edits if isinstance(edit, Task) and edit.state == "failed"]
        if failures:
            self._fetcher.record_tasks(failures)
            raise NoSummary([edit.reason for edit in failures])
        raise BadInput(
            "There is nothing to compact: everything shown is recent, pinned, open, a summary already, or too short to "
            "be worth a summary."
        )

    def compact_detached(self, *, since: int | None, is_wanted: bool, focus: str = "") -> Record | None:
        """Compact the conversation for another process that uses it. None if there is nothing to do.

        `since`: number of the newest edit when it was requested; a newer summary is taken as the requested one. None:
        it is not known, and with `is_wanted` a summary that is written during the call is taken. `is_wanted`: compact
        the oldest part even if no policy asks for it. `focus`: implies that, and the summary concentrates on it.
        Nothing is sent, so there is no floor; no attempt is recorded before a summarizer is called, since the caller
        counts attempts. Raises what the summarizer raises, NoSummary if no answer is usable, and ConflictError if other
        writers kept being first; nothing was written then.
        """
        answers: dict[str, Answer] = {}
        for _ in range(PLANS):
            self._state.refresh()
            if since is None and is_wanted:
                since = self._state.head.number
            if since is not None and self._has_summary_since(since):
                return None
            try:
                return self._compact_detached(is_wanted, focus, answers)
            except ConflictError:
                continue
        raise self._too_busy()

    def _has_summary_since(self, since: int) -> bool:
        records = self._state.store.records(self._state.head, since)
        return any(isinstance(edit, Summarize) for _, record in records for edit in record.edits)

    def _compact_detached(self, is_wanted: bool, focus: str, answers: dict[str, Answer]) -> Record | None:
        commit = self._state.commit
        policies: Sequence[Policy] = () if focus else self._policies
        plan, is_asked = self._plan_with(policies, answers)
        if is_asked:
            return commit(plan.edits, "plan", plan.before, plan.after) if plan else None
        if not (is_wanted or focus):
            return None
        plan, is_asked = self._plan_with([self._manual_policy(focus)], answers)
        if any(isinstance(edit, Summarize) for edit in plan.edits):
            return commit(plan.edits, "compact", plan.before, plan.after)
        if failures := [edit.reason for edit in plan.edits if isinstance(edit, Task) and edit.state == "failed"]:
            raise NoSummary(failures)
        return None

    def _plan_with(self, policies: Sequence[Policy], answers: dict[str, Answer]) -> tuple[Plan, bool]:
        """Return a plan without open requests, and whether it had any. `answers` are added to."""
        state = self._state
        first = make_plan(state.projection, state.frame, policies)
        is_asked = bool(self._needed(first.open_requests))  # Answers may be there from an earlier attempt.
        for _ in range(ROUNDS):
            plan = make_plan(state.projection, state.frame, policies, (), answers)
            for request in (wanted := self._needed(plan.open_requests)):
                answers[request.needs.request.key] = self._fetcher.call(request.needs.request)
            if not wanted:
                break
        return make_plan(state.projection, state.frame, policies, (), answers), is_asked

    def _too_busy(self) -> ConflictError:
        return ConflictError(f"Other writers kept changing the view of {self._state.head.label}. Try again later.")
