"""Why replies ended: each provider's words for it, and what they come to.

Sources: Anthropic's "Handling stop reasons" and OpenAI's reference of chat completions (`finish_reason`), 2026. A word
that came later is kept, as `other`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.stamps import Stop, StopKind
from .blocks import plain

__all__ = ["anthropic_stop", "openai_stop", "stop_named"]

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
    """Why a response of the Messages API ended."""
    said = message.get("stop_reason")
    return Stop(_ANTHROPIC.get(said, "other"), said) if isinstance(said, str) and said else None


def openai_stop(completion: Mapping[str, Any]) -> Stop | None:
    """Why the first choice of a chat completion ended. A refusal is said beside a reason that does not tell it."""
    choices = completion.get("choices")
    choice = plain(choices[0], "reply.choices[0]") if isinstance(choices, list | tuple) and choices else {}
    said = choice.get("finish_reason")
    said = said if isinstance(said, str) else ""
    message = plain(choice["message"], "reply.choices[0].message") if choice.get("message") else completion
    if message.get("refusal"):
        return Stop("refusal", said)
    return Stop(_OPENAI.get(said, "other"), said) if said else None


def stop_named(said: object) -> Stop | None:
    """The same for a word that a recording kept, of whatever provider; None where there is none."""
    return Stop(_KNOWN.get(said, "other"), said) if isinstance(said, str) and said else None
