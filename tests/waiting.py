"""Waiting for what another thread or process does: for a time, and then it is a failure."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

__all__ = ["until"]


def until(holds: Callable[[], object], seconds: float = 60.0, pause: float = 0.002) -> None:
    """Look again and again, every `pause` seconds, until it holds. Fails where it does not within so many seconds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it does not come"
        threading.Event().wait(pause)
