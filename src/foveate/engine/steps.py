"""A step: what an engine wants done, one effect at a time, and what it makes of the answers. Never waits itself."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

__all__ = ["ATTEMPTS", "PLANS", "Effect", "Step"]

T = TypeVar("T")
Effect = Callable[[], Any]
"""Something the shell does: a call of the store, or of a summarizer."""
Step = Generator[Effect, Any, T]
"""Yields effects, receives what they return, returns T."""

ATTEMPTS = 5
"""How often an append that takes no turn is tried, and one that does where it is too far behind for that."""
PLANS = 100
"""How often a plan or an edit is made anew after another writer changed the view first. Each time somebody else got
through, and somebody always does; that one writer is never the first for so long does not happen by chance.
"""
