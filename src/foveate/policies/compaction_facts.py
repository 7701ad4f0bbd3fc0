"""What a compaction looks at before it decides: how full the window is, and what was tried before.

Knows the journal's tasks as a view has them. What follows from all this is decided in `compact_on_overflow.py`.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ..core.budget import occupied_tokens
from ..core.edits import Task
from ..core.view import View

__all__ = ["COMPACT", "Fullness", "fullness", "is_noted", "last_try", "newest"]

COMPACT = "compact"
"""The name of the policy, in edits and tasks."""


class Fullness(Struct, frozen=True):
    """How full the window is, in tokens as the provider counts them."""

    occupied: int
    usable: int
    scale: float

    def share(self, part: float) -> int:
        """A share of what is usable, in tokens as the conversation counts them."""
        return int(self.usable * part / self.scale)


def fullness(view: View) -> Fullness:
    """How full the window would be with a request that shows this view."""
    budget = view.budget
    return Fullness(occupied_tokens(view), budget.window - budget.reserve, budget.scale)


def last_try(view: View) -> Task | None:
    """The last attempt since the last success and the user's last input; None: there was none."""
    task = view.task_of(COMPACT)
    if task is None or task.state == "done" or view.last_input > task.seen:
        return None
    if task.state == "skipped":  # It has the number of the attempt that was not made.
        return replace(task, attempt=task.attempt - 1) if task.attempt > 1 else None
    return task


def is_noted(view: View) -> bool:
    """Whether it is known that there is nothing to compact: it was written down, or all there was is compacted."""
    task = view.task_of(COMPACT)
    return task is not None and (task.state == "skipped" or (task.state == "done" and task.seen >= newest(view)))


def newest(view: View) -> int:
    """Position of the newest message that is shown, in its own form or in a summary."""
    return max(max(entry.position, entry.last) for entry in view)
