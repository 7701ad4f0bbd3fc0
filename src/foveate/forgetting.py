"""Lets go of what this process keeps only to be quick: texts that were worked out before, by the texts they came from.

Each such cache is bounded, and asked only with a text that somebody still has; but it holds on to what was erased.
"""

from __future__ import annotations

import sys

__all__ = ["forget"]

_WHERE = ("foveate.policies", "foveate.digest")
"""Packages whose functions remember what they made of messages."""


def forget() -> None:
    """Empty the caches of all functions in these packages. It costs time, the next time, and changes nothing."""
    for name, module in list(sys.modules.items()):
        if name.startswith(_WHERE):
            for value in list(vars(module).values()):
                clear = getattr(value, "cache_clear", None)
                if callable(clear) and callable(value):
                    clear()
