"""What a call of the tool `expand` asks for, read from its arguments.

They come from a model, so they are read with patience: numbers as text, blank for absent, names that other systems use.
Whether there is what they ask for is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ..errors import BadInput
from .ranges import Range, read_range

__all__ = ["Ask", "Items", "Lines", "Matches", "Search", "Whole", "read_arguments"]

_FOUND = 10
"""Places that a search of the model's shows."""
_QUOTED = re.compile(r"""(?:expand\()?\s*["'`\[]?\s*([^"'`\[\]()\s]+)\s*["'`\]]?\s*\)?""")
"""A handle as it stands in a note."""
_LONGEST_REASON = 200


class Whole(Struct, frozen=True):
    """All of what a handle names."""

    handle: str | int
    reason: str = ""
    """Why, where the model said so; kept in the journal."""


class Lines(Struct, frozen=True):
    """Some lines of it."""

    handle: str | int
    range: Range


class Items(Struct, frozen=True):
    """Some items of it."""

    handle: str | int
    range: Range


class Matches(Struct, frozen=True):
    """The lines of it that match a regular expression."""

    handle: str | int
    pattern: str


class Search(Struct, frozen=True):
    """Where these words stand in what is not shown."""

    words: str
    limit: int = _FOUND


Ask = Whole | Lines | Items | Matches | Search


def read_arguments(arguments: str) -> Ask:
    """What a call asks for. Raises BadInput, with a sentence that helps to ask right, for what cannot be read."""
    try:
        given = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise BadInput('The arguments are no JSON object. Ask like this: {"handle": "m12"}.')
    told = {key: value for key, value in given.items() if value not in (None, "", [], {})}
    handle = _handle_in(told)
    words = told.get("search", told.get("query"))
    parts = {
        "lines": told.get("lines", told.get("lineRange", told.get("line_range"))),
        "items": told.get("items", told.get("itemRange", told.get("item_range"))),
        "pattern": told.get("pattern"),
    }
    asked = [name for name, value in parts.items() if value is not None]
    if words is not None and (handle is not None or asked):
        raise BadInput(
            "`search` looks through everything that is not shown; to look through one message, give its "
            "`handle` and a `pattern`."
        )
    if words is not None:
        return Search(_text("search", words))
    if handle is None:
        raise BadInput('What is to be expanded? Give a `handle` such as "m12", or `search` for words.')
    if len(asked) > 1:
        raise BadInput(
            f"Give one of `lines`, `items` and `pattern`, not {' and '.join(f'`{name}`' for name in asked)}."
        )
    match asked:
        case ["lines"]:
            return Lines(handle, read_range(parts["lines"], "Lines"))
        case ["items"]:
            return Items(handle, read_range(parts["items"], "Items"))
        case ["pattern"]:
            return Matches(handle, _text("pattern", parts["pattern"]))
        case _:
            return Whole(handle, reason[:_LONGEST_REASON] if isinstance(reason := told.get("reason"), str) else "")


def _handle_in(told: Mapping[str, Any]) -> str | int | None:
    """The handle; where none is given, the id of a message, or its index in the view that was shown last."""
    for key in ("handle", "message_id", "messageId", "message", "ref", "id"):
        if key in told:
            text = _text(key, told[key])
            match = _QUOTED.fullmatch(text.strip())
            return match[1] if match else text
    for key in ("messageIndex", "message_index", "index"):
        if key in told:
            index = told[key]
            if isinstance(index, float | str) and re.fullmatch(r"\d{1,9}(\.0)?", str(index)):
                index = int(float(index))
            if type(index) is not int:
                raise BadInput(f"`{key}` is a whole number from 0.")
            return index
    return None


def _text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    raise BadInput(f'`{name}` is a text, such as {{"{name}": "{"m12" if name == "handle" else "words"}"}}.')
