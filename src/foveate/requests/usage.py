"""The usage of one answer that is made of several answers of the provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["continued"]

_SUMMED = (
    *("output_tokens", "completion_tokens", "server_tool_use"),
    *("candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount"),  # Gemini's.
    *("outputTokenCount", "invocationLatency"),  # Bedrock's.
)
"""Keys, and beginnings of keys, whose numbers are added up."""
_TOTALS = ("total_tokens", "totalTokenCount")


def continued(first: Mapping[str, Any] | None, second: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the usage of an answer that `second` continues: the prompt of the second, and the output of both.

    Clients take the prompt's tokens for the size of their context, and compact by it: the sum of two prompts would look
    like a context of twice its size. The sum is in the conversation's totals.
    """
    total, output = dict(second or {}), 0
    for key, value in (first or {}).items():
        if key.startswith(_SUMMED):
            total[key] = _sum(value, total.get(key))
            output += value if _is_count(value) else 0
        else:
            total.setdefault(key, value)
    for key in _TOTALS:
        if second and key in second:
            total[key] += output
    return total


def _sum(first: Any, second: Any) -> Any:
    """Return the sum of two numbers, or of the numbers in two objects; of anything else, what is there."""
    if isinstance(first, Mapping) and isinstance(second, Mapping | None):
        return {key: _sum(first.get(key), (second or {}).get(key)) for key in {**first, **(second or {})}}
    if _is_count(first) and _is_count(second):
        return first + second
    return first if second is None else second


def _is_count(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
