"""How long an agent may go on: model calls, tokens, money and time of one run.

Looked at before each model call, when all that was called has answered: so a run that is at its end leaves a
conversation that goes on like any other. Knows nothing of models; what a call cost is told.
"""

from __future__ import annotations

import math

from msgspec import Struct

from ..core.runs import AgentRun
from ..core.stamps import Usage
from ..errors import BadSetting

__all__ = ["BY_LIMIT", "Limits", "added", "seconds"]

BY_LIMIT = frozenset(("turns", "tokens", "money", "time", "length"))
"""What a run says of why it ended, where a limit ended it; `length`: that of one reply, which is the model's own, or
`max_tokens` of `options`.
"""


class Limits(Struct, frozen=True):
    """Bounds of one run; None: no bound. Raises BadSetting for a bound that is not above zero."""

    turns: int | None = 50
    """Model calls."""
    tokens: int | None = None
    """Input and output of all its calls together."""
    money: float | None = None
    """US dollars. Needs a model whose price is known."""
    seconds: float | None = None
    """From its beginning, by the clock on the wall."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            bound = getattr(self, name)
            is_number = isinstance(bound, int | float) and not isinstance(bound, bool) and math.isfinite(bound)
            if bound is not None and (not is_number or bound <= 0):
                raise BadSetting(f"The limit {name} is a number above 0, or None; not {bound!r:.60}.")

    def reached(self, run: AgentRun, now: int) -> str:
        """The first bound that a run has reached, `now` in milliseconds since 1970; "" while there is none."""
        used = run.usage
        tokens = (used.prompt_tokens or 0) + (used.output or 0)
        amounts = {
            "turns": (run.turns, self.turns),
            "tokens": (tokens, self.tokens),
            "money": (run.cost or 0.0, self.money),
            "time": ((now - run.begun) / 1000, self.seconds),
        }
        return next((name for name, (used, bound) in amounts.items() if bound is not None and used >= bound), "")


def seconds(what: str, value: object) -> float:
    """A time to wait, of 0 seconds or more. Raises BadSetting."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf:
        return value
    raise BadSetting(f"{what} is a number of seconds, 0 or more, not {value!r:.60}.")


def added(one: Usage, other: Usage) -> Usage:
    """The sum of two usages; a figure that neither says is None."""
    sums = []
    for name in Usage.__struct_fields__:
        said = [figure for figure in (getattr(one, name), getattr(other, name)) if figure is not None]
        sums.append(sum(said) if said else None)
    return Usage(*sums)
