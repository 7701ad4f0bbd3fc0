"""Whole conversations over the wire with the SDKs' real clients: prompt, send or stream, record."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from foveate import Message, Reasoning, Text, ToolCall, open_async_conversation, open_conversation
from foveate.core.stamps import Usage
from foveate.errors import BrokenStream
from foveate.testing import CutReply, ScriptedModel, call, text_of
from foveate.testing.server import StubServer

from .serving import BOTH, model_at, serving

WAYS = pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
TOOL = {"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}}
TOOLS = {
    "anthropic": [TOOL],
    "openai": [{"type": "function", "function": {"name": "look", "parameters": TOOL["input_schema"]}}],
}


def asked(model: Any, body: dict[str, Any], streams: bool) -> object:
    """Return the response, streamed or not."""
    return list(model.stream(body))[-1].response if streams else model.complete(body)


def written(value: object) -> bytes:
    """Return JSON as the SDKs write it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def result(provider: str, call_id: str, text: str) -> Any:
    """Return a tool result in this provider's wire format."""
    if provider == "anthropic":
        return [{"type": "tool_result", "tool_use_id": call_id, "content": text}]
    return {"role": "tool", "tool_call_id": call_id, "content": text}


@BOTH
@WAYS
def test_requests_arrive_byte_for_byte_and_usage_is_recorded(provider: str, streams: bool):
    replies = [call("t1", "look", at="the door, naïvely"), "It is open.", "You are welcome."]
    with serving(replies, provider) as (server, model), open_conversation("c", format=provider, window=50_000) as chat:
        usages: list[Usage | None] = []
        inputs: list[Any] = ["Look at the door – now! " * 20, result(provider, "t1", "open ✓ " * 50), "Thanks."]
        prompts: list[dict[str, Any]] = []
        for one in inputs:
            chat.append(one)
            prompts.append(chat.prompt(system="You look at things.", tools=TOOLS[provider]))
            chat.record(asked(model, prompts[-1], streams))
            usages.append(chat.history()[-1].stamp.usage)
        for prompt, received in zip(prompts, server.received, strict=True):
            for key, value in prompt.items():
                assert written(value) in received.body, key
        assert [len(one.values["messages"]) for one in server.received] == [len(one["messages"]) for one in prompts]
        marks = [one.body.count(b"cache_control") for one in server.received]
        assert all(marks) if provider == "anthropic" else not any(marks)
        assert [usage and usage.cache_read for usage in usages] != [0, 0, 0]
        billed = server.models[""].billed
        for usage, bill in zip(usages, billed, strict=True):
            assert usage is not None
            assert (usage.prompt_tokens, usage.cache_read, usage.input) == (
                *(bill.total, bill.read, bill.plain if provider == "anthropic" else bill.total - bill.read),
            )
            assert usage.cache_write == (bill.written if provider == "anthropic" else None)


@WAYS
def test_reasoning_and_unknown_blocks_come_back_unchanged(streams: bool):
    content = [
        {"type": "thinking", "thinking": "Let me think.", "signature": "c2lnbmVk"},
        {"type": "redacted_thinking", "data": "ciphertext"},
        {"type": "text", "text": "I look.", "novelty": {"deep": [1, None]}},
        {"type": "from_the_future", "shape": {"deep": [1]}},
        {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "the door", "n": 1}},
    ]
    usage = {"input_tokens": 5, "output_tokens": 9, "output_tokens_details": {"thinking_tokens": 4}}
    envelope = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use"}
    reply = {**envelope, "stop_sequence": None, "content": content, "usage": usage}
    with (
        serving([reply, "Open."], "anthropic") as (server, model),
        open_conversation("c", format="anthropic", window=50_000) as chat,
    ):
        chat.append("Look at the door.")
        chat.record(asked(model, chat.prompt(), streams))
        chat.append(result("anthropic", "t1", "open"))
        chat.record(asked(model, chat.prompt(), streams))
        assert chat.history()[1].stamp.usage == Usage(5, None, None, 9, 4)
    assert server.received[1].values["messages"][1] == {"role": "assistant", "content": content}
    assert server.illegal == []


@WAYS
def test_call_signatures_of_compatible_servers_come_back(streams: bool):
    signed = {"google": {"thought_signature": "c2lnbmVk"}}
    calls = [
        {
            "id": "t1",
            "type": "function",
            "function": {"name": "look", "arguments": '{"at": 1}'},
            "extra_content": signed,
        },
        {"id": "t2", "type": "function", "function": {"name": "look", "arguments": "{}"}},
    ]
    message = {"role": "assistant", "content": None, "reasoning_content": "Hm, hm.", "tool_calls": calls}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    usage = {"prompt_tokens": 5, "completion_tokens": 9, "total_tokens": 14}
    envelope = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m"}
    with (
        serving([{**envelope, "choices": [choice], "usage": usage}, "Open."], "openai") as (server, model),
        open_conversation("c", format="openai", window=50_000) as chat,
    ):
        chat.append("Look at the doors.")
        chat.record(asked(model, chat.prompt(), streams))
        chat.append([result("openai", "t1", "open"), result("openai", "t2", "shut")])
        chat.record(asked(model, chat.prompt(), streams))
        assert chat.history()[1].stamp.usage == Usage(5, None, None, 9)
    assert server.received[1].values["messages"][1] == message
    assert server.illegal == []


@BOTH
@pytest.mark.parametrize("politely", [False, True], ids=["broken", "ended"])
def test_a_cut_stream_leaves_the_conversation_unchanged(provider: str, politely: bool):
    half = Message("assistant", (Reasoning("Hm.", format=provider), Text("one two"), ToolCall("t1", "look", '{"a":1}')))
    with (
        serving([CutReply(half, politely), "whole"], provider) as (server, model),
        open_conversation("c", format=provider, window=50_000) as chat,
    ):
        chat.append("Say it.")
        prompt = chat.prompt()
        before = (chat._agent.head, chat.view.entries, chat.history())
        with pytest.raises(BrokenStream):
            chat.record(asked(model, prompt, streams=True))
        assert (chat._agent.head, chat.view.entries, chat.history()) == before
        assert chat.prompt() == prompt
        chat.record(asked(model, prompt, streams=True))
        assert chat.history()[-1].message.text == "whole"
    assert server.received[0].body == server.received[1].body


@BOTH
@WAYS
def test_a_prompt_that_is_too_long_for_the_provider_gets_smaller(provider: str, streams: bool):
    with StubServer(ScriptedModel(["It fits."], provider, window=6_000)) as server:
        model = model_at(server, provider)
        with open_conversation("c", format=provider, window=100_000) as chat:
            for number in range(6):
                chat.append([Message("user", (Text(text_of(1_500, number)),)), Message("assistant", (Text("Yes."),))])
            chat.append("And now?")
            prompt = chat.prompt()
            for _ in range(5):
                try:
                    chat.record(asked(model, prompt, streams))
                    break
                except Exception as error:
                    prompt = chat.retry_smaller(error)
            assert chat.history()[-1].message.text == "It fits."
            assert chat.budget.window == 6_000
        model._client_passed.close()
    assert len(server.received) == 2
    assert len(server.received[1].body) < len(server.received[0].body)


@BOTH
def test_an_async_conversation_uses_an_async_model(provider: str):
    async def run() -> list[str]:
        with StubServer(ScriptedModel(["one", "two"], provider)) as server:
            model = model_at(server, provider, asynchronous=True)
            async with model._client_passed, await open_async_conversation("c", format=provider, window=50_000) as chat:
                await chat.append("Count.")
                await chat.record(await model.complete(await chat.prompt()))
                await chat.append("On.")
                pieces = [piece async for piece in model.stream(await chat.prompt())]
                await chat.record(pieces[-1].response)
                return [one.message.text for one in await chat.history()]

    assert asyncio.run(run()) == ["Count.", "one", "On.", "two"]
