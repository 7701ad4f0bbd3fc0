"""What a run inside of another takes: its events are told as its own, and its limits lie within the limits around it.

Knows acts, limits and records; how a sub-agent is begun, and what its result is told as, is `handing.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec.structs import replace

from ..core.runs import AgentRun
from .acts import Act, Begin, Do, Hear, Next, Pause
from .events import SubAgentEvent
from .limits import Limits

__all__ = ["inside", "left", "spent", "within"]

T = TypeVar("T")

_LEAST = 1e-9
"""What is left where nothing is: limits are above 0."""


def inside(act: Act[T], agent: str, step: str) -> Act[T]:
    """The same act, whose wishes are granted, and whose events are told as those of a sub-agent."""
    move: Callable[[Any], Any] = act.send
    given: Any = None
    while True:
        try:
            wished = move(given)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        move, given = act.send, None
        match wished:
            case Hear(inside=further):
                wished = replace(wished, inside=((agent, step), *further))
            case Do() | Begin() | Next() | Pause():
                pass
            case event:
                wished = SubAgentEvent(agent, step, event)
        try:
            given = yield wished
        except BaseException as error:  # Whoever listens may leave while he is told something.
            move, given = act.throw, error


def left(limits: Limits, run: AgentRun, seconds: float = 0.0) -> Limits:
    """What a run that used so much, and took `seconds`, leaves of limits."""
    tokens = (run.usage.prompt_tokens or 0) + (run.usage.output or 0)
    return replace(
        limits,
        turns=_less(limits.turns, run.turns),
        tokens=_less(limits.tokens, tokens),
        money=_less(limits.money, run.cost or 0.0),
        seconds=_less(limits.seconds, seconds),
    )


def spent(limits: Limits, before: Limits, after: Limits) -> Limits:
    """Limits without what made the one into the other."""
    bounds: dict[str, Any] = {}
    for name in Limits.__struct_fields__:
        bound, was, rest = (getattr(each, name) for each in (limits, before, after))
        bounds[name] = bound if was is None or rest is None else _less(bound, was - rest)
    return Limits(**bounds)


def within(one: Limits, other: Limits) -> Limits:
    """Limits that lie within both."""
    bounds = {}
    for name in Limits.__struct_fields__:
        said = [bound for bound in (getattr(one, name), getattr(other, name)) if bound is not None]
        bounds[name] = min(said) if said else None
    return Limits(**bounds)


def _less(bound: Any, used: float) -> Any:
    return None if bound is None else max(bound - used, _LEAST)
