"""Binding statements: the rules and values that a summary has to keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ..core.messages import Message
from ..core.summaries import SummaryRequest
from ..digest.history import holding_statements

__all__ = ["Kept", "statements_to_keep", "with_statements"]

_COUNT_MAX = 12
_RULES, _VALUES = 4, 8
"""Rules, and values, take at most one part in so many of the length of a summary."""


class Kept(NamedTuple):
    """Statements that a summary has to keep, oldest first."""

    rules: tuple[str, ...] = ()
    """Prohibitions, duties and limits."""
    values: tuple[str, ...] = ()
    """The values that hold."""


def statements_to_keep(messages: Sequence[Message], previous: str, target: int) -> Kept:
    """Return the statements of users and of system messages, and of an earlier summary, that still hold.

    `target`: length of the summary in characters. If there are too many, the oldest are left out.
    """
    holding = holding_statements(messages, previous)
    return Kept(_newest(holding.rules, target // _RULES), _newest(holding.values, target // _VALUES))


def with_statements(request: SummaryRequest) -> SummaryRequest:
    """Return the request with the statements that its summary has to keep, if its policy wants that.

    It is called for each summary, not for each plan: a plan that waits for a summary asks for it again.
    """
    if not request.keeps_statements:
        return request
    kept = statements_to_keep(request.everything, request.previous, request.target)
    return replace(request, binding=kept.rules, values=kept.values)


def _newest(statements: Sequence[str], room: int) -> tuple[str, ...]:
    kept: list[str] = []
    for statement in reversed(statements[-_COUNT_MAX:]):
        room -= len(statement) + 1
        if room < 0:
            break
        kept.append(statement)
    return tuple(reversed(kept))
