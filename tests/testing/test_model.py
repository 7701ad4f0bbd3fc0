"""The scripted model answers, counts and refuses like a provider."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from foveate.core.messages import Message, Reasoning, Text, ToolCall, assistant
from foveate.ports import Delta, StreamEnd
from foveate.testing import (
    CutReply,
    IllegalRequest,
    ProviderError,
    ScriptedModel,
    StubAnthropic,
    StubOpenAI,
    call,
    calls,
    say,
    text_of,
)
from foveate.testing.usage import tokens_of

HI = {"role": "user", "content": "hi"}
MARK = {"cache_control": {"type": "ephemeral"}}


def test_the_stub_of_anthropic_replies_like_the_sdk():
    client = StubAnthropic([calls("a", call("b", "look", at="it"), text="Let me see.")])
    reply = client.messages.create(model="m", max_tokens=9, messages=[HI])
    assert (reply.stop_reason, reply.role, reply.type, reply.model) == ("tool_use", "assistant", "message", "m")
    assert [block.type for block in reply.content] == ["text", "tool_use", "tool_use"]
    assert (reply.content[2].id, reply.content[2].name, reply.content[2].input) == ("b", "look", {"at": "it"})
    assert reply.model_dump(exclude_none=True) == {
        "id": "msg_0001",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "a", "name": "tool", "input": {}},
            {"type": "tool_use", "id": "b", "name": "look", "input": {"at": "it"}},
        ],
        "stop_reason": "tool_use",
        "usage": {
            "input_tokens": 5,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 8,
            "service_tier": "standard",
        },
    }
    assert reply.model_dump()["content"][0] == {"citations": None, "text": "Let me see.", "type": "text"}


def test_the_stub_of_openai_replies_like_the_sdk():
    client = StubOpenAI([call("b", "look", at="it"), say("Done.")])
    reply = client.chat.completions.create(model="m", messages=[HI])
    choice = reply.choices[0]
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)
    assert choice.message.tool_calls[0].function.arguments == '{"at":"it"}'
    assert reply.model_dump(exclude_none=True) == {
        "id": "chatcmpl-0001",
        "object": "chat.completion",
        "created": 1_790_000_001,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "annotations": [],
                    "tool_calls": [
                        {"id": "b", "type": "function", "function": {"name": "look", "arguments": '{"at":"it"}'}}
                    ],
                },
            }
        ],
        "usage": {
            "prompt_tokens": 5,
            "completion_tokens": 4,
            "total_tokens": 9,
            "completion_tokens_details": {"reasoning_tokens": 0},
            "prompt_tokens_details": {"cached_tokens": 0},
        },
    }
    done = client.chat.completions.create(model="m", messages=[HI])
    assert (done.choices[0].finish_reason, done.choices[0].message.content) == ("stop", "Done.")
    assert done.choices[0].message.tool_calls is None


def test_a_loop_as_users_write_it_runs_through():
    client = StubAnthropic([call("a", "look"), "It is the token."])
    messages: list[dict[str, Any]] = [HI]
    while True:
        reply = client.messages.create(model="m", max_tokens=9, messages=messages)
        if reply.stop_reason != "tool_use":
            break
        messages.append({"role": "assistant", "content": reply.content})  # The SDK accepts its own objects.
        messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]})
    assert reply.content[0].text == "It is the token."
    assert [len(request["messages"]) for request in client.requests] == [1, 3]


def test_requests_are_kept_as_they_were_sent():
    client = StubOpenAI(["one", "two"])
    messages = [dict(HI)]
    client.chat.completions.create(model="m", messages=messages, temperature=0)
    messages[0]["content"] = "changed"
    assert client.requests == [{"model": "m", "messages": [HI], "temperature": 0}]


@pytest.mark.parametrize(
    ("client", "say_it"),
    [(StubAnthropic([]), lambda it: it.messages), (StubOpenAI([]), lambda it: it.chat.completions)],
    ids=["anthropic", "openai"],
)
def test_an_illegal_request_fails_the_test_and_says_why(client, say_it):
    with pytest.raises(IllegalRequest, match=r"messages\[0\]\.content\[0\]: .*\[(anthropic|openai), block\]") as caught:
        say_it(client).create(
            messages=[{"role": "user", "content": [{"type": "thinking", "thinking": "x", "signature": "y"}]}]
        )
    assert [refusal.rule for refusal in caught.value.refusals] == ["block"]
    assert isinstance(caught.value, AssertionError)
    assert client.requests == []


def test_a_strict_stub_refuses_unknown_keys():
    noted = {"role": "assistant", "content": "hm", "reasoning_content": "so"}
    StubOpenAI(["ok"]).chat.completions.create(messages=[HI, noted, HI])
    with pytest.raises(IllegalRequest, match="Additional properties"):
        StubOpenAI(["ok"], strict=True).chat.completions.create(messages=[HI, noted, HI])


def test_anthropic_refuses_what_is_longer_than_its_window_in_its_own_words():
    client = StubAnthropic(["ok"], window=1_000)
    with pytest.raises(ProviderError) as caught:
        client.messages.create(model="m", messages=[{"role": "user", "content": text_of(1_200)}])
    assert str(caught.value) == (
        "Error code: 400 - {'type': 'error', 'error': {'type': 'invalid_request_error', "
        "'message': 'prompt is too long: 1204 tokens > 1000 maximum'}}"
    )
    assert (caught.value.status_code, caught.value.message) == (400, "prompt is too long: 1204 tokens > 1000 maximum")
    assert (
        client.messages.create(model="m", messages=[{"role": "user", "content": text_of(996)}]).content[0].text == "ok"
    )


def test_openai_refuses_what_is_longer_than_its_window_in_its_own_words():
    client = StubOpenAI(["ok"], window=1_000)
    with pytest.raises(ProviderError) as caught:
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": text_of(1_200)}])
    assert caught.value.code == "context_length_exceeded"
    assert caught.value.message == (
        "This model's maximum context length is 1000 tokens. However, your messages resulted in 1204 tokens. "
        "Please reduce the length of the messages."
    )
    tools = [{"type": "function", "function": {"name": "look", "description": text_of(1_100)}}]
    with pytest.raises(
        ProviderError, match=r"resulted in 1106 tokens \(\d+ in the messages, \d+ in the functions\)\. "
    ):
        client.chat.completions.create(model="m", messages=[HI], tools=tools)


def test_anthropic_bills_marked_unchanged_input_from_the_cache():
    client = StubAnthropic(["one", "two", "three", "four"])
    first = {"role": "user", "content": [{"type": "text", "text": text_of(100), **MARK}]}
    bare = {"role": "user", "content": [{"type": "text", "text": text_of(100)}]}
    message = {"role": "assistant", "content": [{"type": "text", "text": text_of(10)}]}
    more = {"role": "user", "content": [{"type": "text", "text": text_of(50), **MARK}]}
    rest = {"role": "user", "content": text_of(7)}

    def usage(*messages: dict[str, Any], system: str = "") -> tuple[int, int, int]:
        beside = {"system": system} if system else {}
        got = client.messages.create(model="m", messages=list(messages), **beside).usage
        return got.cache_read_input_tokens, got.cache_creation_input_tokens, got.input_tokens

    assert usage(first, rest) == (0, 104, 11)
    assert usage(bare, message, more) == (104, 14 + 54, 0)
    assert usage(bare, message, rest) == (0, 0, 104 + 14 + 11)  # Without a mark the cache is not read.
    assert usage(first, system=text_of(5)) == (0, 5 + 104, 0)  # Another system prompt: no common prefix.


def test_openai_bills_unchanged_input_from_the_cache():
    client = StubOpenAI(["one", "two", "three"])
    messages = [{"role": "user", "content": text_of(100)}]
    cached: list[tuple[int, int]] = []
    for extra in (HI, {"role": "assistant", "content": "so"}, {"role": "user", "content": text_of(5)}):
        usage = client.chat.completions.create(model="m", messages=messages).usage
        cached.append((usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens))
        messages = [*messages, extra]
    assert cached == [(104, 0), (109, 104), (114, 109)]


def test_a_message_counts_its_text_its_arguments_and_four_more():
    assert tokens_of({"role": "user", "content": "abcde"}) == 2 + 4
    assert (
        tokens_of({"role": "user", "content": [{"type": "text", "text": "abcd"}, {"type": "text", "text": "e"}]}) == 6
    )
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 4_000}}
    assert tokens_of({"role": "user", "content": [picture]}) == 1_504


def test_tokens_can_be_counted_without_a_call():
    client = StubAnthropic([])
    assert client.messages.count_tokens(model="m", messages=[HI]).input_tokens == 5
    assert client.requests == []


def test_a_script_may_be_a_function_of_the_request():
    client = StubOpenAI(lambda request: f"You said {request['messages'][-1]['content']!r}.")
    assert client.chat.completions.create(messages=[HI]).choices[0].message.content == "You said 'hi'."


def test_a_script_may_raise_or_give_a_whole_response():
    raw = {"id": "x", "choices": [], "usage": None}
    client = StubOpenAI([TimeoutError("slow"), raw])
    with pytest.raises(TimeoutError, match="slow"):
        client.chat.completions.create(messages=[HI])
    assert client.chat.completions.create(messages=[HI]).model_dump() == raw


def test_a_script_that_is_over_says_so():
    model = ScriptedModel(["one"], "openai")
    model.reply({"messages": [HI]})
    with pytest.raises(AssertionError, match="The script has 1 answers, and this is request 2"):
        model.reply({"messages": [HI]})


def test_thinking_is_signed_and_comes_back_only_after_what_it_came_after():
    """F05: models that bind reasoning to the messages before it refuse it after an edit."""
    thinks = Message("assistant", (Reasoning("Hm."), Text("So."), ToolCall("a", "look", "{}")))
    client = StubAnthropic([thinks, "one", "two", "three"], binds_reasoning=True)

    def ask(*messages: object) -> Any:
        return client.messages.create(model="m", system="Be brief.", messages=list(messages))

    reply = ask(HI)
    signature = reply.content[0].signature
    assert (reply.content[0].type, reply.content[0].thinking, bool(signature)) == ("thinking", "Hm.", True)
    thought = {"role": "assistant", "content": reply.content}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}
    assert ask(HI, thought, result).content[0].text == "one"
    marked = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x", **MARK}]}
    assert ask(HI, thought, marked).content[0].text == "two"
    with pytest.raises(ProviderError, match=r"messages\.1\.content\.0: Invalid `signature` in `thinking` block"):
        ask({"role": "user", "content": "hello"}, thought, result)
    careless = StubAnthropic(["fine"])
    careless.messages.create(messages=[{"role": "user", "content": "hello"}, wire(thought), result])
    assert len(careless.requests) == 1


def wire(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "content": [block.model_dump() for block in message["content"]]}


def test_the_assistants_own_message_is_an_answer_too():
    client = StubAnthropic([assistant("Hi.", reasoning=Reasoning(encrypted="x", format="anthropic"))])
    reply = client.messages.create(messages=[HI])
    assert [block.type for block in reply.content] == ["redacted_thinking", "text"]


def joined(pieces: list[Any], kind: str) -> list[str]:
    return [piece.text for piece in pieces if isinstance(piece, Delta) and piece.kind == kind]


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_stream_yields_pieces_and_then_the_whole_reply(provider: str):
    thinks = Reasoning("Let me think.", format=provider)
    message = Message("assistant", (thinks, Text("I look it up."), ToolCall("a", "look", '{"at": "the door"}')))
    model = ScriptedModel([message, message], provider)
    *pieces, last = list(model.stream({"messages": [HI]}))
    assert joined(pieces, "text") == ["I ", "look ", "it ", "up."]
    assert "".join(joined(pieces, "reasoning")) == "Let me think."
    calls_made = [piece for piece in pieces if piece.kind == "call"]
    assert (calls_made[0].name, "".join(piece.text for piece in calls_made)) == ("look", '{"at": "the door"}')
    again = model.complete({"messages": [HI]}).model_dump()
    assert isinstance(last, StreamEnd)
    whole: Any = last.response
    assert {key: value for key, value in whole.model_dump().items() if key not in ("id", "usage", "created")} == {
        key: value for key, value in again.items() if key not in ("id", "usage", "created")
    }


def test_an_asynchronous_model_is_awaited_and_iterated_over():
    async def run() -> tuple[str, list[Any]]:
        model = ScriptedModel(["one", "two or three"], asynchronous=True)
        reply = await model.complete({"messages": [HI]})
        pieces: Any = model.stream({"messages": [HI]})
        return reply.content[0].text, [piece async for piece in pieces]

    text, (*pieces, last) = asyncio.run(run())
    assert (text, pieces) == ("one", [Delta("text", "two "), Delta("text", "or "), Delta("text", "three")])
    assert last.response.content[0].text == "two or three"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_partial_returns_what_a_stopped_stream_has_sent(asynchronous: bool):
    """As the streams of real models do, so that a program with a scripted one is the same."""
    stream = ScriptedModel(["one two three"], "openai", asynchronous=asynchronous).stream({"messages": [HI]})
    assert stream.partial() is None

    async def first_two():
        await anext(stream), await anext(stream)
        await stream.aclose()

    if asynchronous:
        asyncio.run(first_two())
    else:
        next(stream), next(stream)
        stream.close()
    assert stream.partial() == say("one two ")


def test_cut_answer_has_no_whole_reply():
    model = ScriptedModel([CutReply("one two three four"), CutReply("x"), "whole"])
    heard: list[Any] = []
    with pytest.raises(ConnectionError, match="before the answer was whole"):
        hear(model.stream({"messages": [HI]}), heard)
    assert heard == [Delta("text", "one "), Delta("text", "two ")]
    with pytest.raises(ConnectionError, match="before the answer was whole"):
        model.complete({"messages": [HI]})
    assert model.complete({"messages": [HI]}).content[0].text == "whole"


def hear(pieces: Any, heard: list[Any]) -> None:
    for piece in pieces:
        heard.append(piece)


def test_a_model_may_be_asked_from_several_threads_at_once():
    together = threading.Barrier(4, timeout=60)

    def script(request: dict[str, Any]) -> str:
        together.wait()
        return str(request["messages"][-1]["content"])

    model = ScriptedModel(script, "openai")
    with ThreadPoolExecutor(4) as pool:
        message = list(pool.map(lambda n: model.reply({"messages": [{"role": "user", "content": f"{n}"}]}), range(4)))
    assert [one["choices"][0]["message"]["content"] for one in message] == ["0", "1", "2", "3"]
    assert (len(model.requests), len(model.billed), len({one["id"] for one in message})) == (4, 4, 4)
