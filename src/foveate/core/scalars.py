"""Strings and numbers of derived types: members of enums, numpy's values, strings of frameworks.

They are values like any other, but an encoder that knows only the built-in types refuses them.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

__all__ = ["plain_scalar"]


def plain_scalar(value: object) -> Any:
    """Return the same string or number as a `str`, `int`, `float` or `bool`. Raises TypeError for any other value."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        return value.__index__() if not isinstance(value, int) else int.__index__(value)
    if isinstance(value, Real):
        return float(value)
    raise TypeError(f"a {type(value).__name__} is not a JSON value")
