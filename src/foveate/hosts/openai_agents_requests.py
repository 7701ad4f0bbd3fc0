"""The model and the tools of a request of the OpenAI Agents SDK, the usage of its reply, and outputs of `expand`."""

from __future__ import annotations

from typing import Any

from agents import Agent, FunctionTool, Handoff, ToolOutputImage, ToolOutputText, handoff

from ..core.messages import Media, Text
from ..core.stamps import Usage
from .host import tool_definition, usage_of_totals

__all__ = ["definitions_of", "model_of", "output_of", "usage_of"]


def output_of(part: Any) -> ToolOutputText | ToolOutputImage:
    """Return a part of the result of `expand` as an output of a tool."""
    if isinstance(part, Media) and part.is_image and part.source != "file":
        url = part.data if part.source == "url" else f"data:{part.mime or 'image/png'};base64,{part.data}"
        return ToolOutputImage(image_url=url)
    return ToolOutputText(text=part.text if isinstance(part, Text) else f"[{getattr(part, 'mime', 'content')}]")


def definitions_of(agent: Any, mcp_tools: list[Any]) -> list[dict[str, Any]]:
    """Return the definitions of an agent's tools and handoffs, as the model reads them."""
    tools = [tool for tool in (*mcp_tools, *agent.tools) if isinstance(tool, FunctionTool)]
    moves: list[Handoff[Any, Any]] = [handoff(to) if isinstance(to, Agent) else to for to in agent.handoffs]
    return [
        *(tool_definition(tool.name, tool.description, tool.params_json_schema) for tool in tools),
        *(tool_definition(move.tool_name, move.tool_description, move.input_json_schema) for move in moves),
    ]


def model_of(agent: Any) -> str:
    """Return the name of an agent's model, which may be an object of the SDK."""
    model = agent.model
    return model if isinstance(model, str) else str(getattr(model, "model", None) or "")


def usage_of(usage: Any) -> Usage:
    """Return the usage of a reply."""
    read = getattr(usage.input_tokens_details, "cached_tokens", 0) or 0
    reasoning = getattr(usage.output_tokens_details, "reasoning_tokens", 0) or 0
    return usage_of_totals(usage.input_tokens, read, None, usage.output_tokens, reasoning)
