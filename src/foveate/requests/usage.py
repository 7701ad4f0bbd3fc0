"""Sums of the usage that several answers report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["added"]


def added(first: Mapping[str, Any] | None, second: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the sum of two reports of usage: numbers are added, in objects too; of anything else the second counts."""
    total = dict(first or {})
    for key, value in (second or {}).items():
        before = total.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping | None):
            total[key] = added(before, value)
        elif _is_count(value) and _is_count(before):
            total[key] = before + value
        elif value is not None or key not in total:
            total[key] = value
    return total


def _is_count(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
