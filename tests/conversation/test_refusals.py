"""The providers' errors for a prompt that is too long, the limits learned from them, and errors of other causes."""

from __future__ import annotations

import pytest

from foveate import Conversation, Usage
from foveate.errors import Refused
from foveate.testing import answer, call, say, text_of, user

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
        (  # Gemini on Vertex AI
            400,
            "Unable to submit request because the input token count is 45000 but model only supports up to 30000. "
            "Reduce the input token count and try again.",
            30_000,
            3_000,
        ),
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
        (
            400,
            "Input tokens exceed the configured limit of 30000 tokens. You sent 45000 tokens. Time: 1764000000.",
            30_000,
            3_000,
        ),
        (  # vLLM, where the prompt and the requested answer are too long together
            400,
            "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 32768 "
            "tokens and your request has 30123 input tokens (4096 > 32768 - 30123).",
            32_768,
            4_096,
        ),
        (
            400,
            "This endpoint's maximum context length is 32768 tokens. However, you requested about 44000 tokens (40000 "
            "of text input, 4000 in the output).",
            32_768,
            4_000,
        ),
        (
            400,
            "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total "
            "of 44000 tokens: 40000 tokens from the input messages and 4000 tokens for the completion.",
            32_768,
            4_000,
        ),
        (  # The answer takes more than half of the window: the other part counts as half of a smaller one.
            400,
            "This model's maximum context length is 32768 tokens. However, you requested 60000 tokens (40000 in the "
            "messages, 20000 in the completion).",
            25_536,
            12_768,
        ),
        (
            422,
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32768. Given: 40000 `inputs` tokens "
            "and 4096 `max_new_tokens`",
            32_768,
            4_096,
        ),
        (413, "Request too large on tokens per minute (TPM): Limit 30000, Requested 45000.", 30_000, 3_000),
        (400, "The number of tokens to keep is too large: context length (n_keep: 45000>= n_ctx: 8192)", 8_192, 819),
    ],
)
def test_limit_is_learned_from_the_providers_error(status, text, window, reserve):
    chat = with_open_call("openai")
    chat.retry_smaller(Said(status, text))
    assert (chat.budget.window, chat.budget.reserve) == (window, reserve)
    assert chat.view.tokens * chat.budget.scale <= window - reserve


def test_a_body_of_too_many_bytes_is_made_smaller():
    """Gemini refuses a long body with the status 400."""
    chat = with_open_call("gemini")
    before = chat.view.bytes
    chat.retry_smaller(Said(400, "Request payload size exceeds the limit: 20971520 bytes."))
    assert chat.view.bytes < 0.8 * before
    assert chat.budget.window == 1_000_000


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (429, "Too many requests: this would exceed the rate limit of 40,000 input tokens per minute."),
        (400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens."),
        (400, "Invalid 'tools': array too long. Expected an array with maximum length 128, but got 200."),
        (400, "Invalid 'messages[1].tool_calls[0].id': string too long. Expected maximum length 40, but got 4500."),
        (400, "max_tokens exceeds what this model answers at most: 4096."),
        (
            400,
            "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 8192 "
            "tokens and your request has 512 input tokens (32000 > 8192 - 512).",
        ),
        (529, "Overloaded"),
        (200, "Rate limit exceeded: too many tokens per minute."),  # An error in place of a stream.
        (200, "Too many tokens, please wait before trying again."),  # Bedrock, in a stream.
        (  # FastAPI, which quotes the message that it refuses
            422,
            '[{"type":"missing","loc":["body","messages",3,"content"],"msg":"Field required","input":{"role":"user",'
            '"text":"The log is too long for the context window of 16384 tokens."}}]',
        ),
        (  # vLLM, in the same case
            400,
            "[{'type': 'missing', 'loc': ('body', 'messages', 3), 'msg': 'Field required', 'input': {'role': 'user', "
            "'text': 'The log is too long for the context window of 16384 tokens.'}}]",
        ),
        (
            400,
            "1 validation error for Request: messages.3.content Input should be a valid string [type=string_type, "
            "input_value={'text': 'too long for the context window'}, input_type=dict]",
        ),
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


@pytest.mark.parametrize(
    "text",
    [
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        "Please reduce the length of the messages or completion. context_length_exceeded",
        "prompt too long; exceeded max context length by 4380 tokens",
    ],
)
def test_each_prompt_is_smaller_if_no_limit_is_named(text: str):
    """With a window far above that of the server, the reserve grew by what the view lost. A second refusal ended the
    conversation: no later request was made smaller."""
    chat = with_open_call("openai")
    sizes = [chat.view.tokens]
    for _ in range(3):
        chat.retry_smaller(Said(400, text))
        sizes.append(chat.view.tokens)
    assert sizes[1] <= 0.8 * sizes[0]
    assert sizes[2] <= 0.5 * sizes[1]
    assert sizes[3] <= 0.5 * sizes[2]
    with pytest.raises(Refused, match="again after it was made smaller"):
        chat.retry_smaller(Said(400, text))
    chat.retry_smaller(Said(400, text))
    assert chat.view.tokens < sizes[3]


NO_NUMBER = "Context size has been exceeded."
"""The refusal of llama.cpp, also when the requests in its other slots leave too little room."""


def run_against(chat: Conversation, limits: list[int]) -> tuple[list[int], int]:
    """Make one call for each limit of the server's, in true tokens. Return the window after each, and all refusals."""
    windows, refusals = [], 0
    for number, limit in enumerate(limits):
        chat.append([call(f"n{number}"), answer(f"n{number}", text_of(300, number))])
        chat.prompt()
        while (size := chat.view.tokens) > limit:
            refusals += 1
            chat.retry_smaller(Said(500, NO_NUMBER))
        chat.record(say(f"Read {number}."), usage=Usage(input=size, output=3))
        windows.append(chat.budget.window)
    return windows, refusals


def small(window: int) -> Conversation:
    chat = opened(window=window, policy="balanced")
    chat.append(user("Read all files."))
    return chat


@pytest.mark.slow
def test_a_guessed_window_grows_again_after_the_server_was_busy():
    """It stayed small until the conversation was closed."""
    chat = small(30_000)
    windows, refusals = run_against(chat, [10**9] * 100 + [5_000] + [10**9] * 250)
    assert refusals == 1
    assert windows[100] < 10_000
    assert windows[-1] == 30_000


@pytest.mark.slow
def test_a_guessed_window_stays_near_the_limit_of_the_server():
    """Each larger guess that fails makes the next one rarer, and no call fails for good."""
    chat = small(30_000)
    windows, refusals = run_against(chat, [12_000] * 400)
    assert min(windows) > 0.8 * 12_000
    assert max(windows[200:]) < 1.25 * 1.25 * 12_000
    assert 1 < refusals < 8


def test_a_request_above_the_guess_that_is_accepted_raises_it():
    chat = with_open_call("openai")
    chat.retry_smaller(Said(500, NO_NUMBER))
    guess, size = chat.budget.window, 3 * chat.view.tokens
    chat.record(say("Done."), usage=Usage(input=size, output=3))
    assert size < chat.budget.window
    assert guess < size


def test_a_named_limit_takes_the_place_of_a_guess():
    chat = with_open_call("openai")
    for _ in range(3):
        chat.retry_smaller(Said(500, NO_NUMBER))
    assert chat.budget.window < 20_000
    chat.prompt()
    chat.record(say("Done."))
    chat.retry_smaller(Said(400, "prompt is too long: 45123 tokens > 20000 maximum"))
    assert chat.budget.window == 20_000


def test_a_prompt_that_no_policy_makes_smaller_is_not_sent_again():
    """It was the same one, three times."""
    chat = opened(window=1_000_000, policy="off")
    chat.append([user("go"), call("c1"), answer("c1", text_of(1_000, 1))])
    chat.prompt()
    error = Said(400, "prompt is too long: 45123 tokens > 20000 maximum")
    with pytest.raises(Refused, match="no policy makes it smaller") as caught:
        chat.retry_smaller(error)
    assert caught.value.__cause__ is error


def test_a_prompt_that_the_server_did_not_count_measures_nothing():
    """vLLM names the least size that it refuses, so each estimate was corrected towards a prompt that fits."""
    chat = with_open_call("openai")
    estimate = chat.view.tokens
    text = (
        "This model's maximum context length is 32768 tokens. However, you requested 16384 output tokens and your "
        "prompt contains at least 16385 input tokens, for a total of at least 32769 tokens."
    )
    chat.retry_smaller(Said(400, text))
    assert estimate > 30_000
    assert chat.budget.scale == 1.0
    assert chat.view.tokens <= 16_384


def test_the_log_names_the_window_that_a_refusal_taught(caplog: pytest.LogCaptureFixture):
    """It is not stored, so a program that opens the conversation again needs the number."""
    chat = with_open_call("openai")
    chat.retry_smaller(Said(400, "Input tokens exceed the configured limit of 30000 tokens. You sent 45000 tokens."))
    (record,) = [record for record in caplog.records if "too long" in record.message]
    assert (
        "counts as 30,000 tokens until the conversation is closed; open it with window=30000, or start the proxy with "
        "--window 30000, to keep that."
    ) in record.message
    assert record.levelname == "WARNING"
