"""Loop agents with the real SDKs, against a strict local server."""

from __future__ import annotations

import asyncio

import pytest

from foveate import AsyncLoopAgent, LoopAgent
from foveate.agents import TextDelta
from foveate.testing import ScriptedModel
from foveate.testing.server import StubServer

from .scripts import act, done, hand, think

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
