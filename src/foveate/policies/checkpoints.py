"""Rolling checkpoints: show the oldest messages as one summary, at a number of messages.

The first checkpoint is due at `trigger_at` unsummarized messages, later ones after each `keep_recent` new messages.
Each leaves the newest `keep_recent` messages as they are, so the view keeps about the same size. System prompts do not
count. The conversation fetches the summary; this policy requests it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Literal

from msgspec import Struct
from msgspec.structs import replace

from ..core.edits import Edit, Replace, Summarize, SummaryRole, Task
from ..core.messages import Message, Text
from ..core.planner import Policy
from ..core.sizes import estimate, tokens_of
from ..core.summaries import Answer, NeedsSummary, SummaryRequest, Urgency
from ..core.view import Entry, View
from ..errors import BadSetting
from .frames import CHECKPOINT, PLAIN_CHECKPOINT, frame_summary, unframe_summary
from .kinds import check_kinds
from .names import names_needed_later
from .span_selection import MessageNumbers, OldestSpan, is_carried_summary, select_oldest
from .summary_input import build_summary_input, check_role
from .tool_result_filter import filter_tool_results

__all__ = ["BACKGROUND", "PLAIN", "TARGET", "checkpoint", "checkpoint_edit"]

BACKGROUND = CHECKPOINT
"""Template for the summary. It says that the text is background: a model would follow a summary like an instruction."""

PLAIN = PLAIN_CHECKPOINT
"""A shorter template, with the number of the last covered message, from 0 and without system prompts."""

TARGET = 4_000
"""Characters of a summary."""

_NAME = "checkpoint"
_WAIT_MAX = 32
"""Calls between two attempts."""
_SUMMARY_MIN = 8
"""Tokens. If less could be summarized, the policy requests nothing."""
_PROMPT_TOKENS = 1_000
"""About the size of a summarizer's own prompt. In a very small window it cannot take that much."""


@check_kinds
def checkpoint(
    *,
    trigger_at: int = 100,
    keep_recent: int = 10,
    retrigger: Literal["keep_recent", "trigger_at"] = "keep_recent",
    template: str = BACKGROUND,
    role: SummaryRole = "user",
    tool_results_keep: int = 0,
    prompt: str = "",
    target: int = TARGET,
    ahead: int = 0,
) -> Policy:
    """Return a policy that shows the oldest messages as a summary. The conversation needs a `summarizer`.

    `trigger_at`: number of unsummarized messages at which the first checkpoint is due. `keep_recent`: newest messages
    that stay. `retrigger`: later checkpoints are due after `keep_recent` new messages (100, 110, 120, ...), or once
    `trigger_at` messages are unsummarized (100, 190, 280, ...) for a tenth of the cost. `template`: must contain
    `{summary}`, and may contain `{handle}` and `{turn}` (see `PLAIN`). `role`: of the summary, `user`, `assistant` or
    `system`; Anthropic and Gemini get a system summary as a user's message. `tool_results_keep`: the same as a second
    policy `filter_tool_results(keep=...)`; 0 keeps all results whole. `prompt`: name of the summarizer's prompt.
    `target`: maximum number of characters of a summary; the policy refuses a summary of more than twice as many.
    `ahead`: number of messages before it is due at which the summary is requested, to be written in the background (0:
    never).

    Raises BadSetting for values out of range. Warns for `keep_recent` below 5.
    """
    if keep_recent < 1 or trigger_at <= keep_recent:
        raise BadSetting(
            f"keep_recent and trigger_at of checkpoint are {keep_recent} and {trigger_at}. Set keep_recent to 1 or "
            "more, and trigger_at to a larger number."
        )
    if retrigger not in ("keep_recent", "trigger_at"):
        raise BadSetting(f"retrigger of checkpoint is {retrigger!r}. Set it to 'keep_recent' or 'trigger_at'.")
    if template.count("{summary}") != 1:
        raise BadSetting(f"template of checkpoint is {template!r:.80}. It must contain {{summary}} exactly once.")
    check_role("checkpoint", role)
    if target < 1 or tool_results_keep < 0:
        raise BadSetting(
            f"target and tool_results_keep of checkpoint are {target} and {tool_results_keep}. Set target to 1 or "
            "more, and tool_results_keep to 0 or more."
        )
    if not 0 <= ahead < keep_recent:
        raise BadSetting(f"ahead of checkpoint is {ahead}. Set it to 0 or more and below keep_recent={keep_recent}.")
    if keep_recent < 5:
        warnings.warn(f"keep_recent={keep_recent} is very low: the model may lose the thread.", stacklevel=3)
    return _Checkpoint(trigger_at, keep_recent, retrigger, template, role, tool_results_keep, prompt, target, ahead)


def checkpoint_edit(
    view: View, up_to: int, summary: str, *, template: str = BACKGROUND, role: SummaryRole = "user"
) -> Summarize:
    """Return a checkpoint for `chat.edit` that shows all messages up to number `up_to` as `summary`.

    Messages are numbered from 0, without system prompts. A call and its result that this would separate both stay. The
    edit replaces an earlier checkpoint. The policy `checkpoint` counts on from it: the next one is due after
    `keep_recent` new messages. Raises BadSetting if the edit would cover nothing, for a blank summary, and for a
    template without `{summary}`.
    """
    if template.count("{summary}") != 1 or not summary.strip():
        raise BadSetting(
            f"A checkpoint cannot show {summary!r:.40} with the template {template!r:.40}. Pass a summary that is not "
            "blank, and a template that contains {summary} exactly once."
        )
    check_role("checkpoint_edit", role)
    numbers = MessageNumbers(view)
    span = select_oldest(view, numbers.position(up_to)) if up_to >= 0 else None
    if span is None:
        raise BadSetting(f"No message up to number {up_to} can be summarized. Pass the number of a later message.")
    text = _frame(template, span, numbers, summary)
    return Summarize(span.span, text, _NAME, "a checkpoint made by hand", keep=span.kept, role=role)


class _Checkpoint(Struct, frozen=True):
    """The policy of `checkpoint`."""

    trigger_at: int
    keep_recent: int
    retrigger: str
    template: str
    role: SummaryRole
    tool_results_keep: int
    prompt: str
    target: int
    ahead: int

    needs_summarizer: ClassVar[bool] = True
    """Read when a conversation is opened: without a summarizer the policy could never act."""

    def __call__(self, view: View) -> Iterator[Edit | NeedsSummary]:
        filtered = {edit.target.message: edit for edit in self._filter_results(view)}
        numbers = MessageNumbers(view)
        missing = self._messages_missing(view, numbers)
        is_wanted = missing <= 0 or (missing <= self.ahead and _NAME not in view.preparing)
        span = select_oldest(view, numbers.position_leaving(self.keep_recent - max(0, missing))) if is_wanted else None
        read = span.to_read if span else ()
        inside = {entry.id for entry in read if entry.id in filtered and entry.outline is not None}
        yield from (edit for id, edit in filtered.items() if id not in inside or self.ahead)
        if span is None:
            return
        covered = {id: edit for id, edit in filtered.items() if id in inside}
        if _may_try(view):
            when: Urgency = "ahead" if missing > 0 else "soon" if self.ahead else "now"
            yield from self._request(view, span, numbers, covered, when)
        elif not self.ahead:
            yield from covered.values()

    def _filter_results(self, view: View) -> Iterator[Replace]:
        for edit in filter_tool_results(keep=self.tool_results_keep)(view):
            if isinstance(edit, Replace):
                yield edit

    def _messages_missing(self, view: View, numbers: MessageNumbers) -> int:
        """Return the number of messages that are missing until a checkpoint is due."""
        new = _messages_since_checkpoint(view, numbers)
        first = self.trigger_at - numbers.unsummarized
        if new is None or self.retrigger == "trigger_at":
            return first
        later = self.keep_recent - new
        # Without a summary the next checkpoint is a first one, such as after the caller's list went back behind all.
        return later if any(map(is_carried_summary, view)) else max(first, later)

    def _request(
        self, view: View, span: OldestSpan, numbers: MessageNumbers, filtered: dict[str, Replace], when: Urgency
    ) -> Iterator[Edit | NeedsSummary]:
        """Request the summary of `span`.

        `filtered`: edits of results inside the span. They are made only if there is no summary; with `ahead` they are
        made already, since the summary may come later.
        """
        fallback = () if self.ahead else tuple(filtered.values())
        task = _next_attempt(view, span, numbers)
        previous = "\n\n".join(unframe_summary(entry.message.text, self.template) for entry in span.earlier_summaries)
        source = sum(tokens_of(entry.message) for entry in span.covered)
        if source <= _tokens(_frame(self.template, span, numbers, "")) + _SUMMARY_MIN:
            yield from fallback
            return
        target = min(self.target, 4 * source)
        overhead = min(target // 4 + _PROMPT_TOKENS, view.budget.usable // 2)
        room = view.budget.usable - overhead - estimate(previous)
        read = build_summary_input([_as_filtered(entry, filtered) for entry in span.to_read], room)
        messages = read.messages
        if not messages:
            yield from fallback
            yield replace(task, state="failed", reason="nothing of it fits the window of a summarizer")
            return
        facts = _facts(span, numbers, messages)
        is_bare = self.template != BACKGROUND  # Other templates show only the summarizer's words.
        request = SummaryRequest(
            _NAME,
            messages,
            target,
            previous,
            self.prompt,
            facts,
            task,
            required=() if is_bare else names_needed_later(span.covered, view.entries, target),
            keeps_statements=not is_bare,
            covered=read.covered,
        )
        count = facts["original_message_count"]
        reason = f"{count} messages, and what was summarised before" if previous else f"the oldest {count} messages"

        def use(answer: Answer) -> Iterable[Edit]:
            summary = answer.text.strip()
            text = _frame(self.template, span, numbers, summary)
            fault = answer.error or self._find_fault(summary, text, source)
            if fault:
                return (*fallback, replace(task, state="failed", reason=fault))
            edit = Summarize(span.span, text, _NAME, reason, keep=span.kept, role=self.role)
            return (edit, replace(task, state="done"))

        yield NeedsSummary(request, use, when)

    def _find_fault(self, summary: str, text: str, source: int) -> str:
        """Return why a summary cannot be used, or "". `source`: tokens of the messages that it would replace."""
        if not summary:
            return "the summary is empty"
        if _tokens(text) >= source:
            return "the summary is not shorter than what it stands for"
        if len(summary) > 2 * self.target:  # Each summary carries the last one on, so without a bound they would grow.
            return f"the summary has {len(summary):,} characters, more than twice the {self.target:,} asked for"
        return ""


# ------------------------------------------------------------------------------------------------------------ schedule


def _messages_since_checkpoint(view: View, numbers: MessageNumbers) -> int | None:
    """Return the number of messages since the last checkpoint of this policy. None: there was none."""
    newest_seen = [entry.seen for entry in view if entry.kind == "summary" and entry.stamp.source == _NAME]
    if newest_seen:
        return numbers.unsummarized_after(max(newest_seen))
    task = view.task_of(_NAME)
    if task is None or task.state != "done":
        return None
    return numbers.unsummarized_after(task.seen)  # The checkpoint was undone, or another summary covers it.


def _may_try(view: View) -> bool:
    """Return whether an attempt may be made: after a failure only 1, 2, 4, ... calls later.

    Most failures are short (a rate limit, a restart). Each of the others costs a prompt with all these messages.
    """
    task = view.task_of(_NAME)
    if task is None or task.state in ("done", "skipped"):
        return True
    return view.turn >= task.turn + min(1 << min(task.attempt - 1, 9), _WAIT_MAX)


def _next_attempt(view: View, span: OldestSpan, numbers: MessageNumbers) -> Task:
    task = view.task_of(_NAME)
    number = task.attempt + 1 if task and task.state in ("pending", "failed") else 1
    return Task(_NAME, "pending", number, view.turn, span.span, seen=numbers.newest)


# --------------------------------------------------------------------------------------------------------------- texts


def _facts(span: OldestSpan, numbers: MessageNumbers, messages: tuple[Message, ...]) -> dict[str, Any]:
    """Return the facts that a prompt may use, as plain values."""
    entries = [entry for entry in span.to_read if entry.outline is not None or entry.kind == "summary"]
    first = min(entry.position for entry in entries)
    return {
        "from_turn": numbers.number(first),
        "to_turn": numbers.number(span.last),
        "original_message_count": numbers.unsummarized_in(span.to_read),
        "filtered_message_count": len(messages),
        "messages": [
            {
                "role": message.role,
                "text": message.text,
                "has_tool_calls": bool(message.calls),
                "is_tool_result": message.result is not None,
            }
            for message in messages
        ],
    }


def _as_filtered(entry: Entry, filtered: dict[str, Replace]) -> Entry:
    """Return the entry as the view would show it with its result filtered."""
    edit, message = filtered.get(entry.id), entry.message
    if edit is None or entry.outline is None:
        return entry
    if message.result is not None:
        shown = replace(message, parts=(replace(message.result, content=edit.content),))
    elif entry.kind == "message":  # The result of an action.
        shown = replace(message, parts=edit.content)
    else:
        shown = replace(message, parts=(*message.parts[:1], *edit.content))  # The first part of a note names the call.
    return replace(entry, message=shown, tokens=min(entry.tokens, tokens_of(shown)))


def _tokens(text: str) -> int:
    return tokens_of(Message("user", (Text(text),)))


def _frame(template: str, span: OldestSpan, numbers: MessageNumbers, summary: str) -> str:
    return frame_summary(template.replace("{turn}", str(numbers.number(span.last))), span.handle, summary)
