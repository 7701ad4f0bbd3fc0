"""Agents with the real SDKs, against a strict local server."""

from __future__ import annotations

import asyncio

import pytest

from foveate import AsyncReActAgent, ChatAgent, Limits
from foveate.agents.events import RunEnded, TextDelta
from foveate.testing import ScriptedModel, call, calls
from foveate.testing.server import StubServer

NAMES = {"anthropic": "anthropic:claude-haiku-4-5", "openai": "openai:gpt-4.1-mini"}


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_an_agent_works_with_the_real_sdks(provider: str, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip(provider)
    both = calls(call("c1", "add", a=1, b=2), call("c2", "add", a="x", b=2), text="Let me see.")
    script = [both, "Three.", "Bye for now.", both, "Three again."]

    async def play() -> str:
        async with AsyncReActAgent(NAMES[provider], tools=[add], window=10_000) as agent:
            return (await agent.run("1 + 2?")).text

    with StubServer(ScriptedModel(script, provider)) as server:
        monkeypatch.setenv(f"{provider.upper()}_API_KEY", "none")
        monkeypatch.setenv(f"{provider.upper()}_BASE_URL", server.url + ("/v1" if provider == "openai" else ""))
        with ChatAgent(NAMES[provider], tools=[add], limits=Limits(tokens=100_000), cost=lambda _: 0.5) as agent:
            outcome = agent.send("1 + 2?")
            assert (outcome.text, outcome.run.turns, outcome.run.cost) == ("Three.", 2, 1.0)
            assert agent.conversation.budget.window > 100_000  # From the model's name.
            events = list(agent.stream("Bye."))
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Bye for now."
        assert isinstance(events[-1], RunEnded)
        assert asyncio.run(play()) == "Three again."
        assert server.illegal == []
        assert len(server.received) == 5
