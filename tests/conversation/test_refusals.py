"""The providers' errors for a prompt that is too long, the limits learned from them, and errors of other causes."""

from __future__ import annotations

import pytest

from foveate import Conversation
from foveate.testing import answer, call, text_of, user

from .shells import opened


class Said(Exception):
    """An SDK's error with the fields that matter here."""

    def __init__(self, status_code: int, text: str) -> None:
        self.status_code = status_code
        self.body = {"error": {"message": text}, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}
        super().__init__(f"Error code: {status_code} - {self.body}")


def with_open_call(provider: str) -> Conversation:
    chat = opened(provider=provider, window=1_000_000)
    chat.append([user("go"), *(m for i in range(40) for m in (call(f"c{i}"), answer(f"c{i}", text_of(1_000, i))))])
    chat.prompt()
    return chat


@pytest.mark.parametrize(
    ("status", "text", "window", "reserve"),
    [
        (400, "prompt is too long: 45123 tokens > 20000 maximum", 20_000, 2_000),
        (400, "input length and `max_tokens` exceed context limit: 40000 + 8000 > 30000, decrease one", 30_000, 8_000),
        (
            400,
            "This model's maximum context length is 16385 tokens. However, your messages resulted in 45321 tokens.",
            16_385,
            1_638,
        ),
        (
            400,
            "This model's maximum context length is 16384 tokens. However, you requested 42000 tokens (40000 in the "
            "messages, 2000 in the completion).",
            16_384,
            2_000,
        ),
        (400, "prompt is too long for claude-sonnet-4-20250514: 45,123 tokens > 20,000 maximum", 20_000, 2_000),
        (429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45000.", 30_000, 3_000),
        (400, "The input token count (45000) exceeds the maximum number of tokens allowed (30000).", 30_000, 3_000),
        (
            400,
            "This model's maximum prompt length is 30000 but the request contains 45000 tokens.",
            30_000,
            3_000,
        ),
        (
            400,
            "Input tokens exceed the configured limit of 30000 tokens. Your messages resulted in 45000 tokens.",
            30_000,
            3_000,
        ),
    ],
)
def test_limit_is_learned_from_the_providers_error(status, text, window, reserve):
    chat = with_open_call("openai")
    chat.retry_smaller(Said(status, text))
    assert (chat.budget.window, chat.budget.reserve) == (window, reserve)
    assert chat.view.tokens * chat.budget.scale <= window - reserve


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (429, "Too many requests: this would exceed the rate limit of 40,000 input tokens per minute."),
        (400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens."),
        (400, "Invalid 'tools': array too long. Expected an array with maximum length 128, but got 200."),
        (400, "Invalid 'messages[1].tool_calls[0].id': string too long. Expected maximum length 40, but got 4500."),
        (400, "max_tokens exceeds what this model answers at most: 4096."),
        (529, "Overloaded"),
    ],
)
def test_other_provider_errors_are_raised_and_teach_no_limit(status, text):
    chat = with_open_call("openai")
    before = chat.budget
    error = Said(status, text)
    with pytest.raises(Said) as caught:
        chat.retry_smaller(error)
    assert caught.value is error
    assert chat.budget == before


def test_the_log_names_the_window_that_a_refusal_taught(caplog: pytest.LogCaptureFixture):
    """It is not stored, so a program that opens the conversation again needs the number."""
    chat = with_open_call("openai")
    chat.retry_smaller(Said(400, "Input tokens exceed the configured limit of 30000 tokens. You sent 45000 tokens."))
    (record,) = [record for record in caplog.records if "too long" in record.message]
    assert "counts as 30,000 tokens until the conversation is closed; open it with window=30000" in record.message
    assert record.levelname == "WARNING"
