"""Which images, documents and sounds can be sent, and what to say of those that cannot.

One bad picture makes a provider refuse a whole conversation, for ever. So in a request, what would be refused is told
as text; an export keeps it.
"""

from __future__ import annotations

import binascii
from collections.abc import Container, Mapping
from typing import Any, Literal

from ..core.messages import Extra, Media
from ..errors import BadMessage
from .json import dumped, object_of, text_of

__all__ = [
    "IMAGES",
    "MARKS",
    "Place",
    "extra_of",
    "fields_of",
    "is_sendable",
    "items",
    "kind_of",
    "plain",
    "show",
    "string",
    "untold",
    "with_extra",
    "wrong",
]

# MODULEDOC """Taking a provider's objects apart: the reading helpers that both wire formats share.
#
# They know what a wire object is (a dict, or an SDK's object that can dump itself), how the fields nobody knows are
# kept, and how to say what is wrong with one. They know no provider.
# """
# Where a request may be cached is said per request: it is not part of what was said, and marks that came back with
# old messages would add up to more than a provider allows. So these are dropped wherever they arrive.
MARKS = frozenset({"cache_control", "prompt_cache_breakpoint"})


Place = Literal["export", "user", "assistant", "system", "failure"]
"""What a part is written for: an export, which says all there are words for, or a place in a request: a message of
this role, or the result of a call that failed. Media can be seen in what the user's side says, and nowhere else.
"""


def plain(value: object, where: str) -> dict[str, Any]:
    """A wire object as a dict. Raises BadMessage if it is none."""
    if type(value) is dict:
        return value
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "model_dump") and not isinstance(value, type):
        value = dumped(value, where)
        if isinstance(value, dict):
            return value
    raise wrong(where, value, "an object")


def items(value: object, where: str) -> list[Any] | tuple[Any, ...]:
    """A list or tuple as it is. Raises BadMessage for anything else."""
    if isinstance(value, list | tuple):
        return value
    raise wrong(where, value, "a list")


def string(fields: Mapping[str, Any], key: str, where: str) -> str:
    """The string under a key. Raises BadMessage if there is none."""
    value = fields.get(key)
    if isinstance(value, str):
        return value
    raise wrong(f"{where}.{key}", value, "a string")


def extra_of(
    format: str, fields: Mapping[str, Any], known: frozenset[str], where: str, own: dict[str, Any] | None = None
) -> Extra | None:
    """The fields that are not known, to be kept for the format they came from. `own` goes before them: what the format
    itself has to remember about the shape the object had.
    """
    if fields.keys() <= known:
        rest = own
    else:
        rest = {**(own or {}), **{key: value for key, value in fields.items() if key not in known}}
    return Extra(format, text_of(rest, where)) if rest else None


def fields_of(extra: Extra | None, format: str) -> dict[str, Any]:
    """The fields kept for this format, to be changed freely; none if they came from another."""
    if extra is None or extra.format != format:
        return {}
    return object_of(extra.fields) or {}


def with_extra(wire: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """The wire object with the fields kept for its format behind those that say what it says now."""
    for key, value in extra.items():
        wire.setdefault(key, value)
    return wire


def wrong(where: str, value: object, wanted: str) -> BadMessage:
    """The error for a value that is not what it should be."""
    return BadMessage(f"{where} is {show(value)}; it has to be {wanted}.")


def show(value: object) -> str:
    """What a value is, shortly and safely, however large or strange it is."""
    match value:
        case None:
            return "missing or null"
        case str():
            return f"the string {value[:40]!r}" if value else "an empty string"
        case bool() | int() | float():
            return "a number or truth value"
        case dict():
            keys = ", ".join(repr(key[:20]) for key in list(value)[:6] if isinstance(key, str))
            return f"an object with the keys {keys}" if keys else "an object without keys"
        case list() | tuple():
            return "a list" if value else "an empty list"
        case _:
            return f"a {type(value).__name__}"


IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Types of images that every provider takes."""


def is_sendable(media: Media, format: str, mimes: Container[str], largest: int) -> bool:
    """Whether a request of this format may hold this: of these types, with so many characters of base64 at most."""
    match media.source:
        case "url":
            return media.data.startswith(("https://", "http://"))
        case "file":  # Kept by a provider under an id that means nothing to another.
            return bool(media.data) and (media.extra is None or media.extra.format == format)
        case _:
            return media.mime in mimes and 0 < len(media.data) <= largest and _is_base64(media.data)


def kind_of(media: Media) -> str:
    """What a person would call it."""
    if media.is_image:
        return "Image"
    return "Sound" if media.mime.startswith("audio/") else "Document"


def untold(media: Media) -> str:
    """The text that stands for media which cannot be shown."""
    what = " ".join(filter(None, (media.name, media.data if media.source == "url" else media.mime)))
    return f"[{kind_of(media)}, not shown here: {what}]" if what else f"[{kind_of(media)}, not shown here]"


def _is_base64(data: str) -> bool:
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except ValueError:  # Which binascii.Error is, and what a text beyond ASCII raises.
        return False
    return True
