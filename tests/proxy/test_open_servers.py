"""Servers of open models behind a proxy: windows that nobody named, and refusals in the words of each server."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed (the extra `proxy`)")
pytest.importorskip("aiohttp", reason="aiohttp is not installed (the extra `proxy`)")

from servers import Exchange, RawProvider, ask, chunked, post, running_proxy, split

MODEL = "qwen3.5:9b"
TOOLS = [{"type": "function", "function": {"name": "read_log", "parameters": {"type": "object"}}}]
LOG = "Line of a log: every request was answered in time.\n" * 70
ANSWER = {"id": "c1", "object": "chat.completion", "created": 1, "model": MODEL}
ANSWER |= {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Log 7."}, "finish_reason": "stop"}]}
PIECE = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
PIECE |= {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Log 7."}, "finish_reason": "stop"}]}
STREAM = b"data: " + json.dumps(PIECE).encode() + b"\n\ndata: [DONE]\n\n"
BIG = 30_000
"""Bytes of a request that the servers here refuse."""


def request(calls: int = 12, **fields: Any) -> bytes:
    """Return a request of a tool loop, as a client of an open model sends it."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Which log has an error?"}]
    for number in range(calls):
        function = {"name": "read_log", "arguments": json.dumps({"number": number})}
        tool_call = {"id": f"call_{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "", "tool_calls": [tool_call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": f"Log {number}\n{LOG}"})
    return json.dumps({"model": MODEL, "messages": messages, "tools": TOOLS, **fields}).encode()


def whole(status: int, content: bytes, kind: str = "application/json") -> bytes:
    head = f"HTTP/1.1 {status} Any\r\ncontent-type: {kind}\r\ncontent-length: {len(content)}\r\n\r\n"
    return head.encode() + content


def streamed(*pieces: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + chunked(*pieces) + b"0\r\n\r\n"


def refusing(refusal: bytes, answer: bytes) -> Callable[[Exchange], None]:
    """Return a server that answers requests with more than `BIG` bytes with `refusal`."""

    def serve(exchange: Exchange) -> None:
        exchange.connection.sendall(refusal if len(exchange.body) > BIG else answer)

    return serve


REFUSALS = {
    "llama.cpp": (
        400,
        {
            "error": {
                "code": 400,
                "message": "request (12000 tokens) exceeds the available context size (8192 tokens), try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 12_000,
                "n_ctx": 8_192,
            }
        },
    ),
    "llama.cpp, full": (500, {"error": {"code": 500, "message": "Context size has been exceeded."}}),
    "LM Studio": (
        400,
        {
            "error": "The number of tokens to keep from the initial prompt is greater than the context length. Try to "
            "load the model with a larger context length, or provide a shorter input"
        },
    ),
    "TGI": (
        422,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 12000 "
            "`inputs` tokens and 512 `max_new_tokens`",
            "error_type": "validation",
        },
    ),
    "Groq": (
        413,
        {
            "error": {
                "message": "Request too large for model `openai/gpt-oss-20b` in organization `org_01` service tier "
                "`on_demand` on tokens per minute (TPM): Limit 6000, Requested 12000, please reduce your message size.",
                "type": "tokens",
                "code": "rate_limit_exceeded",
            }
        },
    ),
    "OpenAI": (
        429,
        {"error": {"message": "Request too large for gpt on tokens per min (TPM): Limit 8000, Requested 12000."}},
    ),
    "OpenRouter": (
        200,
        {
            "error": {
                "message": "This endpoint's maximum context length is 8192 tokens. However, you requested about 12512 "
                "tokens (12000 of text input, 512 in the output).",
                "code": 400,
            },
            "created_at": 1_764_000_000,
        },
    ),
}


@pytest.mark.parametrize("server", REFUSALS)
def test_a_window_that_nobody_named_is_learned_from_a_refusal(server: str, caplog: pytest.LogCaptureFixture):
    """Without --window, requests to models that foveate does not know were sent without a view."""
    status, refusal = REFUSALS[server]
    serve = refusing(whole(status, json.dumps(refusal).encode()), whole(200, json.dumps(ANSWER).encode()))
    with (
        caplog.at_level(logging.WARNING, "foveate.proxy"),
        RawProvider(serve) as provider,
        running_proxy(provider.url, window=None, policy="none") as proxy,
    ):
        answered, headers, body = split(ask(proxy.port, post("/v1/chat/completions", request())))
    assert (answered, json.loads(body)) == (200, ANSWER)
    assert headers["x-foveate-conversation"]
    assert len(provider.received) >= 2
    assert "Window of model 'qwen3.5:9b' is not known. foveate assumes 128,000 tokens" in caplog.text
    assert "--window" in caplog.text


@pytest.mark.parametrize("fields", [{}, {"model": None}, {"model": 5}], ids=["name", "no name", "number"])
def test_an_unknown_window_is_reported_once(fields: dict[str, Any], caplog: pytest.LogCaptureFixture):
    with (
        caplog.at_level(logging.WARNING, "foveate.proxy"),
        RawProvider(whole(200, json.dumps(ANSWER).encode())) as provider,
        running_proxy(provider.url, window=None) as proxy,
    ):
        for calls in (1, 2):
            answered = split(ask(proxy.port, post("/v1/chat/completions", request(calls, **fields))))
            assert answered[1]["x-foveate-conversation"]
    assert len([record for record in caplog.records if "is not known" in record.message]) == 1


@pytest.mark.parametrize("cut", [1, 10_000])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("expand", [True, False], ids=["expand", "no expand"])
def test_a_refusal_in_a_stream_with_status_200_is_tried_again(cut: int, end: bytes, expand: bool):
    """LM Studio and older versions of llama.cpp begin the stream before they count the prompt."""
    error = {"error": {"message": "The prompt is greater than the context length (n_keep: 12000>= n_ctx: 8192)."}}
    sent = b": ping" + 2 * end + b"event: error" + end + b"data: " + json.dumps(error).encode() + 2 * end
    refusal = streamed(*(sent[at : at + cut] for at in range(0, len(sent), cut)))
    policy = "keep-last-10" if expand else "keep-last-100"
    with (
        RawProvider(refusing(refusal, streamed(STREAM))) as provider,
        running_proxy(provider.url, window=128_000, policy=policy) as proxy,
    ):
        status, _, body = split(ask(proxy.port, post("/v1/chat/completions", request(stream=True))))
    assert (status, body) == (200, b": ping" + 2 * end + STREAM)
    assert [len(sent.body) > BIG for sent in provider.received] == [True, False]


@pytest.mark.parametrize(
    "event",
    [
        b'event: error\ndata: {"error":{"message":"The model crashed."}}\n\n',
        b'data: {"error":"The model crashed."}\n\n',
        b'data: {"error":{"message":"The model crashed."}}',  # without a blank line at its end
        b"error: no data\n\n",
        b"data: no JSON\n\n",
    ],
)
@pytest.mark.parametrize("begins", [b"", b": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n"])
def test_another_error_in_a_stream_reaches_the_client_as_it_is(begins: bytes, event: bytes):
    with RawProvider(streamed(begins + event)) as provider, running_proxy(provider.url) as proxy:
        status, _, body = split(ask(proxy.port, post("/v1/chat/completions", request(1, stream=True))))
    assert (status, body) == (200, begins + event)
    assert len(provider.received) == 1


def test_a_whole_error_with_status_200_reaches_the_client_as_it_is():
    content = b'{"error": {"message": "Provider returned error", "code": 502}}'
    with RawProvider(whole(200, content)) as provider, running_proxy(provider.url) as proxy:
        status, _, body = split(ask(proxy.port, post("/v1/chat/completions", request(1))))
    assert (status, body) == (200, content)
    assert len(provider.received) == 1


def test_a_refusal_of_the_smaller_request_ends_the_stream_with_it():
    """The stream has begun then, so a status cannot tell."""
    error = b'data: {"error":{"message":"prompt is longer than the context length (12000 >= 8192)"}}\n\n'
    other = b'{"error":{"message":"The model crashed."}}'
    with (
        RawProvider(refusing(streamed(error), whole(500, other))) as provider,
        running_proxy(provider.url, window=128_000, policy="keep-last-100") as proxy,
    ):
        status, _, body = split(ask(proxy.port, post("/v1/chat/completions", request(stream=True))))
    assert (status, body) == (200, b"data: " + other + b"\n\n")


def test_a_refusal_in_a_stream_that_breaks_off_is_tried_again():
    """The client saw a connection that was cut, without the error and without an answer."""
    error = b'data: {"error":{"message":"The prompt is greater than the context length."}}\n\n'
    broken = streamed(error).removesuffix(b"0\r\n\r\n")
    with (
        RawProvider(refusing(broken, streamed(STREAM))) as provider,
        running_proxy(provider.url, window=128_000, policy="keep-last-10") as proxy,
    ):
        status, _, body = split(ask(proxy.port, post("/v1/chat/completions", request(stream=True))))
    assert (status, body) == (200, STREAM)
    assert len(provider.received) == 2


def test_a_whole_answer_behind_a_stream_is_no_refusal():
    """It was read as one if its text spoke of a long context, and the request was sent and billed again."""
    function = {"name": "expand", "arguments": '{"handle": "m3"}'}
    calls = {"tool_calls": [{"index": 0, "id": "e1", "type": "function", "function": function}]}
    piece = {**PIECE, "choices": [{"index": 0, "delta": calls, "finish_reason": "tool_calls"}]}
    message = {"role": "assistant", "content": "The log is too long for the context window."}
    answer = {**ANSWER, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    asks = streamed(b"data: " + json.dumps(piece).encode() + b"\n\ndata: [DONE]\n\n")

    def serve(exchange: Exchange) -> None:
        is_next = b'"e1"' in exchange.body
        exchange.connection.sendall(whole(200, json.dumps(answer).encode()) if is_next else asks)

    with RawProvider(serve) as provider, running_proxy(provider.url, policy="keep-last-2") as proxy:
        status, _, body = split(ask(proxy.port, post("/v1/chat/completions", request(6, stream=True))))
    assert (status, b'"error"' in body) == (200, True)
    assert len(provider.received) == 2


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_an_expansion_needs_no_reason_at_the_end(stream: bool):
    """The answer of a server that names no `finish_reason` lost its call of `expand`, and ended there."""
    function = {"name": "expand", "arguments": '{"handle": "m3"}'}
    message = {"role": "assistant", "content": None}
    message |= {"tool_calls": [{"index": 0, "id": "e1", "type": "function", "function": function}]}
    ends = {"delta": message} if stream else {"message": message}
    answer = json.dumps({**PIECE, "choices": [{"index": 0, **ends, "finish_reason": None}]}).encode()
    asks = streamed(b"data: " + answer + b"\n\ndata: [DONE]\n\n") if stream else whole(200, answer)
    last = streamed(STREAM) if stream else whole(200, json.dumps(ANSWER).encode())

    def serve(exchange: Exchange) -> None:
        exchange.connection.sendall(last if b'"e1"' in exchange.body else asks)

    with RawProvider(serve) as provider, running_proxy(provider.url, policy="keep-last-2") as proxy:
        status, _, body = split(ask(proxy.port, post("/v1/chat/completions", request(6, stream=stream))))
    assert (status, b"Log 7." in body, b"expand" in body) == (200, True, False)
    assert len(provider.received) == 2
    result = json.loads(provider.received[1].body)["messages"][-1]
    assert (result["role"], result["tool_call_id"]) == ("tool", "e1")
    assert "every request was answered" in result["content"]
