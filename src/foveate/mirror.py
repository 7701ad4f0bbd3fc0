"""For whoever keeps a list of messages of their own: what in it is new, and where it departs from the history.

The list comes whole at every call. Messages that are equal to those of the last call are recognised without being
parsed again; a reply that was recorded and then appended to the list by its user is recognised by what it says,
though the SDK wrote it with other fields. What plugins added is in no such list: it is passed over.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import msgspec

from .core.messages import Message, Part, Reasoning, Text, ToolCall, ToolResult

__all__ = ["Mirror"]


class Mirror:
    """The history as its user's list shows it."""

    def __init__(self, history: Sequence[Message | None], tip: str) -> None:
        """`history`: every message as it was handed in; None where there was nothing but what plugins added."""
        self.tip = tip
        """Id of the newest message this mirror knows."""
        own = [(position, message) for position, message in enumerate(history, 1) if message is not None]
        self._said = [_said(message) for _, message in own]
        self._places = [position for position, _ in own]
        self._end = len(history)
        self._given: list[tuple[object, int]] = []  # a copy of each wire message, and how many messages it holds

    def compare(self, given: Sequence[object], read: Callable[[object], list[Message]]) -> tuple[int, list[Message]]:
        """Up to which position of the history the list goes along with it, and the messages that follow then in it.

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
        along = self._along(shared, tail)
        self._said[shared:] = [_said(message) for message in tail]
        self._places[shared:] = range(along + 1, along + 1 + len(tail))
        return along, tail

    def _along(self, shared: int, tail: Sequence[Message]) -> int:
        if shared == len(self._said):
            return self._end
        if not tail or tail[0].role == "assistant":  # It answers, or will, the call that plugins were asked for.
            return self._places[shared] - 1
        return self._places[shared - 1] if shared else 0

    def settled(self, tip: str, position: int) -> None:
        """Say that what `compare` found, or what plugins add, is appended: `tip`, at `position`, is the newest."""
        self.tip, self._end = tip, position

    def recorded(self, message: Message, tip: str, position: int) -> None:
        """Say that a reply was recorded, which the list may or may not hold the next time."""
        self._said.append(_said(message))
        self._places.append(position)
        self.settled(tip, position)


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
