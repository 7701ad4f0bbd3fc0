"""Names of tools and actions as people write them, and as providers accept them."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TypeVar

__all__ = ["LONGEST_NAME", "add_tool_names", "add_tool_names_to", "find_named", "tool_name"]

T = TypeVar("T")

LONGEST_NAME = 500
"""Characters of the name of a tool or an action. A database keeps no longer one."""
_LEGAL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
"""Names of functions that every provider accepts: OpenAI at most 64 characters, Gemini no digit or hyphen in front."""
_KEPT = 64 - 9
"""Characters that remain of a name to which `_` and 8 digits of a hash are added."""


def tool_name(name: str) -> str:
    """Return the name that providers receive for a tool or an action of this name.

    Accents are dropped, and each sequence of other characters becomes `_`: `Query Database` is `Query_Database`. If
    letters or digits have no such form, or the result is longer than 64 characters, a hash of the name ends it, so that
    different names stay different. A name that providers accept stays the same.
    """
    if _LEGAL.fullmatch(name):
        return name
    letters = [letter for letter in unicodedata.normalize("NFKD", name) if not unicodedata.combining(letter)]
    is_lost = any(letter.isalnum() and not letter.isascii() for letter in letters)
    legal = re.sub(r"[^a-zA-Z0-9_-]+", "_", "".join(letters)).strip("_")
    if is_lost or not legal or len(legal) > 64:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        legal = f"{legal[:_KEPT].rstrip('_') or 'tool'}_{digest}"
    return legal if legal[0].isalpha() else f"_{legal[:63]}"


def find_named(values: Mapping[str, T], name: str) -> T | None:
    """Return the value under this name; else the only one whose name differs in case, spaces, `-` and `_` alone:
    `query_database` finds `Query Database`. Return None if there is none.
    """
    if name in values:
        return values[name]
    key = _key(name)
    same = [value for other, value in values.items() if _key(other) == key]
    return same[0] if len(same) == 1 else None


def _key(name: str) -> str:
    return tool_name(name).replace("-", "_").casefold()


def add_tool_names(names: Iterable[str]) -> frozenset[str]:
    """Return the names, and the names that providers receive for them. Results of native calls have the latter."""
    return frozenset(form for name in names for form in (name, tool_name(name)))


def add_tool_names_to(values: Mapping[str, T]) -> dict[str, T]:
    """Return the values by name, and also by the names that providers receive."""
    return {**{tool_name(name): value for name, value in values.items()}, **values}
