"""A loop agent with real tools, three hundred steps and a small window, under every preset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foveate import Limits, LoopAgent
from foveate.agents.toolbox import files, search, shell, sqlite
from foveate.policies import PRESET_NAMES
from foveate.testing import ScriptedModel

from ..worker import RULES, TASK, WINDOW, planned, prepared
from .scripts import done

pytestmark = pytest.mark.slow

_STEPS = 300
_PRESETS = ["keep-last-3" if name == "keep-last-N" else name for name in PRESET_NAMES if name != "off"]


@pytest.mark.filterwarnings("ignore:keep_recent")
@pytest.mark.parametrize("policy", _PRESETS)
def test_three_hundred_steps_stay_in_a_small_window(tmp_path: Path, policy: str):
    """The scripted model refuses illegal requests and those above the window. Each call has one step and one result."""
    provider = "anthropic" if _PRESETS.index(policy) % 2 else "openai"
    project = prepared(tmp_path)
    plan = planned(project)
    agent: LoopAgent

    def answer(request: dict[str, Any]) -> str:
        turn = agent.conversation.view.turn
        if turn > _STEPS:
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
    wanted = sum(len(plan(turn).calls) for turn in range(1, _STEPS + 1))
    assert (outcome.run.state, outcome.run.turns) == ("done", _STEPS + 1)
    assert sum(row.stamp.origin == "tool" for row in rows) == len(steps) == wanted
    assert {step.state for step in steps} <= {"done", "failed"}
