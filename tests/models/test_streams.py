"""Streamed answers: the SDKs' real clients, sync and async, and a provider on the loopback address."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from waiting import with_time

from foveate import Message, Reasoning, Text, ToolCall, open_model
from foveate.core.stamps import Stop
from foveate.errors import BrokenStream
from foveate.formats import get_format
from foveate.models.anthropic import anthropic_model
from foveate.models.openai import openai_model
from foveate.ports import Delta, StreamEnd
from foveate.testing import CutReply, Failure, ScriptedModel, SlowReply
from foveate.testing.server import StubServer

from .serving import BODY, BOTH, model_at, serving


def reply_of(provider: str) -> Message:
    """Thoughts, text and two calls, the second without arguments."""
    calls = (ToolCall("a", "look", '{"at":"the door","deep":[1,2]}'), ToolCall("b", "list", "{}"))
    return Message("assistant", (Reasoning("Let me think.", format=provider), Text("I look it up, now."), *calls))


def joined(pieces: list[Any], kind: str) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Delta) and piece.kind == kind)


def assert_same(provider: str, pieces: list[Any], response: object) -> None:
    """Assert that a stream gives the same as the whole response to the same request."""
    *deltas, last = pieces
    assert isinstance(last, StreamEnd)
    assert joined(deltas, "text") == "I look it up, now."
    assert joined(deltas, "reasoning") == "Let me think."
    assert [piece.name for piece in deltas if piece.kind == "call" and piece.name] == ["look", "list"]
    message, usage = get_format(provider).parse_reply(last.response)
    same, billed = get_format(provider).parse_reply(response)
    assert message == same
    reason = {"anthropic": "tool_use", "openai": "tool_calls"}[provider]
    assert (
        get_format(provider).stop_of(last.response) == get_format(provider).stop_of(response) == Stop("calls", reason)
    )
    assert (usage.prompt_tokens, usage.output) == (billed.prompt_tokens, billed.output)
    if provider == "anthropic":
        reasoning = message.parts[0]
        assert isinstance(reasoning, Reasoning)
        assert reasoning.signature.startswith("signed-")


@BOTH
def test_a_stream_equals_the_whole_response(provider: str):
    with serving([reply_of(provider)] * 2, provider) as (server, model):
        assert_same(provider, list(model.stream(BODY)), model.complete(BODY))
    first, second = (one.values for one in server.received)
    assert first.pop("stream") is True
    if provider == "openai":
        assert first.pop("stream_options") == {"include_usage": True}
    assert first == second


@BOTH
def test_an_async_stream_equals_the_whole_response(provider: str):
    async def run() -> None:
        with StubServer(ScriptedModel([reply_of(provider)] * 2, provider)) as server:
            model = model_at(server, provider, asynchronous=True)
            async with model._client_passed:
                pieces = [piece async for piece in model.stream(BODY)]
                assert_same(provider, pieces, await model.complete(BODY))

    asyncio.run(run())


@BOTH
@pytest.mark.parametrize("politely", [False, True], ids=["broken", "ended"])
def test_a_cut_stream_yields_its_pieces_and_raises(provider: str, politely: bool):
    heard: list[Any] = []
    says = rf"The answer of {provider}:m broke off.*server or the network.*send the request again"
    with serving([CutReply("one two three four five six", politely)], provider) as (_, model):
        pieces = model.stream(BODY)
        with pytest.raises(BrokenStream, match=says):
            hear(pieces, heard)
    assert "one two three four five six".startswith(joined(heard, "text"))
    assert all(isinstance(piece, Delta) for piece in heard)


def hear(pieces: Any, heard: list[Any]) -> None:
    for piece in pieces:
        heard.append(piece)


@BOTH
@pytest.mark.parametrize("politely", [False, True], ids=["broken", "ended"])
def test_a_cut_async_stream_raises_too(provider: str, politely: bool):
    async def run() -> None:
        with StubServer(ScriptedModel([CutReply("one two three four five six", politely)], provider)) as server:
            model = model_at(server, provider, asynchronous=True)
            async with model._client_passed:
                with pytest.raises(BrokenStream, match="broke off"):
                    async for _ in model.stream(BODY):
                        pass

    asyncio.run(run())


@BOTH
def test_a_stream_that_halts_times_out(provider: str):
    def story(seconds: float) -> None:
        """It begins in time, and then pauses for longer."""
        with serving([SlowReply("one two three four", 600)], provider, timeout=seconds) as (_, model):
            pieces = model.stream(BODY)
            with pytest.raises(BrokenStream, match=r"ReadTimeout|Timeout"):
                list(pieces)

    with_time(story, 0.2, 2, 30)


@BOTH
def test_closing_a_stream_ends_the_request(provider: str):
    with serving([SlowReply("one two three four", 600), "whole"], provider) as (_, model):
        pieces = model.stream(BODY)
        assert next(pieces).text == "one "
        pieces.close()
        assert joined(list(model.stream(BODY)), "text") == "whole"


@BOTH
def test_closing_an_async_stream_ends_the_request(provider: str):
    async def run() -> str:
        with StubServer(ScriptedModel([SlowReply("one two three four", 600), "whole"], provider)) as server:
            model = model_at(server, provider, asynchronous=True)
            async with model._client_passed:
                pieces = model.stream(BODY)
                assert (await anext(pieces)).text == "one "
                await pieces.aclose()
                return joined([piece async for piece in model.stream(BODY)], "text")

    assert asyncio.run(run()) == "whole"


@BOTH
@pytest.mark.parametrize("ends", ["early", "late"])
def test_every_way_to_leave_a_stream_closes_its_connection(provider: str, ends: str):
    pytest.importorskip(provider)
    closed: list[str] = []

    class Events:
        def __iter__(self) -> Any:
            yield {"type": "message_start", "message": {"role": "assistant"}}
            yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "one"}}
            yield {"choices": [{"delta": {"content": "one"}}]}

        async def __aiter__(self) -> Any:
            for event in self:
                yield event

        def close(self) -> Any:
            closed.append("sync")

        async def aclose(self) -> None:
            closed.append("async")

    class Later(Events):
        close = Events.aclose

    class Client:
        def __init__(self, send: Any) -> None:
            self.messages = SimpleNamespace(create=send)
            self.chat = SimpleNamespace(completions=self.messages)

    class AsyncClient(Client):
        async def __aenter__(self) -> None: ...

    async def send(**arguments: Any) -> Events:
        return Later()

    factory: Any = anthropic_model if provider == "anthropic" else openai_model
    pieces = factory("m", Client(lambda **arguments: Events())).stream(BODY)
    assert next(pieces).text == "one"
    if ends == "early":
        pieces.close()
    else:
        with pytest.raises(BrokenStream):
            next(pieces)

    async def run() -> None:
        later = factory("m", AsyncClient(send)).stream(BODY)
        assert (await anext(later)).text == "one"
        if ends == "early":
            await later.aclose()
        else:
            with pytest.raises(BrokenStream):
                await anext(later)

    asyncio.run(run())
    assert closed == ["sync", "async"]


@BOTH
def test_a_stream_that_cannot_begin_is_retried(provider: str):
    sdk = pytest.importorskip(provider)
    script = [Failure(529, retry_after=0.01), "whole", Failure(401, message="no such key")]
    with serving(script, provider, max_retries=1) as (server, model):
        assert joined(list(model.stream(BODY)), "text") == "whole"
        with pytest.raises(sdk.AuthenticationError, match="no such key"):
            list(model.stream(BODY))
    assert len(server.received) == 3


@BOTH
def test_an_error_within_a_stream_is_the_sdks(provider: str):
    sdk = pytest.importorskip(provider)
    heard: list[Any] = []
    script = [CutReply("one two three four", error=Failure(529, message="Overloaded in the middle."))]
    with serving(script, provider) as (_, model), pytest.raises(sdk.APIError, match="Overloaded in the middle"):
        hear(model.stream(BODY), heard)
    assert joined(heard, "text").startswith("one ")


def test_refused_stream_options_are_left_out_from_then_on():
    refusal = Failure(422, message="body.stream_options.include_usage: Extra inputs are not permitted")
    with serving([refusal, "one", "two"], "openai") as (server, model):
        assert [joined(list(model.stream(BODY)), "text") for _ in range(2)] == ["one", "two"]
    assert ["stream_options" in one.values for one in server.received] == [True, False, False]


def test_unreported_usage_is_unknown():
    with serving(["one"], "openai", options={"stream_options": {}}) as (_, model):
        last = list(model.stream(BODY))[-1]
        assert get_format("openai").parse_reply(last.response)[1].prompt_tokens is None


@BOTH
def test_a_model_creates_a_client_for_each_event_loop(provider: str, monkeypatch):
    pytest.importorskip(provider)
    with StubServer(ScriptedModel(lambda request: "again", provider)) as server:
        at_home(monkeypatch, server)
        model: Any = open_model(f"{provider}:m", asynchronous=True)
        clients: list[Any] = []

        async def ask() -> str:
            reply = await model.complete(BODY)
            clients.append(model._own)
            text = get_format(provider).parse_reply(reply)[0].text
            assert joined([piece async for piece in model.stream(BODY)], "text") == text
            assert model._own is clients[-1]
            await clients[-1].close()
            return text

        assert [asyncio.run(ask()) for _ in range(3)] == ["again"] * 3
        assert len({id(client) for client in clients}) == 3
        asyncio.run(model.close())


@BOTH
def test_a_model_creates_one_client_and_closes_it(provider: str, monkeypatch):
    pytest.importorskip(provider)
    with StubServer(ScriptedModel(lambda request: "again", provider)) as server:
        at_home(monkeypatch, server)
        model: Any = open_model(f"{provider}:m", max_retries=0)
        model.close()
        model.complete(BODY)
        client = model._own
        list(model.stream(BODY))
        assert model._own is client
        model.close()
        assert client.is_closed()
        model.complete(BODY)  # The next request opens another client.
        model.close()


def at_home(monkeypatch: Any, server: StubServer) -> None:
    """Set the environment so that both providers are at this server."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    for variable in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(variable, "none")
