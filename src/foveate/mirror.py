"""For whoever keeps a list of messages of their own: what in it is new, and where it departs from the history.

The list comes whole at every call. Messages that are equal to those of the last call are recognised without being
parsed again; a reply that was recorded and then appended to the list by its user is recognised by what it says,
though the SDK wrote it with other fields.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import msgspec

from .core.messages import Message, Part, Reasoning, Text, ToolCall, ToolResult

__all__ = ["Mirror"]


class Mirror:
    """The history as its user's list shows it."""

    def __init__(self, history: Sequence[Message], tip: str) -> None:
        self.tip = tip
        """Id of the newest message this mirror knows."""
        self._said = [_said(message) for message in history]
        self._given: list[tuple[object, int]] = []  # a copy of each wire message, and how many messages it holds

    def compare(self, given: Sequence[object], read: Callable[[object], list[Message]]) -> tuple[int, list[Message]]:
        """How many messages of the history the list begins with, and the messages that follow them in it.

        Leaves the mirror as if these were appended; call `settled` once they are.
        """
        known, shared = 0, 0
        for old, now in zip(self._given, given, strict=False):
            if old[0] != now or shared + old[1] > len(self._said):
                break
            known, shared = known + 1, shared + old[1]
        read_now = [
            (item, read(item)) for item in given[known:]
        ]  # All are read before one is copied: some may be wrong.
        fresh = [(copy.deepcopy(item), messages) for item, messages in read_now]
        tail = [message for _, messages in fresh for message in messages]
        while tail and shared < len(self._said) and _said(tail[0]) == self._said[shared]:
            shared += 1
            del tail[0]
        self._given[known:] = [(item, len(messages)) for item, messages in fresh]
        self._said[shared:] = [_said(message) for message in tail]
        return shared, tail

    def settled(self, tip: str) -> None:
        """Say that what `compare` found is appended, and that `tip` is the newest message now."""
        self.tip = tip

    def recorded(self, message: Message, tip: str) -> None:
        """Say that a reply was recorded, which the list may or may not hold the next time."""
        self._said.append(_said(message))
        self.tip = tip


def _said(message: Message) -> Message:
    """What the message says, without what differs between a response and the message made from it."""
    parts = tuple(_bare(part) for part in message.parts if not isinstance(part, Reasoning) and part != Text(""))
    return Message(message.role, parts, message.name)


def _bare(part: Part) -> Part:
    match part:
        case ToolResult():
            return msgspec.structs.replace(part, extra=None, content=tuple(_bare(nested) for nested in part.content))
        case Text() | ToolCall() if part.extra is not None:
            return msgspec.structs.replace(part, extra=None)
        case _:
            return part
