"""Waiting for what another thread or process does: for a time, and then it is a failure. And stories in which one thing
is to come too late, and another one in time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

__all__ = ["until", "with_time"]


def until(holds: Callable[[], object], seconds: float = 60.0, pause: float = 0.002) -> None:
    """Look again and again, every `pause` seconds, until it holds. Fails where it does not within so many seconds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it does not come"
        threading.Event().wait(pause)


def with_time(story: Callable[[float], object], *seconds: float) -> None:
    """Tell a story with a short time, and with longer ones where it does not come out as it should.

    Something in it takes too long whatever the time is, and something else does not, which a machine that stands still
    for a moment makes untrue. What is wrong is so with the longest time too.
    """
    *short, long = seconds or (0.05, 1.0, 30.0)
    for time_out in short:
        try:
            story(time_out)
        except (Exception, pytest.fail.Exception):  # The latter is no Exception.
            continue
        return
    story(long)
