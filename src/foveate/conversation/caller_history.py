"""Comparison of a caller's own list of messages with the history: its new tail, or where it departs.

The whole list comes with every call. Messages equal to those of the last call are recognised without being parsed
again. A reply that was recorded and then appended to the list by the caller is recognised by its content, although the
SDK wrote it with other fields. The list lacks what plugins added; that is skipped.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import msgspec

from ..core.messages import Message, Part, Reasoning, Text, ToolCall, ToolResult

__all__ = ["CallerHistory"]


class CallerHistory:
    """The history as the caller's list shows it."""

    def __init__(self, history: Sequence[Message | None], tip: str) -> None:
        """`history`: every message as it was passed in; None where only plugins added something."""
        self.tip = tip
        """Id of the newest message that is known here."""
        own = [(position, message) for position, message in enumerate(history, 1) if message is not None]
        self._messages = [_comparable(message) for _, message in own]
        self._places = [position for position, _ in own]
        self._end = len(history)
        self._items: list[tuple[object, int]] = []  # a copy of each item of the list, and its number of messages

    def compare(self, items: Sequence[object], read: Callable[[object], list[Message]]) -> tuple[int, list[Message]]:
        """Return the position up to which the list agrees with the history, and its messages after that.

        Afterwards these messages count as appended; call `advance` once they are.
        """
        known, shared = 0, 0
        for old, item in zip(self._items, items, strict=False):
            if old[0] != item or shared + old[1] > len(self._messages):
                break
            known, shared = known + 1, shared + old[1]
        parsed = [(item, read(item)) for item in items[known:]]  # Parse all before copying one: some may be malformed.
        fresh = [(copy.deepcopy(item), messages) for item, messages in parsed]
        tail = [message for _, messages in fresh for message in messages]
        while tail and shared < len(self._messages) and _comparable(tail[0]) == self._messages[shared]:
            shared += 1
            del tail[0]
        self._items[known:] = [(item, len(messages)) for item, messages in fresh]
        agreed = self._agreed(shared, tail)
        self._messages[shared:] = [_comparable(message) for message in tail]
        self._places[shared:] = range(agreed + 1, agreed + 1 + len(tail))
        return agreed, tail

    def _agreed(self, shared: int, tail: Sequence[Message]) -> int:
        if shared == len(self._messages):
            return self._end
        if not tail or tail[0].role == "assistant":  # It answers the call for which plugins added something.
            return self._places[shared] - 1
        return self._places[shared - 1] if shared else 0

    def advance(self, tip: str, position: int) -> None:
        """Note that the tail of `compare`, or what plugins add, is appended, up to `tip` at `position`."""
        self.tip, self._end = tip, position

    def recorded(self, message: Message, tip: str, position: int) -> None:
        """Note that a reply was recorded, which the next list may or may not hold."""
        self._messages.append(_comparable(message))
        self._places.append(position)
        self.advance(tip, position)


def _comparable(message: Message) -> Message:
    """Return the message without what differs between a response and the message made from it."""
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
