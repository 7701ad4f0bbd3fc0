"""Messages and edits as a store reads them back.

A store keeps what it receives, so a field of the wrong kind would be found only when the conversation is opened again.
"""

from __future__ import annotations

import reprlib
from typing import Any, get_args

import msgspec
from msgspec import Struct

from ..errors import BadEdit, BadMessage
from . import wire
from .edits import Edit, Hide, Record, Replace, Restore, Span, Summarize, Target, Task
from .messages import Media, Message, Text

__all__ = ["stored_edits", "stored_message"]

_message = msgspec.json.Decoder(Message)  # Strict: a store ignores unknown fields, but a caller's typo is refused.


def stored_message(value: Message) -> Message:
    """Return the message as a store reads it back. Raises BadMessage if a field has the wrong kind."""
    try:
        read = _message.decode(wire.encode_message(value))
    except BadMessage:
        raise
    except Exception as error:
        raise BadMessage(f"A Message has a field of the wrong kind: {_describe(error)}.") from error
    if read != value and (name := _bytes_in(value)):
        raise BadMessage(f"{name} of a Message is bytes, not a text. Decode it: data.decode().")
    return read


def stored_edits(values: tuple[Any, ...]) -> tuple[Edit, ...]:
    """Return edits as a store reads them back. Raises BadEdit if one is no edit, or a field has the wrong kind."""
    read: list[Edit] = []
    for value in values:
        if not isinstance(value, Edit):
            known = ", ".join(kind.__name__ for kind in get_args(Edit))
            raise BadEdit(f"{reprlib.repr(value)} is not an edit. Edits are: {known}.")
        try:
            read += wire.decode_record(wire.encode_record(Record(1, (value,), 1, 0, "", 0))).edits
        except BadEdit:
            raise
        except Exception as error:
            raise BadEdit(_wrong_field(value, error)) from error
        if read[-1] != value and (name := _bytes_in(value)):
            raise BadEdit(f"{name} of an edit is bytes, not a text. Decode it: data.decode().")
    return tuple(read)


def _wrong_field(edit: Edit, error: Exception) -> str:
    """Return what is wrong with a field of an edit. The decoder speaks of arrays, which users do not write."""
    name = type(edit).__name__
    if isinstance(edit, Replace) and not _are(edit.content, (Text, Media)):
        return f"Replace(content=...) must be a tuple of Text and Media values, not {reprlib.repr(edit.content)}."
    wanted = "Span(first, last)" if isinstance(edit, Summarize | Task) else "Target(id)"
    if isinstance(edit, Hide | Restore):
        wanted += " or Span(first, last)"
    for field in {"target", "targets", "span"}.intersection(edit.__struct_fields__):
        value = getattr(edit, field)
        if isinstance(edit, Task) and value is None:
            continue  # Not every task has a span.
        if not _are(value if field == "targets" else (value,), (Target, Span)):
            return (
                f"{name}({field}=...) must be {wanted} with ids of messages, not {reprlib.repr(value)}. The id of "
                f"m3 is chat.history()[2].id."
            )
    return f"{name} has a field of the wrong kind: {_describe(error)}."


def _are(values: object, kinds: tuple[type, ...]) -> bool:
    """Return whether this is a list or tuple of values of these kinds."""
    return isinstance(values, list | tuple) and all(isinstance(value, kinds) for value in values)


def _bytes_in(value: object, name: str = "") -> str:
    """Return the name of a field that has bytes; "" if none has. An encoder writes them as base64 without an error."""
    if isinstance(value, Struct):
        is_media = isinstance(value, Media)  # The data of media is base64.
        fields = (field for field in value.__struct_fields__ if not (is_media and field == "data"))
        named = (_bytes_in(getattr(value, field), f"{type(value).__name__}.{field}") for field in fields)
    elif isinstance(value, list | tuple):
        named = (_bytes_in(item, name) for item in value)
    else:
        return name if isinstance(value, bytes | bytearray | memoryview) else ""
    return next(filter(None, named), "")


def _describe(error: Exception) -> str:
    return str(error) if isinstance(error, msgspec.MsgspecError | TypeError) else f"{type(error).__name__} {error}"
