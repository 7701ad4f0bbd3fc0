"""A step: what an engine wants done, one effect at a time, and what it makes of the answers. Never waits itself."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

__all__ = ["ATTEMPTS", "Effect", "Step"]

T = TypeVar("T")
Effect = Callable[[], Any]
"""Something the shell does: a call of the store, or of a summarizer."""
Step = Generator[Effect, Any, T]
"""Yields effects, receives what they return, returns T."""

ATTEMPTS = 5
"""How often an append or a plan is tried anew after another writer came first."""
