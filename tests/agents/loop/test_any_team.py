"""Any tree of sub-agents, at once and nested: legal requests, and the same histories with and without asyncio."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from threading import Lock
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from foveate import AsyncLoopAgent, AsyncReActAgent, Limits, LoopAgent, ReActAgent, open_conversation, open_store
from foveate.testing import ScriptedModel, call, calls

from .scripts import act, done, next_step


class Look(Struct, frozen=True):
    """A call of an action."""


class Hand(Struct, frozen=True):
    """Tasks for sub-agents, each with the steps of its work. None: the model fails."""

    tasks: tuple[Steps | None, ...]


Steps = tuple["Look | Hand", ...]


def steps_of(depth: int) -> st.SearchStrategy[Steps]:
    kinds: st.SearchStrategy[Any] = st.just(Look())
    if depth:
        kinds |= st.lists(st.none() | steps_of(depth - 1), min_size=1, max_size=3).map(lambda tasks: Hand(tuple(tasks)))
    return st.lists(kinds, max_size=2).map(tuple)


PLANS = steps_of(2)


def tasks_of(plan: Steps, name: str) -> dict[str, Steps | None]:
    """Return the steps of each task in a plan, by the name of the task."""
    found: dict[str, Steps | None] = {name: plan}
    for number, step in enumerate(plan):
        if isinstance(step, Hand):
            for place, task in enumerate(step.tasks):
                inner = f"{name}.{number}{place}"
                found |= {inner: None} if task is None else tasks_of(task, inner)
    return found


class World:
    """A team that works on a plan. The agents of even depth answer with steps, the others call tools."""

    def __init__(self, plan: Steps, provider: str, *, asynchronous: bool) -> None:
        self.tasks, self.provider = tasks_of(plan, "T"), provider
        self.looked: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self.store = open_store("memory:")
        self._lock = Lock()
        step_kind, call_kind = (AsyncLoopAgent, AsyncReActAgent) if asynchronous else (LoopAgent, ReActAgent)
        model = ScriptedModel(self.play, provider, asynchronous=asynchronous)
        helper = step_kind(name="helper", actions=[self.look])
        middle = call_kind(name="helper", tools=[self.look], sub_agents=[helper])
        self.agent: Any = step_kind(
            model, actions=[self.look], sub_agents=[middle], limits=Limits(turns=None), store=self.store, window=100_000
        )

    def look(self, place: str) -> str:
        """Look around."""
        with self._lock:
            self.looked[place] += 1
        return f"{place}: trees"

    def play(self, request: dict[str, Any]) -> Any:
        messages = [message for message in request["messages"] if message["role"] != "system"]
        content = messages[0]["content"]
        task = content if isinstance(content, str) else content[0]["text"]
        with self._lock:
            self.requests[json.dumps(request, sort_keys=True)] += 1
        number = sum(message["role"] == "assistant" for message in messages)
        plan = self.tasks[task]
        if plan is None:
            raise RuntimeError("no line")
        answers_with_steps = task.count(".") % 2 == 0
        if number == len(plan):
            return done(f"{task} is done.") if answers_with_steps else f"{task} is done."
        match plan[number]:
            case Look():
                place = f"{task} {number}"
                return act(("look", {"place": place})) if answers_with_steps else call("c", "look", place=place)
            case Hand(tasks):
                names = [f"{task}.{number}{place}" for place in range(len(tasks))]
                if answers_with_steps:
                    handed = [{"name": "helper", "message": name} for name in names]
                    return next_step(type="Sub-Agent", subAgents=handed)
                return calls(*(call(f"c{name}", "helper", task=name) for name in names))

    def histories(self) -> Counter[tuple[str, ...]]:
        """Return the texts of all conversations."""
        found: Counter[tuple[str, ...]] = Counter()
        names = ["agent"]
        while names:
            name = names.pop()
            chat = open_conversation(name, store=self.store, format=self.provider, window=100_000)
            found[tuple(row.message.text for row in chat.history())] += 1
            assert {run.state for run in chat.journal.runs()} <= {"done", "failed"}
            for run in chat.journal.runs():
                steps = chat.journal.steps(run.id)
                assert "running" not in {step.state for step in steps}
                names += [f"{name}/{run.id}/{step.number}" for step in steps if step.kind == "sub-agent"]
        return found


@settings(max_examples=settings.default.max_examples // 5)
@given(plan=PLANS, provider=st.sampled_from(["anthropic", "openai"]))
def test_no_plan_breaks_a_team(plan: Steps, provider: str):
    """The scripted model refuses illegal requests. Each sub-agent works on its own task once."""
    world = World(plan, provider, asynchronous=False)
    with world.agent as agent:
        outcome = agent.run("T")
    assert outcome.text == "T is done."
    expected = Counter(
        f"{task} {number}"
        for task, steps in world.tasks.items()
        for number, step in enumerate(steps or ())
        if isinstance(step, Look)
    )
    assert world.looked == expected
    answered = sum(len(steps) + 1 for steps in world.tasks.values() if steps is not None)
    assert outcome.total.turns == answered
    histories = world.histories()
    assert histories.total() == len(world.tasks)
    assert not any("IllegalRequest" in text for texts in histories for text in texts)

    other = World(plan, provider, asynchronous=True)

    async def later() -> Any:
        async with other.agent as twin:
            return await twin.run("T")

    assert asyncio.run(later()).total.turns == answered
    assert other.requests == world.requests
    assert other.histories() == histories
