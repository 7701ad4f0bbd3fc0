"""Planning: policies propose edits, summaries are fetched, and the plan is committed as one record.

A plan waits for the summaries that it needs at once. Others are written in the background, and a later plan uses them.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from ..core.budget import occupied_tokens
from ..core.edits import INTERRUPTED, NOT_OFFERED, Record, Task
from ..core.legalize import ANSWER_ERASED
from ..core.planner import Begun, OpenRequest, Plan, Policy, Stage, make_plan
from ..core.summaries import Answer, SummaryRequest
from ..core.view import Entry, View
from ..errors import BadInput, CompactionFailed, ConflictError, IllegalView, StoreError
from ..ports import CompactionRequest, RemoteBackground
from .calls import Caller
from .compaction import ROUNDS, Compactor
from .prefetch import PendingSummary, SummaryPrefetch
from .state import PLANS, State
from .summary_fetcher import Attempts, SummaryFetcher
from .weak_methods import weakly

__all__ = ["Planner"]

_log = logging.getLogger("foveate")


class _Draft(NamedTuple):
    """A plan that needs no answer now."""

    plan: Plan
    prefetched: list[PendingSummary]
    """Summaries from the background that are part of the plan."""


class Planner:
    """Makes the views of one conversation fit its model calls."""

    def __init__(
        self,
        state: State,
        fetcher: SummaryFetcher,
        prefetch: SummaryPrefetch,
        caller: Caller,
        *,
        policies: Sequence[Policy],
        floor: Sequence[Stage],
    ) -> None:
        self.policies, self.floor = tuple(policies), tuple(floor)
        self.compactor = Compactor(state, fetcher, self.policies, weakly(self._needed))
        self._state, self._fetcher, self._prefetch, self._caller = state, fetcher, prefetch, caller

    # ------------------------------------------------------------------------------------------------------ the plan

    def plan(self) -> Plan:
        """Return the plan that `prepare` would commit now. Changes nothing."""
        self._require_window()
        state = self._state
        plan = self._make_plan(state.trial, self.policies, self.floor)
        ready = [pending.apply for pending in self._prefetch.ready(plan, is_forced=plan.is_tight)]
        return self._make_plan(state.trial, [*ready, *self.policies], self.floor) if ready else plan

    def _make_plan(
        self,
        frame: Callable[[tuple[Entry, ...]], View],
        policies: Sequence[Policy],
        floor: Sequence[Stage] = (),
        answers: Mapping[str, Answer] = {},
        is_draft: Callable[[Plan], bool] = lambda plan: False,
        begun: Begun | None = None,
    ) -> Plan:
        state = self._state
        return make_plan(
            state.projection, frame, policies, floor, answers, marked=state.marked, is_draft=is_draft, begun=begun
        )

    def prepare(self) -> View:
        """Plan, commit and check; return the view for the next model call, which begins with it."""
        self._require_window()
        state = self._state
        if self._prefetch.is_handed_on:
            state.refresh()
        else:
            state.follow_head()
        answers: dict[str, Answer] = {}
        attempts: Attempts = {}
        for _ in range(PLANS):
            try:
                self._record_compaction()
                planned, position = self._commit_plan(answers, attempts)
                view = planned or state.view()
                self._note_stand_ins(view)
                self._note_offer(view)
            except ConflictError:
                state.refresh()
                continue
            if state.head.position == position:
                break
            attempts = {}  # A commit found messages of another writer, for which the plan left no room.
        else:
            raise ConflictError(f"Other writers kept changing the view of {state.head.label}. Plan again later.")
        if all(entry.is_system for entry in view.entries):
            why = ": all messages are blank, hidden, or of the system" if state.head.position else ""
            raise BadInput(f"There is nothing to send{why}. Append a message first.")
        if violations := state.violations(view):
            raise IllegalView(violations)
        state.begin_call(view)
        return view

    def _commit_plan(self, answers: dict[str, Answer], attempts: Attempts) -> tuple[View | None, int]:
        """Plan and commit. Return the view (None if edits changed it) and the newest position that the plan knew.

        The views of the plan are released before the next one is made: over a long history each is large.
        """
        draft = self._draft(self.policies, self.floor, answers, attempts, sends=True)
        position = self._state.head.position
        self._apply(draft, attempts)
        for pending in list(self._prefetch.unwanted(draft.plan)):
            self._drop(pending, "no policy asks for it any more")
        if not draft.plan.open_requests:  # Summaries of other processes are done, or no longer wanted.
            self._prefetch.is_handed_on = False
        return None if draft.plan else draft.plan.before, position

    def commit_now(self) -> None:
        """Commit the plan that `plan` returns, with the summaries that it needs. No model call follows.

        Raises ConflictError if another writer changed the view first.
        """
        self._require_window()
        try:
            self._record_compaction()
            attempts: Attempts = {}
            self._apply(self._draft(self.policies, self.floor, {}, attempts, sends=True), attempts)
        except ConflictError:
            self._state.refresh()
            raise

    def plan_after_reply(self) -> None:
        """Let policies act once a reply is recorded, so that those that count act at their count.

        There is no floor, since nothing is sent.
        """
        has_window = self._state.limits.window is not None
        counting = [policy for policy in self.policies if not getattr(policy, "before_calls_only", False)]
        if not self._state.projection.has_terms:
            counting = [policy for policy in counting if not getattr(policy, "for_terms_only", False)]
        try:
            self._record_compaction()
            if not counting or not has_window:
                return
            attempts: Attempts = {}
            self._apply(self._draft(counting, (), {}, attempts, sends=False), attempts)
        except ConflictError:  # Another writer has planned; the next call plans again.
            self._state.refresh()

    def _record_compaction(self) -> None:
        """Record a compaction by the provider as an edit, before all policies, and also without any."""
        state = self._state
        edit = state.projection.compaction_edit()
        if edit is None:
            return
        before, draft = state.view(), state.projection.copy()
        edits = [replace(edit, tokens_before=before.tokens)]
        draft.apply(
            Record(state.head.number + 1, state.marked(edits), before.turn, before.call.now, "", draft.position)
        )
        state.commit(edits, "provider", before, state.frame(draft.entries()))

    def _require_window(self) -> None:
        if self.floor:
            self._state.limits.require_window(self._state.model.name)

    def _note_stand_ins(self, view: View) -> None:
        """Record that a call of the newest reply is shown without its answer.

        The answer is late from now on, for other processes too.
        """
        state = self._state
        if not _shows_stand_in(view, state.projection.interrupted):
            return
        mark = Task(INTERRUPTED, "done", turn=view.turn)
        self._commit_mark(mark, view, "%s: a call without its answer could not be recorded as shown: %s")

    def _note_offer(self, view: View) -> None:
        """Record that texts in this view no longer name the tool `expand`, or name it again.

        A process that opens the conversation, and `as_of`, show the same texts then.
        """
        state = self._state
        is_plain = not state.offers_expand and (not state.projection.offers_expand or state.shows_plain_handles())
        if is_plain == state.projection.offers_expand:
            mark = Task(NOT_OFFERED, "done" if is_plain else "skipped", turn=view.turn)
            self._commit_mark(mark, view, "%s: the form of its handles could not be recorded: %s")

    def _commit_mark(self, mark: Task, view: View, problem: str) -> None:
        """Record a fact about the coming call. A reader without the right to write sees the same view without it."""
        try:
            self._state.commit([mark], "prompt", view, view)
        except ConflictError:
            raise
        except StoreError as error:
            _log.warning(problem, self._state.head.log_name, error)

    def _apply(self, draft: _Draft, attempts: Attempts) -> None:
        """Commit a plan, and start its open requests in the background."""
        plan, prefetch = draft.plan, self._prefetch
        if plan:
            self._state.commit(plan.edits, "plan", plan.before, plan.after)
            self._fetcher.failures.log_edits(self._state.head.log_name, plan.edits)
        self._fetcher.end_needless(attempts, plan)
        for pending in draft.prefetched:
            prefetch.used(pending)
        open = prefetch.may_begin(plan)
        wanted = self._needed(open)
        for request in open:
            if request in wanted and prefetch.remote is None:
                prefetch.begin(request, self._state.head.branch, self._fetcher.call_for(request.needs.request))
            else:
                prefetch.put_off(request)
        if prefetch.remote and wanted:
            self._request_remotely(prefetch.remote, wanted)

    def _needed(self, requests: Sequence[OpenRequest]) -> list[OpenRequest]:
        """Return the requests that are due, and those that will become due."""
        coming = self._coming() if any(not request.is_due for request in requests) else frozenset()
        return [request for request in requests if request.is_due or request.needs.request.policy in coming]

    def _coming(self) -> frozenset[str]:
        """Return the policies that would still ask for a summary if the view were full.

        Others apply then what they put off, and that may make a summary unnecessary.
        """
        state = self._state
        now = state.view()
        full = now.budget.without_estimates(min(now.tokens, occupied_tokens(now)) - 1)
        try:
            plan = self._make_plan(lambda shown: replace(state.frame(shown), budget=full), self.policies)
        except CompactionFailed:
            return frozenset()
        return frozenset(request.needs.request.policy for request in plan.open_requests)

    def _draft(
        self,
        policies: Sequence[Policy],
        floor: Sequence[Stage],
        answers: dict[str, Answer],
        attempts: Attempts,
        *,
        sends: bool,
    ) -> _Draft:
        """Make a plan that needs no answer any more.

        `answers` and `attempts` are added to, so that a plan that is made again asks and counts nothing twice. `sends`:
        a request follows, so the view must fit.
        """
        self._collect_prefetched()
        state, prefetch = self._state, self._prefetch
        prefetched: list[PendingSummary] = []
        rounds = Counter[str]()
        begun: Begun | None = None

        def further(plan: Plan) -> tuple[list[PendingSummary], list[PendingSummary], list[SummaryRequest]]:
            """Return the answers that a plan can use, and the requests to wait for and to ask, if any come first.

            The requests are those of one policy: with its summary, a policy after it may need none, or another one.
            """
            is_forced = sends and plan.is_tight
            if ready := [pending for pending in prefetch.ready(plan, is_forced=is_forced) if pending not in prefetched]:
                return ready, [], []
            if running := prefetch.running(plan) if is_forced else []:
                return [], running, []
            urgent = [
                request for request in prefetch.urgent(plan, is_forced=is_forced) if rounds[request.policy] < ROUNDS
            ]
            return [], [], [request for request in urgent if request.policy == urgent[0].policy]

        while True:
            frame = partial(state.framed, tasks=self._fetcher.tasks_before(attempts))
            try:
                first = [pending.apply for pending in prefetched]
                plan = self._make_plan(
                    frame, [*first, *policies], floor, answers, lambda plan: any(further(plan)), begun
                )
            except CompactionFailed as failed:
                if isinstance(failed.task, Task):
                    self._fetcher.record_tasks([failed.task])  # The attempt counts although there is no plan.
                raise
            ready, running, requests = further(plan)
            begun = plan.begun if requests else None
            if ready:
                prefetched += ready
            elif running:
                self._wait_for(running, plan, answers)
            elif requests:
                rounds[requests[0].policy] += 1
                plan.before.marks.release_huge()
                self._fetcher.ask(requests, answers, attempts)
            else:
                return _Draft(plan, prefetched)
            del plan, requests  # They may be large, and the next plan makes its own views.

    # ------------------------------------------------------------------------------------------------ the background

    def _collect_prefetched(self) -> None:
        """Take the answers from the background. They wait until they are wanted, or are dropped, which is recorded."""
        if not self._prefetch.policies:
            return
        view = self._state.view()
        for pending in self._prefetch.ended(view.turn):
            self._take(pending)
        for pending, reason in self._prefetch.faulty(view, self._state.head.branch):
            self._drop(pending, reason)

    def _take(self, pending: PendingSummary) -> None:
        job = pending.job
        if job is None:
            return
        answer = Answer(error="no answer came in time")
        if job.done():
            answer = self._fetcher.summary(pending.request, job.result)
        else:
            job.cancel()
            self._fetcher.failures.log_answer(self._state.head.log_name, pending.request, answer)
        if pending.take_answer(answer):
            self._prefetch.ask_further(pending, self._fetcher.call_for(pending.request))

    def _wait_for(self, running: Sequence[PendingSummary], plan: Plan, answers: dict[str, Answer]) -> None:
        """Wait for summaries without which the view does not fit, as long as their background has patience.

        A failure counts for what is due now, and the policy decides what follows from that.
        """
        state = self._state
        view = state.view()
        for pending in running:
            while job := pending.job:
                self._caller.wait_for(job)
                self._take(pending)
            if reason := pending.fault(view, state.head.branch):
                _log.debug("%s: an awaited summary failed: %s", state.head.log_name, reason)
                self._prefetch.drop(pending, view.turn)
                failed = replace(pending.answer, text="", error=reason)
                answers.update((request.key, failed) for request in pending.requests_in(plan))

    def _request_remotely(self, remote: RemoteBackground, requests: Sequence[OpenRequest]) -> None:
        """Hand these requests to another process; its summaries come back through the journal."""
        state = self._state
        policies = tuple(dict.fromkeys(request.needs.request.policy for request in requests))
        budget = state.limits.budget()
        head, is_known = state.head, state.limits.window is not None
        wanted = CompactionRequest(
            head.tenant,
            head.name,
            head.number,
            policies,
            budget.window if is_known else None,
            budget.reserve if is_known else None,
            state.format.name,
        )
        try:
            self._caller.check_cancelled()
            remote.request_compaction(wanted)
        except Exception as error:  # The database of the queue is down, for example: the conversation goes on.
            _log.warning("%s: a summary could not be handed to another process: %s", head.log_name, error)
        else:
            self._prefetch.is_handed_on = True

    def _drop(self, pending: PendingSummary, reason: str) -> None:
        state = self._state
        _log.debug("%s: a summary for %s is dropped: %s", state.head.log_name, pending.needs.request.policy, reason)
        self._fetcher.record_tasks(pending.notes(reason))
        self._prefetch.drop(pending, state.next_turn())


def _shows_stand_in(view: View, noted: int) -> bool:
    """Return whether a call of the newest reply is shown with a stand-in for its answer, for the first time.

    `noted`: the newest model call for which that is recorded.
    """
    for entry in reversed(view.entries):
        if entry.kind == "stand-in" and entry.message.result is not None and entry.legalized != ANSWER_ERASED:
            return entry.stamp.turn >= noted
        if entry.message.role == "assistant" and entry.kind != "stand-in":
            return False
    return False
