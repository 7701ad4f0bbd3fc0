"""Settings of Python's collector of cycles for the process of a proxy."""

from __future__ import annotations

import gc
from typing import Final

__all__ = ["spare_collector"]

_NEW_OBJECTS: Final = 50_000
"""New containers after which the collector runs. Python's default of 700 takes a tenth of the time of a request."""


def spare_collector() -> None:
    """Let the collector of cycles run seldom, and leave out what is loaded by now.

    Few objects of a request are in cycles, and open conversations are large: each full pass would visit them all.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, 20, 100)
