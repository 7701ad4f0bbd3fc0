"""The tool `expand`: its definition, the instruction in the system prompt, and the arguments of its calls.

Definition and instruction are always the same bytes, since they stand at the front of every prompt. Arguments come from
a model, so they are read with tolerance: numbers as text, blank for absent, names that other systems use.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ..errors import BadInput, BadSetting
from .excerpts import Range, read_range

__all__ = [
    "EXPAND_INSTRUCTION",
    "NAMES",
    "TOOL",
    "Items",
    "Lines",
    "Matches",
    "Request",
    "Search",
    "ViewIndex",
    "Whole",
    "expand_tool",
    "has_tool",
    "read_arguments",
    "with_instruction",
    "with_tool",
]

_MAX_HITS = 10
"""Places that a search of the model returns."""
_QUOTED = re.compile(r"""(?:expand\()?\s*["'`\[]?\s*([^"'`\[\]()\s]+)\s*["'`\]]?\s*\)?""")
"""A handle as a note shows it."""
_LONGEST_REASON = 200

TOOL = "expand"
NAMES = frozenset({TOOL, "expand-message", "expand_message", "ExpandMessage"})
"""Names under which models call the tool: they repeat names that they learned elsewhere."""

EXPAND_INSTRUCTION = (
    'Parts of this conversation are shown shortened, each with a note such as expand("m12"). Nothing of it is lost. '
    "When you need what was left out, call the tool `expand` with that handle; ask for lines, items or a pattern where "
    "a part is enough, and use `search` to find words in everything that is not shown. Do that rather than guess, or "
    "run a tool again."
)
"""The instruction for the system prompt."""

_DESCRIPTION = (
    "Shows what was shortened or left out of this conversation: the original behind a handle, whole or in part, or "
    "where in all that is not shown some words stand. Give `handle` alone for the whole, `handle` and one of `lines`, "
    "`items` and `pattern` for a part, or `search` alone."
)
_PROPERTIES: dict[str, Any] = {
    "handle": {
        "type": "string",
        "description": "The handle in the note that stands for what was left out: m12, a part of it (m12.1) or a run "
        "(m3-m17).",
    },
    "lines": {"type": "string", "description": 'Only these lines: "40-80", "40-" (to the end), "-20" (the last 20).'},
    "items": {
        "type": "string",
        "description": 'Only these items, such as "1-20": elements of a JSON list, rows of a table, records between '
        "blank lines.",
    },
    "pattern": {
        "type": "string",
        "description": "Only lines that match this regular expression, with their numbers and the lines around them.",
    },
    "search": {
        "type": "string",
        "description": 'Words to find in everything that is not shown; "in quotation marks" they stand together.',
    },
}
_SCHEMA: dict[str, Any] = {"type": "object", "properties": _PROPERTIES, "additionalProperties": False}
_ANTHROPIC: dict[str, Any] = {"name": TOOL, "description": _DESCRIPTION, "input_schema": _SCHEMA}
_OPENAI: dict[str, Any] = {
    "type": "function",
    "function": {"name": TOOL, "description": _DESCRIPTION, "parameters": _SCHEMA},
}


class ViewIndex(Struct, frozen=True):
    """The index of a message, from 0, in the view that was shown last."""

    index: int


HandleOrIndex = str | int | ViewIndex


class Whole(Struct, frozen=True):
    """An original as a whole."""

    handle: HandleOrIndex
    reason: str = ""
    """Why, if the model gave a reason; kept in the journal."""


class Lines(Struct, frozen=True):
    """Some lines of an original."""

    handle: HandleOrIndex
    range: Range


class Items(Struct, frozen=True):
    """Some items of an original."""

    handle: HandleOrIndex
    range: Range


class Matches(Struct, frozen=True):
    """The lines of an original that match a regular expression."""

    handle: HandleOrIndex
    pattern: str


class Search(Struct, frozen=True):
    """Words in what is not shown."""

    words: str
    limit: int = _MAX_HITS


Request = Whole | Lines | Items | Matches | Search


def expand_tool(format: str = "openai") -> dict[str, Any]:
    """Return the definition of the tool for `openai` or `anthropic`, in new containers, always the same bytes.

    Raises BadSetting for another format.
    """
    if format not in ("openai", "anthropic"):
        raise BadSetting(f"The tool exists in the formats openai and anthropic, not {format!r:.60}.")
    return copy.deepcopy(_ANTHROPIC if format == "anthropic" else _OPENAI)


def with_tool(tools: Sequence[Any], format: str) -> list[Any]:
    """Return these tools and `expand` after them. If it is among them, it stays in its place.

    Raises BadSetting if another tool has its name: handles in placeholders would lead to that one.
    """
    for tool in tools:
        if _name_of(tool) == TOOL:
            if not _is_ours(tool):
                raise BadSetting(
                    f"One of your tools is named {TOOL}, which expand=True adds. Rename it, or leave expand= out and "
                    "answer its calls yourself: chat.answer(call)."
                )
            return list(tools)
    return [*tools, expand_tool("anthropic" if format == "anthropic" else "openai")]


def has_tool(name: str, tools: Sequence[Any]) -> bool:
    """Return whether one of the host's own tools has this name."""
    return any(_name_of(tool) == name and not _is_ours(tool) for tool in tools)


def with_instruction(system: object) -> object:
    """Return the system prompt, in any form that formats accept, with the instruction at its end, once."""
    match system:
        case None | "":
            return EXPAND_INSTRUCTION
        case str():
            return system if EXPAND_INSTRUCTION in system else f"{system}\n\n{EXPAND_INSTRUCTION}"
        case list() | tuple():
            return list(system) if any(map(_instructs, system)) else [*system, EXPAND_INSTRUCTION]
        case _:
            return [system] if _instructs(system) else [system, EXPAND_INSTRUCTION]


def read_arguments(arguments: str) -> Request:
    """Read the arguments of a call. Raises BadInput, with advice for the model, if they cannot be read."""
    try:
        decoded = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        decoded = None
    if not isinstance(decoded, dict):
        raise BadInput('The arguments are no JSON object. Ask like this: {"handle": "m12"}.')
    present = {key: value for key, value in decoded.items() if value not in (None, "", [], {})}
    handle = _handle_in(present)
    words = present.get("search", present.get("query"))
    parts = {
        "lines": present.get("lines", present.get("lineRange", present.get("line_range"))),
        "items": present.get("items", present.get("itemRange", present.get("item_range"))),
        "pattern": present.get("pattern"),
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
            return Whole(handle, reason[:_LONGEST_REASON] if isinstance(reason := present.get("reason"), str) else "")


def _name_of(tool: object) -> object:
    match _plain(tool):
        case {"name": name}:
            return name
        case {"type": str(kind), **rest} if isinstance(inner := rest.get(kind), Mapping):
            return inner.get("name")
        case _:
            return None


def _is_ours(tool: object) -> bool:
    plain = _plain(tool)
    if isinstance(plain, Mapping):
        plain = {key: value for key, value in plain.items() if key != "cache_control"}
    return plain in (_ANTHROPIC, _OPENAI)


def _instructs(part: object) -> bool:
    """Return whether a part of a system prompt holds the instruction already."""
    plain = _plain(part)
    text = plain.get("text", plain.get("content")) if isinstance(plain, Mapping) else plain
    return isinstance(text, str) and EXPAND_INSTRUCTION in text


def _plain(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    return dump(exclude_none=True) if dump is not None and not isinstance(value, type) else value


def _handle_in(arguments: Mapping[str, Any]) -> HandleOrIndex | None:
    """Return the handle, or the id of a message, or its index in the view that was shown last."""
    for key in ("handle", "message_id", "messageId", "message", "ref", "id"):
        if key in arguments:
            text = _text(key, arguments[key])
            match = _QUOTED.fullmatch(text.strip())
            return match[1] if match else text
    for key in ("messageIndex", "message_index", "index"):
        if key in arguments:
            index = arguments[key]
            if isinstance(index, float | str) and re.fullmatch(r"\d{1,9}(\.0)?", str(index)):
                index = int(float(index))
            if type(index) is not int:
                raise BadInput(f"`{key}` is a whole number from 0.")
            return ViewIndex(index)
    return None


def _text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    raise BadInput(f'`{name}` is a text, such as {{"{name}": "{"m12" if name == "handle" else "words"}"}}.')
