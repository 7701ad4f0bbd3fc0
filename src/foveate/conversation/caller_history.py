"""Comparison of a caller's own list of messages with the history: its new tail, or where it departs.

The whole list comes with every call. Messages equal to those of the last call are recognised without being parsed
again. A reply that was recorded and then appended to the list by the caller is recognised by its content, although the
SDK wrote it with other fields. The list lacks what plugins and the tool `expand` added; that is skipped. A loop that
runs every call by itself also answers the calls of `expand`: these results are skipped too, since there are others.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import msgspec

from ..core.messages import Message, Part, Reasoning, Text, ToolCall, ToolResult

__all__ = ["CallerHistory", "ReadMessage", "comparable"]

ReadMessage = tuple[Message, str]
"""A message that was read from another form, and its own metadata, as JSON; "" for none."""


class CallerHistory:
    """The history as the caller's list shows it."""

    def __init__(self, history: Sequence[tuple[Message | None, Message]], tip: str) -> None:
        """`history`: every message as it was passed in, None where only foveate added it, and as it is stored."""
        self.tip = tip
        """Id of the newest message that is known here."""
        self._messages: list[Message] = []
        self._places: list[int] = []
        self._answered: dict[int, set[str]] = {}  # calls whose results the list lacks, by the number of messages before
        self._end = 0
        for position, (message, stored) in enumerate(history, 1):
            if message is None:
                self.added(stored, tip, position)
            else:
                self._messages.append(comparable(message))
                self._places.append(position)
                self._end = position
        self._items: list[tuple[object, int]] = []  # a copy of each item of the list, and its number of messages

    def compare(
        self, items: Sequence[object], read: Callable[[object], list[ReadMessage]]
    ) -> tuple[int, list[ReadMessage]]:
        """Return the position up to which the list agrees with the history, and its messages after that.

        Afterwards these messages count as appended; call `advance` once they are.
        """
        known, shared = 0, 0
        for old, item in zip(self._items, items, strict=False):
            if old[0] != item or shared + old[1] > len(self._messages):
                break
            known, shared = known + 1, shared + old[1]
        del self._items[known:]
        parsed = [(item, read(item)) for item in items[known:]]  # Parse all before copying one: some may be malformed.
        fresh = [(copy.deepcopy(item), messages) for item, messages in parsed]
        tail: list[ReadMessage] = []
        for item, messages in fresh:
            count = 0
            for message, metadata in messages:
                is_shared = not tail and shared < len(self._messages) and comparable(message) == self._messages[shared]
                if not is_shared and self._is_answered(message, shared, tail):
                    continue
                count += 1
                if is_shared:
                    shared += 1
                else:
                    tail.append((message, metadata))
            self._items.append((item, count))
        agreed = self._agreed(shared, tail)
        if shared < len(self._messages):
            self._answered = {number: calls for number, calls in self._answered.items() if number <= shared}
        self._messages[shared:] = [comparable(message) for message, _ in tail]
        self._places[shared:] = range(agreed + 1, agreed + 1 + len(tail))
        return agreed, tail

    def _is_answered(self, message: Message, shared: int, tail: Sequence[ReadMessage]) -> bool:
        """Return whether a message answers a call of the newest reply before it that has its result already."""
        if message.result is None or not self._answered or any(before.role == "assistant" for before, _ in tail):
            return False
        for number in range(shared, 0, -1):
            if message.result.call_id in self._answered.get(number, ()):
                return True
            if self._messages[number - 1].role == "assistant":
                return False
        return False

    def _agreed(self, shared: int, tail: Sequence[ReadMessage]) -> int:
        if shared == len(self._messages):
            return self._end
        # The first new message replies to the call for which plugins added something, or a result is already there.
        if not tail or tail[0][0].role == "assistant" or shared in self._answered:
            return self._places[shared] - 1
        return self._places[shared - 1] if shared else 0

    def advance(self, tip: str, position: int) -> None:
        """Note that the tail of `compare`, or what plugins add, is appended, up to `tip` at `position`."""
        self.tip, self._end = tip, position

    def added(self, message: Message, tip: str, position: int) -> None:
        """Note a message of foveate that the list lacks: an addition of a plugin, or the result of an expansion."""
        if message.result is not None:
            self._answered.setdefault(len(self._messages), set()).add(message.result.call_id)
        self.advance(tip, position)

    def recorded(self, message: Message, tip: str, position: int) -> None:
        """Note that a reply was recorded, which the next list may or may not hold."""
        self._messages.append(comparable(message))
        self._places.append(position)
        self.advance(tip, position)


def comparable(message: Message) -> Message:
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
