"""Reasons why replies end, by the word that each provider uses.

Sources: Anthropic's "Handling stop reasons", OpenAI's references of chat completions (`finish_reason`) and of responses
(`status`, `incomplete_details`) and Google's of `FinishReason`, 2026. Newer words are kept, as `other`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.messages import Message, Text
from ..core.stamps import Stop, StopKind
from .blocks import as_dict

__all__ = ["anthropic_stop", "gemini_stop", "openai_stop", "recorded_stop", "responses_stop"]

_ANTHROPIC: dict[str, StopKind] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "paused",
    "compaction": "paused",
    "refusal": "refusal",
}
_OPENAI: dict[str, StopKind] = {
    "stop": "end",
    "tool_calls": "calls",
    "function_call": "calls",
    "length": "length",
    "content_filter": "filtered",
}
_GEMINI: dict[str, StopKind] = {
    "STOP": "end",
    "MAX_TOKENS": "length",
    "CONTINUATION": "paused",
    "SAFETY": "filtered",
    "RECITATION": "filtered",
    "LANGUAGE": "filtered",
    "BLOCKLIST": "filtered",
    "PROHIBITED_CONTENT": "filtered",
    "SPII": "filtered",
    "MODEL_ARMOR": "filtered",
    "ESCALATION": "filtered",
    "IMAGE_SAFETY": "filtered",
    "IMAGE_PROHIBITED_CONTENT": "filtered",
    "IMAGE_RECITATION": "filtered",
}
_INCOMPLETE: dict[str, StopKind] = {"max_output_tokens": "length", "content_filter": "filtered"}
_RECORDED: dict[str, StopKind] = {
    "toolUse": "calls",
    "tool-calls": "calls",
    "content-filter": "filtered",
}
"""Words of programs that write for several providers."""
_KNOWN = {**_RECORDED, **_GEMINI, **_OPENAI, **_ANTHROPIC}


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


def gemini_stop(response: Mapping[str, Any]) -> Stop | None:
    """Return why the first candidate of a GenerateContentResponse ended, or why the prompt was blocked.

    `response` has the names of the REST API at its top level. Gemini has no word of its own for calls.
    """
    candidates = response.get("candidates")
    if not candidates:
        feedback = as_dict(response.get("promptFeedback") or {}, "reply.promptFeedback")
        reason = feedback.get("blockReason", feedback.get("block_reason"))
        return Stop("filtered", _word(reason)) if reason else None
    candidate = as_dict(candidates[0], "reply.candidates[0]")
    reason = _word(candidate.get("finishReason", candidate.get("finish_reason")))
    content = as_dict(candidate.get("content") or {}, "reply.candidates[0].content")
    parts = [as_dict(part, "part") for part in content.get("parts") or () if not isinstance(part, str)]
    if reason == "STOP" and any(part.get("functionCall", part.get("function_call")) for part in parts):
        return Stop("calls", reason)
    return Stop(_GEMINI.get(reason, "other"), reason) if reason else None


def _word(reason: object) -> str:
    """Return the word of a reason, which the SDK gives as an enumeration."""
    reason = getattr(reason, "value", reason)
    return reason if isinstance(reason, str) else ""


def responses_stop(response: Mapping[str, Any], message: Message) -> Stop | None:
    """Return why a response of the Responses API ended. `message` is its assistant message.

    The API names a reason only for an incomplete response. Otherwise calls of the caller's tools, or a refusal, are the
    reason; the word is then the response's status.
    """
    status = response.get("status")
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    if isinstance(reason, str) and reason:
        return Stop(_INCOMPLETE.get(reason, "other"), reason)
    if not isinstance(status, str) or not status:
        return None
    if status != "completed":
        return Stop("other", status)
    if any(isinstance(part, Text) and part.extra and '"type":"refusal"' in part.extra.fields for part in message.parts):
        return Stop("refusal", status)
    return Stop("calls" if message.calls else "end", status)


def recorded_stop(reason: object) -> Stop | None:
    """Return why a recorded reply ended, by the word of any provider; None if there is none."""
    return Stop(_KNOWN.get(reason, "other"), reason) if isinstance(reason, str) and reason else None
