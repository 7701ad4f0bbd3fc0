"""The next step of a loop agent: a closed union of plain values.

How a model says them is told in `step_form.py`, how they are carried out in `looping.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

__all__ = [
    "ActionCall",
    "Actions",
    "Chat",
    "ExpandMessage",
    "Failed",
    "NextStep",
    "Retry",
    "SubAgent",
    "Success",
]


class ActionCall(Struct, frozen=True):
    """One action that the model wants to have carried out."""

    name: str
    params: Mapping[str, Any] = {}

    @property
    def arguments(self) -> str:
        """The parameters as JSON text, the same for the same parameters in the same order."""
        return json.dumps(dict(self.params), ensure_ascii=False)


class Actions(Struct, frozen=True):
    """Carry out actions, beside each other where they may."""

    actions: tuple[ActionCall, ...]


class SubAgent(Struct, frozen=True):
    """Hand a task to another agent."""

    name: str
    task: str


class Chat(Struct, frozen=True):
    """Say something to the user, and wait for the answer."""

    message: str


class ExpandMessage(Struct, frozen=True):
    """Show the original of a message again."""

    message: str | int
    """A handle such as `m5`, a message's id, or its index, from 0, in what the model was shown."""
    reason: str = ""
    lines: str = ""
    """Such as `1-40`: only these of it."""
    items: str = ""
    """The same for elements, rows or records."""
    pattern: str = ""
    """A regular expression: only what it matches."""

    @property
    def part(self) -> dict[str, str]:
        """What of it is wanted, by its kind; nothing: all of it."""
        return {kind: said for kind in ("lines", "items", "pattern") if (said := getattr(self, kind))}


class Retry(Struct, frozen=True):
    """Think again, or go on thinking."""

    reason: str = ""


class Success(Struct, frozen=True):
    """The task is done."""

    message: str = ""


class Failed(Struct, frozen=True):
    """The task cannot be done."""

    reason: str = ""


NextStep = Actions | SubAgent | Chat | ExpandMessage | Retry | Success | Failed
