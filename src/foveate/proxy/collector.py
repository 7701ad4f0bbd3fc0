"""Settings of Python's collector of cycles for the process of a proxy."""

from __future__ import annotations

import gc
from typing import Final

__all__ = ["spare_collector"]

_THRESHOLDS: Final = (20_000, 5, 2)
"""A pass for every 20,000 new containers, and a full one for about every 400,000. Python's default of 700 for the first
takes a tenth of the time of a request, and the objects of a request, and of a conversation, form few cycles."""


def spare_collector() -> None:
    """Let the collector of cycles run seldom, and leave out what is loaded by now."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
