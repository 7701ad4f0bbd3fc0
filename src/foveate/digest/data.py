"""The shape of JSON: which keys, how many of what, in a line that looks like JSON without its values.

Time is bounded by reading only texts of up to two million characters, and of their values only the upper levels.
"""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["parsed", "skeleton"]

_MOST_PARSED = 2_000_000
_KEYS = 12
_ROOM = 118


def parsed(text: str) -> Any:
    """The value of a JSON text; None where it is no JSON, too long or nested too deeply."""
    if len(text) > _MOST_PARSED:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def skeleton(text: str) -> str:
    """Keys and counts of the upper levels, as `{name: {first}, orders: [12 of {id, total}]}`; empty for no JSON."""
    value = parsed(text)
    if value is None and text[:1] == "{":
        # One object a line: the first stands for all.
        first, _, more = text.partition("\n")
        value = parsed(first)
        if isinstance(value, dict) and more:
            return f"{more.count(chr(10)) + 1} lines as {_within(value)}"
    return _within(value) if isinstance(value, dict | list) else ""


def _within(value: Any) -> str:
    for depth in (3, 2, 1):
        shape = _shape(value, depth)
        if len(shape) <= _ROOM:
            return shape
    return shape[: _ROOM - 1] + "…"


def _shape(value: Any, depth: int) -> str:
    """Depth bounds the recursion."""
    match value:
        case dict() if not depth:
            return f"{{{len(value)} keys}}"
        case dict():
            fields = []
            for key in list(value)[:_KEYS]:
                inner = value[key]
                nested = f": {_shape(inner, depth - 1)}" if isinstance(inner, dict | list) and inner else ""
                fields.append(key[:40] + nested)
            more = f", … {len(value)} keys" if len(value) > _KEYS else ""
            return f"{{{', '.join(fields)}{more}}}"
        case list():
            first = value[0] if value else None
            inner = f" of {_shape(first, depth - 1)}" if depth and isinstance(first, dict | list) and first else ""
            return f"[{len(value)}{inner}]"
        case _:
            return ""
