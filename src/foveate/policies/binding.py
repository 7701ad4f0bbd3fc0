"""Binding statements: the rules and values that a summary has to keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.messages import Message
from ..digest.history import holding_statements

__all__ = ["Kept", "statements_to_keep"]

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


def _newest(statements: Sequence[str], room: int) -> tuple[str, ...]:
    kept: list[str] = []
    for statement in reversed(statements[-_COUNT_MAX:]):
        room -= len(statement) + 1
        if room < 0:
            break
        kept.append(statement)
    return tuple(reversed(kept))
