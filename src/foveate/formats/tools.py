"""Conversion of tool definitions to the shape that a provider wants.

A caller who changes providers keeps the tools. Definitions that only one provider knows (its own search or shell) pass
unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .blocks import MARKS, as_dict
from .json import copy_json

__all__ = ["for_anthropic", "for_openai"]

_NO_PARAMETERS = {"type": "object", "properties": {}}
_FREE_TEXT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def for_anthropic(tools: Iterable[object]) -> list[dict[str, Any]]:
    """Return new tool definitions in Anthropic's shape, in the same order."""
    return [_for_anthropic(copy_json(as_dict(tool, f"tools[{number}]"))) for number, tool in enumerate(tools)]


def for_openai(tools: Iterable[object]) -> list[dict[str, Any]]:
    """Return new tool definitions in the shape of OpenAI's chat completions, in the same order."""
    return [_for_openai(copy_json(as_dict(tool, f"tools[{number}]"))) for number, tool in enumerate(tools)]


def _for_anthropic(tool: dict[str, Any]) -> dict[str, Any]:
    match tool:
        case {"type": "function", "function": dict(function)}:
            pass
        case {"type": "function", "name": str()}:  # OpenAI's Responses API.
            function = tool
        case {"type": "custom", "custom": {"name": str(name), **rest}}:
            # A tool that takes free text gets it as one field, in which its calls keep it too.
            description = {"description": rest["description"]} if "description" in rest else {}
            return {"name": name, **description, "input_schema": copy_json(_FREE_TEXT)}
        case _:
            return tool
    kept = {key: function[key] for key in ("name", "description", "strict") if function.get(key) is not None}
    return {**kept, "input_schema": function.get("parameters") or copy_json(_NO_PARAMETERS)}


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
