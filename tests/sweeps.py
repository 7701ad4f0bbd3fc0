"""Sweeps over every operation of a store: one after another fails, or is preceded by another process.

Those that fail operations have three parts, and a quick run makes the first part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

__all__ = ["STEP", "Interrupted", "by_thirds"]

STEP = 3
"""A part fails every third operation. The three parts begin with the first, the second and the third."""
by_thirds = pytest.mark.parametrize("n", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3))])


class Interrupted:
    """A store before whose n-th operation another process acts."""

    def __init__(self, store: Any) -> None:
        self.plain, self._left, self._act = store, 0, lambda: None

    def interrupt(self, n: int, act: Callable[[], object]) -> None:
        """Call `act` before the n-th operation from now."""
        self._left, self._act = n, act

    def has_waited(self) -> bool:
        """Whether there were fewer operations."""
        return self._left > 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.plain, name)

        def run(*arguments: Any, **options: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                self._act()
            return method(*arguments, **options)

        return run
