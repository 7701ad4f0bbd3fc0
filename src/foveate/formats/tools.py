"""Tool definitions and system prompts as callers hand them in, made what each provider wants.

A caller who changes providers keeps the tools: a definition in the other provider's shape is converted. Definitions
that only one provider knows (its own search, its own shell) pass through as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .blocks import MARKS, plain
from .json import fresh

__all__ = ["for_anthropic", "for_openai"]

_NO_PARAMETERS = {"type": "object", "properties": {}}
_FREE_TEXT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def for_anthropic(tools: Iterable[object]) -> list[dict[str, Any]]:
    """Fresh tool definitions in Anthropic's shape, in the given order."""
    return [_for_anthropic(fresh(plain(tool, f"tools[{number}]"))) for number, tool in enumerate(tools)]


def for_openai(tools: Iterable[object]) -> list[dict[str, Any]]:
    """Fresh tool definitions in the shape of OpenAI's chat completions, in the given order."""
    return [_for_openai(fresh(plain(tool, f"tools[{number}]"))) for number, tool in enumerate(tools)]


def _for_anthropic(tool: dict[str, Any]) -> dict[str, Any]:
    match tool:
        case {"type": "function", "function": dict(function)}:
            pass
        case {"type": "function", "name": str()}:  # OpenAI's Responses API.
            function = tool
        case {"type": "custom", "custom": {"name": str(name), **rest}}:
            # A tool of free text takes it as the one field that a call of it is kept in.
            told = {"description": rest["description"]} if "description" in rest else {}
            return {"name": name, **told, "input_schema": fresh(_FREE_TEXT)}
        case _:
            return tool
    kept = {key: function[key] for key in ("name", "description", "strict") if function.get(key) is not None}
    return {**kept, "input_schema": function.get("parameters") or fresh(_NO_PARAMETERS)}


def _for_openai(tool: dict[str, Any]) -> dict[str, Any]:
    match tool:
        case {"name": str(), "input_schema": schema}:
            kept = {key: tool[key] for key in ("name", "description", "strict") if tool.get(key) is not None}
            return {"type": "function", "function": {**kept, "parameters": schema}}
        case {"type": "function", "name": str()}:
            kept = {key: value for key, value in tool.items() if key not in MARKS | {"type"} and value is not None}
            return {"type": "function", "function": kept}
        case _:
            return tool
