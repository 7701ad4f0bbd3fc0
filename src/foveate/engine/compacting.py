"""Compacting by hand: a summary of the oldest part of a view, made because somebody asked for it, however full it is.

The policy that compacts on overflow decides what is covered and what stays; here it is told that it is due, and on what
the summary is to dwell. What was prepared in the background for another moment is not used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..core.edits import Record, Summarize, Task
from ..core.planner import Policy, make_plan
from ..core.summaries import Answer
from ..errors import BadInput, BadSetting, CompactionFailed, ConflictError, NoSummary
from .asking import ROUNDS, Begun
from .planning import Planning
from .steps import PLANS, Step

__all__ = ["Compacting"]


class Compacting(Planning):
    """The step that compacts because somebody said so."""

    def compact(self, focus: str = "") -> Step[Record]:
        """Show the oldest part as a summary that dwells on `focus`.

        Raises BadSetting where nobody writes summaries, BadInput where there is nothing to compact, NoSummary where
        none could be had; the view is as it was then.
        """
        if self.summarizer is None:
            raise BadSetting(
                "Somebody has to write the summary: give summarizer=, a name such as digest or "
                "anthropic:claude-haiku-4-5, or a function that is handed a SummaryRequest and returns the text."
            )
        policy = self._by_hand(focus)
        answers: dict[str, Answer] = {}
        begun: Begun = {}
        yield from self._follow_head()
        for _ in range(PLANS):
            try:
                return (yield from self._compacted(policy, answers, begun))
            except ConflictError:
                yield from self.refresh()
        raise ConflictError(f"Other writers kept changing the view of {self.head.name!r}; try again later.")

    def _by_hand(self, focus: str) -> Policy:
        """The conversation's own policy, or one with the usual numbers where it has none."""
        from ..policies.compaction import compact_on_overflow  # Imported where it is used at all.

        own = (getattr(policy, "by_hand", None) for policy in (*self.policies, compact_on_overflow()))
        made: Callable[[str], Policy] = next(one for one in own if one is not None)
        return made(focus)

    def _compacted(self, policy: Policy, answers: dict[str, Answer], begun: Begun) -> Step[Record]:
        for _ in range(ROUNDS + 1):
            frame = partial(self._framed, tasks=self._tasks_without(begun))
            try:
                plan = make_plan(self.projection, frame, [policy], (), answers)
            except CompactionFailed as failed:
                if isinstance(failed.task, Task):
                    yield from self._begin([failed.task])
                raise NoSummary([failed.reason]) from failed
            yield from self._ask(plan.requests, answers, begun)
            if not plan.requests:
                break
        if any(isinstance(edit, Summarize) for edit in plan.edits):
            return (yield from self._commit(plan.edits, "compact", plan.before, plan.after))
        failures = [edit for edit in plan.edits if isinstance(edit, Task) and edit.state == "failed"]
        if failures:
            yield from self._begin(failures)
            raise NoSummary([edit.reason for edit in failures])
        raise BadInput(
            "There is nothing to compact: what is shown is recent, pinned or open, or a summary already, or too short "
            "for one to be worth its while."
        )
