"""Helpers for tests of agents: reproducible agents, their requests and records, and a store that fails."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any, TypeVar

from foveate import AsyncChatAgent, ChatAgent
from foveate.agents.effects import Routine
from foveate.agents.events import AgentEvent
from foveate.agents.performers import perform, perform_async
from foveate.testing import ScriptedModel
from foveate.testing.faults import failing_store

T = TypeVar("T")


def plain(**options: Any) -> dict[str, Any]:
    """Return the keywords of an agent with reproducible records."""
    ids, ticks = itertools.count(1), itertools.count(1)
    defaults: dict[str, Any] = {"window": 100_000, "policy": "none"}
    return {**defaults, "new_id": lambda: f"r{next(ids)}", "clock": lambda: next(ticks), **options}


def agent(script: Any, provider: str = "anthropic", **options: Any) -> ChatAgent:
    return ChatAgent(ScriptedModel(script, provider), **plain(**options))


def async_agent(script: Any, provider: str = "anthropic", **options: Any) -> AsyncChatAgent:
    return AsyncChatAgent(ScriptedModel(script, provider, asynchronous=True), **plain(**options))


def requests(chat: ChatAgent | AsyncChatAgent) -> list[dict[str, Any]]:
    config = chat._config if isinstance(chat, AsyncChatAgent) else chat._loop._config
    model: Any = config.model
    return list(model.requests)


def run_routine(routine: Routine[T]) -> tuple[list[AgentEvent], T]:
    """Run a routine without asyncio. Return its events and its return value."""
    events: list[AgentEvent] = []
    performed = perform(routine)
    while True:
        try:
            events.append(next(performed))
        except StopIteration as done:
            return events, done.value


def run_routine_async(make: Callable[[], Routine[Any]]) -> list[AgentEvent]:
    """Run a routine in asyncio. Return its events."""

    async def listen() -> list[AgentEvent]:
        return [event async for event in perform_async(make())]

    return asyncio.run(listen())


def history_of(chat: Any) -> list[tuple[str, str]]:
    """Return the history as (role, text)."""
    return [(row.message.role, row.message.text) for row in chat.history()]


def steps(chat: Any) -> list[tuple[str, str, str, str]]:
    """Return all steps of all runs as (name, call, state, output)."""
    return [
        (step.name, step.call, step.state, step.output)
        for run in chat.journal.runs()
        for step in chat.journal.steps(run.id)
    ]


class FailingCountdown:
    """Fails every operation from the n-th on, as after `kill -9`. With `after`, the n-th takes effect."""

    def __init__(self, n: int, *, after: bool) -> None:
        self.left, self.after, self.count = n, after, 0

    def run(self, operation: Callable[[], T], failure: Callable[[], Exception]) -> T:
        self.count += 1
        self.left -= 1
        if self.left > 0:
            return operation()
        if self.left == 0 and self.after:
            operation()
        raise failure()

    @property
    def is_dead(self) -> bool:
        return self.left <= 0


def store_failing_at(store: Any, n: int, *, after: bool) -> tuple[Any, FailingCountdown]:
    """A store that fails from its n-th operation on."""
    countdown: Any = FailingCountdown(n, after=after)
    return failing_store(store, countdown), countdown
