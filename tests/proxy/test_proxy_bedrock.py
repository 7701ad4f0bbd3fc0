"""Clients of Claude on Amazon Bedrock through a proxy, before a provider that refuses illegal requests."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed (the extra `proxy`)")
pytest.importorskip("aiohttp", reason="aiohttp is not installed (the extra `proxy`)")

from aws_frames import METRICS, as_sse, chunk, events_in, exception, framed, frames_in
from bedrock_provider import BedrockProvider, check_signature
from servers import Exchange, RawProvider, RunningProxy, ask, numbers, running_proxy, split
from servers import post as request_of
from waiting import until

import foveate
from foveate.errors import StoreError
from foveate.formats import gather
from foveate.open import open_store
from foveate.proxy.client_ids import read_ids
from foveate.testing import CutReply, Failure, ScriptedModel, call, say

WINDOW = 16_000
CALLS = 20
ANSWER = "Log 7 has an error."
MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
ARN = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3"
VERSION = "bedrock-2023-05-31"
TOOLS = [{"name": "read_log", "input_schema": {"type": "object", "properties": {"number": {"type": "integer"}}}}]
BEARER = "Authorization: Bearer secret-token-1"
SIGNED = (
    "Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261201/us-east-1/bedrock/aws4_request, "
    "SignedHeaders=host;x-amz-date, Signature=0123456789abcdef"
)


def log_text(number: int) -> str:
    return "".join(f"Line {line} of log {number}: every request was answered in time.\n" for line in range(100))


def path_of(model: str = MODEL, *, stream: bool = False) -> str:
    return f"/model/{model}/invoke{'-with-response-stream' if stream else ''}"


def post(proxy: RunningProxy, path: str, body: Any, *headers: str) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers (names in lower case) and content of the answer."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return split(ask(proxy.port, request_of(path, content, "Content-Type: application/json", *(headers or (BEARER,)))))


def fields_with(messages: list[Any], **more: Any) -> dict[str, Any]:
    return {"anthropic_version": VERSION, "max_tokens": 500, "tools": TOOLS, "messages": messages, **more}


def question(text: str = "Which of the logs has an error?") -> list[Any]:
    return [{"role": "user", "content": text}]


def message_in(content: bytes, *, stream: bool) -> dict[str, Any]:
    if not stream:
        return json.loads(content)
    gatherer = gather("anthropic")
    gatherer.feed(as_sse(content))
    whole = gatherer.whole()
    assert whole is not None
    return whole


def loop(proxy: RunningProxy, messages: list[Any], *, stream: bool, model: str = MODEL) -> str:
    """The loop of a program that uses tools; return the last text."""
    while True:
        status, _, content = post(proxy, path_of(model, stream=stream), fields_with(messages, system="Be brief."))
        assert status == 200, content
        reply = message_in(content, stream=stream)["content"]
        messages.append({"role": "assistant", "content": reply})
        calls = [block for block in reply if block["type"] == "tool_use"]
        if not calls:
            return reply[0]["text"]
        results = [
            {"type": "tool_result", "tool_use_id": each["id"], "content": log_text(each["input"]["number"])}
            for each in calls
        ]
        messages.append({"role": "user", "content": results})


def reads(number: int) -> Any:
    return call(f"c{number}", "read_log", number=number)


@pytest.mark.parametrize("model", [MODEL, ARN.replace(":", "%3A").replace("/", "%2F")], ids=["profile", "arn"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_tool_loop_on_bedrock_stays_in_the_window(stream: bool, model: str, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    script = [reads(number) for number in range(CALLS)]
    script.insert(9, call("e1", "expand", handle="m3"))
    messages = question()
    with (
        BedrockProvider([*script, say(ANSWER)], strict=True) as provider,
        running_proxy(provider.url, store=url, window=WINDOW) as proxy,
    ):
        assert loop(proxy, messages, stream=stream, model=model) == ANSWER
        assert provider.illegal == []
        managed = 'foveate_requests_total{api="anthropic",outcome="managed"}'
        until(lambda: numbers(proxy)[managed] == CALLS + 1)
        found = numbers(proxy)
    assert found['foveate_expansions_total{api="anthropic"}'] == 1
    if model == MODEL and find_spec("genai_prices"):
        assert found['foveate_dollars_spent_total{api="anthropic"}'] > 0
    own, sent = len(json.dumps(messages)), max(len(exchange.body) for exchange in provider.received)
    assert own > 100_000
    assert sent < 0.6 * own
    assert "expand" not in json.dumps(messages)
    assert {exchange.headers["authorization"] for exchange in provider.received} == {"Bearer secret-token-1"}
    assert {exchange.target for exchange in provider.received} == {path_of(model, stream=stream)}
    with open_store(url) as store:
        [name] = store.names("")
        with foveate.open_conversation(name, store=store, format="anthropic", window=WINDOW) as chat:
            assert chat.totals().calls_billed == CALLS + 2
            assert chat.journal.verify() == []
    assert b"secret-token-1" not in Path(tmp_path, "chats.db").read_bytes()


def test_frames_reach_the_client_byte_for_byte():
    script = [reads(1), say("Log 1 is fine.\r\n\r\nSo is log 2.\n\nDone.")]
    messages = question()
    with BedrockProvider(script) as provider, running_proxy(provider.url) as proxy:
        for _ in script:
            status, headers, content = post(proxy, path_of(stream=True), fields_with(messages))
            assert (status, headers["content-type"]) == (200, "application/vnd.amazon.eventstream")
            assert headers["x-foveate-conversation"]
            assert content == provider.sent[-1]
            messages.append({"role": "assistant", "content": message_in(content, stream=True)["content"]})
            result = {"type": "tool_result", "tool_use_id": "c1", "content": log_text(1)}
            messages.append({"role": "user", "content": [result]})


def test_an_answer_with_expand_is_one_stream_of_whole_frames():
    """What the client gets as it came keeps its bytes, with its padding. The metrics are those of both calls."""
    script = [*(reads(number) for number in range(8)), call("e1", "expand", handle="m3"), say(ANSWER)]
    with (
        BedrockProvider(script, strict=True) as provider,
        running_proxy(provider.url, window=WINDOW) as proxy,
    ):
        messages = question()
        for number in range(8):
            content = post(proxy, path_of(stream=True), fields_with(messages))[2]
            messages.append({"role": "assistant", "content": message_in(content, stream=True)["content"]})
            result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": log_text(number)}
            messages.append({"role": "user", "content": [result]})
        content = post(proxy, path_of(stream=True), fields_with(messages))[2]
        assert provider.illegal == []
    found = events_in(content)
    kinds = [event["type"] for event in found]
    assert (kinds[0], kinds[-2:]) == ("message_start", ["message_delta", "message_stop"])
    assert kinds.count("message_start") == kinds.count("message_stop") == 1
    assert [event["index"] for event in found if event["type"] == "content_block_start"] == [0]
    assert message_in(content, stream=True)["content"][0]["text"] == ANSWER
    first, second = provider.sent[-2:]
    came = {raw for sent in (first, second) for raw, _, _ in frames_in(sent)}
    assert [raw in came for raw, _, _ in frames_in(content)][:-2] == [True] * (len(kinds) - 2)
    metrics = [events_in(sent)[-1][METRICS] for sent in (first, second)]
    assert found[-1][METRICS] == {
        **metrics[1],
        "outputTokenCount": sum(each["outputTokenCount"] for each in metrics),
        "invocationLatency": sum(each["invocationLatency"] for each in metrics),
    }


def test_botocore_reads_the_frames_of_the_proxy():
    eventstream = pytest.importorskip("botocore.eventstream", reason="botocore is not installed")
    script = [*(reads(number) for number in range(8)), call("e1", "expand", handle="m3"), Failure(429, message="Slow.")]
    with BedrockProvider(script) as provider, running_proxy(provider.url, window=WINDOW) as proxy:
        messages = question()
        for number in range(9):
            content = post(proxy, path_of(stream=True), fields_with(messages))[2]
            buffer = eventstream.EventStreamBuffer()
            buffer.add_data(content)
            read = [event.to_response_dict() for event in buffer]
            assert [each["status_code"] for each in read] == [200] * (len(read) - 1) + [200 if number < 8 else 400]
            if number < 8:
                messages.append({"role": "assistant", "content": message_in(content, stream=True)["content"]})
                result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": log_text(number)}
                messages.append({"role": "user", "content": [result]})
    assert read[-1]["headers"][":exception-type"] == "throttlingException"
    assert json.loads(read[-1]["body"]) == {"message": "Slow."}


def test_an_exception_in_a_stream_passes_and_is_not_recorded():
    script = [CutReply("Log 7 has", error=Failure(429, message="Too many tokens, please wait before trying again."))]
    with BedrockProvider([*script, say("Hi.")]) as provider, running_proxy(provider.url) as proxy:
        _, _, content = post(proxy, path_of(stream=True), fields_with(question()))
        assert content == provider.sent[0]
        assert b"throttlingException" in content
        assert post(proxy, path_of(stream=True), fields_with(question()))[2] == provider.sent[1]
        assert len(provider.received) == 2  # Nothing was repeated as too long.
        until(lambda: numbers(proxy)['foveate_requests_total{api="anthropic",outcome="managed"}'] == 2)


def test_an_exception_in_place_of_an_answer_passes():
    """Its words are not those of a request that is too long."""
    answer = exception("throttlingException", "Too many tokens, please wait before trying again.")

    def stream(exchange: Exchange) -> None:
        send_stream(exchange, answer)

    with RawProvider(stream) as provider, running_proxy(provider.url) as proxy:
        assert post(proxy, path_of(stream=True), fields_with(question()))[::2] == (200, answer)
    assert len(provider.received) == 1


def send_stream(exchange: Exchange, content: bytes) -> None:
    head = "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\nConnection: close\r\n"
    exchange.connection.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)


def test_an_exception_for_a_long_request_is_answered_with_a_smaller_one():
    model = ScriptedModel([*(reads(number) for number in range(4)), say(ANSWER)])
    refused: list[int] = []

    def stream(exchange: Exchange) -> None:
        if len(exchange.body) > 20_000:
            refused.append(len(exchange.body))
            send_stream(exchange, exception("validationException", "Input is too long for requested model."))
            return
        body = {"model": "claude", **json.loads(exchange.body)}
        send_stream(exchange, b"".join(framed(model.answer(body).response)))

    with RawProvider(stream) as provider, running_proxy(provider.url, window=100_000, policy="none") as proxy:
        assert loop(proxy, question(), stream=True) == ANSWER
        until(lambda: numbers(proxy)['foveate_retries_total{api="anthropic"}'] >= 1)
    assert refused


def test_a_cut_stream_of_frames_passes_and_is_not_recorded(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    with BedrockProvider([CutReply(ANSWER)]) as provider, running_proxy(provider.url, store=url) as proxy:
        status, _, content = post(proxy, path_of(stream=True), fields_with(question()))
        assert (status, content) == (200, provider.sent[0])
    with open_store(url) as store:
        [name] = store.names("")
        with foveate.open_conversation(name, store=store, format="anthropic", window=WINDOW) as chat:
            assert [row.message.role for row in chat.history()] == ["user"]


@pytest.mark.parametrize("place", [0, 9, -1], ids=["length", "crc of the prelude", "crc of the frame"])
def test_damaged_frames_pass_and_are_not_recorded(place: int, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    frames = framed(
        ScriptedModel([say(ANSWER)]).answer({"model": "m", "max_tokens": 9, "messages": question()}).response
    )
    frames[3] = bytes(byte ^ (at == place % len(frames[3])) for at, byte in enumerate(frames[3]))
    content = b"".join(frames)
    with (
        RawProvider(lambda exchange: send_stream(exchange, content)) as provider,
        running_proxy(provider.url, store=url) as proxy,
    ):
        assert post(proxy, path_of(stream=True), fields_with(question()))[::2] == (200, content)
    with open_store(url) as store:
        [name] = store.names("")
        with foveate.open_conversation(name, store=store, format="anthropic", window=WINDOW) as chat:
            assert [row.message.role for row in chat.history()] == ["user"]


def test_unknown_frames_pass_byte_for_byte():
    """A frame without an event, an event with line breaks, and one with more in its payload."""
    frames = framed(
        ScriptedModel([say(ANSWER)]).answer({"model": "m", "max_tokens": 9, "messages": question()}).response
    )
    frames.insert(2, chunk(b'{\n "type": "ping"\r\n}'))
    frames.insert(1, chunk(b"no JSON"))
    frames.insert(0, chunk({"other": 1}))
    content = b"".join(frames)
    messages = question()
    with (
        RawProvider(lambda exchange: send_stream(exchange, content)) as provider,
        running_proxy(provider.url) as proxy,
    ):
        assert post(proxy, path_of(stream=True), fields_with(messages))[2] == content
        until(lambda: numbers(proxy)['foveate_requests_total{api="anthropic",outcome="managed"}'] == 1)


def test_a_refusal_of_bedrock_as_too_long_is_repeated_with_less():
    script = [*(reads(number) for number in range(9)), say(ANSWER)]
    with (
        BedrockProvider(script, strict=True, window=1_700) as provider,
        running_proxy(provider.url, window=100_000) as proxy,
    ):
        assert loop(proxy, question(), stream=True) == ANSWER
        until(lambda: numbers(proxy)['foveate_retries_total{api="anthropic"}'] >= 1)


def test_errors_of_bedrock_pass_as_they_are():
    failure = Failure(429, message="Too many tokens, please wait before trying again.")
    with BedrockProvider([failure, say("Hi.")]) as provider, running_proxy(provider.url) as proxy:
        status, headers, content = post(proxy, path_of(), fields_with(question()))
        assert (status, content) == (429, provider.sent[0])
        assert headers["x-amzn-errortype"] == "ThrottlingException"
        assert post(proxy, path_of(), fields_with(question()))[0] == 200
    assert len(provider.received) == 2


def test_other_requests_of_bedrock_pass_as_they_are():
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    body = b'{ "messages" : [{"role":"user","content":[{"text":"Hi."}]}] }'
    paths = [
        "/model/meta.llama3-70b-instruct-v1:0/invoke",
        "/model/amazon.nova-pro-v1:0/invoke-with-response-stream",
        f"/model/{MODEL}/converse",
        f"/model/{MODEL}/converse-stream",
        f"/model/{MODEL}/count-tokens",
    ]
    with RawProvider(answer) as provider, running_proxy(provider.url) as proxy:
        for path in paths:
            status, headers, content = post(proxy, path, body)
            assert (status, content) == (200, b"{}")
            assert "x-foveate-conversation" not in headers
            assert "x-foveate-unchanged" not in headers
        path = path_of(ARN.replace("/", "%2F"))  # A model of another vendor behind the name of its owner's.
        assert "x-foveate-unchanged" in post(proxy, path, body)[1]
    assert [exchange.target for exchange in provider.received] == [*paths, path]
    assert {exchange.body for exchange in provider.received} == {body}


def test_requests_of_bedrock_have_their_provider():
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    with (
        RawProvider(answer) as bedrock,
        RawProvider(answer) as others,
        running_proxy(others.url, bedrock=bedrock.url) as proxy,
    ):
        for path in (path_of(), path_of(stream=True), f"/model/{MODEL}/converse", "/v1/messages", "/v1/models"):
            post(proxy, path, b"{}", BEARER, "anthropic-version: 2023-06-01")
    assert [len(provider.received) for provider in (bedrock, others)] == [3, 2]


def test_without_a_region_bedrock_gets_no_request():
    """Its token must not reach another provider."""
    with RawProvider(b"") as provider, running_proxy(provider.url, bedrock="") as proxy:
        for path in (path_of(), f"/model/{MODEL}/converse"):
            status, _, content = post(proxy, path, fields_with(question()))
            assert status == 501
            assert json.loads(content) == {
                "message": "foveate: The region of Amazon Bedrock is not known. Start the proxy with AWS_REGION."
            }
    assert provider.received == []


def test_the_list_of_models_comes_from_another_host(monkeypatch: pytest.MonkeyPatch):
    """Claude Code asks for it at the same address. Its token must not reach another provider."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    path = "/inference-profiles?type=SYSTEM_DEFINED"
    with RawProvider(answer) as route:
        monkeypatch.setenv("http_proxy", route.url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        bedrock = "http://bedrock-runtime.eu-west-1.amazonaws.com"
        with RawProvider(answer) as others, running_proxy(others.url, bedrock=bedrock) as proxy:
            request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{BEARER}\r\nConnection: close\r\n\r\n"
            assert split(ask(proxy.port, request.encode()))[0] == 200
            assert post(proxy, f"/model/{MODEL}/converse", b"{}")[0] == 200
    assert [exchange.target for exchange in route.received] == [
        f"http://bedrock.eu-west-1.amazonaws.com{path}",
        f"{bedrock}/model/{MODEL}/converse",
    ]
    assert others.received == []


def test_betas_of_the_client_stay_in_the_body():
    script = [say("Hi."), say("Hi.")]
    with BedrockProvider(script) as provider, running_proxy(provider.url) as proxy:
        for betas in (["context-1m-2025-08-07"], None):
            more = {"anthropic_beta": betas} if betas else {}
            assert post(proxy, path_of(), fields_with(question(), **more))[0] == 200
    bodies = [json.loads(exchange.body) for exchange in provider.received]
    assert [body.get("anthropic_beta") for body in bodies] == [["context-1m-2025-08-07"], None]
    assert not any("anthropic-beta" in exchange.headers for exchange in provider.received)


def test_an_unchanged_request_to_bedrock_asks_for_it_in_the_body(monkeypatch: pytest.MonkeyPatch):
    """Requests before it may have been shorter, and thinking is then bound to another prefix."""

    def fail(*arguments: Any, **options: Any) -> Any:
        raise StoreError("The disk is full.")

    monkeypatch.setattr("foveate.open.pool.Conversations.get", fail)
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "abc"}
    messages = [*question(), {"role": "assistant", "content": [thinking]}]
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    with RawProvider(answer) as provider, running_proxy(provider.url) as proxy:
        path = path_of("global.anthropic.claude-opus-5-5-v1:0")
        _, headers, _ = post(proxy, path, fields_with(messages, anthropic_beta=["mine-1"]))
        assert "StoreError" in headers["x-foveate-unchanged"]
    [exchange] = provider.received
    assert json.loads(exchange.body)["anthropic_beta"] == ["mine-1", "thinking-binding-controls-2026-08-01"]
    assert "anthropic-beta" not in exchange.headers


@pytest.mark.parametrize("strict", [False, True])
def test_a_signed_request_passes_as_it_is_if_the_proxy_does_not_sign(strict: bool):
    """Its signature covers the body."""
    body = json.dumps(fields_with(question()), indent=1).encode()
    with BedrockProvider([say("Hi.")]) as provider, running_proxy(provider.url, is_strict=strict) as proxy:
        status, headers, _ = post(proxy, path_of(), body, SIGNED)
        assert status == (502 if strict else 200)
        assert strict or "covers its body" in headers["x-foveate-unchanged"]
    assert [exchange.body for exchange in provider.received] == ([] if strict else [body])


@pytest.mark.parametrize("own", [(), (SIGNED, "X-Amz-Date: 20261201T000000Z", "X-Amz-Security-Token: other")])
def test_the_proxy_signs_each_request_that_it_sends(own: tuple[str, ...], credentials: str):
    """Also those that go on after `expand`, those that are made smaller, and those that pass as they are."""
    script = [*(reads(number) for number in range(8)), call("e1", "expand", handle="m3"), say(ANSWER)]
    with (
        BedrockProvider(script, strict=True, window=1_700) as provider,
        running_proxy(provider.url, window=100_000, aws_region="eu-west-1") as proxy,
    ):
        messages, headers = question(), ("Content-Language: en", "X-Amz-User-Agent: a b", *own)
        for number in range(9):
            path = path_of(ARN.replace("/", "%2F"), stream=bool(number % 2))
            status, _, content = post(proxy, path, fields_with(messages), *headers)
            assert status == 200, content
            messages.append({"role": "assistant", "content": message_in(content, stream=bool(number % 2))["content"]})
            result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": log_text(number)}
            messages.append({"role": "user", "content": [result]})
        until(lambda: numbers(proxy)['foveate_expansions_total{api="anthropic"}'] == 1)
        assert numbers(proxy)['foveate_retries_total{api="anthropic"}'] >= 1
        post(proxy, f"/model/{MODEL}/converse", b'{"messages": []}', *headers)
        post(proxy, f"/model/{MODEL}/converse", b'{"messages": []}', BEARER)
    *signed, bearer = provider.received
    assert len(signed) > 11
    for exchange in signed:
        assert exchange.head.lower().count(b"\r\nauthorization: ") == 1
        check_signature(exchange, credentials)
    assert bearer.headers["authorization"] == "Bearer secret-token-1"
    assert "x-amz-date" not in bearer.headers


def test_a_proxy_without_credentials_says_so(credentials: str, monkeypatch: pytest.MonkeyPatch):
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"):
        monkeypatch.delenv(f"AWS_{name}")
    with RawProvider(b"") as provider, running_proxy(provider.url, aws_region="eu-west-1") as proxy:
        for path in (path_of(stream=True), f"/model/{MODEL}/converse"):
            status, _, content = post(proxy, path, fields_with(question()), "Content-Language: en")
            assert status == 403
            message = json.loads(content)["message"]
            assert message.startswith("foveate: The request cannot be signed. Credentials of AWS are missing:")
    assert provider.received == []


def test_a_proxy_without_botocore_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "botocore"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "botocore", None)
    with RawProvider(b"") as provider, running_proxy(provider.url, aws_region="eu-west-1") as proxy:
        status, _, content = post(proxy, path_of(), fields_with(question()), SIGNED)
    assert (status, provider.received) == (403, [])
    assert 'pip install "foveate[bedrock]"' in json.loads(content)["message"]


def test_short_credentials_of_aws_count_as_one_owner():
    """They change every few hours; otherwise each would begin new conversations."""

    def name(authorization: str) -> str:
        headers = {"authorization": authorization, "x-claude-code-session-id": "s1"}
        return read_ids(headers, {}).name

    short = [name(f"Bearer bedrock-api-key-{key}") for key in "ab"]
    signed = [name(f"{SIGNED.partition(': ')[2]}{number}") for number in range(2)]
    assert len({*short, *signed}) == 1
    assert name("Bearer ABSKQmVkcm9ja0FQSUtleS1h") != name("Bearer ABSKQmVkcm9ja0FQSUtleS1i")
