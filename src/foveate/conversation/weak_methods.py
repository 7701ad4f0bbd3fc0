"""Methods that parts of a conversation call in one another, without keeping one another in memory.

A conversation that is dropped is freed at once, because its parts form no cycle. A server drops many, large ones too,
and Python's collector of cycles may come much later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar
from weakref import WeakMethod

__all__ = ["weakly"]

P = ParamSpec("P")
R = TypeVar("R")


def weakly(method: Callable[P, R]) -> Callable[P, R]:
    """Return a function that calls a bound method. The object must exist as long as the function is called."""
    reference = WeakMethod(method)

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = reference()
        assert bound is not None, "A part of a dropped conversation was called."
        return bound(*args, **kwargs)

    return call
