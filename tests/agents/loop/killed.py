"""A program for tests: a loop agent with sub-agents at once, which is killed at random moments and continues.

Run as `python -m agents.loop.killed FOLDER KILLS SEED POLICY...`. For each policy it forks a process that works on the
task and kills itself a random time after a random model call, and forks the next one, until one has finished; after
`KILLS` kills the next one may finish. It prints the number of kills.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from foveate import LoopAgent
from foveate.agents import tool
from foveate.testing import ScriptedModel

__all__ = ["STEPS", "TASKS", "WINDOW", "opened", "provider_of"]

WINDOW = 9_000
TASKS = ["north", "east", "south"]
STEPS = 7
"""Steps of the agent before it is done. Steps 2 and 5 start sub-agents."""


def provider_of(policy: str) -> str:
    return "openai" if len(policy) % 2 else "anthropic"


def opened(folder: Path, policy: str, called: Callable[[], object] = lambda: None) -> Any:
    """Return the agent as the process before left it. `called`: called at each model call."""

    def note(text: str) -> None:
        with (folder / f"{policy}.log").open("a") as log:
            print(text, file=log)

    def write(text: str) -> str:
        """Write something down."""
        note(f"write {text}")
        time.sleep(0.01)  # A kill in this time leaves the end of the call unknown.
        return f"written {text}: " + "and so on " * 150

    def look(place: str) -> str:
        """Look at something."""
        return f"{place}: " + "trees " * 150

    def play(request: dict[str, Any]) -> str:
        called()
        said = json.dumps(request["messages"])
        time.sleep(0.001)
        number = max([int(step) for step in re.findall(r"step (\d+) of", said)], default=0) + 1
        task = re.search(r"Task: ((?:north|east|south) \d)", said)
        return lead_step(number) if "Task: all" in said or task is None else task_step(task[1], number)

    actions = [tool(write), tool(look, is_repeatable=True)]
    return LoopAgent(
        ScriptedModel(play, provider_of(policy), window=WINDOW),
        name="lead",
        store=f"sqlite:///{folder / policy}.db",
        window=WINDOW,
        counter="estimate:claude-4.7",
        policy=policy,
        summarizer="first-characters",
        actions=actions,
        sub_agents=[LoopAgent(name="scout", actions=actions)],
    )


def step_of(number: int, of: str, **chosen: Any) -> str:
    return json.dumps({"taskComplete": False, "reasoning": f"recap - step {number} of {of}.", "nextStep": chosen})


def act(number: int, of: str, *actions: tuple[str, dict[str, str]]) -> str:
    named = [{"name": name, "params": params} for name, params in actions]
    return step_of(number, of, type="Actions", actions=named)


def lead_step(number: int) -> str:
    if number > STEPS:
        return json.dumps({"taskComplete": True, "message": "All done."})
    if number in (2, 5):
        tasks = [{"name": "scout", "message": f"Task: {name} {number}"} for name in TASKS]
        return step_of(number, "lead", type="Sub-Agent", subAgents=tasks)
    return act(number, "lead", ("write", {"text": f"lead {number}"}), ("look", {"place": f"place {number}"}))


def task_step(task: str, number: int) -> str:
    if number > 2:
        return json.dumps({"taskComplete": True, "message": f"{task} is clear."})
    return act(number, task, ("write", {"text": f"{task} {number}"}), ("look", {"place": task}))


def work(folder: Path, policy: str, kill: tuple[int, float] | None) -> None:
    """Run or resume the task in this process. `kill`: number of the model call, and seconds after it, of the end."""
    calls = count()

    def called() -> None:
        if kill is not None and next(calls) == kill[0]:
            threading.Timer(kill[1], os.kill, (os.getpid(), signal.SIGKILL)).start()

    with opened(folder, policy, called) as agent:
        outcome = agent.resume() if len(agent.conversation) else agent.run("Task: all")
        assert outcome.text == "All done.", str(outcome)


def main(folder: Path, kills: int, seed: int, policies: list[str]) -> None:
    warnings.simplefilter("ignore")
    chance, killed = random.Random(seed), 0
    for policy in policies:
        status = int(signal.SIGKILL)
        for attempt in range(kills + 1):
            kill = (chance.randrange(9), chance.uniform(0, 0.04)) if attempt < kills else None
            process = os.fork()
            if process == 0:
                code = 1
                try:
                    work(folder, policy, kill)
                    code = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    sys.stderr.flush()
                    os._exit(code)
            _, status = os.waitpid(process, 0)
            if status != signal.SIGKILL:
                break
            killed += 1
        if status != 0:
            sys.exit(f"{policy}: a process ended with {status}")
    print(killed)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
