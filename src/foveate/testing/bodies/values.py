"""Shared parts of the readers of both providers: faults, and checks of text, JSON and ids.

The path of a fault is relative to its message (`.content[1].source`), because one message occurs in many requests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct, field

__all__ = ["CALL_ID", "TOOL_NAME", "Facts", "Fault", "encodes", "is_json", "strings", "unknown_keys"]

Fault = tuple[str, str, str]
"""Rule, path, and the provider's error."""

CALL_ID: Final = re.compile(r"[a-zA-Z0-9_-]+").fullmatch
TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}").fullmatch


class Facts(Struct):
    """The facts of one message that its neighbours need, and its faults."""

    role: str = ""
    faults: list[Fault] = field(default_factory=list)
    images: int = 0
    size: int = 0
    """Characters, without keys and quotes."""

    def fault(self, rule: str, path: str, problem: str) -> None:
        """Add a problem that the provider would refuse."""
        self.faults.append((rule, path, problem))


def encodes(text: str) -> bool:
    """Return whether a string can be encoded: half of a surrogate pair cannot."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_json(text: str) -> bool:
    """Return whether a text is one JSON value."""
    try:
        msgspec.json.decode(text)
    except (ValueError, RecursionError):
        try:  # The slower parser decides: it accepts escapes and numbers that the fast one refuses.
            json.loads(text, parse_constant=_not_json)
        except (ValueError, RecursionError):
            return False
    return True


def _not_json(constant: str) -> Any:
    raise ValueError(f"{constant} is Python, not JSON")


def strings(value: object) -> Iterator[str]:
    """Yield every string in a JSON value, including keys, in no particular order."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            pending.extend(item.keys())
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


def unknown_keys(value: Mapping[str, Any], known: Iterable[str]) -> list[str]:
    """Return the sorted keys of a message or block that a strict reader does not know."""
    return sorted(map(str, value.keys() - known))
