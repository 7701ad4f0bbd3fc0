"""The calls that spread foveate's tables over the servers of a Citus cluster (`docs/citus.md`).

They are drawn from the migrations, so a table that comes later is among them. Citus is an extension that the
coordinator has; this file knows the names of its functions, and asks nothing of a database.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from graphlib import TopologicalSorter

from ..sql.migrate import migrations

__all__ = ["distributing", "tables"]

_FIRST = "conversation"
"""The table whose shards all others lie beside."""
_MAKES = re.compile(r"CREATE TABLE (\w+) ")
_REFERS = re.compile(r"\bREFERENCES (\w+) ")
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


def tables() -> list[str]:
    """Every table that has tenant and root, each behind those that its foreign keys refer to."""
    refers: dict[str, set[str]] = {}
    for migration in migrations("postgres"):
        for statement in migration.statements:
            if made := _MAKES.match(statement):
                refers[made[1]] = set(_REFERS.findall(statement))
    return [_FIRST, *(table for table in _in_order(refers) if table != _FIRST)]


def distributing(schema: str = "", shards: int | None = None) -> list[str]:
    """What to run on the coordinator once the tables are made: a statement for each table, in this order.

    `schema`: in which they lie, where it is not on the search path of whoever runs them. `shards`: into how many each
    is cut (Citus's own default: 32). All are cut by `root` and lie beside each other, so that of a tree of forks
    everything is on one server. `migration` is not among them: it stays on the coordinator, where migrations are run.
    """
    first = _literal(schema, _FIRST)
    count = f", shard_count => {shards}" if shards is not None else ""
    calls = [f"SELECT create_distributed_table({first}, 'root', colocate_with => 'none'{count});"]
    for table in tables()[1:]:
        calls.append(f"SELECT create_distributed_table({_literal(schema, table)}, 'root', colocate_with => {first});")
    return calls


def _in_order(refers: Mapping[str, set[str]]) -> list[str]:
    """Each behind those that it refers to, and else as they were made."""
    order = {table: place for place, table in enumerate(refers)}
    sorter = TopologicalSorter(refers)
    sorter.prepare()
    found: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=order.__getitem__)
        found += ready
        sorter.done(*ready)
    return found


def _literal(schema: str, table: str) -> str:
    name = f"{_identifier(schema)}.{table}" if schema else table
    return "'" + name.replace("'", "''") + "'"


def _identifier(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'
