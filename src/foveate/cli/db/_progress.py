"""How far a long command is: one line that is written over, where somebody looks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress"]

_EVERY = 0.2
"""Seconds."""


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Something to tell how far it is, in a few words. They go to standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda words: None
        return
    last = time.monotonic()

    def tell(words: str) -> None:
        nonlocal last
        if time.monotonic() - last > _EVERY:
            last = time.monotonic()
            sys.stderr.write(f"\r{words}\x1b[K")
            sys.stderr.flush()

    try:
        yield tell
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
