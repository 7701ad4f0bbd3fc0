"""What users hand in, looked at before anything is done with it: settings, arguments, messages and edits made by hand.

Python takes any value for any argument, and a store keeps what it is given: a time that is no number or a part that is
no text would be found out when the conversation is opened the next time, too late. So each wrong kind of value is
refused here, by the name of the argument. Wire messages are looked at by the formats.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args

import msgspec

from .core import wire
from .core.edits import Edit, Record
from .core.enrich import retained_parts
from .core.messages import Message
from .core.stamps import Origin, PartRetention
from .errors import BadEdit, BadInput, BadMessage, BadSetting
from .ports import IMPORTING

__all__ = [
    "callable_",
    "edits",
    "instance",
    "kept",
    "lease",
    "like",
    "message",
    "metadata",
    "name",
    "origin",
    "retention",
    "text",
    "whole",
]

T = TypeVar("T")
_message = msgspec.json.Decoder(Message)  # Strict: what a store reads as written by a later version is a mistake here.
_MOST = 2**63 - 1
"""The largest whole number that every store can keep."""


def whole(what: str, value: object, least: int = 0) -> int:
    """A whole number of at least `least`."""
    if type(value) is int and least <= value <= _MOST:
        return value
    raise BadSetting(f"{what} is a whole number of {least} or more, not {reprlib.repr(value)}.")


def text(what: str, value: object) -> str:
    """A string."""
    return instance(what, value, str, "a string")


def name(what: str, value: object) -> str:
    """A string that may name a conversation."""
    told = text(what, value)
    if told.startswith(IMPORTING):
        raise BadSetting(
            f"{what} begins with {IMPORTING!r}, as the names do of what an import has not finished: it would not be "
            f"exported, and `foveate db unfinished --drop` would take it away. Give it another name."
        )
    return told


def instance(what: str, value: object, kind: type[T], wanted: str) -> T:
    """A value of this kind. `wanted` says so in words."""
    if isinstance(value, kind):
        return value
    raise BadSetting(f"{what} is {wanted}, not {reprlib.repr(value)}.")


def callable_(what: str, value: object) -> None:
    """Something to be called."""
    if not callable(value):
        raise BadSetting(f"{what} is something that can be called, such as a function, not {reprlib.repr(value)}.")


def like(what: str, value: object, methods: tuple[str, ...], wanted: str) -> None:
    """An object, not a class, with these methods."""
    if isinstance(value, type) or not all(callable(getattr(value, method, None)) for method in methods):
        raise BadSetting(f"{what} is {wanted}, not {reprlib.repr(value)}.")


def origin(value: object) -> None:
    """Where a message came from."""
    if value not in get_args(Origin):
        raise BadSetting(f"origin= is one of {', '.join(get_args(Origin))}, not {reprlib.repr(value)}.")


def lease(value: object) -> None:
    """When a message expires: a Lease whose fields are of the right kind and fit together."""
    from .policies.leases import check_lease  # Few messages have one.

    check_lease("lease=", value)


def kept(values: object) -> tuple[PartRetention, ...]:
    """For how long each part of a message is shown."""
    if not isinstance(values, list | tuple):
        raise BadSetting(f"kept= is a list with a Kept for each part, not {reprlib.repr(values)}.")
    for value in values:
        one = instance("What kept= holds", value, PartRetention, "a Kept")
        instance("Kept(shown=...)", one.shown, bool, "True or False")
        text("Kept(plugin=...)", one.plugin)
        if one.calls is not None:
            whole("Kept(calls=...)", one.calls)
    return tuple(values)


def retention(values: Sequence[PartRetention], messages: Sequence[Message]) -> None:
    """Whether there is a Kept for each part of the one message. Raises BadMessage: a guess drops the wrong part."""
    if not values:
        return
    if len(messages) != 1:
        raise BadMessage(f"kept= is about one message; {len(messages)} were handed in.")
    if messages[0].role not in ("user", "tool"):
        raise BadMessage(f"kept= is for what users say and tools answer, not for a message of role {messages[0].role}.")
    count = len(retained_parts(messages[0]))
    if count != len(values):
        raise BadMessage(f"kept= has {len(values)} entries for {count} parts; each part needs its own.")


def metadata(value: object) -> str:
    """An application's own facts, as JSON text."""
    if value is None:
        return ""
    if not isinstance(value, Mapping):
        raise BadSetting(f"metadata= is a JSON object (a dict), not {reprlib.repr(value)}.")
    try:
        text = json.dumps(dict(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"metadata= cannot be written as JSON: {error}.") from error
    return text


def message(value: Message) -> Message:
    """The message as it will be read again. Raises BadMessage where a field of it is of the wrong kind."""
    try:
        return _message.decode(wire.encode_message(value))
    except BadMessage:
        raise
    except Exception as error:
        raise BadMessage(f"A Message made by hand has a field of the wrong kind: {_said(error)}.") from error


def edits(values: tuple[Any, ...]) -> None:
    """Edits, whatever they name. Raises BadEdit."""
    for value in values:
        if not isinstance(value, Edit):
            known = ", ".join(kind.__name__ for kind in get_args(Edit))
            raise BadEdit(f"{reprlib.repr(value)} is not an edit. Edits are: {known}.")
        try:
            wire.decode_record(wire.encode_record(Record(1, (value,), 1, 0, "", 0)))
        except BadEdit:
            raise
        except Exception as error:
            raise BadEdit(f"An edit has a field of the wrong kind: {_said(error)}.") from error


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, msgspec.MsgspecError | TypeError) else f"{type(error).__name__} {error}"
