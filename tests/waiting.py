"""Waiting for other threads and processes, with a time limit, and tests of time limits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

__all__ = ["until", "with_time"]


def until(holds: Callable[[], object], seconds: float = 60.0, pause: float = 0.002) -> None:
    """Check every `pause` seconds until it holds. Fails if it does not hold within `seconds`."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it does not come"
        threading.Event().wait(pause)


def with_time(story: Callable[[float], object], *seconds: float) -> None:
    """Run a test with a short time limit, and with longer ones if it fails.

    In such a test one operation must exceed the limit and another one must not. A machine that stalls for a moment can
    break the second part. A real fault also fails with the longest limit.
    """
    *short, long = seconds or (0.05, 1.0, 30.0)
    for time_out in short:
        try:
            story(time_out)
        except (Exception, pytest.fail.Exception):  # The latter is not a subclass of Exception.
            continue
        return
    story(long)
