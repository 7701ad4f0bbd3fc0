"""The real SDKs of Anthropic and OpenAI through a proxy, before a provider that refuses illegal requests."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed (the extra `proxy`)")
pytest.importorskip("aiohttp", reason="aiohttp is not installed (the extra `proxy`)")
pytest.importorskip("openai", reason="openai is not installed")
pytest.importorskip("anthropic", reason="anthropic is not installed")

import anthropic
import openai
from servers import numbers, running_proxy
from waiting import until

import foveate
from foveate import Message
from foveate.core.messages import Reasoning
from foveate.open import open_store
from foveate.testing import ScriptedModel, call, say
from foveate.testing.server import StubServer

WINDOW = 16_000
CALLS = 20
QUESTION = "Which of the logs has an error?"
ANSWER = "Log 7 has an error."
SCHEMA = {"type": "object", "properties": {"number": {"type": "integer"}}}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def log_text(number: int) -> str:
    return "".join(f"Line {line} of log {number}: every request was answered in time.\n" for line in range(100))


def script(*first: Message) -> list[Message]:
    return [*first, *(call(f"c{n}", "read_log", number=n) for n in range(CALLS)), say(ANSWER)]


def anthropic_loop(client: Any, messages: list[Any], *, stream: bool, **keywords: Any) -> str:
    tools = [{"name": "read_log", "input_schema": SCHEMA}]
    keywords = {"model": "claude-haiku-4-5", "max_tokens": 500, "tools": tools, "system": "Be brief.", **keywords}
    while True:
        if stream:
            with client.messages.stream(messages=messages, **keywords) as events:
                reply = events.get_final_message()
        else:
            reply = client.messages.create(messages=messages, **keywords)
        messages.append(
            {"role": "assistant", "content": [b.model_dump(mode="json", exclude_none=True) for b in reply.content]}
        )
        uses = [block for block in reply.content if block.type == "tool_use"]
        if not uses:
            return reply.content[-1].text
        results = [{"type": "tool_result", "tool_use_id": u.id, "content": log_text(u.input["number"])} for u in uses]
        messages.append({"role": "user", "content": results})


def chat_loop(client: Any, messages: list[Any], *, stream: bool) -> str:
    tools: Any = [{"type": "function", "function": {"name": "read_log", "parameters": SCHEMA}}]
    while True:
        if stream:
            usage: Any = {"include_usage": True}
            with client.chat.completions.stream(
                model="gpt-5", messages=messages, tools=tools, stream_options=usage
            ) as events:
                reply = events.get_final_completion()
        else:
            reply = client.chat.completions.create(model="gpt-5", messages=messages, tools=tools)
        message = reply.choices[0].message
        if not message.tool_calls:
            messages.append({"role": "assistant", "content": message.content})
            return str(message.content)
        calls = [
            {"id": c.id, "type": "function", "function": {"name": c.function.name, "arguments": c.function.arguments}}
            for c in message.tool_calls
        ]
        messages.append({"role": "assistant", "content": message.content, "tool_calls": calls})
        for tool_call in message.tool_calls:
            text = log_text(json.loads(tool_call.function.arguments)["number"])
            messages.append({"role": "tool", "tool_call_id": tool_call.id, "content": text})


def responses_loop(client: Any, items: list[Any], *, stream: bool) -> str:
    tools: Any = [{"type": "function", "name": "read_log", "parameters": SCHEMA}]
    while True:
        if stream:
            with client.responses.stream(model="gpt-5", input=items, tools=tools, store=False) as events:
                reply = events.get_final_response()
        else:
            reply = client.responses.create(model="gpt-5", input=items, tools=tools, store=False)
        unset = {"parsed", "parsed_arguments"}
        items += [item.model_dump(exclude_none=True, exclude=unset) for item in reply.output]
        found = [item for item in reply.output if item.type == "function_call"]
        if not found:
            return reply.output_text
        for item in found:
            text = log_text(json.loads(item.arguments)["number"])
            items.append({"type": "function_call_output", "call_id": item.call_id, "output": text})


PROVIDERS = ["anthropic", "openai", pytest.param("openai_responses", marks=pytest.mark.slow)]
"""The SDK takes seconds to read the responses of a whole run."""
LOOPS: dict[str, Any] = {"anthropic": anthropic_loop, "openai": chat_loop, "openai_responses": responses_loop}


def client_of(provider: str, url: str) -> Any:
    if provider == "anthropic":
        return anthropic.Anthropic(base_url=url, api_key="secret-key-1", max_retries=0)
    return openai.OpenAI(base_url=f"{url}/v1", api_key="secret-key-1", max_retries=0)


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_tool_loop_stays_in_the_window(provider: str, stream: bool, tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    model = ScriptedModel(script(), provider, strict=True)
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    with StubServer(model) as server, running_proxy(server.url, store=url, window=WINDOW) as proxy:
        with client_of(provider, proxy.url) as client:
            assert LOOPS[provider](client, messages, stream=stream) == ANSWER
        assert server.illegal == []
    own, sent = len(json.dumps(messages)), max(len(request.body) for request in server.received)
    assert own > 100_000
    assert sent < 0.6 * own
    with open_store(url) as store:
        names = store.names("")
        assert len(names) == 1
        with foveate.open_conversation(names[0], store=store, format=provider, window=WINDOW) as chat:
            assert [entry.message.role for entry in chat.history()].count("assistant") == CALLS + 1
            assert chat.totals().calls_billed == CALLS + 1
            assert chat.journal.verify() == []
    assert b"secret-key-1" not in Path(tmp_path, "chats.db").read_bytes()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_async_clients_run_at_the_same_time(provider: str):
    count = 6

    async def one(client: Any, number: int) -> str:
        messages: Any = [{"role": "user", "content": f"Question {number}"}]
        for turn in range(4):
            if provider == "anthropic":
                reply = await client.messages.create(model="claude-haiku-4-5", max_tokens=9, messages=messages)
                text = reply.content[0].text
            elif provider == "openai":
                reply = await client.chat.completions.create(model="gpt-5", messages=messages)
                text = reply.choices[0].message.content
            else:
                text = (await client.responses.create(model="gpt-5", input=messages)).output_text
            messages += [{"role": "assistant", "content": text}, {"role": "user", "content": f"More {turn}"}]
        return str(text)

    async def all_of(url: str) -> list[str]:
        is_anthropic = provider == "anthropic"
        kind: Any = anthropic.AsyncAnthropic if is_anthropic else openai.AsyncOpenAI
        async with kind(base_url=url if is_anthropic else f"{url}/v1", api_key="k", max_retries=0) as client:
            return await asyncio.gather(*(one(client, number) for number in range(count)))

    model = ScriptedModel(lambda request: say(_first_text(request)), provider, strict=True)
    with StubServer(model) as server, running_proxy(server.url) as proxy:
        assert asyncio.run(all_of(proxy.url)) == [f"Question {number}" for number in range(count)]
        assert server.illegal == []


def _first_text(request: Any) -> str:
    content = request.get("messages", request.get("input"))[0]["content"]
    return content if isinstance(content, str) else content[0]["text"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_signed_thinking_and_images_reach_a_model_that_binds_them(stream: bool):
    thought = Reasoning("Logs first.")
    replies = [
        Message("assistant", (thought, *reply.parts)) if number % 3 == 0 else reply
        for number, reply in enumerate(script())
    ]
    model = ScriptedModel(replies, "anthropic", strict=True, binds_reasoning=True)
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    content = [{"type": "text", "text": QUESTION}, image]
    messages: list[Any] = [{"role": "user", "content": content}]
    keywords = {"model": "claude-opus-5-5", "max_tokens": 9_000, "thinking": {"type": "adaptive"}}
    with StubServer(model) as server, running_proxy(server.url, window=WINDOW) as proxy:
        with client_of("anthropic", proxy.url) as client:
            assert anthropic_loop(client, messages, stream=stream, **keywords) == ANSWER
        assert server.illegal == []
    assert PNG.encode() in server.received[-1].body
    assert max(len(request.body) for request in server.received) < 0.5 * len(json.dumps(messages))


def test_a_refused_long_prompt_is_retried_smaller():
    model = ScriptedModel(script(), "anthropic", strict=True, window=10_000)
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    with StubServer(model) as server, running_proxy(server.url, policy="none", window=30_000) as proxy:
        with client_of("anthropic", proxy.url) as client:
            assert anthropic_loop(client, messages, stream=False) == ANSWER
        until(lambda: numbers(proxy)['foveate_answers_total{class="2xx"}'] == CALLS + 1)
        answers = numbers(proxy)
    assert answers['foveate_answers_total{class="4xx"}'] >= 1
    assert answers['foveate_retries_total{api="anthropic"}'] == answers['foveate_answers_total{class="4xx"}']


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_proxy_answers_expand_within_one_answer(provider: str, stream: bool):
    """The client knows no tool `expand`, and gets one answer for two requests to the provider."""
    replies = script()
    replies.insert(CALLS - 5, call("e1", "expand", handle="m3", lines="7"))
    model = ScriptedModel(replies, provider, strict=True)
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    with StubServer(model) as server, running_proxy(server.url, window=WINDOW) as proxy:
        with client_of(provider, proxy.url) as client:
            assert LOOPS[provider](client, messages, stream=stream) == ANSWER
        assert server.illegal == []
        until(lambda: numbers(proxy)[f'foveate_expansions_total{{api="{provider}"}}'] == 1)
    assert len(server.received) == CALLS + 2
    assert "expand" not in json.dumps(messages)
    assert all(b'"expand"' in request.body for request in server.received)
    asked, answered = server.received[CALLS - 5].body, server.received[CALLS - 4].body
    assert b"Line 6 of log 0" not in asked
    assert b"Line 6 of log 0" in answered
