"""Texts beside the history that repeat what a message said: which do, and what they are without it. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

from msgspec.structs import replace

from ...core.redacted_form import ERASED
from ...core.runs import AgentRun, AgentRunStep

__all__ = ["erased_run", "erased_step", "plain", "repeats"]

_SPACE = re.compile(r"\s+")
_QUOTE = 12
"""Characters from which on a text is known again within another one: shorter ones stand in many."""
_CUT = " .\u2026"
"""What a text that was cut short may end with."""


def plain(said: Iterable[str]) -> list[str]:
    """What was said, ready for `repeats`: without what is blank."""
    return [one for one in map(_plain, said) if one]


def repeats(text: str, said: Iterable[str]) -> bool:
    """Whether a text says what one of these (`plain`) says, whole or cut short, or quotes all of it. Blanks do not
    count.
    """
    told = _plain(text)
    if not told or told == ERASED:
        return False
    return any(told in one or (len(one) >= _QUOTE and one in told) for one in said)


def erased_run(run: AgentRun, fields: Collection[str]) -> AgentRun:
    """The run without these texts."""
    return replace(run, **_without(run, fields))


def erased_step(step: AgentRunStep, fields: Collection[str]) -> AgentRunStep:
    """The step without these texts."""
    return replace(step, **_without(step, fields))


def _without(value: Any, fields: Collection[str]) -> dict[str, str]:
    return {name: ERASED for name in fields if getattr(value, name)}


def _plain(text: str) -> str:
    return _SPACE.sub(" ", text).strip().rstrip(_CUT)
