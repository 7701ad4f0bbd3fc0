"""Compaction: summarize the oldest messages when the next request would not fit the window.

It is the only mechanism that costs a model call. So it runs after those that cost none. The journal holds each attempt
before a model is asked, a summary is used only if it frees enough tokens, and attempts stop after a few failures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar, Literal

from msgspec import Struct
from msgspec.structs import replace

from ..core.budget import measure_excess, occupied_tokens
from ..core.edits import Edit, Replace, Summarize, SummaryRole, Task
from ..core.messages import Message, Text
from ..core.planner import Policy
from ..core.results import native_message
from ..core.sizes import tokens_of
from ..core.summaries import Answer, NeedsSummary, SummaryRequest, Urgency
from ..core.units import cut_points
from ..core.view import Entry, View
from ..digest import digest
from ..errors import BadSetting, CompactionFailed
from .binding import with_statements
from .frames import COMPACTION, frame_summary, unframe_summary
from .kinds import check_kinds
from .names import names_needed_later
from .placeholders import handle_of, is_whole, replacement
from .span_selection import (
    OldestSpan,
    awaits_reply,
    first_unanswered,
    last_request,
    open_inputs,
    select_oldest_before,
)
from .summary_input import build_summary_input, check_role, summary_tokens_max

__all__ = ["BACKGROUND", "compact_on_overflow"]

BACKGROUND = COMPACTION
"""Frame of the summary. It says that the text is background: a model would follow a summary like an instruction."""

_NAME = "compact"
_NO_PROGRESS = "no progress"
_NOTHING = "nothing that a summary could stand for is large enough"
_RECENT_MAX, _RECENT_SHARE = 0.5, 0.25
"""Share of the usable tokens above which a number in `keep_recent` is too large for the window, and the share that then
counts: with less room for other messages, a summary would soon follow the last one.
"""
_OPEN_SHARE = 0.25
"""Share of the usable tokens that open requests, without the last one, may take to stay word for word."""
_REQUEST_MAX = 2_000
"""Characters of the open request in the facts for the summarizer."""
_PROMPT_TOKENS = 1_000
"""About the size of a summarizer's own prompt."""
_LENGTH_FACTOR = 4
"""A summary that is more than so many times as long as requested is refused."""


@check_kinds
def compact_on_overflow(
    *,
    threshold: float = 1.0,
    keep_recent: int | float = 0.25,
    summary_tokens: int | None = None,
    max_attempts: int = 3,
    min_progress: float = 0.10,
    strict: bool = False,
    optional: bool = False,
    order: Literal["prune_first", "compact_first"] = "prune_first",
    framing: str = BACKGROUND,
    role: SummaryRole = "user",
    prompt: str = "",
    input_max: int | None = None,
    refuses: Callable[[SummaryRequest, str], str] | None = None,
    ahead: float = 0.0,
    digest: bool = True,
) -> Policy:
    """Return a policy that summarizes the oldest messages before a request that would fill the window.

    When: `threshold` is a share of the usable tokens (window less reserve); the policy acts above it. `ahead` is a
    share of the threshold at which the summary is requested already, to be written in the background (0.0: never). A
    failure ahead counts as an attempt, and the last attempt is never made ahead.

    Size: `keep_recent` newest tokens stay word for word, as a number (int) or as a share of the threshold (float). A
    number above half of the usable tokens counts as a quarter of them. Only whole units are covered, and messages that
    the model has not answered always stay. `summary_tokens` is the greatest requested length (default: it follows the
    window, see `summary_tokens_max`); of new messages a third is requested at most. `input_max` is the maximum number
    of tokens for a summarizer's model to read (default: the conversation's window).

    Text: `framing` must contain `{summary}` and may contain `{handle}`. `role` is the role of the summary: `user`,
    `assistant` or `system`; Anthropic and Gemini get a system summary as a user's message. `prompt` names the
    summarizer's prompt.

    Failure: a summary is refused if the view shrinks by less than the share `min_progress`, if it is longer than its
    messages or than four times the requested length, or if `refuses(request, text)` returns a reason. After
    `max_attempts` failures in a row, or two without progress, the policy waits for the user's next input.
    `strict=True`: each failure raises CompactionFailed from `prepare` and `prompt`. Otherwise a digest, which needs no
    model, replaces the summary. With `digest=False`, or if the digest is refused too, the hard floor acts, and the next
    attempts are made one, two, four calls later.

    Together: `order` is the place of the policy in a preset, after or before the mechanisms that need no model. The
    conversation needs a `summarizer`; with `optional=True` the policy is left out if there is none. Raises BadSetting
    for values out of range.
    """
    if order not in ("prune_first", "compact_first"):
        raise BadSetting(f"order of compact_on_overflow is {order!r}. Set it to 'prune_first' or 'compact_first'.")
    policy = _Compact(
        threshold,
        keep_recent,
        summary_tokens,
        max_attempts,
        min_progress,
        strict,
        optional,
        order == "compact_first",
        framing,
        role,
        prompt,
        input_max,
        refuses,
        ahead,
        digest,
    )
    policy.check()
    return policy


class _Compact(Struct, frozen=True):
    """The policy of `compact_on_overflow`."""

    threshold: float
    keep_recent: int | float
    summary_tokens: int | None
    max_attempts: int
    min_progress: float
    strict: bool
    optional: bool
    """Read when a conversation is opened: without a summarizer the policy is left out."""
    runs_first: bool
    """Read when the policies of a preset are ordered."""
    framing: str
    role: SummaryRole
    prompt: str
    input_max: int | None
    refuses: Callable[[SummaryRequest, str], str] | None
    ahead: float
    digest: bool
    focus: str = ""
    """The topic on which a summary that the user requested concentrates."""
    is_requested: bool = False
    """Whether the user requested the summary: then it is due at any size of the view."""

    before_calls_only: ClassVar[bool] = True
    """Read by the engine. After a reply nothing is sent yet, and the answered request would still look open."""

    def check(self) -> None:
        """Raise BadSetting for values out of range."""
        if not 0 < self.threshold <= 1 or not 0 <= self.min_progress < 1:
            raise BadSetting(
                f"threshold and min_progress of compact_on_overflow are {self.threshold} and {self.min_progress}. Set "
                "threshold above 0 and to at most 1, and min_progress to 0 or more and below 1."
            )
        if not 0 <= self.ahead < 1:
            raise BadSetting(
                f"ahead of compact_on_overflow is {self.ahead}. Set it to a share of the threshold: 0 to below 1."
            )
        if self.keep_recent < 0 or (isinstance(self.keep_recent, float) and self.keep_recent >= 1):
            raise BadSetting(
                f"keep_recent of compact_on_overflow is {self.keep_recent}. Set a number of tokens (0 or more), or a "
                "share (a decimal below 1.0)."
            )
        if any(
            number is not None and number < 1 for number in (self.summary_tokens, self.max_attempts, self.input_max)
        ):
            raise BadSetting(
                f"summary_tokens, max_attempts and input_max of compact_on_overflow are {self.summary_tokens}, "
                f"{self.max_attempts} and {self.input_max}. Set each to 1 or more."
            )
        check_role("compact_on_overflow", self.role)
        if self.framing.count("{summary}") != 1:
            raise BadSetting(
                f"framing of compact_on_overflow is {self.framing!r:.80}. It must contain {{summary}} once."
            )

    @property
    def needs_summarizer(self) -> bool:
        """Read when a conversation is opened: without a summarizer the policy could never act."""
        return not self.optional

    def idle_note(self, usable: int, *, has_summarizer: bool) -> str:
        """Return why the policy is left out; "" if it is not. Read when a conversation is opened."""
        if has_summarizer or not self.optional:
            return ""
        return "compact is left out, since there is no summarizer. Pass summarizer= to let it act."

    def by_hand(self, focus: str) -> Policy:
        """Return the same policy for a summary that the user requested now. Called by the engine."""
        return replace(self, focus=focus, is_requested=True)

    def __call__(self, view: View) -> Iterator[Edit | NeedsSummary]:
        window = _measure_window(view)
        if self.is_requested:
            # A share of `keep_recent` is then a share of the occupied tokens.
            occupied = replace(window, usable=min(window.usable, window.occupied))
            kept = open_inputs(view, occupied.share(_OPEN_SHARE))
            span = select_oldest_before(view, self._first_recent(view, occupied, 0), keep=kept)
            if span and (request := self._request(view, span, None, window, "now")):
                yield request
            return
        if not view.entries:
            return
        trigger = window.usable * self.threshold
        overflows = measure_excess(view).tokens > 0  # By a stricter estimate than `occupied`: the floor would act.
        is_due = window.occupied > trigger or overflows
        is_near = bool(self.ahead) and window.occupied > trigger * self.ahead and _NAME not in view.preparing
        if not (is_due or is_near) or not (awaits_reply(view) or overflows):
            return  # After an answer, only a view that does not fit is compacted.
        last = _last_attempt(view)
        if last and (self._is_final(last) or not (is_due or self._may_fail_ahead(last))):
            if self.strict and is_due:
                raise self._failure(last, window)
            return
        waits = last and last.state == "failed" and view.turn < last.turn + (1 << (last.attempt - 1))
        if waits and not (self.strict and is_due):
            return
        coming = 0 if is_due else int((trigger - window.occupied) / window.scale)
        kept = open_inputs(view, window.share(_OPEN_SHARE))
        span = select_oldest_before(view, self._first_recent(view, window, coming), keep=kept)
        when: Urgency = "ahead" if not is_due else "soon" if self.ahead else "now"
        if span and (single := _single_message(span)):
            shorter, request = self._shorten(single, view) if is_due else None, None
        else:
            shorter, request = None, self._request(view, span, last, window, when) if span else None
        if request or shorter:
            yield from (item for item in (request, shorter) if item)
        elif is_due and not _is_known_futile(view):
            attempt = last.attempt + 1 if last else 1
            yield Task(_NAME, "skipped", attempt, view.turn, None, _NOTHING, _newest_position(view))

    def _shorten(self, entry: Entry, view: View) -> Replace | None:
        """Return the digest of the only message that a summary would replace: it needs no frame and no model."""
        source = native_message(entry)
        if source is None or entry.message.calls or not is_whole(entry):
            return None
        room = min(4 * (self.summary_tokens or summary_tokens_max(view.budget.usable)), len(source.text) // 3)
        text = digest(source.text, max(1, room), handle_of(entry)).text
        headline = entry.message.parts[:1] if entry.kind == "note" else ()  # It names the call, and stays.
        freed = entry.tokens - tokens_of(Message("user", (*headline, Text(text))))
        is_enough = freed > 0 and freed >= self.min_progress * view.tokens
        return replacement(entry, text, _NAME, "it fills much of the window") if is_enough else None

    def _may_fail_ahead(self, last: Task) -> bool:
        """Return whether an attempt ahead is allowed: one attempt is left for when it is due."""
        return last.attempt + 1 < self.max_attempts and not last.reason.startswith(_NO_PROGRESS)

    def _is_final(self, task: Task) -> bool:
        """Return whether no attempt follows this failed one."""
        return task.attempt >= self.max_attempts or (task.attempt > 1 and task.reason.startswith(_NO_PROGRESS))

    def _failure(self, task: Task, window: _Window, *, is_new: bool = False) -> CompactionFailed:
        reason = task.reason or "it was interrupted"
        final = self._is_final(task)
        new_task = task if is_new else None
        return CompactionFailed(reason, task.attempt, window.occupied, window.usable, is_final=final, task=new_task)

    def _first_recent(self, view: View, window: _Window, coming: int) -> int:
        """Return the index of the first entry that stays as recent after `coming` more tokens."""
        entries, keep = view.entries, self.keep_recent
        if isinstance(keep, float):
            wanted = window.share(keep * self.threshold) - coming
        else:
            wanted = (keep if keep <= window.share(_RECENT_MAX) else window.share(_RECENT_SHARE)) - coming
        first = first_unanswered(entries)
        filled = sum(entry.tokens for entry in entries[first:])
        for point in reversed([point for point in cut_points(view) if point < first]):
            filled += sum(entry.tokens for entry in entries[point:first])
            if filled > wanted:
                break
            first = point
        return first

    def _request(
        self, view: View, span: OldestSpan, last: Task | None, window: _Window, when: Urgency
    ) -> NeedsSummary | None:
        """Return the request for the summary of `span`, and the use of its answer; None if it could not free enough."""
        request = self._summary_request(view, span, last, window)
        if request is None:
            return None
        attempt, reason = request.task, self._reason(window, when)
        assert attempt is not None, "a compaction counts its attempts"

        def use(answer: Answer, refused: tuple[str, ...] = ()) -> Iterator[Edit | NeedsSummary]:
            text = frame_summary(self.framing, span.handle, answer.text.strip())
            fault = answer.error or self._find_fault(request, text, span, view)
            task = replace(attempt, state="failed" if fault else "done", reason=fault)
            if not fault:
                yield Summarize(
                    span.span,
                    text,
                    _NAME,
                    reason,
                    keep=span.kept,
                    by=answer.by,
                    refused=(*refused, *answer.refused),
                    role=self.role,
                )
                yield task
            elif self.digest and not self.strict and not refused and when != "ahead":
                refusals = answer.refused
                if not (answer.error and refusals):  # Otherwise the refusals already say why there is no text.
                    refusals = (*refusals, f"{answer.by or 'summarizer'}: {fault.removeprefix('the summarizer ')}")
                by_code = replace(request, task=None, by_code=True)
                yield NeedsSummary(by_code, lambda digest: use_digest(digest, task, refusals))
            elif self.strict:
                raise self._failure(task, window, is_new=True)
            else:
                yield task

        def use_digest(digest: Answer, failed: Task, refusals: tuple[str, ...]) -> Iterator[Edit | NeedsSummary]:
            """Use a digest. If the digest is refused too, the journal gets the summarizer's failure."""
            for edit in use(digest, refusals):
                yield failed if isinstance(edit, Task) and edit.state == "failed" else edit

        return NeedsSummary(request, use, when)

    def _summary_request(
        self, view: View, span: OldestSpan, last: Task | None, window: _Window
    ) -> SummaryRequest | None:
        """Return the request for the summary of `span`; None if the summary could not free enough."""
        covered = sum(entry.tokens for entry in span.covered)
        source = sum(tokens_of(entry.message) for entry in span.covered)
        carried = sum(tokens_of(entry.message) for entry in span.earlier_summaries)
        most = self.summary_tokens or summary_tokens_max(window.share(1.0))
        # The new summary repeats the earlier ones, so these need their room again.
        target = 4 * min(most, carried + (source - carried) // 3 + 1)
        previous = "\n\n".join(unframe_summary(entry.message.text, self.framing) for entry in span.earlier_summaries)
        room = self._input_room(window, last, len(previous))
        read = build_summary_input(span.to_read, room, level=last.attempt if last else 0)
        frame = tokens_of(Message("user", (Text(frame_summary(self.framing, span.handle, "")),)))
        least = frame + min(most, max(carried, source // 3))
        expected = covered - covered * least // source
        if not (read.messages or read.covered) or expected < self.min_progress * view.tokens:
            return None
        attempt = last.attempt + 1 if last else 1
        task = Task(_NAME, "pending", attempt, view.turn, span.span, "", _newest_position(view), read.tokens)
        facts = {"handle": span.handle, "request": last_request(view)[:_REQUEST_MAX] if awaits_reply(view) else ""}
        is_bare = self.framing == "{summary}"  # A bare text shows only the summarizer's words, without added names.
        required = () if is_bare else names_needed_later(span.covered, view.entries, target)
        # Not even the newest unit may fit the window of a model.
        is_unreadable = not read.messages and self.digest and not self.strict
        return SummaryRequest(
            _NAME,
            read.messages,
            target,
            previous,
            self.prompt,
            facts,
            task,
            required=required,
            keeps_statements=not is_bare,
            focus=self.focus,
            covered=read.covered,
            by_code=is_unreadable,
        )

    def _reason(self, window: _Window, when: Urgency) -> str:
        if self.is_requested:
            return "it was asked for" + (f": {self.focus}" if self.focus else "")
        reason = f"the next request would take {window.occupied:,} of {window.usable:,} usable tokens"
        return reason + (", when it was asked for" if when == "ahead" else "")

    def _input_room(self, window: _Window, last: Task | None, previous: int) -> int:
        """Return the tokens that the summarizer may read. `previous`: characters of the summary that it also reads.

        Its answer fits the reserve, like every answer.
        """
        room = max(window.share(0.5), window.share(1.0) - previous // 3 - _PROMPT_TOKENS)
        if self.input_max is not None:
            room = min(room, self.input_max)
        if last and last.input_tokens:
            # The failed input may have been too long: send no more, and half after two failures.
            room = min(room, last.input_tokens if last.attempt == 1 else last.input_tokens // 2)
        return room

    def _find_fault(self, request: SummaryRequest, text: str, span: OldestSpan, view: View) -> str:
        """Return why a framed summary is refused; "" if it is used."""
        summary = unframe_summary(text, self.framing)
        if not summary:
            return "the summary is empty"
        before = sum(tokens_of(entry.message) for entry in span.covered)
        after = tokens_of(Message("user", (Text(text),)))  # Both by one rule, independent of the counter in use.
        if after >= before:
            return f"{_NO_PROGRESS}: the summary is not shorter than what it stands for"
        freed = sum(entry.tokens for entry in span.covered) * (before - after) // before
        if freed < self.min_progress * view.tokens:
            return f"{_NO_PROGRESS}: the view would be {freed / view.tokens:.0%} smaller, not {self.min_progress:.0%}"
        if len(summary) > _LENGTH_FACTOR * request.target:  # Each summary carries the last one on, and would grow.
            return f"the summary has {len(summary):,} characters, and {request.target:,} were asked for"
        return self.refuses(with_statements(request), summary) if self.refuses else ""


def _single_message(span: OldestSpan) -> Entry | None:
    """Return the message that a span consists of, if it is only one and no summary."""
    return span.covered[0] if len(span.covered) == 1 and span.covered[0].outline is not None else None


# ------------------------------------------------------------------------------------------------- the window, attempts


class _Window(Struct, frozen=True):
    """The fill level of the window, in tokens as the provider counts them."""

    occupied: int
    usable: int
    scale: float

    def share(self, part: float) -> int:
        """Return a share of the usable tokens, in tokens as the conversation counts them."""
        return int(self.usable * part / self.scale)


def _measure_window(view: View) -> _Window:
    budget = view.budget
    return _Window(occupied_tokens(view), budget.window - budget.reserve, budget.scale)


def _last_attempt(view: View) -> Task | None:
    """Return the last attempt since the last success and the user's last input; None: there was none."""
    task = view.task_of(_NAME)
    if task is None or task.state == "done" or view.last_input > task.seen:
        return None
    if task.state == "skipped":  # It has the number of the attempt that was not made.
        return replace(task, attempt=task.attempt - 1) if task.attempt > 1 else None
    return task


def _is_known_futile(view: View) -> bool:
    """Return whether nothing can be compacted, as the journal says, or everything is compacted."""
    if any(_NAME in entry.shrunk_by for entry in view):  # The only message that a summary could replace is a digest.
        return True
    task = view.task_of(_NAME)
    return task is not None and (
        task.state == "skipped" or (task.state == "done" and task.seen >= _newest_position(view))
    )


def _newest_position(view: View) -> int:
    """Return the position of the newest message that is shown, whole or in a summary."""
    return max(entry.last for entry in view)
