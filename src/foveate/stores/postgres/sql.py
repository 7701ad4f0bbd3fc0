"""Rewrite statements for psycopg: they are written for all databases, with `?` and BLOB."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

__all__ = ["Rewritten", "rewritten"]

_TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\bBLOB\b|\?|%""", re.IGNORECASE)
_RETURNS = re.compile(r"\s*(?:SELECT|WITH|VALUES|SHOW)\b|.*\bRETURNING\b", re.IGNORECASE | re.DOTALL)


class Rewritten(NamedTuple):
    """A statement for psycopg."""

    text: bytes
    returns: bool
    """Whether it returns rows. A statement that does not need not be waited for."""


@lru_cache(maxsize=1024)
def rewritten(statement: str) -> Rewritten:
    """Return the statement with psycopg's placeholders and PostgreSQL's type for bytes. Quoted text stays."""
    return Rewritten(_TOKEN.sub(_token, statement).encode(), bool(_RETURNS.match(statement)))


def _token(found: re.Match[str]) -> str:
    match found.group():
        case "?":
            return "%s"
        case word if word.upper() == "BLOB":
            return "BYTEA"
        case other:
            return other.replace("%", "%%")  # A single % begins a placeholder in psycopg.
