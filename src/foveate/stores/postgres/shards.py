"""The SQL statements that distribute foveate's tables over a Citus cluster (`docs/citus.md`).

They are derived from the migrations, so they include later tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from graphlib import TopologicalSorter

from ..sql.migrate import migrations

__all__ = ["distributing", "tables"]

_FIRST = "conversation"
"""The table that all others are colocated with."""
_MAKES = re.compile(r"CREATE TABLE (\w+) ")
_REFERS = re.compile(r"\bREFERENCES (\w+) ")
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


def tables() -> list[str]:
    """Return every table with tenant and root, each after the tables that its foreign keys refer to."""
    refers: dict[str, set[str]] = {}
    for migration in migrations("postgres"):
        for statement in migration.statements:
            if made := _MAKES.match(statement):
                refers[made[1]] = set(_REFERS.findall(statement))
    return [_FIRST, *(table for table in _in_order(refers) if table != _FIRST)]


def distributing(schema: str = "", shards: int | None = None) -> list[str]:
    """Return a statement for each table, to run on the coordinator in this order after the tables were created.

    `schema`: that of the tables, if it is not on the search path. `shards`: per table (default of Citus: 32). All
    tables are distributed by `root` and colocated, so that a tree of forks is on one server. `migration` stays on the
    coordinator, where migrations run.
    """
    first = _literal(schema, _FIRST)
    count = f", shard_count => {shards}" if shards is not None else ""
    calls = [f"SELECT create_distributed_table({first}, 'root', colocate_with => 'none'{count});"]
    for table in tables()[1:]:
        calls.append(f"SELECT create_distributed_table({_literal(schema, table)}, 'root', colocate_with => {first});")
    return calls


def _in_order(refers: Mapping[str, set[str]]) -> list[str]:
    """Return the tables, each after those that it refers to, else in the order of creation."""
    order = {table: place for place, table in enumerate(refers)}
    sorter = TopologicalSorter(refers)
    sorter.prepare()
    ordered: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=order.__getitem__)
        ordered += ready
        sorter.done(*ready)
    return ordered


def _literal(schema: str, table: str) -> str:
    name = f"{_identifier(schema)}.{table}" if schema else table
    return "'" + name.replace("'", "''") + "'"


def _identifier(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'
