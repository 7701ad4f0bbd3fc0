"""A program for the tests of long runs: an agent with a scripted model that works in a folder.

The script depends only on the number of earlier answers, so a second process continues where the first was killed. Run
as `python -m agents.worker PROVIDER FOLDER TURNS KILL WHERE`: in turn KILL (0: never) the process kills itself during
a model call or during a tool (`WHERE`). Each request is written to `requests.jsonl` before it is answered.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from foveate import Limits, Message, ReActAgent, Text, ToolCall
from foveate.agents.toolbox import files, search, shell, sqlite
from foveate.testing import ScriptedModel

__all__ = ["RULES", "TASK", "WINDOW", "opened", "planned", "prepared", "work"]

WINDOW = 20_000
RULES = "You look after the program in this folder. Rule 1: never touch granary/migrations. Rule 2: answer in English."
TASK = "Go through the whole program, find what is inconsistent, and keep notes in notes.md."

_SAMPLE = Path(__file__).resolve().parent.parent.parent / "examples" / "sample_project"


def prepared(folder: Path) -> Path:
    """Return a copy of the sample project with a database of customers and products."""
    project = folder / "project"
    shutil.copytree(_SAMPLE, project, ignore=shutil.ignore_patterns("__pycache__"))
    base = sqlite3.connect(project / "stock.db")
    with base:
        base.execute("CREATE TABLE line (number INTEGER PRIMARY KEY, file TEXT, said TEXT)")
        for name in ("data/customers.csv", "data/products.csv"):
            rows = (project / name).read_text("utf-8").splitlines()
            base.executemany("INSERT INTO line (file, said) VALUES (?, ?)", [(name, row) for row in rows])
    base.close()
    return project


def planned(project: Path) -> Callable[[int], Message]:
    """Return the n-th answer of the model: one to three calls of real tools, some of them wrong, and sometimes text."""
    sources = sorted(str(path.relative_to(project)) for path in project.rglob("*.py"))
    logs = sorted(str(path.relative_to(project)) for path in project.glob("logs/*"))

    def calls(turn: int) -> list[tuple[str, dict[str, Any]]]:
        source = sources[turn * 7 % len(sources)]
        match turn % 10:
            case 0:
                return [("list_files", {"path": ".", "deep": True})]
            case 1 | 5:
                return [("read_file", {"path": source}), ("read_file", {"path": sources[turn * 3 % len(sources)]})]
            case 2:
                return [("search_files", {"pattern": "def [a-z_]+", "path": source.partition("/")[0]})]
            case 3:
                return [("run_command", {"command": f"wc -l {source} && grep -n import {source}; tail -3 {logs[0]}"})]
            case 4:
                asked = f"SELECT file, count(*), min(said) FROM line WHERE number > {turn} GROUP BY file"
                return [("query_database", {"sql": asked}), ("database_schema", {})]
            case 6:
                return [("read_file", {"path": logs[turn % len(logs)], "start_line": turn % 90 + 1})]
            case 7:
                notes = "".join(f"- {number}: {sources[number % len(sources)]} is read\n" for number in range(turn))
                return [("write_file", {"path": "notes.md", "content": notes[-2_000:]})]
            case 8:  # Wrong calls have results as well.
                wrong = [
                    ("read_file", {"path": "../secrets"}),
                    ("read_file", {"line": 3}),
                    ("no_such_tool", {"a": turn}),
                ]
                return [*wrong, ("run_command", {"command": "exit 3"})][: turn % 4 + 1]
            case _:
                return [("search_files", {"pattern": "Error|WARN", "path": "logs"}), ("read_file", {"path": source})]

    def plan(turn: int) -> Message:
        said = f"Step {turn}: I look at what comes next. Ticket GR-{4000 + turn} is for {sources[turn % len(sources)]}."
        made = [
            ToolCall(f"call_{turn}_{place}", name, json.dumps(arguments, separators=(",", ":")))
            for place, (name, arguments) in enumerate(calls(turn))
        ]
        return Message("assistant", (*([Text(said)] if turn % 3 == 0 else []), *made))

    return plan


def opened(provider: str, folder: Path, turns: int, *, kill: int = 0, where: str = "model") -> ReActAgent:
    """Return the agent as the process before left it. `turns`: the model is done after so many."""
    project = folder / "project"
    plan = planned(project)
    agent: ReActAgent

    def answer(request: dict[str, Any]) -> Message | str:
        turn = _answered(agent) + 1
        with (folder / "requests.jsonl").open("a", encoding="utf-8") as log:
            print(json.dumps(request), file=log, flush=True)
        if turn == kill and where == "model":
            os.kill(os.getpid(), signal.SIGKILL)
        return plan(turn) if turn <= turns else "I am done: notes.md says what I found."

    tools = [*files(project), *search(project), *map(_timeless, shell(project)), *sqlite(project / "stock.db")]
    if kill and where == "tool":
        tools = [_deadly(item, lambda: _answered(agent) == kill) for item in tools]
    agent = ReActAgent(
        ScriptedModel(answer, provider, window=WINDOW),
        conversation="work",
        store=f"sqlite:///{folder / 'work.db'}",
        window=WINDOW,
        counter="estimate:claude-4.7",  # Named, since the fixture `sizes` does not reach other processes.
        system=RULES,
        tools=tools,
        limits=Limits(turns=None),
        approve=lambda call: True,
        clock=lambda: 1_700_000_000_000,
        expand=True,
    )
    return agent


def work(provider: str, folder: Path, turns: int, *, kill: int = 0, where: str = "model") -> str:
    """Run or resume the task until its end."""
    with opened(provider, folder, turns, kill=kill, where=where) as agent:
        outcome = agent.resume() if agent.conversation.journal.runs() else agent.run(TASK)
        return outcome.text


def _answered(agent: ReActAgent) -> int:
    """Return how often the model has answered in this conversation."""
    return agent.conversation.view.turn - 1


def _timeless(one: Any) -> Any:
    """Return a shell without durations, so that two runs can be compared."""
    inner = one.call

    def call(command: str) -> str:
        return re.sub(r", [0-9.]+ s\]$", "]", str(inner(command=command)))

    return replace(one, call=call)


def _deadly(one: Any, is_now: Callable[[], bool]) -> Any:
    """A tool that kills the process."""
    inner = one.call

    def call(**arguments: Any) -> object:
        if is_now():
            os.kill(os.getpid(), signal.SIGKILL)
        return inner(**arguments)

    return replace(one, call=call)


if __name__ == "__main__":
    provider, folder, turns, kill, where = sys.argv[1:]
    print(work(provider, Path(folder), int(turns), kill=int(kill), where=where))
