"""Tokens that Anthropic adds to a request with tools.

Claude gets a system prompt for the use of tools, and Anthropic's own client tools have definitions that a request only
names. Sources, as of November 2026: the table in Anthropic's page "Tool use with Claude" and the pages of the tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.profiles import claude_version

__all__ = ["added_by_tools"]

_PROMPTS = (((5, 0), 474), ((4, 8), 410), ((4, 7), 804), ((4, 5), 589), ((3, 5), 355), ((0, 0), 530))
"""The first version of Claude, and tokens of its prompt for tools: the largest among the models of this version, with a
required tool call. Without one (`tool_choice` auto), the prompt is 93 to 129 tokens shorter.
"""
_DEFINITIONS = {"bash_": 245, "text_editor_": 700, "computer_": 1_234}
"""Tokens of the definition of a tool by the beginning of its type; for computer use with its part of the prompt."""
_VERSIONS = {"claude": (4, 6), "claude-4.7": (5, 5)}
"""The version of an unknown model of a vocabulary."""


def added_by_tools(family: str, model: str, tools: Sequence[Any]) -> int:
    """Return the tokens that the provider adds for these tools to their JSON text.

    `family`: the name of the vocabulary. 0 for other models than Claude.
    """
    if family not in _VERSIONS or not tools:
        return 0
    version = claude_version(model) or _VERSIONS[family]
    kinds = [str(tool.get("type", "")) for tool in tools if isinstance(tool, Mapping)]
    defined = sum(tokens for kind in kinds for start, tokens in _DEFINITIONS.items() if kind.startswith(start))
    return defined + next(tokens for since, tokens in _PROMPTS if version >= since)
