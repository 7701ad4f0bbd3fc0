"""Loop agents with the real SDKs, against a strict local server."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from foveate import AsyncLoopAgent, LoopAgent
from foveate.agents import SubAgentEvent, TextDelta, ToolAnswered
from foveate.testing import ScriptedModel
from foveate.testing.server import StubServer

from .scripts import act, done, hand, next_step, texts, think

NAMES = {"anthropic": "anthropic:claude-haiku-4-5", "openai": "openai:gpt-4.1-mini"}


def look() -> str:
    """Look around."""
    return "nothing"


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_a_loop_agent_with_a_sub_agent_works_with_the_real_sdks(provider: str, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip(provider)
    script = [think(), hand("reader", "Read."), act("look"), done("Read."), done("All.")]

    async def play() -> str:
        reader = AsyncLoopAgent(name="reader", actions=[look])
        async with AsyncLoopAgent(NAMES[provider], name="sage", sub_agents=[reader]) as agent:
            return (await agent.run("Go.")).text

    with StubServer(ScriptedModel([*script, *script], provider)) as server:
        monkeypatch.setenv(f"{provider.upper()}_API_KEY", "none")
        monkeypatch.setenv(f"{provider.upper()}_BASE_URL", server.url + ("/v1" if provider == "openai" else ""))
        with LoopAgent(NAMES[provider], name="sage", sub_agents=[LoopAgent(name="reader", actions=[look])]) as agent:
            said = "".join(event.text for event in agent.stream("Go.") if isinstance(event, TextDelta))
            assert said == script[0] + script[1] + script[4]
            assert agent.conversation.budget.window > 100_000  # From the model's name.
        assert asyncio.run(play()) == "All."
        assert server.illegal == []
        assert len(server.received) == 10


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_sub_agents_at_once_share_a_client_of_the_real_sdks(provider: str, monkeypatch: pytest.MonkeyPatch):
    """The first calls of the readers wait for each other, so they hang if they do not run at the same time."""
    pytest.importorskip(provider)
    tasks = ["north", "east", "south"]
    barrier = threading.Barrier(len(tasks), timeout=60)

    def play(request: dict[str, Any]) -> str:
        messages = [message for message in request["messages"] if message["role"] != "system"]
        task, *rest = texts({"messages": messages})
        if task == "Go.":
            chosen = [{"name": "reader", "message": task} for task in tasks]
            return done("All.") if rest else next_step(type="Sub-Agent", subAgents=chosen)
        if not rest:
            barrier.wait()
        return done(f"{task} is clear.") if rest else act("look")

    async def play_later() -> list[Any]:
        reader = AsyncLoopAgent(name="reader", actions=[look])
        async with AsyncLoopAgent(NAMES[provider], name="sage", sub_agents=[reader]) as agent:
            return [event async for event in agent.stream("Go.")]

    with StubServer(ScriptedModel(play, provider)) as server:
        monkeypatch.setenv(f"{provider.upper()}_API_KEY", "none")
        monkeypatch.setenv(f"{provider.upper()}_BASE_URL", server.url + ("/v1" if provider == "openai" else ""))
        with LoopAgent(NAMES[provider], name="sage", sub_agents=[LoopAgent(name="reader", actions=[look])]) as agent:
            for events in (list(agent.stream("Go.")), asyncio.run(play_later())):
                answers = [event.result.text for event in events if isinstance(event, ToolAnswered)]
                assert answers == [f"{task} is clear." for task in tasks]
                steps = {event.step for event in events if isinstance(event, SubAgentEvent)}
                said = [
                    "".join(
                        event.event.text
                        for event in events
                        if isinstance(event, SubAgentEvent)
                        and event.step == step
                        and isinstance(event.event, TextDelta)
                    )
                    for step in sorted(steps)
                ]
                assert said == [act("look") + done(f"{task} is clear.") for task in tasks]
        assert server.illegal == []
        assert len(server.received) == 2 * 8
