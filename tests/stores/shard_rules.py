"""Rules for statements that a database distributed by `root` answers on one server.

They look at the words of a statement, which is enough for statements with one way of writing. They know no database.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

__all__ = ["problems", "roots"]

_INSERT = re.compile(r"\s*INSERT INTO \w+ \(([^)]*)\)\s+VALUES \(([?, \d]+)\)(.*)", re.DOTALL)
_WORKS = re.compile(r"\s*(?:SELECT|UPDATE|DELETE)\b")
_ASKED = re.compile(r"(?:WHERE|AND) (\w+\.|)tenant = \? AND \1root = \?")
_SET = re.compile(r"\bSET (.*?)(?:\bWHERE\b|\bRETURNING\b|$)", re.DOTALL)
_ASSIGNED = re.compile(r"(?:^|,)\s*(\w+) = ")
_CALLED = re.compile(r"\b([A-Za-z_]+)\(")
_IMMUTABLE = {
    *("array_to_tsvector", "cast", "coalesce", "length", "max", "replace", "string_to_array", "strpos", "substr"),
    "to_hex",
}
"""Functions that give the same for the same, whenever and wherever they are called."""


def problems(statement: str) -> list[str]:
    """Return the faults of a statement: a database distributed by `root` would refuse it, or ask several servers."""
    plain = re.sub(r"'[^']*'", "''", statement)
    found = [f"{name}() is not known to be immutable" for name in _called(plain) if name not in _IMMUTABLE]
    for said in _SET.findall(plain):
        found += [f"{name} is changed" for name in _ASSIGNED.findall(said) if name in ("tenant", "root")]
    if insert := _INSERT.fullmatch(plain):
        columns, _, rest = insert.groups()
        if columns.split(", ")[:2] != ["tenant", "root"]:
            found.append("what it inserts does not begin with tenant and root")
        if "SELECT" in rest:
            found.append("it looks into a table while it inserts")
        if "ON CONFLICT (" in rest and "ON CONFLICT (tenant, root" not in rest:
            found.append("it expects a conflict of a key without tenant and root")
    elif _WORKS.match(plain):
        outer, *inner = _blocks(plain)
        if not _ASKED.search(outer):
            found.append("it is not of one tenant and root")
        found += ["a part of it is not of one tenant and root" for one in inner if not _ASKED.search(one)]
        if re.search(r"\bJOIN\b|\bUNION\b|\bEXCEPT\b|FROM [\w ]+,", plain):
            found.append("it joins tables")
    else:
        found.append("it is of no known kind")
    return found


def roots(statement: str, values: tuple[Any, ...]) -> set[Any]:
    """Return every value of `root` in a condition or an insertion."""
    if insert := _INSERT.fullmatch(statement):
        return {values[insert[1].split(", ").index("root")]} if "root" in insert[1] else set()
    return {values[statement[: found.end()].count("?") - 1] for found in re.finditer(r"\broot = \?", statement)}


def _called(plain: str) -> Iterator[str]:
    words = {"IN", "VALUES", "AND", "OR", "NOT", "WHERE", "ON", "CONFLICT", "DISTINCT"}
    for name in _CALLED.findall(plain):
        if name.upper() not in words:
            yield name.lower()


def _blocks(text: str) -> list[str]:
    """Return the statement without its SELECTs in parentheses, then each of these."""
    outer, inner, depth, begun = "", [], 0, 0
    for at, sign in enumerate(text):
        if depth == 0 and sign == "(" and re.match(r"\(\s*SELECT\b", text[at:]):
            depth, begun = 1, at + 1
            continue
        if depth:
            depth += (sign == "(") - (sign == ")")
            if depth == 0:
                inner += _blocks(text[begun:at])
            continue
        outer += sign
    return [outer, *inner]
