"""Summaries that are written in the background while the conversation goes on.

A request is started under the name of its policy, one at a time. Its answer is kept until the policy wants it, and is
used only if it still fits the view. Nothing here is stored. `plan.py` decides when to ask.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest

from msgspec.structs import replace

from ..core.edits import Bill, Edit, Hide, Pin, Replace, Restore, Span, Summarize, Target, Task, Unpin, ends_of
from ..core.messages import Message, Text
from ..core.plain_handles import plain_message
from ..core.planner import OpenRequest, Plan, answer_edits
from ..core.sizes import tokens_of
from ..core.summaries import Answer, NeedsSummary, SummaryRequest
from ..core.view import Entry, View
from ..errors import CompactionFailed
from ..ports import Background, Job, RemoteBackground
from .calls import Caller

__all__ = ["PendingSummary", "SummaryPrefetch", "staleness"]

_log = logging.getLogger("foveate")
_ROUNDS = 3
"""How often an answer may lead to a further request."""
_MAX_AGE = 32
"""Model calls after which a job that has not ended is given up."""
_MAX_JOBS = 4
"""Jobs that run at the same time, at most."""
_RETRY_AFTER = 2
"""Model calls until a request that could not begin is considered again."""
_DOUBLINGS = 5
"""Doublings of the delay after answers in a row that were not used."""
_LEAST_SHARE = 0.25
"""Share of the tokens that a summary would have freed that it must still free."""


class PendingSummary:
    """One request in the background, and its answer."""

    def __init__(self, open_request: OpenRequest, branch: int, job: Job) -> None:
        self.needs, self.view, self.branch = open_request.needs, open_request.view, branch
        self.request: SummaryRequest = open_request.needs.request
        """The request in progress: the first one, or one that an answer led to."""
        self.job: Job | None = job
        """None once there is an answer."""
        self.edits: tuple[Edit, ...] = ()
        """The edits that follow from the answers."""
        self.answer = Answer()
        """The newest answer."""
        self._answers: dict[str, Answer] = {}

    @property
    def name(self) -> str:
        """The name under which the request is known."""
        return _name_of(self.needs)

    def take_answer(self, answer: Answer) -> bool:
        """Take an answer. Returns whether it leads to a further request, which is `request` then."""
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

    def requests_in(self, plan: Plan) -> list[SummaryRequest]:
        """Return the requests of a plan that are due and take the place of this one."""
        return [due.needs.request for due in plan.due if _name_of(due.needs) == self.name]

    def fault(self, view: View, branch: int) -> str:
        """Return why the answer cannot be used; "" if it can, as far as is known."""
        if self.branch != branch:
            return "the conversation departed from the past that it was made of"
        if self.job:
            return ""
        notes = self.notes("")
        if notes and len(notes) == len(self.edits):
            return notes[-1].reason or "it failed"
        return staleness(self.view, view, self.edits)

    def notes(self, reason: str) -> list[Task]:
        """Return the tasks to record if the answer is not used."""
        if self.edits and all(isinstance(edit, Task) for edit in self.edits):
            return [edit for edit in self.edits if isinstance(edit, Task)]
        task = self.needs.request.task
        return [replace(task, state="skipped", reason=reason)] if task and reason else []

    def apply(self, view: View) -> Iterable[Edit]:
        """Return the edits if they still fit. This is a policy."""
        return () if staleness(self.view, view, self.edits) else self.edits


def _name_of(needs: NeedsSummary) -> str:
    """Return the policy for requests that count as attempts, so that each policy has one; else the request's key."""
    request = needs.request
    return request.policy if request.task else request.key


class SummaryPrefetch:
    """The requests of one conversation that are in the background, or answered and not used yet."""

    def __init__(self, background: Background | RemoteBackground | None, caller: Caller | None) -> None:
        self.background = background
        self.remote: RemoteBackground | None = background if hasattr(background, "request_compaction") else None
        """Writes summaries in another process, if there is one; nothing is started here then."""
        self.is_handed_on = False
        """Whether a request was handed to another process, so that the journal may have grown."""
        self._eager = getattr(background, "eager", False)
        self._caller = caller or Caller()
        self._pending: dict[str, PendingSummary] = {}
        self._delays: dict[str, tuple[int, int]] = {}  # unused answers in a row, first model call to ask again

    @property
    def policies(self) -> tuple[str, ...]:
        """Policies for which a summary is in progress or ready."""
        return tuple(dict.fromkeys(pending.needs.request.policy for pending in self._pending.values()))

    def is_running(self) -> bool:
        """Return whether a summary is being written."""
        return any(pending.job is not None and not pending.job.done() for pending in list(self._pending.values()))

    # ---------------------------------------------------------------------------------------- the requests of a plan

    def ready(self, plan: Plan, *, is_forced: bool) -> list[PendingSummary]:
        """Return the answers that a plan can use; all of them if the view does not fit (`is_forced`)."""
        wanted = _names(plan)
        return [pending for name, pending in self._pending.items() if not pending.job and (is_forced or name in wanted)]

    def running(self, plan: Plan) -> list[PendingSummary]:
        """Return the requests of a plan that are in progress."""
        wanted = _names(plan)
        return [pending for name, pending in self._pending.items() if pending.job and name in wanted]

    def urgent(self, plan: Plan, *, is_forced: bool) -> list[SummaryRequest]:
        """Return the requests to answer before the plan can be made. `is_forced`: the view does not fit otherwise."""
        if self.background is None:
            return list(plan.requests)
        running = {pending.name for pending in self.running(plan)}
        due = [request.needs for request in plan.due]
        return [
            needs.request
            for needs in due
            if _name_of(needs) not in running and (is_forced or (needs.when == "now" and not self._eager))
        ]

    def may_begin(self, plan: Plan) -> list[OpenRequest]:
        """Return the open requests of a plan that the background may take."""
        if self.background is None:
            return []
        waiting = [request for request in plan.open_requests if self._eager or request.needs.when != "now"]
        return [request for request in waiting if self._is_free(request)]

    def _is_free(self, open_request: OpenRequest) -> bool:
        name = _name_of(open_request.needs)
        running = sum(pending.job is not None for pending in self._pending.values())
        is_delayed = open_request.view.turn < self._delays.get(name, (0, 0))[1]
        return name not in self._pending and running < _MAX_JOBS and not is_delayed

    def begin(self, open_request: OpenRequest, branch: int, call: Callable[[], object]) -> None:
        """Start a request in the background, if there is room."""
        if not self._is_free(open_request):
            return
        if job := self._start(call):
            self._pending[_name_of(open_request.needs)] = PendingSummary(open_request, branch, job)
        else:
            self.put_off(open_request)

    def _start(self, call: Callable[[], object]) -> Job | None:
        assert callable(self.background), "only a background in this process takes requests"
        try:
            return self._caller.begin(self.background, call)
        except Exception as error:  # No thread is left, for example: the conversation goes on without it.
            _log.warning("a summary could not be started in the background: %r", error)
            return None

    def put_off(self, open_request: OpenRequest) -> None:
        """Do not consider a request for some model calls."""
        name = _name_of(open_request.needs)
        self._delays[name] = (self._delays.get(name, (0, 0))[0], open_request.view.turn + _RETRY_AFTER)

    # -------------------------------------------------------------------------------------------------- the answers

    def ended(self, turn: int) -> Iterator[PendingSummary]:
        """Yield the requests whose job has ended, or is given up at this model call."""
        for pending in list(self._pending.values()):
            if pending.job and (pending.job.done() or turn >= pending.view.turn + _MAX_AGE):
                yield pending

    def ask_further(self, pending: PendingSummary, call: Callable[[], object]) -> None:
        """Start the further request that an answer led to."""
        pending.job = self._start(call)

    def faulty(self, view: View, branch: int) -> Iterator[tuple[PendingSummary, str]]:
        """Yield the requests whose answers cannot be used, and why."""
        for pending in list(self._pending.values()):
            if reason := pending.fault(view, branch):
                yield pending, reason

    def unwanted(self, plan: Plan) -> Iterator[PendingSummary]:
        """Yield answers that no plan asks for any more: they count as no attempt, were due, and are not due now."""
        wanted = _names(plan)
        for name, pending in list(self._pending.items()):
            was_due = pending.needs.when != "ahead" and pending.needs.request.task is None
            if was_due and not pending.job and name not in wanted:
                yield pending

    def used(self, pending: PendingSummary) -> None:
        """Note that an answer is in the journal."""
        self._pending.pop(pending.name, None)
        self._delays.pop(pending.name, None)

    def drop(self, pending: PendingSummary, turn: int) -> None:
        """Give up a request. After each one in a row, the next one begins twice as many model calls later."""
        self._pending.pop(pending.name, None)
        if pending.job:
            pending.job.cancel()
        count = self._delays.get(pending.name, (0, 0))[0]
        recent = {name: delay for name, delay in self._delays.items() if delay[1] + (1 << _DOUBLINGS) > turn}
        self._delays = {**recent, pending.name: (count + 1, turn + (1 << min(count, _DOUBLINGS)))}

    def close(self) -> list[object]:
        """Cancel all running jobs without waiting; returns what their `cancel` returned."""
        return [job.cancel() for pending in list(self._pending.values()) if (job := pending.job)]


def _names(plan: Plan) -> set[str]:
    return {_name_of(request.needs) for request in plan.due}


# --------------------------------------------------------------------------------------------- edits of an earlier view


def staleness(asked: View, now: View, edits: Sequence[Edit]) -> str:
    """Return why edits that were made for the view `asked` must not be applied to `now`; "" if they may.

    Messages in a span may be shorter by then if a policy shortened them. A message that is edited by itself must be
    unchanged.
    """
    if not edits:
        return "nothing came of it"
    return next(filter(None, (_fault(asked, now, edit) for edit in edits)), "")


def _fault(asked: View, now: View, edit: Edit) -> str:
    for target in _targets(edit):
        span = _positions(asked.entries, target)
        if span is None:
            return "what it stands for is not shown"
        is_exact = isinstance(target, Target)
        for old, new in zip_longest(_within(asked, span), _within(now, span)):
            if old is None or new is None or not _is_unchanged(old, new, is_exact):
                return f"{(old or new).handle} was changed meanwhile"
        if isinstance(edit, Summarize):
            text = tokens_of(Message("user", (Text(edit.text),)))
            freed, left = (_size(_within(view, span), edit.keep) - text for view in (asked, now))
            if left < max(1, freed * _LEAST_SHARE):
                return "it would free too little by now"
    return ""


def _targets(edit: Edit) -> tuple[Target | Span, ...]:
    match edit:
        case Replace(target=target) | Hide(target=target) | Pin(target=target) | Unpin(target=target):
            return (target,)
        case Summarize(span=span):
            return (span,)
        case Restore(targets=targets):
            return targets
        case Task() | Bill():
            return ()


def _positions(entries: Sequence[Entry], target: Target | Span) -> tuple[int, int] | None:
    """Return the positions that a target names, as far as the view shows them."""
    first, last = ends_of(target)
    shown = [entry for entry in entries if entry.kind != "stand-in"]
    begins = [entry.position for entry in shown if entry.id == first]
    ends = [entry.last for entry in shown if (entry.span.last if entry.span else entry.id) == last]
    return (min(begins), max(ends)) if begins and ends else None


def _within(view: View, span: tuple[int, int]) -> list[Entry]:
    return [entry for entry in view.entries if span[0] <= entry.position <= span[1]]


def _is_unchanged(old: Entry, new: Entry, is_exact: bool) -> bool:
    """Return whether an entry shows what it showed, or, unless `is_exact`, what a policy made of that."""
    if old is new:
        return True
    if _identity(old) != _identity(new):
        return False
    return old.shrunk == new.shrunk if is_exact else set(old.shrunk) <= set(new.shrunk)


def _identity(entry: Entry) -> tuple[object, ...]:
    """Return what must not change: the message, manual edits of it, pins, restores and whether it is expandable."""
    by_hand = {path for path, policy in zip(entry.shrunk, entry.shrunk_by, strict=False) if not policy}
    is_text_fixed = by_hand or entry.outline is None
    text = plain_message(entry.message, entry.outline) if is_text_fixed else None
    return entry.id, entry.kind, text, entry.pins, entry.renewed, entry.expandable, by_hand


def _size(entries: Iterable[Entry], keep: Sequence[str]) -> int:
    """Return the tokens of the entries that a summary would hide."""
    hidden = [entry for entry in entries if not entry.is_system and not entry.pins]
    return sum(entry.tokens for entry in hidden if entry.outline is None or entry.id not in keep)
