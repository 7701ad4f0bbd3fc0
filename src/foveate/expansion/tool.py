"""The tool `expand` as the model knows it: its definition, and the instruction in the system prompt.

Both are always the same bytes, for they stand at the very front of every prompt. What a call of it asks for is read in
`asking.py`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import BadSetting

__all__ = ["EXPAND_INSTRUCTION", "NAMES", "TOOL", "expand_tool", "is_called", "with_instruction", "with_tool"]

TOOL = "expand"
NAMES = frozenset({TOOL, "expand-message", "expand_message", "ExpandMessage"})
"""What the tool may be called by: models repeat names that they learned elsewhere."""

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


def expand_tool(format: str = "openai") -> dict[str, Any]:
    """The definition of the tool for `openai` or `anthropic`: fresh containers, always the same bytes.

    Raises BadSetting for another name.
    """
    if format not in ("openai", "anthropic"):
        raise BadSetting(f"The tool is known in the formats openai and anthropic, not {format!r:.60}.")
    return copy.deepcopy(_ANTHROPIC if format == "anthropic" else _OPENAI)


def with_tool(tools: Sequence[Any], format: str) -> list[Any]:
    """These tools with ours behind them. Where it is among them it stays in its place.

    Raises BadSetting where another tool has its name: handles in placeholders would lead to that one.
    """
    for tool in tools:
        if _name_of(tool) == TOOL:
            if not _is_ours(tool):
                raise BadSetting(
                    f"A tool of yours is called {TOOL}, which expand=True adds. Rename yours, or leave expand= out and "
                    "answer its calls yourself: chat.answer(call)."
                )
            return list(tools)
    return [*tools, expand_tool("anthropic" if format == "anthropic" else "openai")]


def is_called(name: str, tools: Sequence[Any]) -> bool:
    """Whether a tool of the host's own is called so."""
    return any(_name_of(tool) == name and not _is_ours(tool) for tool in tools)


def with_instruction(system: object) -> object:
    """The system prompt, in any form that formats take, with the instruction at its end, once."""
    match system:
        case None | "":
            return EXPAND_INSTRUCTION
        case str():
            return system if EXPAND_INSTRUCTION in system else f"{system}\n\n{EXPAND_INSTRUCTION}"
        case list() | tuple():
            return list(system) if any(map(_instructs, system)) else [*system, EXPAND_INSTRUCTION]
        case _:
            return [system] if _instructs(system) else [system, EXPAND_INSTRUCTION]


def _name_of(tool: object) -> object:
    match _plain(tool):
        case {"name": name}:
            return name
        case {"type": str(kind), **rest} if isinstance(inner := rest.get(kind), Mapping):
            return inner.get("name")
        case _:
            return None


def _is_ours(tool: object) -> bool:
    told = _plain(tool)
    bare = {key: value for key, value in told.items() if key != "cache_control"} if isinstance(told, Mapping) else told
    return bare in (_ANTHROPIC, _OPENAI)


def _instructs(part: object) -> bool:
    """Whether a part of a system prompt holds the instruction already."""
    told = _plain(part)
    text = told.get("text", told.get("content")) if isinstance(told, Mapping) else told
    return isinstance(text, str) and EXPAND_INSTRUCTION in text


def _plain(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    return dump(exclude_none=True) if dump is not None and not isinstance(value, type) else value
