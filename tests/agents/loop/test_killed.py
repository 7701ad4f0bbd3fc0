"""A loop agent with parallel sub-agents, killed at random moments under every preset: nothing is lost or done twice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from foveate import open_conversation
from foveate.policies import PRESET_NAMES

from .killed import STEPS, TASKS, opened, provider_of

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")]

TESTS = Path(__file__).resolve().parents[2]
PRESETS = ["keep-last-1" if name == "keep-last-N" else name for name in PRESET_NAMES if name != "off"]
KILLS = 3
UNKNOWN = "It is not known whether write was carried out"


def test_a_run_that_is_killed_again_and_again_ends_in_order(tmp_path: Path):
    """The scripted model refuses illegal requests and those above the window."""
    command = [sys.executable, "-m", "agents.loop.killed", str(tmp_path), str(KILLS), "7", *PRESETS]
    path = os.pathsep.join([str(TESTS), str(TESTS.parent / "src")])
    ended = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, timeout=600, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-4_000:]
    assert int(ended.stdout) > len(PRESETS)
    for policy in PRESETS:
        check(tmp_path, policy)


def check(folder: Path, policy: str) -> None:
    with opened(folder, policy) as agent:
        (run,) = agent.conversation.journal.runs()
        conversations = [agent.conversation]
        for step in agent.conversation.journal.steps(run.id):
            if step.kind == "sub-agent":
                name, store = f"lead/{run.id}/{step.number}", agent.conversation._agent.store
                conversations.append(open_conversation(name, store=store, format=provider_of(policy), window=100_000))
        assert [step.input for step in agent.conversation.journal.steps(run.id) if step.kind == "sub-agent"] == [
            f"Task: {task} {number}" for number in (2, 5) for task in TASKS
        ]
        results: list[str] = []
        for chat in conversations:
            (run,) = chat.journal.runs()
            assert (policy, run.state, chat.journal.verify()) == (policy, "done", [])
            steps = chat.journal.steps(run.id)
            assert "running" not in {step.state for step in steps}
            assert len({step.call for step in steps if step.call}) == sum(bool(step.call) for step in steps)
            results += [row.message.text for row in chat.history() if row.stamp.origin == "tool"]
    carried_out = Counter((folder / f"{policy}.log").read_text().splitlines())
    expected = {f"write lead {n}" for n in range(1, STEPS + 1) if n not in (2, 5)} | {
        f"write {task} {n} {step}" for task in TASKS for n in (2, 5) for step in (1, 2)
    }
    written = {f"write {match[1]}" for text in results if (match := re.search(r"\nwritten ([a-z0-9 ]+):", text))}
    unknown = [text for text in results if UNKNOWN in text]
    assert set(carried_out.values()) == {1}
    assert written <= carried_out.keys() <= expected
    assert len(expected - written) == len(unknown)
    failed = [text for text in results if ", which failed:" in text and UNKNOWN not in text]
    assert failed == []
