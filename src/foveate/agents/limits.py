"""Limits of a run, and its use: model calls, tokens, money and time.

Limits are checked before each model call, after all calls of tools are answered: a run that reaches a limit leaves a
conversation that can continue.
"""

from __future__ import annotations

import math

from msgspec import Struct

from ..core.conversation_names import child_name
from ..core.runs import AgentRun
from ..core.stamps import Usage
from ..core.totals import sum_usage
from ..errors import BadSetting, NoSuchConversation
from ..ports import Database

__all__ = ["LIMIT_REASONS", "Limits", "RunTotal", "check_lock_timeout", "inner_total", "sub_conversation"]

LIMIT_REASONS = frozenset(("turns", "tokens", "money", "time", "length"))
"""Reasons of runs that a limit ended. `length` is the limit of one reply: the model's own, or `max_tokens`."""


class Limits(Struct, frozen=True):
    """Bounds of one run; None: no bound. Raises BadSetting for a bound that is not above 0."""

    turns: int | None = 50
    """Model calls."""
    tokens: int | None = None
    """Input and output tokens of all model calls."""
    money: float | None = None
    """US dollars. Needs a model whose price is known: the extra `prices`, or `cost=` of the agent."""
    seconds: float | None = None
    """Wall-clock time from the beginning of the run."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            bound = getattr(self, name)
            is_number = isinstance(bound, int | float) and not isinstance(bound, bool) and math.isfinite(bound)
            if bound is not None and (not is_number or bound <= 0):
                raise BadSetting(f"The limit {name} must be a number above 0, or None, not {bound!r:.60}.")

    def reached(self, run: AgentRun, now: int) -> str:
        """Return the first limit that a run has reached; "" if none. `now`: milliseconds since 1970."""
        amounts = {
            "turns": (run.turns, self.turns),
            "tokens": (_tokens(run), self.tokens),
            "money": (run.cost or 0.0, self.money),
            "time": ((now - run.begun) / 1000, self.seconds),
        }
        return next((name for name, (used, bound) in amounts.items() if bound is not None and used >= bound), "")


def check_lock_timeout(value: object) -> float:
    """Return the value of `lock_timeout=`: seconds, 0 or more. Raises BadSetting otherwise."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf:
        return value
    raise BadSetting(f"lock_timeout= must be a number of seconds, 0 or more, not {value!r:.60}.")


def _tokens(run: AgentRun) -> int:
    return (run.usage.prompt_tokens or 0) + (run.usage.output or 0)


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
