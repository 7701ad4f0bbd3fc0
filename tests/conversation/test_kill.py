"""A process killed during its turns: every acknowledged write is stored and reads the same."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from foveate.ports import Head
from foveate.stores.sqlite import SqliteStore

from .shells import opened, refusals, shown

HERE = Path(__file__).resolve().parent
SRC = HERE.parent.parent / "src"


def start(path: Path, seed: int, *more: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(SRC)}
    arguments = [sys.executable, str(HERE / "turns_child.py"), str(path), str(seed), *more]
    return subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, text=True)


def killed(child: subprocess.Popen[str], random: Random) -> list[list[str]]:
    """Return what a child acknowledged before it was killed at a random moment of a turn."""
    assert child.stdout is not None
    lines = [child.stdout.readline() for _ in range(random.randrange(1, 60))]
    until = time.perf_counter() + random.random() * 0.004
    while time.perf_counter() < until:  # Shorter than any sleep: a turn takes a few milliseconds.
        pass
    child.kill()
    lines += child.stdout.read().splitlines(keepends=True)
    child.stdout.close()
    child.wait()
    return [line.split() for line in lines if line.endswith("\n")]  # The last one may be half a line.


def check_killed_turns(path: Path, kills: int, seed: int) -> None:
    random = Random(seed)
    acknowledged: dict[int, str] = {}
    edits = 0
    for n in range(kills):
        for kind, number, *id in killed(start(path, seed * 1_000 + n), random):
            if kind == "message":
                acknowledged[int(number)] = id[0]
            else:
                edits = int(number)
        with opened("one", store=f"sqlite:///{path}", window=6_000, policy="keep-last-2") as chat:
            assert chat.journal.verify() == []
            assert chat._agent.head.number >= edits
            there = {row.position: row.id for row in chat.history()}
            assert acknowledged.items() <= there.items()
            assert list(there) == list(range(1, len(chat) + 1))
            assert shown(chat.view) == folded_anew(path)
            assert refusals(chat) == []
            edits = chat._agent.head.number
            acknowledged = there
    assert len(acknowledged) > kills
    assert edits > kills


class WithoutSnapshots(SqliteStore):
    """A store without snapshots: every conversation is folded from its history and journal."""

    def snapshot(self, head: Head) -> None:
        return None


def folded_anew(path: Path) -> list[tuple[str, str, str]]:
    with WithoutSnapshots(path) as store:
        return shown(opened("one", store=store, window=6_000, policy="keep-last-2").view)


@pytest.mark.slow
def test_killed_turns_lose_nothing_acknowledged(tmp_path: Path) -> None:
    """F30."""
    check_killed_turns(tmp_path / "chat.db", kills=8, seed=1)


@pytest.mark.slow
def test_repeated_kills_lose_nothing(tmp_path: Path) -> None:
    """F30."""
    check_killed_turns(tmp_path / "chat.db", kills=30, seed=2)


@pytest.mark.slow
def test_killed_turns_release_whole_or_not_at_all(tmp_path: Path) -> None:
    """F30."""
    path, random, gone = tmp_path / "chat.db", Random(3), 0
    for n in range(8):
        killed(start(path, 3_000 + n, "release"), random)
        with SqliteStore(path) as store:
            head = store.open("", "one", create=False)
            assert store.verify(head) == []
            named = {id for _, record in store.records(head) for _, id, _ in record.releases()}
            rows = store.messages(head, 1, head.position)
            assert named == {row.id for row in rows if row.is_released}
            assert len(named) >= gone
            gone = len(named)
    assert gone > 8
