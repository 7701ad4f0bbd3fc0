"""What a program costs in processor time, beside what this machine takes for a known one: a slow or busy machine makes
both dearer. Knows nothing of what is measured.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping

__all__ = ["is_cheap", "processor_seconds"]

YARDSTICK = "import asyncio, dataclasses, email, inspect, json, logging, sqlite3, unittest, urllib.request"
"""It takes about as long as importing foveate, whatever the machine."""


def processor_seconds(*arguments: str, env: Mapping[str, str] | None = None) -> float:
    """What a Python takes that is run with these arguments. Fails where that fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=dict(env or os.environ), capture_output=True, text=True, timeout=300)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def is_cheap(measured: Callable[[], float], seconds: float, yardsticks: float, tries: int = 12) -> bool:
    """Whether it once takes less than so many seconds, or than so many times the yardstick, measured right after it."""
    return any(
        (cost := measured()) < seconds or cost < yardsticks * processor_seconds("-c", YARDSTICK) for _ in range(tries)
    )
