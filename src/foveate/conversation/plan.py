"""Planning: policies propose edits, summaries are fetched, and the plan is committed as one record.

A summarizer is called here, at once while a plan waits, or in the background. Its answer, failure or silence becomes an
`Answer`. Compaction on request, in this process or for another one, is a plan with one policy.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from inspect import iscoroutine
from typing import Any, NamedTuple

from msgspec.structs import replace

from ..core.budget import occupied_tokens
from ..core.edits import INTERRUPTED, NOT_OFFERED, Record, Summarize, Task
from ..core.legalize import ANSWER_ERASED
from ..core.planner import OpenRequest, Plan, Policy, Stage, make_plan
from ..core.rules import Checker
from ..core.summaries import Answer, Summary, SummaryRequest, read_answer, replace_surrogates
from ..core.view import View
from ..errors import BadInput, BadSetting, CompactionFailed, ConflictError, IllegalView, NoSummary, StoreError
from ..ports import CompactionRequest, RemoteBackground, Summarizer
from .calls import Caller
from .prefetch import PendingSummary, SummaryPrefetch
from .state import PLANS, State
from .summary_failures import SummaryFailures

__all__ = ["Planner"]

_log = logging.getLogger("foveate")

Attempts = dict[str, tuple[Task, Task | None]]
"""Attempts that a plan has begun, and the task before each, by policy."""
_NEEDLESS = "what others did was enough"
_ROUNDS = 3
"""How often the answers to a plan's requests may lead to further requests."""


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
        prefetch: SummaryPrefetch,
        caller: Caller,
        *,
        policies: Sequence[Policy],
        floor: Sequence[Stage],
        summarizer: Summarizer | None,
        spare: Summarizer | None,
        user: str = "",
    ) -> None:
        self.policies, self.floor = tuple(policies), tuple(floor)
        self.summarizer = summarizer
        self._user = user
        self._spare = spare  # writes without a model, for policies that ask for that
        self._state, self._prefetch, self._caller = state, prefetch, caller
        self._checker = Checker(state.profile)
        self._failures = SummaryFailures()

    # ------------------------------------------------------------------------------------------------------ the plan

    def plan(self) -> Plan:
        """Return the plan that `prepare` would commit now. Changes nothing."""
        self._require_window()
        state = self._state
        plan = make_plan(state.projection, state.trial, self.policies, self.floor)
        ready = [pending.apply for pending in self._prefetch.ready(plan, is_forced=plan.is_tight)]
        return make_plan(state.projection, state.trial, [*ready, *self.policies], self.floor) if ready else plan

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
                view = self._commit_plan(answers, attempts) or state.view()
                self._note_stand_ins(view)
                self._note_offer(view)
            except ConflictError:
                state.refresh()
                continue
            break
        else:
            raise ConflictError(f"Other writers kept changing the view of {state.head.name!r}. Plan again later.")
        if all(entry.is_system for entry in view.entries):
            raise BadInput("There is nothing to send. Append a message first.")
        if self._checker.profile is not state.profile:
            self._checker = Checker(state.profile)
        violations = self._checker.check(view.entries, view.newest_input)
        if violations:
            raise IllegalView(violations)
        state.begin_call(view)
        return view

    def _commit_plan(self, answers: dict[str, Answer], attempts: Attempts) -> View | None:
        """Plan and commit. Return the view, or None if edits changed it.

        The views of the plan are released before the next one is made: over a long history each is large.
        """
        draft = self._draft(self.policies, self.floor, answers, attempts, sends=True)
        self._apply(draft, attempts)
        for pending in list(self._prefetch.unwanted(draft.plan)):
            self._drop(pending, "no policy asks for it any more")
        if not draft.plan.open_requests:  # Summaries of other processes are done, or no longer wanted.
            self._prefetch.is_handed_on = False
        return None if draft.plan else draft.plan.before

    def plan_after_reply(self) -> None:
        """Let policies act once a reply is recorded, so that those that count act at their count.

        There is no floor, since nothing is sent.
        """
        has_window = self._state.limits.window is not None
        counting = [policy for policy in self.policies if not getattr(policy, "before_calls_only", False)]
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
            self._state.limits.require_window()

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
            _log.warning(problem, self._state.head.name, error)

    def _apply(self, draft: _Draft, attempts: Attempts) -> None:
        """Commit a plan, and start its open requests in the background."""
        plan, prefetch = draft.plan, self._prefetch
        if plan:
            self._state.commit(plan.edits, "plan", plan.before, plan.after)
            self._failures.log_edits(self._state.head.name, plan.edits)
        self._end_needless(attempts, plan)
        for pending in draft.prefetched:
            prefetch.used(pending)
        open = prefetch.may_begin(plan)
        wanted = self._needed(open)
        for one in open:
            if one in wanted and prefetch.remote is None:
                prefetch.begin(one, self._state.head.branch, self._call_for(one.needs.request))
            else:
                prefetch.put_off(one)
        if prefetch.remote and wanted:
            self._request_remotely(prefetch.remote, wanted)

    def _needed(self, requests: Sequence[OpenRequest]) -> list[OpenRequest]:
        """Return the requests that are due, and those that will become due."""
        coming = self._coming() if any(not one.is_due for one in requests) else frozenset()
        return [one for one in requests if one.is_due or one.needs.request.policy in coming]

    def _coming(self) -> frozenset[str]:
        """Return the policies that would still ask for a summary if the view were full.

        Others apply then what they put off, and that may make a summary unnecessary.
        """
        state = self._state
        now = state.view()
        full = now.budget.without_estimates(min(now.tokens, occupied_tokens(now)) - 1)
        try:
            plan = make_plan(state.projection, lambda shown: replace(state.frame(shown), budget=full), self.policies)
        except CompactionFailed:
            return frozenset()
        return frozenset(one.needs.request.policy for one in plan.open_requests)

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
        round = 0
        while True:
            frame = partial(state.framed, tasks=self._tasks_before(attempts))
            try:
                first = [pending.apply for pending in prefetched]
                plan = make_plan(state.projection, frame, [*first, *policies], floor, answers)
            except CompactionFailed as failed:
                if isinstance(failed.task, Task):
                    self._record_tasks([failed.task])  # The attempt counts although there is no plan.
                raise
            is_forced = sends and plan.is_tight
            if ready := [one for one in prefetch.ready(plan, is_forced=is_forced) if one not in prefetched]:
                prefetched += ready
            elif running := prefetch.running(plan) if is_forced else ():
                self._wait_for(running, plan, answers)
            else:
                requests = prefetch.urgent(plan, is_forced=is_forced)
                if not requests or round == _ROUNDS:
                    return _Draft(plan, prefetched)
                round += 1
                self._ask(requests, answers, attempts)
            del plan  # Its views may be large, and the next plan makes its own.

    # ------------------------------------------------------------------------------------------------ the summarizer

    def _record_tasks(self, tasks: Sequence[Task]) -> None:
        """Record attempts: before they begin, so that they count even if the process ends, or with their outcome."""
        if tasks:
            before = self._state.view()
            self._state.commit(tasks, "plan", before, before)
            self._failures.log_edits(self._state.head.name, tasks)

    def _ask(self, requests: Sequence[SummaryRequest], answers: dict[str, Answer], attempts: Attempts) -> None:
        """Fetch all these summaries, one after the other. `answers` and `attempts` are added to."""
        tasks = [request.task for request in requests if request.task]
        for task in tasks:
            known = attempts.get(task.policy)
            before = known[1] if known else self._state.projection.tasks.get(task.policy)
            attempts[task.policy] = (task, before)
        self._record_tasks(tasks)
        for request in requests:
            answers[request.key] = self._summary(request)

    def _end_needless(self, attempts: Attempts, plan: Plan) -> None:
        """Restore the tasks of attempts that a plan does not use, since other policies did enough."""
        acted = {edit.policy for edit in plan.edits}
        tasks = self._state.projection.tasks
        open = [policy for policy, (task, _) in attempts.items() if tasks.get(policy) == task]
        pending = [attempts[policy] for policy in open if policy not in acted]
        self._record_tasks([before or replace(task, state="skipped", reason=_NEEDLESS) for task, before in pending])

    def _tasks_before(self, attempts: Attempts) -> tuple[Task, ...]:
        """Return the newest task of each policy from before this plan asked anything."""
        tasks = []
        for policy, task in self._state.projection.tasks.items():
            own, before = attempts.get(policy, (None, None))
            tasks.append(before if task == own else task)
        return tuple(task for task in tasks if task is not None)

    def _call_for(self, request: SummaryRequest) -> Callable[[], object]:
        head = self._state.head
        request = replace(request, conversation=head.name, tenant=head.tenant, user=self._user)
        return partial(self._summarizer_for(request) or _no_summarizer, request)

    def _summarizer_for(self, request: SummaryRequest) -> Summarizer | None:
        return self._spare if request.by_code else self.summarizer

    def _summary(self, request: SummaryRequest, fetch: Callable[[], object] | None = None) -> Answer:
        """Return the answer to a request. `fetch`: returns the answer of a job that has ended."""
        answer = self._fetch(request, fetch)
        self._failures.log_answer(self._state.head.name, request, answer)
        return answer

    def _fetch(self, request: SummaryRequest, fetch: Callable[[], object] | None) -> Answer:
        if self._summarizer_for(request) is None:
            return Answer(error="there is no summarizer")
        try:
            return _answer_in(self._caller.call(fetch or self._call_for(request)))
        except NoSummary as error:
            return Answer(
                error=replace_surrogates(f"no summary was accepted: {error}"),
                refused=tuple(map(replace_surrogates, error.refused)),
            )
        except Exception as error:  # The conversation stays as it was after any failure.
            return Answer(error=replace_surrogates(f"the summarizer raised {type(error).__name__}: {error}"))

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
            answer = self._summary(pending.request, job.result)
        else:
            job.cancel()
            self._failures.log_answer(self._state.head.name, pending.request, answer)
        if pending.take_answer(answer):
            self._prefetch.ask_further(pending, self._call_for(pending.request))

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
                _log.debug("%s: an awaited summary failed: %s", state.head.name, reason)
                self._prefetch.drop(pending, view.turn)
                failed = replace(pending.answer, text="", error=reason)
                answers.update((request.key, failed) for request in pending.requests_in(plan))

    def _request_remotely(self, remote: RemoteBackground, requests: Sequence[OpenRequest]) -> None:
        """Hand these requests to another process; its summaries come back through the journal."""
        state = self._state
        policies = tuple(dict.fromkeys(one.needs.request.policy for one in requests))
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
            _log.warning("%s: a summary could not be handed to another process: %s", head.name, error)
        else:
            self._prefetch.is_handed_on = True

    def _drop(self, pending: PendingSummary, reason: str) -> None:
        state = self._state
        _log.debug("%s: a summary for %s is dropped: %s", state.head.name, pending.needs.request.policy, reason)
        self._record_tasks(pending.notes(reason))
        self._prefetch.drop(pending, state.next_turn())

    # ---------------------------------------------------------------------------------------- compaction on request

    def compact(self, focus: str = "") -> Record:
        """Show the oldest part as a summary that concentrates on `focus`.

        Raises BadSetting without a summarizer, BadInput if there is nothing to compact, and NoSummary if there is no
        usable summary; the view is unchanged then.
        """
        if self.summarizer is None:
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

        own = (getattr(policy, "by_hand", None) for policy in (*self.policies, compact_on_overflow()))
        make: Callable[[str], Policy] = next(one for one in own if one is not None)
        return make(focus)

    def _compact(self, policy: Policy, answers: dict[str, Answer], attempts: Attempts) -> Record:
        state = self._state
        for _ in range(_ROUNDS + 1):
            frame = partial(state.framed, tasks=self._tasks_before(attempts))
            try:
                plan = make_plan(state.projection, frame, [policy], (), answers)
            except CompactionFailed as failed:
                if isinstance(failed.task, Task):
                    self._record_tasks([failed.task])
                raise NoSummary([failed.reason]) from failed
            self._ask(plan.requests, answers, attempts)
            if not plan.requests:
                break
        if any(isinstance(edit, Summarize) for edit in plan.edits):
            self._failures.log_edits(state.head.name, plan.edits)
            return state.commit(plan.edits, "compact", plan.before, plan.after)
        failures = [edit for edit in plan.edits if isinstance(edit, Task) and edit.state == "failed"]
        if failures:
            self._record_tasks(failures)
            raise NoSummary([edit.reason for edit in failures])
        raise BadInput(
            "There is nothing to compact: everything shown is recent, pinned, open, a summary already, or too short to "
            "be worth a summary."
        )

    def compact_detached(self, *, since: int | None, is_wanted: bool, focus: str = "") -> Record | None:
        """Compact the conversation for another process that uses it. None if there is nothing to do.

        `since`: number of the newest edit when it was requested, if known; a newer summary is taken as the requested
        one. `is_wanted`: compact the oldest part even if no policy asks for it. `focus`: implies that, and the summary
        concentrates on it. Nothing is sent, so there is no floor; no attempt is recorded before a summarizer is called,
        since the caller counts attempts. Raises what the summarizer raises, NoSummary if no answer is usable, and
        ConflictError if other writers kept being first; nothing was written then.
        """
        answers: dict[str, Answer] = {}
        for _ in range(PLANS):
            self._state.refresh()
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
        policies: Sequence[Policy] = () if focus else self.policies
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
        for _ in range(_ROUNDS):
            plan = make_plan(state.projection, state.frame, policies, (), answers)
            for one in (wanted := self._needed(plan.open_requests)):
                answers[one.needs.request.key] = _answer_in(self._caller.call(self._call_for(one.needs.request)))
            if not wanted:
                break
        return make_plan(state.projection, state.frame, policies, (), answers), is_asked

    def _too_busy(self) -> ConflictError:
        return ConflictError(f"Other writers kept changing the view of {self._state.head.name!r}. Try again later.")


def _answer_in(text: Any) -> Answer:
    """Return a summarizer's return value as an answer."""
    if iscoroutine(text):
        text.close()
        return Answer(error="the summarizer must be awaited, which only an async conversation can do")
    summary = text if isinstance(text, Summary) else Summary(text) if isinstance(text, str) else None
    if summary is None:
        return Answer(error=f"the summarizer returned {type(text).__name__}, not text")
    written = read_answer(summary.text)
    error = "" if written else "the summarizer returned nothing"
    return Answer(written, error, replace_surrogates(summary.by), tuple(map(replace_surrogates, summary.refused)))


def _no_summarizer(request: SummaryRequest) -> str:
    raise NoSummary((f"no summarizer is set that could write a summary for {request.policy}",))


def _shows_stand_in(view: View, noted: int) -> bool:
    """Return whether a call of the newest reply is shown with a stand-in for its answer, for the first time.

    `noted`: the newest model call for which that is recorded.
    """
    for entry in reversed(view.entries):
        if entry.kind == "stand-in" and entry.message.result is not None and entry.legalized != ANSWER_ERASED:
            return entry.stamp.turn >= noted
        if entry.message.role == "assistant":
            return False
    return False
