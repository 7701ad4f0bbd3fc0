"""The tool `expand`: its definition, the instruction in the system prompt, and the arguments of its calls.

Definition and instruction are always the same bytes, since they stand at the front of every prompt. The definition has
only the arguments that work with the installed packages. Arguments come from a model, so they are read with tolerance:
numbers as text, blank for absent, names that other systems use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
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
    "expand_tool_json",
    "offers_expand",
    "own_names",
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
    "Parts of this conversation are shortened or hidden. A note stands for each of them, with a handle such as "
    'expand("m12"), and nothing is lost. If you need such a part, call the tool `expand` with its handle, or with '
    "`search` to find words in everything that is not shown. Do this instead of guessing or running a tool again."
)
"""The instruction for the system prompt."""

_DESCRIPTION = (
    "Show content of this conversation that is shortened or hidden. Pass a handle alone for all of the content, a "
    "handle and one of {parts} for a part of it, or search alone."
)
_PROPERTIES: dict[str, Any] = {
    "handle": {
        "type": "string",
        "description": "The handle in the note: m12, one part of it (m12.1), or a range (m3-m17).",
    },
    "lines": {"type": "string", "description": 'The lines to show: "40-80", "40-" (to the end), "-20" (the last 20).'},
    "items": {
        "type": "string",
        "description": 'The items to show, such as "1-20": elements of a JSON list, rows of a table, or records '
        "between blank lines.",
    },
    "pattern": {
        "type": "string",
        "description": "A regular expression; shows the lines that match it, with their numbers and some lines around.",
    },
    "search": {
        "type": "string",
        "description": 'Words to find in everything that is not shown; words "in quotation marks" stand together.',
    },
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
    """Return the definition of the tool in a format's own shape, in new containers, always the same bytes.

    `format`: `openai`, `openai_responses`, `anthropic` or `gemini`; that of a conversation is `chat.format.name`. The
    tool has the argument `pattern` only if the package `regex` (extra `expand`) is installed. Raises BadSetting for
    another format.
    """
    tool: dict[str, Any] = msgspec.json.decode(expand_tool_json(format))
    return tool


def expand_tool_json(format: str) -> bytes:
    """Return the definition of the tool as JSON. Raises BadSetting as `expand_tool` does."""
    return _encoded(format, has_patterns=_has_patterns())


@cache
def _has_patterns() -> bool:
    return find_spec("regex") is not None


@cache
def _definition(*, has_patterns: bool) -> tuple[str, dict[str, Any]]:
    """Return the description of the tool, and the schema of its arguments."""
    properties = {name: value for name, value in _PROPERTIES.items() if has_patterns or name != "pattern"}
    parts = "lines, items and pattern" if has_patterns else "lines and items"
    return _DESCRIPTION.format(parts=parts), {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


@cache
def _encoded(format: str, *, has_patterns: bool) -> bytes:
    description, schema = _definition(has_patterns=has_patterns)
    function = {"name": TOOL, "description": description}
    tool: dict[str, Any]
    match format:
        case "openai" | "openai_chat":
            tool = {"type": "function", "function": {**function, "parameters": schema}}
        case "openai_responses":  # This API makes a schema strict by default: every argument would be required.
            tool = {"type": "function", **function, "parameters": schema, "strict": False}
        case "anthropic":
            tool = {**function, "input_schema": schema}
        case "gemini":
            tool = {"functionDeclarations": [{**function, "parametersJsonSchema": schema}]}
        case _:
            raise BadSetting(f"The tool exists for openai, openai_responses, anthropic and gemini, not {format!r:.60}.")
    return msgspec.json.encode(tool)


def with_tool(tools: Sequence[Any], format: str) -> list[Any]:
    """Return these tools and `expand` after them. If it is among them, it stays in its place.

    Raises BadSetting if another tool has its name: handles in placeholders would lead to that one.
    """
    named = [function for tool in tools for function in _functions_in(tool) if function.get("name") == TOOL]
    if not all(map(_is_ours, named)):
        raise BadSetting(f"One of your tools is named {TOOL}, which expand=True adds. Rename it, or pass expand=False.")
    return list(tools) if named else [*tools, expand_tool(format)]


def offers_expand(tools: Sequence[Any]) -> bool:
    """Return whether these tools, of a request, hold the tool `expand`."""
    return any(_is_ours(function) for tool in tools for function in _functions_in(tool))


def own_names(tools: Sequence[Any]) -> frozenset[str]:
    """Return which of the names of `expand` the host's own tools have."""
    functions = (function for tool in tools for function in _functions_in(tool))
    named = ((function.get("name"), function) for function in functions)
    return frozenset(
        name for name, function in named if isinstance(name, str) and name in NAMES and not _is_ours(function)
    )


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


def read_arguments(arguments: object) -> Request:
    """Read the arguments of a call, JSON text or a dict.

    Raises BadInput, with advice for the model, if they cannot be read.
    """
    decoded: object = arguments
    if isinstance(arguments, str):
        try:
            decoded = msgspec.json.decode(str.__str__(arguments))
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            decoded = None
    if not isinstance(decoded, Mapping):
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
        raise BadInput('The call names no content. Pass a `handle` such as "m12", or `search` for words.')
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


def _functions_in(tool: object) -> Sequence[Mapping[str, Any]]:
    """Return the parts of a definition with the name, the description and the schema of a tool.

    Gemini has several in one definition.
    """
    plain = tool if type(tool) is dict else _plain(tool)
    if type(plain) is dict and "name" in plain:
        return (plain,)  # Most are so, and each request has many.
    match plain:
        case Mapping() if "name" in plain:
            return [plain]
        case {"functionDeclarations": list(group)} | {"function_declarations": list(group)}:
            return [function for item in group if isinstance(function := _plain(item), Mapping)]
        case {"type": str(kind), **rest} if isinstance(function := rest.get(kind), Mapping):
            return [function]
        case _:
            return []


def _is_ours(function: Mapping[str, Any]) -> bool:
    if function.get("name") != TOOL:
        return False
    schemas = ("input_schema", "parameters", "parametersJsonSchema", "parameters_json_schema")
    schema = next((function[key] for key in schemas if key in function), None)
    ours = [_definition(has_patterns=has_patterns) for has_patterns in (True, False)]
    return (function.get("description"), schema) in ours


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
