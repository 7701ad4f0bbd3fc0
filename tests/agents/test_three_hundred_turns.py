"""An agent with real tools, three hundred turns and a small window, which is killed and continues."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from foveate.core.runs import step_of

from .worker import TASK, WINDOW, opened, planned, prepared, work

pytestmark = pytest.mark.slow

TESTS = Path(__file__).resolve().parent.parent


def requests(folder: Path) -> list[str]:
    """Return the requests in order, as JSON."""
    return (folder / "requests.jsonl").read_text("utf-8").splitlines()


def killed(folder: Path, provider: str, turns: int, kill: int, where: str) -> None:
    """Run the worker in its own process until it kills itself."""
    command = [sys.executable, "-m", "agents.worker", provider, str(folder), str(turns), str(kill), where]
    path = os.pathsep.join([str(TESTS), str(TESTS.parent / "src")])
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, timeout=600, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr[-2_000:]


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_three_hundred_turns_stay_in_a_small_window(tmp_path: Path, provider: str):
    """The scripted model refuses illegal requests and those above the window."""
    project = prepared(tmp_path)
    assert work(provider, tmp_path, 300) == "I am done: notes.md says what I found."
    with opened(provider, tmp_path, 300) as agent:
        chat, plan = agent.conversation, planned(project)
        replies = [row.message for row in chat.history() if row.message.role == "assistant"]
        results = {row.message.result.call_id: row for row in chat.history() if row.message.result}
        (run,) = chat.journal.runs()
        steps = {step.number: step for step in chat.journal.steps(run.id)}
    assert (run.state, run.turns, len(requests(tmp_path)), run.task) == ("done", 301, 301, TASK)
    assert [reply.calls for reply in replies] == [*(plan(turn).calls for turn in range(1, 301)), ()]
    assert set(results) == {call.call_id for reply in replies for call in reply.calls}
    for row in results.values():  # Step and history hold the same, whatever the view shows.
        step = steps[step_of(row.stamp.step)[1]]
        assert (step.call, step.message, step.state != "running") == (row.message.result.call_id, row.id, True)
        assert step.output == row.message.text
    assert sum(len(row.message.text) for row in results.values()) > 4 * WINDOW * 4


@pytest.mark.parametrize(("kill", "where"), [(41, "model"), (60, "tool"), (95, "tool"), (120, "model")])
def test_a_killed_agent_continues_with_the_same_request(tmp_path: Path, kill: int, where: str):
    """`tool`: in a turn with reading tools only, so that a call can be repeated."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        folder.mkdir()
        prepared(folder)
    work("anthropic", whole, 125)
    killed(broken, "anthropic", 125, kill, where)
    before = len(requests(broken))
    assert before == kill
    work("anthropic", broken, 125)
    sent = requests(broken)
    if where == "model":  # The reply to this request was lost, so it is requested again.
        assert sent[before] == sent[before - 1]
        del sent[before]
    assert sent == requests(whole)


def test_an_unknown_end_is_reported_after_a_kill(tmp_path: Path):
    """A command that ran when the process was killed is not run again: its result says that its end is unknown."""
    prepared(tmp_path)
    killed(tmp_path, "openai", 60, 53, "tool")
    work("openai", tmp_path, 60)
    resumed = json.loads(requests(tmp_path)[53])["messages"]
    (answer,) = [message for message in resumed if message.get("tool_call_id") == "call_53_0"]
    assert answer["content"].startswith("It is not known whether run_command was carried out")
