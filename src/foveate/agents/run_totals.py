"""The use of runs: model calls, tokens and money of a run and its sub-agents."""

from __future__ import annotations

from msgspec import Struct

from ..core.conversation_names import child_name
from ..core.runs import AgentRun
from ..core.stamps import Usage
from ..errors import NoSuchConversation
from ..ports import Database
from .limits import sum_usage

__all__ = ["RunTotal", "inner_total", "sub_conversation"]


class RunTotal(Struct, frozen=True):
    """The use of one or several runs."""

    turns: int = 0
    """Number of model calls."""
    usage: Usage = Usage()
    """Tokens of these calls. A figure is None if no call reported it."""
    cost: float | None = None
    """US dollars; None if no price is known."""

    @staticmethod
    def of(run: AgentRun) -> RunTotal:
        """Return what a run used, without its sub-agents."""
        return RunTotal(run.turns, run.usage, run.cost)

    def __add__(self, other: RunTotal) -> RunTotal:
        """Return the sum. A cost that is unknown in one of both counts as 0."""
        known = [cost for cost in (self.cost, other.cost) if cost is not None]
        usage = sum_usage(self.usage, other.usage)
        return RunTotal(self.turns + other.turns, usage, sum(known) if known else None)


def inner_total(store: Database, tenant: str, run: AgentRun) -> RunTotal:
    """Return what the sub-agents of a run used, with theirs, as far as it is stored."""
    total = RunTotal()
    for step in store.steps(store.open(tenant, run.conversation, create=False), run.id):
        if step.kind != "sub-agent":
            continue
        try:
            head = store.open(tenant, sub_conversation(run.conversation, run.id, step.number), create=False)
        except NoSuchConversation:  # It was not begun.
            continue
        for inner in store.runs(head):
            total += RunTotal.of(inner) + inner_total(store, tenant, inner)
    return total


def sub_conversation(conversation: str, run: str, step: int) -> str:
    """Return the name of the conversation in which a sub-agent works on the task of a step."""
    return child_name(child_name(conversation, run), str(step))
