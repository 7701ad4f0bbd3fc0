"""What the readers of both providers share: how a fault is noted, and what makes text, JSON and ids acceptable.

Knows nothing of either provider. The path of a fault in a message is relative to that message (`.content[1].source`),
because the same message is read once and stands in many requests.
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
"""Rule, path, and what the provider would say."""

CALL_ID: Final = re.compile(r"[a-zA-Z0-9_-]+").fullmatch
TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}").fullmatch


class Facts(Struct):
    """What one message says, as far as its neighbours matter, and what is wrong with it alone."""

    role: str = ""
    faults: list[Fault] = field(default_factory=list)
    images: int = 0
    size: int = 0
    """Characters, without keys and quotes."""

    def fault(self, rule: str, path: str, says: str) -> None:
        """Note something the provider would refuse."""
        self.faults.append((rule, path, says))


def encodes(text: str) -> bool:
    """Whether a string can be sent at all: half of a surrogate pair cannot."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_json(text: str) -> bool:
    """Whether a text is one JSON value."""
    try:
        msgspec.json.decode(text)
    except (ValueError, RecursionError):
        try:  # The slower reader has the last word: it takes escapes and numbers that the quick one does not.
            json.loads(text, parse_constant=_not_json)
        except (ValueError, RecursionError):
            return False
    return True


def _not_json(constant: str) -> Any:
    raise ValueError(f"{constant} is Python, not JSON")


def strings(value: object) -> Iterator[str]:
    """Every string in a JSON value, keys too, in no particular order."""
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
    """The keys of a message or block that a strict reader does not know, sorted."""
    return sorted(map(str, value.keys() - known))
