"""Helpers for tests of loop agents: scripts for models, and agents."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from itertools import count
from typing import Any

from foveate import AsyncLoopAgent, LoopAgent
from foveate.agents import AgentEvent, Outcome, RunEnded, SubAgentEvent
from foveate.testing import ScriptedModel


def next_step(**fields: Any) -> str:
    """Return an answer that chooses a step."""
    return json.dumps({"taskComplete": False, "nextStep": fields})


def act(*actions: Any) -> str:
    """Return a step of actions: names, or names with parameters."""
    named = [(item, {}) if isinstance(item, str) else item for item in actions]
    return next_step(type="Actions", actions=[{"name": name, "params": params} for name, params in named])


def hand(name: str, task: str) -> str:
    return next_step(type="Sub-Agent", subAgent={"name": name, "message": task})


def expand(message: str | int, reason: str = "it is needed") -> str:
    field = "messageIndex" if isinstance(message, int) else "message"
    return next_step(type="expand-message", **{field: message}, reason=reason)


def ask(message: str) -> str:
    return next_step(type="Chat", message=message)


def think(reason: str = "think") -> str:
    return next_step(type="Retry", reason=reason)


def fail(reason: str) -> str:
    return next_step(type="Failed", reason=reason)


def done(message: str = "done") -> str:
    return json.dumps({"taskComplete": True, "message": message})


def options(**more: Any) -> dict[str, Any]:
    """Return keywords of an agent whose clock ticks at each look and whose runs are r1, r2, ..."""
    ticks, ids = count(1), count(1)
    return {
        "name": "sage",
        "window": 100_000,
        "policy": "expire",
        "clock": lambda: next(ticks),
        "new_id": lambda: f"r{next(ids)}",
        **more,
    }


def scripted_agent(
    script: Iterable[Any], *, provider: str = "anthropic", **more: Any
) -> tuple[LoopAgent, ScriptedModel]:
    """Return an agent and its scripted model."""
    model = ScriptedModel(script, provider)
    return LoopAgent(model, **options(**more)), model


def run_both(script: list[Any], task: str = "Go.", **more: Any) -> tuple[Outcome, ScriptedModel]:
    """Run an agent with and without asyncio, and compare outcome, requests and events.

    `store`: creates a store for each.
    """
    provider = more.pop("provider", "anthropic")
    new_store = more.pop("store", None) or (lambda: None)
    agent, model = scripted_agent(script, provider=provider, store=new_store(), **more)
    with agent:
        events = list(agent.stream(task))

    async def later() -> tuple[list[AgentEvent], ScriptedModel]:
        other = ScriptedModel(script, provider, asynchronous=True)
        async with AsyncLoopAgent(other, **options(store=new_store(), **more)) as twin:
            return [event async for event in twin.stream(task)], other

    found, other = asyncio.run(later())
    assert other.requests == model.requests
    assert [timeless(event) for event in found] == [timeless(event) for event in events]
    last = events[-1]
    assert isinstance(last, RunEnded)
    return last.outcome, model


def timeless(event: AgentEvent) -> Any:
    """Return an event without times."""
    import msgspec

    if isinstance(event, SubAgentEvent):
        return "SubAgentEvent", event.agent, event.step, timeless(event.event)
    told = msgspec.to_builtins(event)
    told.pop("seconds", None)
    if isinstance(event, RunEnded):
        for name in ("begun", "ended"):
            del told["outcome"]["run"][name]
    told.get("receipt", {}).pop("time", None)
    return type(event).__name__, told


def texts(request: dict[str, Any]) -> list[str]:
    """Return the texts of a request without its system prompt, one for each message."""
    found = []
    for message in request["messages"]:
        content = message["content"]
        found += [content] if isinstance(content, str) else [block["text"] for block in content]
    return found
