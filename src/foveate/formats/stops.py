"""Reasons why replies end, by the word that each provider uses.

Sources: Anthropic's "Handling stop reasons" and OpenAI's reference of chat completions (`finish_reason`), 2026. Newer
words are kept, as `other`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.stamps import Stop, StopKind
from .blocks import as_dict

__all__ = ["anthropic_stop", "openai_stop", "recorded_stop"]

_ANTHROPIC: dict[str, StopKind] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "paused",
    "refusal": "refusal",
}
_OPENAI: dict[str, StopKind] = {
    "stop": "end",
    "tool_calls": "calls",
    "function_call": "calls",
    "length": "length",
    "content_filter": "filtered",
}
_RECORDED: dict[str, StopKind] = {
    "toolUse": "calls",
    "tool-calls": "calls",
    "content-filter": "filtered",
}
"""Words of programs that write for several providers."""
_KNOWN = {**_RECORDED, **_OPENAI, **_ANTHROPIC}


def anthropic_stop(message: Mapping[str, Any]) -> Stop | None:
    """Return why a response of the Messages API ended."""
    reason = message.get("stop_reason")
    return Stop(_ANTHROPIC.get(reason, "other"), reason) if isinstance(reason, str) and reason else None


def openai_stop(completion: Mapping[str, Any]) -> Stop | None:
    """Return why the first choice of a chat completion ended.

    A refusal counts first: its `finish_reason` does not show it.
    """
    choices = completion.get("choices")
    choice = as_dict(choices[0], "reply.choices[0]") if isinstance(choices, list | tuple) and choices else {}
    reason = choice.get("finish_reason")
    reason = reason if isinstance(reason, str) else ""
    message = as_dict(choice["message"], "reply.choices[0].message") if choice.get("message") else completion
    if message.get("refusal"):
        return Stop("refusal", reason)
    return Stop(_OPENAI.get(reason, "other"), reason) if reason else None


def recorded_stop(reason: object) -> Stop | None:
    """Return why a recorded reply ended, by the word of any provider; None if there is none."""
    return Stop(_KNOWN.get(reason, "other"), reason) if isinstance(reason, str) and reason else None
