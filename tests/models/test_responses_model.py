"""The model of the Responses API: the SDK's real clients, and a provider on the loopback address."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from foveate import ChatAgent, Message, Reasoning, Text, ToolCall, open_conversation, open_model
from foveate.core.stamps import Stop
from foveate.errors import BadSetting, BrokenStream
from foveate.formats import get_format
from foveate.models.known import check_model, format_of_model
from foveate.models.responses import responses_model
from foveate.ports import Delta, StreamEnd
from foveate.testing import CutReply, Failure, ScriptedModel, StubOpenAI, call, say
from foveate.testing.server import StubServer

openai = pytest.importorskip("openai")

REPLY = Message(
    "assistant",
    (
        Reasoning("Let me think.", format="openai_responses"),
        Text("I look it up, now."),
        ToolCall("a", "look", '{"at":"the door"}'),
    ),
)
BODY = {"input": "Sum up."}


@contextmanager
def serving(script: Any, **settings: Any) -> Iterator[tuple[StubServer, Any]]:
    """Provide a server with this script, and a model for it."""
    with (
        StubServer(ScriptedModel(script, "openai_responses")) as server,
        openai.OpenAI(api_key="none", base_url=f"{server.url}/v1", max_retries=0) as client,
    ):
        yield server, responses_model("m", client, **settings)


def test_a_stream_equals_the_whole_response():
    with serving([REPLY] * 2) as (server, model):
        *pieces, last = model.stream(BODY)
        response = model.complete(BODY)
    assert isinstance(last, StreamEnd)
    format = get_format("openai_responses")
    message, usage = format.parse_reply(last.response)
    same, billed = format.parse_reply(response)
    assert [type(part) for part in message.parts] == [Reasoning, Text, ToolCall]
    assert (message.text, message.calls[0].arguments) == (same.text, same.calls[0].arguments)
    assert (usage.prompt_tokens, usage.output) == (billed.prompt_tokens, billed.output)
    assert format.stop_of(last.response) == format.stop_of(response) == Stop("calls", "completed")
    heard = [piece for piece in pieces if isinstance(piece, Delta)]
    assert "".join(piece.text for piece in heard if piece.kind == "text") == "I look it up, now."
    assert "".join(piece.text for piece in heard if piece.kind == "reasoning") == "Let me think."
    first, second = (one.values for one in server.received)
    assert first.pop("stream") is True
    assert first == second
    assert first["store"] is False
    assert first["include"] == ["reasoning.encrypted_content"]
    assert first["max_output_tokens"] == 8192


def test_an_async_client_streams_too():
    async def run() -> list[Any]:
        with StubServer(ScriptedModel([REPLY], "openai_responses")) as server:
            async with openai.AsyncOpenAI(api_key="none", base_url=f"{server.url}/v1") as client:
                return [piece async for piece in responses_model("m", client).stream(BODY)]

    assert isinstance(asyncio.run(run())[-1], StreamEnd)


def test_a_tool_loop_sends_reasoning_and_calls_back():
    script = [REPLY, say("A door.")]
    chat = open_conversation("c", format="openai_responses", window=100_000, policy="none")
    chat.append("What is there?")
    with serving(script) as (server, model):
        chat.record(model.complete(chat.prompt(system="Be brief.")))
        chat.append({"type": "function_call_output", "call_id": "a", "output": "a door"})
        chat.record(model.complete(chat.prompt(system="Be brief.")))
    sent = server.received[1].values
    assert [item.get("type", item.get("role")) for item in sent["input"]] == [
        *("user", "reasoning", "message", "function_call", "function_call_output")
    ]
    assert sent["instructions"] == "Be brief."
    assert server.illegal == []
    assert chat.history()[-1].message.text == "A door."


def test_a_cut_stream_raises_broken_stream():
    with serving([CutReply("one two three four")]) as (_, model), pytest.raises(BrokenStream):
        list(model.stream(BODY))


def test_a_model_without_reasoning_is_asked_without_include():
    refusal = Failure(400, message="Encrypted content is not supported with this model.")
    with serving([refusal, "Done.", "Again."]) as (server, model):
        model.complete(BODY)
        model.complete(BODY)
    assert ["include" in one.values for one in server.received] == [True, False, False]


def test_options_replace_the_defaults():
    with serving(["Done."], options={"store": True, "include": []}) as (server, model):
        model.complete(BODY)
    assert (server.received[0].values["store"], server.received[0].values["include"]) == (True, [])


def test_the_name_chooses_the_format():
    model = open_model("openai-responses:gpt-5.6", api_key="k")
    assert (model.name, model.format) == ("openai-responses:gpt-5.6", "openai_responses")
    assert format_of_model("openai-responses:gpt-5.6") == "openai_responses"
    for name in ("gpt-5.6", "openai:gpt-5.6"):
        assert format_of_model(name) == "openai"
        check_model(name, "openai_responses", None)
    check_model("openai-responses:gpt-5.6", "openai_responses", None)
    for name, format in (("openai-responses:gpt-5.6", "openai"), ("claude-haiku-4-5", "openai_responses")):
        with pytest.raises(BadSetting, match="uses the format"):
            check_model(name, format, None)


def test_wrong_arguments_are_refused():
    with pytest.raises(BadSetting, match="must be an OpenAI"):
        responses_model("m", object())  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match="base_url= does not apply"):
        responses_model("m", openai.OpenAI(api_key="k"), base_url="http://localhost")


def test_the_stub_client_answers_responses():
    client = StubOpenAI([call("t1", "weather", city="Oslo"), say("Rain.")])
    chat = open_conversation("c", format="openai_responses", window=100_000)
    chat.append("Weather?")
    chat.record(client.responses.create(model="m", **chat.prompt()))
    chat.append({"type": "function_call_output", "call_id": "t1", "output": "rain"})
    reply = client.responses.create(model="m", **chat.prompt())
    chat.record(reply)
    assert (reply.status, chat.history()[-1].message.text) == ("completed", "Rain.")
    assert len(client.requests) == 2


def test_an_agent_runs_on_the_responses_api():
    def weather(city: str) -> str:
        """Return the weather of a city."""
        return f"rain in {city}"

    script = [Message("assistant", (*REPLY.parts[:2], ToolCall("a", "weather", '{"city":"Oslo"}'))), "Rain."]
    model = ScriptedModel(script, "openai_responses")
    with ChatAgent(model, tools=[weather], window=50_000, expand=True) as agent:
        assert agent.send("Weather?").text == "Rain."
    sent = model.requests[-1]
    assert [tool["name"] for tool in sent["tools"]] == ["weather", "expand"]
    assert [item.get("type", "user") for item in sent["input"]] == [
        *("user", "reasoning", "message", "function_call", "function_call_output")
    ]
    assert sent["input"][-1]["output"] == "rain in Oslo"
