"""The collector of cycles in the process of a proxy."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed (the extra `proxy`)")

PROGRAM = """
import gc
from collections import deque
from foveate.proxy.collector import spare_collector

spare_collector()
passes = [0, 0, 0]

def count(phase, facts):
    passes[facts["generation"]] += phase == "start"

gc.callbacks.append(count)
latest = deque(maxlen=50_000)
for _ in range(1_000_000):  # Each is in use for a while, and refers to itself.
    one = []
    one.append(one)
    latest.append(one)
print(*passes, len(gc.get_objects()))
"""


def test_the_collector_runs_seldom_and_frees_what_was_dropped():
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    young, _, full, objects = map(int, result.stdout.split())
    assert full >= 1
    assert young < 100  # Python's default makes 1,300 passes.
    assert objects < 600_000
