"""CPU time of programs, compared with a known program, because a slow or busy machine slows both."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping

__all__ = ["is_cheap", "processor_seconds"]

YARDSTICK = "import asyncio, dataclasses, email, inspect, json, logging, sqlite3, unittest, urllib.request"
"""It takes about as long as importing foveate on any machine."""


def processor_seconds(*arguments: str, env: Mapping[str, str] | None = None) -> float:
    """Return the CPU time of a Python with these arguments. Fails if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=dict(env or os.environ), capture_output=True, text=True, timeout=300)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def is_cheap(measured: Callable[[], float], seconds: float, yardsticks: float, tries: int = 12) -> bool:
    """Return whether one measurement is below `seconds`, or below the yardstick times `yardsticks` measured directly
    after.
    """
    return any(
        (cost := measured()) < seconds or cost < yardsticks * processor_seconds("-c", YARDSTICK) for _ in range(tries)
    )
