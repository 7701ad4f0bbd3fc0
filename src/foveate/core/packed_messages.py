"""Packed messages: those of a saved view, decoded at their first use.

A view that was rendered before is sent again without a look at its messages, and most policies read few of them. The
canonical bytes of a message repeat the long texts of its rendered form. So a packed message has these bytes with
references to the rendered ones in place of the texts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from .messages import Message, Text, ToolCall, ToolResult
from .wire import decode_message, encode_message

__all__ = ["PackedMessage", "packed_form"]

_LONG = 32
"""Characters of a text from which it is a reference."""

_encode = msgspec.msgpack.Encoder().encode
_encode_text = msgspec.json.Encoder().encode
_decode: Callable[[bytes], list[Any]] = msgspec.msgpack.decode


def packed_form(message: Message, rendered: bytes = b"", place: range = range(0)) -> bytes:
    """Return a message as bytes that refer to the texts at a place of rendered messages."""
    rest = encode_message(message)
    items: list[bytes | int] = []
    end = 0
    for text in _long_texts(message) if place else ():
        literal = _encode_text(text)
        at = _find(rest, literal, 0, len(rest))
        found = -1 if at < 0 else _find(rendered, literal, max(place.start, end), place.stop)
        if found >= 0:
            items += [rest[:at], found - end, len(literal)]
            rest, end = rest[at + len(literal) :], found + len(literal)
    return _encode([*items, rest])


def _find(body: bytes, literal: bytes, start: int, stop: int) -> int:
    """Return the place of a literal; -1 if it is not found. A search for its beginning is much faster."""
    at = body.find(literal[:_LONG], start, stop)
    while at >= 0 and not body.startswith(literal, at, stop):
        at = body.find(literal[:_LONG], at + 1, stop)
    return at


class PackedMessage(msgspec.Struct, eq=False, gc=False):
    """A message in the form that `packed_form` returned, with the rendered messages that it refers to."""

    _form: bytes
    _rendered: bytes = b""
    _message: Message | None = None

    def __repr__(self) -> str:
        return repr(self.message())  # The rendered messages would fill the screen.

    def message(self) -> Message:
        """Return the message, always the same object."""
        form, rendered = self._form, self._rendered  # Read first: another thread may forget them.
        if self._message is None:
            self._message = _decoded(form, rendered)
            self._form = self._rendered = b""
        return self._message


def _decoded(form: bytes, rendered: bytes) -> Message:
    items = _decode(form)
    if len(items) == 1:
        return decode_message(items[0])
    pieces, end = [], 0
    for index in range(0, len(items) - 1, 3):
        start = end + items[index + 1]
        end = start + items[index + 2]
        pieces += [items[index], rendered[start:end]]
    return decode_message(b"".join([*pieces, items[-1]]))


def _long_texts(message: Message) -> list[str]:
    """Return the long texts of a message that its rendered form may repeat, in order."""
    texts: list[str] = []
    for part in message.parts:
        if type(part) is Text:  # Faster than `isinstance`, and a save looks at every part.
            texts.append(part.text)
        elif type(part) is ToolResult:
            texts += [inner.text for inner in part.content if type(inner) is Text]
        elif type(part) is ToolCall:
            texts.append(part.arguments)
    return [text for text in texts if len(text) >= _LONG]
