"""Processes append to one conversation at once, compact it, and are killed: nothing is lost, doubled or refused."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from crowd_child import BILLED, LEAST, Log, marks, opened

from foveate.core.edits import Summarize
from foveate.testing.bodies import BodyChecker

HERE = Path(__file__).resolve().parent
SRC = HERE.parent.parent / "src"
SHARE = 0.75
"""Of all that is said, what the others say at most between two messages of one who lives. Counted, not timed: whatever
holds all of them up counts for nothing.
"""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/crowd.db?wait=120"
    return str(request.getfixturevalue("postgres_url")) + "&pool=2&wait=120"


class Crowd:
    """Writers of one conversation, each a process, and the kills so far."""

    def __init__(self, url: str, folder: Path, count: int, seconds: float, seed: int) -> None:
        self.names = [f"w{n}" for n in range(count)]
        self.paths = {name: folder / f"{name}.log" for name in self.names}
        self.killed: list[tuple[str, float]] = []
        self._url, self._random = url, Random(seed)
        self._processes = {name: self._start(name) for name in self.names}
        for process in self._processes.values():
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"  # So that all begin at once.
        self.ends = time.time() + seconds
        for process in self._processes.values():
            self._begin(process)

    def _start(self, name: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SRC), str(HERE)])}
        seed = str(self._random.randrange(10**9))
        child = [sys.executable, str(HERE / "crowd_child.py"), self._url, name, str(self.paths[name]), seed]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(child, env=environment, text=True, **pipes)

    def _begin(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        process.stdin.write(f"{self.ends}\n")
        process.stdin.flush()

    def run(self, pause: float) -> None:
        """Kill a random one about every `pause` seconds, and start its successor, until the end."""
        while time.time() < self.ends - 0.5:
            name = self._random.choice(self.names)
            try:
                self._processes[name].wait(timeout=self._random.uniform(0.2, 1.8) * pause)
            except subprocess.TimeoutExpired:
                self._processes[name].kill()
                self._close(self._processes[name])
                self.killed.append((name, time.time()))
            else:
                break  # It ended by itself, which its file explains.
            self._processes[name] = self._start(name)
            self._begin(self._processes[name])
        for process in self._processes.values():
            self._close(process)

    def _close(self, process: subprocess.Popen[str]) -> None:
        process.wait(timeout=300)
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()

    def check(self) -> dict[str, int]:
        """Check everything that must hold. Return the numbers of writes."""
        logs = {name: Log(path) for name, path in self.paths.items()}
        lines = [line for log in logs.values() for line in log.lines]
        assert [line for line in lines if line[0] in ("failed", "illegal")] == []
        assert [log.lines[-1][0] for log in logs.values()] == ["ended"] * len(logs)
        with opened(self._url, 3) as chat:
            assert chat.journal.verify() == []
            rows, records = chat.history(), chat.journal.records()
            self._check_messages(logs, rows)
            self._check_journal(lines, records)
            self._check_views(chat, records)
            replies = sum(row.stamp.usage is not None for row in rows)
            totals = chat.totals()
            assert (totals.calls_billed, totals.usage.input) == (replies, replies * (BILLED.input or 0))
            assert (totals.calls, totals.tokens_history) == (
                len({row.stamp.turn for row in rows if row.stamp.origin == "assistant"}),
                sum(row.stamp.tokens for row in rows),
            )
        summaries = sum(isinstance(edit, Summarize) for record in records for edit in record.edits)
        return {"messages": len(rows), "records": len(records), "summaries": summaries, "killed": len(self.killed)}

    def _check_messages(self, logs: dict[str, Log], rows: Any) -> None:
        """Check that every acknowledged message is stored once, in its writer's order, so that no result precedes its
        call.

        Each writer may have one more message, its last, that was written and not acknowledged.
        """
        found = marks(rows)
        assert [mark for mark, count in Counter(mark for mark, _ in found).items() if count > 1] == []
        assert len(found) == len(rows)
        for name, log in logs.items():
            said = [line for line in log.lines if line[0] == "said"]
            own = [(mark, id) for mark, id in found if mark.split()[0] == name]
            assert [(f"{name} {n}", id) for _, n, id in said] == own

    def _check_journal(self, lines: list[Any], records: Any) -> None:
        """Edits have consecutive numbers, and each acknowledged one is the record of its writer."""
        numbers = [number for record in records for number, _ in record.numbered()]
        assert numbers == list(range(1, len(numbers) + 1))
        by_hand = {(record.first, record.last) for record in records if record.author == "edit"}
        told = [(line[1], line[2]) for line in lines if line[0] == "edited"]
        assert (len(set(told)), set(told) - by_hand) == (len(told), set())
        assert len(by_hand) - len(told) <= len(self.killed)  # One more where it was killed before it could say so.

    def _check_views(self, chat: Any, records: Any) -> None:
        """Check that the view is legal now and at some earlier calls."""
        turns = sorted({record.turn for record in records})
        for turn in turns[:: max(1, len(turns) // 8)]:
            body = chat.format.body(chat.as_of(turn), profile=chat._agent.profile)
            assert BodyChecker("openai").check(body) == []
        assert BodyChecker("openai").check(chat.prompt()) == []

    def check_progress(self) -> None:
        """Check that every living writer progresses: between two of its messages the others append a small share at
        most.
        """
        with opened(self._url, 3) as chat:
            places = {row.id: row.position for row in chat.history()}
        for name, path in self.paths.items():
            lines = [line for line in Log(path).lines if line[0] in ("opened", "said")]
            for before, line in pairwise(lines):
                if before[0] == line[0] == "said":
                    gap = places[line[2]] - places[before[2]]
                    assert gap < SHARE * len(places), (name, before, line, len(places))


@pytest.mark.slow
def test_killed_processes_in_one_conversation_lose_nothing(url: str, tmp_path: Path) -> None:
    crowd = Crowd(url, tmp_path, count=2, seconds=2.5, seed=1)
    crowd.run(pause=0.7)
    done = crowd.check()
    assert done["messages"] >= 2 * LEAST


@pytest.mark.slow
def test_eight_processes_append_and_compact_together(url: str, tmp_path: Path) -> None:
    """F35."""
    crowd = Crowd(url, tmp_path, count=8, seconds=20.0, seed=2)
    crowd.run(pause=2.0)
    done = crowd.check()
    crowd.check_progress()
    assert done["summaries"] > 0
    assert done["killed"] >= 5
