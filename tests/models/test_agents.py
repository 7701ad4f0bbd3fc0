"""Agents with a model name, over the wire: from a task to the bytes and back."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from foveate.agents.agent import AsyncChatAgent, ReActAgent
from foveate.agents.events import ModelReplied, RunEnded, TextDelta, ToolAnswered, ToolCalled
from foveate.errors import BrokenStream
from foveate.testing import CutReply, Failure, ScriptedModel, call, calls
from foveate.testing.server import StubServer

from .serving import BOTH

NAMES = {"anthropic": "anthropic:claude-haiku-4-5", "openai": "openai:gpt-4.1-mini"}


@pytest.fixture(autouse=True)
def _keyed(monkeypatch: Any) -> None:
    for variable in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(variable, "none")


def at(server: StubServer, monkeypatch: Any) -> None:
    """Set the environment so that both providers are at this server."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")


def weather(city: str) -> str:
    """The weather of a city."""
    return f"rain in {city}"


@BOTH
def test_an_agent_with_a_model_name_calls_tools_and_knows_its_cost(provider: str, monkeypatch):
    pytest.importorskip(provider)
    pytest.importorskip("genai_prices")
    script = [
        calls(call("t1", "weather", city="Oslo"), call("t2", "weather", city="Rome")),
        Failure(529, retry_after=0.01),
        "Take two umbrellas.",
    ]
    with StubServer(ScriptedModel(script, provider)) as server:
        at(server, monkeypatch)
        with ReActAgent(NAMES[provider], tools=[weather]) as agent:
            outcome = agent.run("What do I need in Oslo and Rome?")
            assert (outcome.text, outcome.run.turns) == ("Take two umbrellas.", 2)
            assert outcome.run.usage.prompt_tokens == sum(bill.total for bill in server.models[""].billed)
            assert outcome.run.cost is not None
            assert 0 < outcome.run.cost < 0.01
    assert server.illegal == []
    assert [one.values["model"] for one in server.received] == [NAMES[provider].partition(":")[2]] * 3
    assert b"rain in Oslo" in server.received[-1].body


@BOTH
def test_an_agent_continues_after_a_cut_stream(provider: str, monkeypatch):
    pytest.importorskip(provider)
    with StubServer(ScriptedModel([CutReply("one two three four"), "Whole."], provider)) as server:
        at(server, monkeypatch)
        with ReActAgent(NAMES[provider]) as agent:
            heard: list[Any] = []
            with pytest.raises(BrokenStream):
                hear(agent.stream("Say it."), heard)
            assert isinstance(heard[0], TextDelta)
            assert [one.message.text for one in agent.conversation.history()] == ["Say it."]
            assert agent.resume().text == "Whole."
    assert server.received[0].values["messages"] == server.received[1].values["messages"]


def hear(events: Any, heard: list[Any]) -> None:
    for event in events:
        heard.append(event)


@BOTH
def test_an_async_agent_streams_and_closes_its_connections(provider: str, monkeypatch):
    pytest.importorskip(provider)

    async def run() -> list[Any]:
        async with AsyncChatAgent(NAMES[provider], tools=[weather]) as agent:
            return [event async for event in agent.stream("Oslo?")]

    with StubServer(ScriptedModel([call("t1", "weather", city="Oslo"), "An umbrella."], provider)) as server:
        at(server, monkeypatch)
        events = asyncio.run(run())
        gc.collect()  # An open connection would be a warning, which is an error here.
    kinds = [type(event) for event in events]
    assert kinds == [ModelReplied, ToolCalled, ToolAnswered, TextDelta, TextDelta, ModelReplied, RunEnded]
    assert events[-1].outcome.text == "An umbrella."
