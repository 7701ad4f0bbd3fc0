"""What in a view the model has not answered yet: whether anything is due, where it begins, what the user asked for.

Whoever shortens a view leaves this alone, or the model would take up finished work, or forget what it is at.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.view import Entry, View

__all__ = ["first_unanswered", "is_request", "last_request", "open_inputs"]


def is_request(view: View) -> bool:
    """Whether the model has something to answer. Behind its own answer nothing is due: what that answered would be the
    last input still, and stay as if it were open.
    """
    last = next((entry for entry in reversed(view.entries) if entry.kind != "stand-in"), None)
    return last is not None and last.message.role != "assistant"


def first_unanswered(entries: Sequence[Entry]) -> int:
    """Index at which that begins which the model has not answered: inputs, or the results of its newest calls."""
    last = next((i for i in reversed(range(len(entries))) if entries[i].message.role in ("assistant", "tool")), -1)
    if any(entry.is_input for entry in entries[last + 1 :]):
        return last + 1
    while last > 0 and entries[last].message.role == "tool":
        last -= 1
    return max(0, last)


def open_inputs(view: View, room: int) -> list[str]:
    """Ids of what the user asked for since the model last ended a turn, the newest first: it stays as it was said.

    `room`: tokens that all but the last input may take together.
    """
    ids: list[str] = []
    for entry in reversed(view.entries):
        message = entry.message
        if entry.kind == "message" and message.role == "assistant" and not message.calls and message.has_content:
            break
        if entry.is_input:
            room -= entry.tokens if ids else 0
            if room < 0:
                break
            ids.append(entry.id)
    return ids


def last_request(view: View) -> str:
    """The user's last input."""
    return next((entry.message.text for entry in reversed(view.entries) if entry.is_input), "")
