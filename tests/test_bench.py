"""Every benchmark runs and prints figures. The figures themselves are not checked."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parent.parent / "bench" / "run.py"
FIRST = ("turn", "growing", "append", "search", "digesting", "prompt", "importing")
LATER = ("long", "sizes", "databases", "many", "crowd", "archives", "depth", "proxy", "inspector", "retention")
NAMES = (*FIRST, *LATER, "proxy_load", "proxy_pace", "proxy_peers")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, RUN, *arguments], capture_output=True, text=True, timeout=600)


def test_an_unknown_benchmark_is_refused_with_the_known_ones():
    done = run("turns")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == f"run.py: error: there is no 'turns'; choose of {', '.join(NAMES)}"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_prints_figures(name: str):
    done = run(name, "--quick", "--json")
    assert done.returncode == 0, done.stderr
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    assert figures
    assert {tuple(figure) for figure in figures} == {("what", "value", "unit", "floor", "aim", "note")}
    assert all(math.isfinite(figure["value"]) for figure in figures)
