"""Sweeps that fail one operation after another, in three parts: a quick run makes the first part."""

from __future__ import annotations

import pytest

__all__ = ["STEP", "by_thirds"]

STEP = 3
"""A part fails every third operation. The three parts begin with the first, the second and the third."""
by_thirds = pytest.mark.parametrize("n", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3))])
