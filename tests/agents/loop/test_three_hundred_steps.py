"""A loop agent with real tools, three hundred steps and a small window, under every preset."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from foveate import Limits, LoopAgent
from foveate.agents.toolbox import files, search, shell, sqlite
from foveate.policies import PRESET_NAMES
from foveate.testing import ScriptedModel
from foveate.types import Lease

from ..worker import RULES, TASK, WINDOW, planned, prepared
from .scripts import act, done, next_step, texts

pytestmark = pytest.mark.slow

_LONG = ("balanced", "keep-last-3", "coding")
"""Presets that take three hundred steps. The others take a hundred."""
_PRESETS = ["keep-last-3" if name == "keep-last-N" else name for name in PRESET_NAMES if name != "off"]


@pytest.mark.filterwarnings("ignore:keep_recent")
@pytest.mark.parametrize(("policy", "count"), [(name, 300 if name in _LONG else 100) for name in _PRESETS])
def test_three_hundred_steps_stay_in_a_small_window(tmp_path: Path, policy: str, count: int):
    """The scripted model refuses illegal requests and those above the window. Each call has one step and one result."""
    provider = "anthropic" if _PRESETS.index(policy) % 2 else "openai"
    project = prepared(tmp_path)
    plan = planned(project)
    agent: LoopAgent

    def answer(request: dict[str, Any]) -> str:
        turn = agent.conversation.view.turn
        if turn > count:
            return done("I am done.")
        actions = [{"name": call.name, "params": json.loads(call.arguments)} for call in plan(turn).calls]
        chosen = {"type": "Actions", "actions": actions}
        return json.dumps({"taskComplete": False, "reasoning": f"recap - I did step {turn}.", "nextStep": chosen})

    agent = LoopAgent(
        ScriptedModel(answer, provider, window=WINDOW),
        name="worker",
        store=f"sqlite:///{tmp_path / 'work.db'}",
        window=WINDOW,
        counter="estimate:claude-4.7",
        instructions=RULES,
        actions=[*files(project), *search(project), *shell(project), *sqlite(project / "stock.db")],
        policy=policy,
        summarizer="first-characters",
        limits=Limits(turns=None),
        approve=lambda call: True,
    )
    with agent:
        outcome = agent.run(TASK)
        rows = agent.conversation.history()
        steps = [step for step in agent.conversation.journal.steps(outcome.run.id) if step.kind != "model"]
    wanted = sum(len(plan(turn).calls) for turn in range(1, count + 1))
    assert (outcome.run.state, outcome.run.turns) == ("done", count + 1)
    assert sum(row.stamp.origin == "tool" for row in rows) == len(steps) == wanted
    assert {step.state for step in steps} <= {"done", "failed"}


def test_three_hundred_sub_agents_at_once_stay_in_a_small_window():
    """A hundred steps with three sub-agents each. Their results alone are several times the window."""
    steps, window = 100, 12_000
    looked: Counter[str] = Counter()
    agent: LoopAgent

    def look(place: str) -> str:
        """Look around."""
        looked[place] += 1
        return f"{place}: " + "trees and stones " * 40

    def answer(request: dict[str, Any]) -> str:
        task, *rest = texts(request)
        if task.startswith("place "):
            return done(f"{task} has " + "trees and stones " * 40) if rest else act(("look", {"place": task}))
        turn = agent.conversation.view.turn
        names = [{"name": "scout", "message": f"place {turn}.{number}"} for number in range(3)]
        return next_step(type="Sub-Agent", subAgents=names) if turn <= steps else done("All seen.")

    agent = LoopAgent(
        ScriptedModel(answer, window=window),
        window=window,
        counter="estimate:claude-4.7",
        sub_agents=[LoopAgent(name="scout", actions=[look], result_lease=Lease(5, "compact", "first_chars", 60))],
        limits=Limits(turns=None),
    )
    with agent:
        outcome = agent.run("Look at every place.")
        rows = [row.message.text for row in agent.conversation.history() if row.stamp.origin == "tool"]
        records = [step for step in agent.conversation.journal.steps(outcome.run.id) if step.kind == "sub-agent"]
        assert agent.conversation.journal.verify() == []
    assert (outcome.text, outcome.run.turns, outcome.total.turns) == ("All seen.", steps + 1, steps + 1 + 2 * 3 * steps)
    assert set(looked.values()) == {1}
    assert len(looked) == len(rows) == len(records) == 3 * steps
    assert all(f"place {n // 3 + 1}.{n % 3} has" in row for n, row in enumerate(rows))
    assert {step.state for step in records} == {"done"}
    assert len("".join(rows)) > 4 * 4 * window
