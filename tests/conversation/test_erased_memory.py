"""No object of the process holds an erased text: no cache of a policy or a summarizer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from foveate.summarizers import cached

from .memory_child import opened, summarize, talk

CHILD = Path(__file__).with_name("memory_child.py")
SRC = CHILD.parent.parent.parent / "src"


def run_child(do: str, folder: Path, *how: str) -> tuple[int, list[str]]:
    """Run a child process; return how many objects held the erased word before the erasure, and which hold it
    afterwards.
    """
    command = [sys.executable, str(CHILD), do, str(folder), *how]
    environment = {**os.environ, "PYTHONPATH": str(SRC)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    before, after = json.loads(done.stdout)
    return before, after


@pytest.mark.parametrize(
    "policy",
    ["balanced", *(pytest.param(name, marks=pytest.mark.slow) for name in ("prune-and-compact", "browser")), "expire"],
)
def test_erased_text_remains_in_no_object(tmp_path: Path, policy: str) -> None:
    before, after = run_child("erased_here", tmp_path, policy)
    assert (before >= 2, after) == (True, [])


def test_text_of_the_newest_message_remains_in_no_object_when_erased(tmp_path: Path) -> None:
    before, after = run_child("newest_erased", tmp_path, "none")
    assert (before >= 1, after) == (True, [])


def test_learning_of_an_erasure_empties_the_caches(tmp_path: Path) -> None:
    before, after = run_child("erased_elsewhere", tmp_path)
    assert (before >= 2, after) == (True, [])


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_erasing_empties_the_caches_of_the_process(tmp_path: Path, kind: str) -> None:
    before, after = run_child("erased_by_the_store", tmp_path, kind)
    assert (before > 0, after) == (True, [])


def test_mapping_of_the_caller_is_not_changed(tmp_path: Path) -> None:
    mine: dict[str, bytes] = {}
    with opened(tmp_path / "chat.db", "prune-and-compact", cached(summarize, mine)) as chat:
        talk(chat)
        kept = dict(mine)
        chat.privacy.erase("m13")
    assert mine == kept != {}
