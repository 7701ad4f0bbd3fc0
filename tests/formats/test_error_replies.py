"""A reply that is the error of a provider is refused with its words. Gateways send errors with the status 200."""

from __future__ import annotations

from typing import Any

import pytest

import foveate
from foveate.errors import BadMessage

DOWN = {"code": 502, "message": "Provider returned error"}


def failed(**choice: Any) -> dict[str, Any]:
    """Return a completion whose provider failed in the middle of the answer, as OpenRouter reports it."""
    message = {"role": "assistant", "content": "I am"}
    return {"id": "gen-1", "choices": [{"index": 0, "finish_reason": "error", "message": message, **choice}]}


@pytest.mark.parametrize(
    ("format", "reply", "words"),
    [
        ("openai", {"error": DOWN}, "502: Provider returned error"),
        ("openai", {"choices": None, "error": DOWN, "object": "chat.completion"}, "502: Provider returned error"),
        ("openai", {"choices": [], "error": DOWN}, "502: Provider returned error"),
        ("openai", {"error": "model 'llama' not found"}, "model 'llama' not found"),
        ("openai", failed(error=DOWN), "502: Provider returned error"),
        ("openai", failed(error=DOWN, finish_reason="stop"), "502: Provider returned error"),
        ("openai", {**failed(), "error": DOWN}, "502: Provider returned error"),
        ("openai", failed(error={}), "finish_reason: error"),
        (
            "anthropic",
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            "overloaded_error: Overloaded",
        ),
        ("openai_responses", {"error": DOWN}, "502: Provider returned error"),
        ("gemini", {"error": {"code": 503, "status": "UNAVAILABLE", "message": "Busy"}}, "503: UNAVAILABLE: Busy"),
    ],
)
def test_an_error_is_reported_and_not_recorded(format: str, reply: dict[str, Any], words: str):
    chat = foveate.open_conversation("gateway", format=format, window=8_000)
    chat.append("Is anybody there?")
    chat.prompt()
    with pytest.raises(BadMessage) as raised:
        chat.record(reply)
    assert str(raised.value).startswith(f"The reply is an error, {words!r}. Nothing of it was recorded.")
    assert len(chat) == 1


def test_a_reply_with_an_empty_error_is_recorded():
    chat = foveate.open_conversation("gateway", format="openai", window=8_000)
    chat.append("Is anybody there?")
    chat.record({"choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}], "error": None})
    assert chat.history()[-1].message.text == "Yes."
