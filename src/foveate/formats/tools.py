"""Conversion of tool definitions to the shape that a provider wants.

A caller who changes providers keeps the tools. Definitions that only one provider knows (its own search or shell) pass
unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .blocks import MARKS, as_dict
from .json import copy_json

__all__ = ["for_anthropic", "for_gemini", "for_openai", "for_responses"]

_NO_PARAMETERS = {"type": "object", "properties": {}}
_DECLARATIONS = frozenset({"functionDeclarations", "function_declarations"})
_FREE_TEXT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def for_anthropic(tools: Iterable[object]) -> list[dict[str, Any]]:
    """Return new tool definitions in Anthropic's shape, in the same order."""
    return [_for_anthropic(tool) for tool in _separate(tools)]


def for_openai(tools: Iterable[object]) -> list[dict[str, Any]]:
    """Return new tool definitions in the shape of OpenAI's chat completions, in the same order."""
    return [_for_openai(tool) for tool in _separate(tools)]


def for_gemini(tools: Iterable[object]) -> list[dict[str, Any]]:
    """Return new tool definitions in Gemini's shape: all functions in the first one, then Google's own tools.

    The API takes functions in one tool only.
    """
    separate = [_for_gemini(tool) for tool in _separate(tools)]
    functions = [tool["functionDeclaration"] for tool in separate if "functionDeclaration" in tool]
    others = [tool for tool in separate if "functionDeclaration" not in tool]
    return [{"functionDeclarations": functions}, *others] if functions else others


def _separate(tools: Iterable[object]) -> Iterator[dict[str, Any]]:
    """Yield new definitions of single tools. Gemini's own shape holds a list of functions."""
    for number, value in enumerate(tools):
        tool = copy_json(as_dict(value, f"tools[{number}]"))
        functions = _DECLARATIONS.intersection(tool)
        for key in sorted(functions):
            for place, function in enumerate(tool.pop(key) or ()):
                yield {"functionDeclaration": copy_json(as_dict(function, f"tools[{number}].{key}[{place}]"))}
        if tool or not functions:
            yield tool


def _function_of(declaration: dict[str, Any]) -> dict[str, Any]:
    """Return a function in OpenAI's shape for one of Gemini's declarations."""
    schema = declaration.get("parametersJsonSchema", declaration.get("parameters_json_schema"))
    if schema is None and declaration.get("parameters") is not None:
        schema = _json_schema(declaration["parameters"])
    kept = {key: declaration[key] for key in ("name", "description") if declaration.get(key) is not None}
    return {**kept, "parameters": schema or copy_json(_NO_PARAMETERS)}


def _json_schema(schema: Any) -> Any:
    """Return a schema with the types in lower case: Gemini's own schemas write `STRING`."""
    if isinstance(schema, list):
        return [_json_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    lower = {key: _json_schema(value) for key, value in schema.items() if value is not None}
    kind = getattr(lower.get("type"), "value", lower.get("type"))
    return {**lower, "type": kind.lower()} if isinstance(kind, str) else lower


def _for_gemini(tool: dict[str, Any]) -> dict[str, Any]:
    function: dict[str, Any]
    match tool:
        case {"type": "custom", "custom": {"name": str(name), **rest}}:
            function = {"name": name, "description": rest.get("description"), "parameters": copy_json(_FREE_TEXT)}
        case {"type": "function", "function": dict(inner)}:
            function = inner
        case {"type": "function", "name": str()}:
            function = tool
        case {"name": str(), "input_schema": schema}:
            function = {**tool, "parameters": schema}
        case {"name": str(), "type": str()}:
            return tool  # Another provider's own tool.
        case {"name": str()}:
            return {"functionDeclaration": tool}
        case _:
            return tool
    kept = {key: function[key] for key in ("name", "description") if function.get(key) is not None}
    schema = function.get("parameters")
    return {"functionDeclaration": {**kept, "parametersJsonSchema": schema} if schema else kept}


def for_responses(tools: Iterable[object]) -> list[dict[str, Any]]:
    """Return new tool definitions in the shape of OpenAI's Responses API, in the same order."""
    return [_for_responses(tool) for tool in _separate(tools)]


def _for_anthropic(tool: dict[str, Any]) -> dict[str, Any]:
    match tool:
        case {"functionDeclaration": dict(declaration)}:
            function = _function_of(declaration)
        case {"type": "function", "function": dict(function)}:
            pass
        case {"type": "function", "name": str()}:  # OpenAI's Responses API.
            function = tool
        case {"type": "custom", "custom": {"name": str(name), **rest}}:
            return _free_text_tool(name, rest)
        case {"type": "custom", "name": str(name), **rest} if "input_schema" not in rest:  # The Responses API.
            return _free_text_tool(name, rest)
        case _:
            return tool
    kept = {key: function[key] for key in ("name", "description", "strict") if function.get(key) is not None}
    return {**kept, "input_schema": function.get("parameters") or copy_json(_NO_PARAMETERS)}


def _free_text_tool(name: str, fields: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a tool that takes its free text as one field, in which its calls keep it too."""
    description = {"description": fields["description"]} if "description" in fields else {}
    return {"name": name, **description, "input_schema": copy_json(_FREE_TEXT)}


def _for_openai(tool: dict[str, Any]) -> dict[str, Any]:
    match tool:
        case {"functionDeclaration": dict(declaration)}:
            return {"type": "function", "function": _function_of(declaration)}
        case {"name": str(), "input_schema": schema}:
            kept = {key: tool[key] for key in ("name", "description", "strict") if tool.get(key) is not None}
            return {"type": "function", "function": {**kept, "parameters": schema}}
        case {"type": "function", "name": str()}:
            kept = {key: value for key, value in tool.items() if key not in MARKS | {"type"} and value is not None}
            return {"type": "function", "function": kept}
        case {"type": "custom", "name": str(), **rest} if "input_schema" not in rest:
            kept = {key: value for key, value in tool.items() if key not in MARKS | {"type"} and value is not None}
            return {"type": "custom", "custom": kept}
        case _:
            return tool


def _for_responses(tool: dict[str, Any]) -> dict[str, Any]:
    match tool:
        case {"type": "function", "function": dict(function)}:
            parameters = function.get("parameters") or copy_json(_NO_PARAMETERS)
        case {"name": str(), "input_schema": dict(parameters)}:
            function = tool
        case {"functionDeclaration": dict(declaration)}:
            function = _function_of(declaration)
            parameters = function["parameters"]
        case {"type": "custom", "custom": {"name": str()} as inner}:
            return {"type": "custom", **inner}
        case _:
            return tool
    # This API makes a schema strict unless told otherwise, so that optional parameters would become required.
    described = {key: function[key] for key in ("name", "description") if function.get(key) is not None}
    return {"type": "function", **described, "parameters": parameters, "strict": bool(function.get("strict"))}
