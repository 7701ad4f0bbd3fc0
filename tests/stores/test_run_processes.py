"""Steps of one run that several processes store at once, and their state when one process is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from step_child import output

from foveate.stores.sqlite import SqliteStore

pytestmark = pytest.mark.slow

HERE = Path(__file__).resolve().parent
SRC = HERE.parent.parent / "src"


def start(path: Path, run: str, first: int, count: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SRC), str(HERE)])}
    command = [sys.executable, str(HERE / "step_child.py"), str(path), run, str(first), str(count)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def acknowledged(lines: list[str]) -> dict[int, str]:
    """Return the newest acknowledged state of each step. A line that was cut is skipped."""
    said = [line.split() for line in lines if line.endswith((" running\n", " done\n"))]
    return {int(number): state for number, state in said}


def check_kept(path: Path, said: dict[int, str]) -> int:
    """Check that every acknowledged step is stored whole, and no other step. Return the number of steps."""
    with SqliteStore(path) as store:
        head = store.open("acme", "one", create=False)
        assert store.verify(head) == []
        steps = {step.number: step for step in store.steps(head, "shared")}
    for number, state in said.items():
        assert number in steps
        assert state == "running" or steps[number].state == "done"
    for number, step in steps.items():
        assert step.input == f'{{"n":{number}}}'
        assert step.output == (output(number) if step.state == "done" else "")
    return len(steps)


def check_killed(path: Path, kills: int, seed: int) -> None:
    random, said, first = Random(seed), dict[int, str](), 1
    for kill in range(kills):
        child = start(path, f"r{kill}", first, 10_000)
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(random.randrange(1, 80))]
        child.kill()
        lines += child.stdout.readlines()
        child.stdout.close()
        child.wait()
        said |= acknowledged(lines)
        assert check_kept(path, said) >= len(said)
        first = max(said) + 10
    with SqliteStore(path) as store:
        runs = store.runs(store.open("acme", "one"))
    assert [run.id for run in runs] == [f"r{kill}" for kill in range(kills)]


def test_killed_agent_loses_no_acknowledged_step(tmp_path: Path) -> None:
    """F30."""
    check_killed(tmp_path / "chat.db", kills=3, seed=1)


def test_repeatedly_killed_agent_loses_no_step(tmp_path: Path) -> None:
    """F30."""
    check_killed(tmp_path / "chat.db", kills=40, seed=2)


def test_two_processes_keep_steps_of_one_run_and_lose_none(tmp_path: Path) -> None:
    """Both also create the file at the same moment, and both store ten of the steps."""
    path = tmp_path / "chat.db"
    children = [start(path, "a", 1, 100), start(path, "b", 91, 100)]
    lines = [child.communicate(timeout=300)[0].splitlines(keepends=True) for child in children]
    assert [child.returncode for child in children] == [0, 0]
    said = [acknowledged(of_one) for of_one in lines]
    assert [sorted(one) for one in said] == [[*range(1, 101)], [*range(91, 191)]]
    assert all(state == "done" for one in said for state in one.values())
    with SqliteStore(path) as store:
        head = store.open("acme", "one", create=False)
        assert sorted(run.id for run in store.runs(head)) == ["a", "b"]
        states = {step.number: (step.state, step.output) for step in store.steps(head, "shared")}
    # Of a step that both keep, the one that was kept last counts, which may be the beginning of the slower one.
    assert {number: state for number, state in states.items() if number not in range(91, 101)} == {
        number: ("done", output(number)) for number in range(1, 191) if number not in range(91, 101)
    }
    assert {*range(91, 101)} <= states.keys()
