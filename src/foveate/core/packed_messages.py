"""Packed messages: those of a saved view, decoded at their first use.

A view that was rendered before is sent again without a look at its messages, and most policies read few of them. The
canonical bytes of a message repeat the long texts of its rendered form. So a packed message has these bytes with
references to the rendered ones in place of the texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from .messages import Message, Text, ToolCall, ToolResult
from .wire import decode_message, encode_message

__all__ = ["PackedMessage", "packed_form"]

_LONG = 32
"""Characters of a text from which it is a reference."""

_encode = msgspec.msgpack.encode
_decode: Callable[[bytes], list[Any]] = msgspec.msgpack.decode


def packed_form(message: Message, bodies: Sequence[bytes] = ()) -> bytes:
    """Return a message as bytes that refer to texts in `bodies`, the JSON of the wire messages that show it."""
    rest, whole = encode_message(message), b"".join(bodies)
    items: list[bytes | int] = []
    end = 0
    for text in _long_texts(message) if whole else ():
        literal = msgspec.json.encode(text)
        at, found = rest.find(literal), whole.find(literal, end)
        if at < 0 or (found < 0 and (found := whole.find(literal)) < 0):
            continue
        items += [rest[:at], found - end, len(literal)]  # Distances are alike in many messages, so they compress well.
        rest, end = rest[at + len(literal) :], found + len(literal)
    return _encode([*items, rest])


class PackedMessage(msgspec.Struct, eq=False, gc=False):
    """A message in the form that `packed_form` returned, with the bodies that it refers to."""

    _form: bytes
    _bodies: Sequence[bytes] = ()
    _message: Message | None = None

    def message(self) -> Message:
        """Return the message, always the same object."""
        if self._message is None:
            self._message = self._decoded()
            self._form, self._bodies = b"", ()
        return self._message

    def _decoded(self) -> Message:
        items = _decode(self._form)
        if len(items) == 1:
            return decode_message(items[0])
        whole = self._bodies[0] if len(self._bodies) == 1 else b"".join(self._bodies)
        pieces, end = [], 0
        for index in range(0, len(items) - 1, 3):
            start = end + items[index + 1]
            end = start + items[index + 2]
            pieces += [items[index], whole[start:end]]
        return decode_message(b"".join([*pieces, items[-1]]))


def _long_texts(message: Message) -> list[str]:
    """Return the long texts of a message that its rendered form may repeat, in order."""
    texts: list[str] = []
    for part in message.parts:
        match part:
            case Text(text=text) | ToolCall(arguments=text):
                texts.append(text)
            case ToolResult(content=content):
                texts += [inner.text for inner in content if isinstance(inner, Text)]
    return [text for text in texts if len(text) >= _LONG]
