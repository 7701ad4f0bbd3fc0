"""Anthropic's SDK for Amazon Bedrock: through a proxy, and with the HTTP client."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed (the extra `proxy`)")
pytest.importorskip("aiohttp", reason="aiohttp is not installed (the extra `proxy`)")
pytest.importorskip("httpx2", reason="httpx2 is not installed")
pytest.importorskip("anthropic", reason="anthropic is not installed")

import anthropic
from bedrock_provider import BedrockProvider, check_signature
from servers import running_proxy

from foveate import open_conversation
from foveate.hosts.transport import async_http_client, http_client
from foveate.open import open_store
from foveate.testing import CutReply, Failure, call, say

WINDOW = 16_000
CALLS = 20
ANSWER = "Log 7 has an error."
MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
QUESTION = [{"role": "user", "content": "Which of the logs has an error?"}]
TOOLS: Any = [{"name": "read_log", "input_schema": {"type": "object", "properties": {}}}]
KEYWORDS: Any = {"model": MODEL, "max_tokens": 500, "tools": TOOLS, "system": "Be brief."}


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def stream(request: pytest.FixtureRequest) -> bool:
    if request.param:
        pytest.importorskip("botocore", reason="botocore is not installed, which reads the frames")
    return bool(request.param)


def script() -> list[Any]:
    replies = [call(f"c{number}", "read_log", number=number) for number in range(CALLS)]
    return [*replies[:9], call("e1", "expand", handle="m3"), *replies[9:], say(ANSWER)]


def log_text(number: int) -> str:
    return "".join(f"Line {line} of log {number}: every request was answered in time.\n" for line in range(100))


def answered(messages: list[Any], reply: Any) -> bool:
    """Add a reply and the results of its calls to a list. Return whether it has no calls."""
    content = [block.model_dump(mode="json", exclude_none=True) for block in reply.content]
    messages.append({"role": "assistant", "content": content})
    uses = [block for block in reply.content if block.type == "tool_use"]
    if uses:
        results = [{"type": "tool_result", "tool_use_id": u.id, "content": log_text(u.input["number"])} for u in uses]
        messages.append({"role": "user", "content": results})
    return not uses


def loop(client: Any, messages: list[Any], *, stream: bool) -> str:
    while True:
        if stream:
            with client.messages.stream(messages=messages, **KEYWORDS) as events:
                reply = events.get_final_message()
        else:
            reply = client.messages.create(messages=messages, **KEYWORDS)
        if answered(messages, reply):
            return str(reply.content[-1].text)


async def async_loop(client: Any, messages: list[Any], *, stream: bool) -> str:
    while True:
        if stream:
            async with client.messages.stream(messages=messages, **KEYWORDS) as events:
                reply = await events.get_final_message()
        else:
            reply = await client.messages.create(messages=messages, **KEYWORDS)
        if answered(messages, reply):
            return str(reply.content[-1].text)


def check(provider: BedrockProvider, messages: list[Any], url: str) -> None:
    """Assert that the requests were legal and small, and that the conversation is whole."""
    assert provider.illegal == []
    own, sent = len(json.dumps(messages)), max(len(exchange.body) for exchange in provider.received)
    assert own > 100_000
    assert sent < 0.6 * own
    assert "expand" not in json.dumps(messages)
    assert len(provider.received) == CALLS + 2
    with open_store(url) as store:
        [name] = store.names("")
        with open_conversation(name, store=store, format="anthropic", window=WINDOW) as chat:
            assert chat.totals().calls_billed == CALLS + 2
            assert chat.journal.verify() == []


def test_the_sdk_with_a_token_has_views_through_the_proxy(stream: bool, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    messages: list[Any] = [*QUESTION]
    with (
        BedrockProvider(script(), strict=True) as provider,
        running_proxy(provider.url, store=url, window=WINDOW) as proxy,
        anthropic.AnthropicBedrock(api_key="token-1", base_url=proxy.url, aws_region="eu-west-1") as client,
    ):
        assert loop(client, messages, stream=stream) == ANSWER
    check(provider, messages, url)


def test_the_sdk_with_a_token_has_views_with_the_http_client(stream: bool, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    messages: list[Any] = [*QUESTION]
    http = http_client(store=url, window=WINDOW)
    options = {"api_key": "token-1", "aws_region": "eu-west-1"}
    with (
        BedrockProvider(script(), strict=True) as provider,
        anthropic.AnthropicBedrock(base_url=provider.url, http_client=http, **options) as client,
    ):
        assert loop(client, messages, stream=stream) == ANSWER
    check(provider, messages, url)


def test_the_asynchronous_sdk_has_views_with_the_http_client(stream: bool, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    messages: list[Any] = [*QUESTION]

    async def run(address: str) -> str:
        http = async_http_client(store=url, window=WINDOW)
        options = {"api_key": "token-1", "aws_region": "eu-west-1"}
        async with anthropic.AsyncAnthropicBedrock(base_url=address, http_client=http, **options) as client:
            return await async_loop(client, messages, stream=stream)

    with BedrockProvider(script(), strict=True) as provider:
        assert asyncio.run(run(provider.url)) == ANSWER
    check(provider, messages, url)


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("through", ["proxy", "client"])
def test_a_signed_request_of_the_sdk_is_signed_again(through: str, streams: bool, credentials: str, tmp_path: Path):
    pytest.importorskip("boto3", reason="boto3 is not installed, which signs for the SDK")
    url = f"sqlite:///{tmp_path}/chats.db"
    messages: list[Any] = [*QUESTION]
    with (
        BedrockProvider(script(), strict=True) as provider,
        running_proxy(provider.url, store=url, window=WINDOW, aws_region="eu-west-1") as proxy,
    ):
        http = http_client(store=url, window=WINDOW) if through == "client" else None
        address = provider.url if http else proxy.url
        with anthropic.AnthropicBedrock(base_url=address, http_client=http, aws_region="eu-west-1") as client:
            assert loop(client, messages, stream=streams) == ANSWER
    check(provider, messages, url)
    for exchange in provider.received:
        check_signature(exchange, credentials)


def test_a_signature_with_another_key_stays_with_its_request(credentials: str, tmp_path: Path):
    """The program would pay with another account than it chose."""
    pytest.importorskip("boto3", reason="boto3 is not installed, which signs for the SDK")
    http = http_client(store=f"sqlite:///{tmp_path}/chats.db", window=WINDOW)
    keys = {"aws_access_key": "AKIDOTHER", "aws_secret_key": "other", "aws_region": "eu-west-1"}
    with (
        BedrockProvider([say("Hi.")], strict=True) as provider,
        anthropic.AnthropicBedrock(base_url=provider.url, http_client=http, **keys) as client,
        pytest.warns(RuntimeWarning, match="signed with the access key AKIDOTHER"),
    ):
        assert client.messages.create(messages=QUESTION, **KEYWORDS).content[0].text == "Hi."
    [exchange] = provider.received
    assert "Credential=AKIDOTHER/" in exchange.headers["authorization"]
    assert b"expand" not in exchange.body


def test_errors_of_bedrock_are_those_of_the_sdk(stream: bool):
    script = [Failure(429, message="Too many tokens, please wait before trying again."), say("Hi.")]
    if stream:
        script.append(CutReply("Log 7 has", error=Failure(429, message="Slow down.")))
    options = {"api_key": "token-1", "aws_region": "eu-west-1", "max_retries": 0}
    with (
        BedrockProvider(script) as provider,
        running_proxy(provider.url) as proxy,
        anthropic.AnthropicBedrock(base_url=proxy.url, **options) as client,
    ):
        with pytest.raises(anthropic.RateLimitError, match="Too many tokens"):
            client.messages.create(messages=QUESTION, **KEYWORDS)
        assert client.messages.create(messages=QUESTION, **KEYWORDS).content[0].text == "Hi."
        if stream:
            with (
                pytest.raises(anthropic.APIStatusError, match="Slow down"),
                client.messages.stream(messages=QUESTION, **KEYWORDS) as events,
            ):
                events.get_final_message()
