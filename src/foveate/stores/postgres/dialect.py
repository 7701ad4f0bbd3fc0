"""Statements as PostgreSQL takes them: with psycopg's placeholders, in hash partitions, on the shards of Citus.

Statements are written for all databases, with `?` and BLOB. All tables of a new schema may be partitioned by `root`
into one number of partitions (`?partitions=16` in the URL), so that all rows of a tree of forks are in partitions of
one number. The number is read from the database, so that new tables are partitioned like the first ones. The
statements that distribute the tables over a Citus cluster (`docs/reference/citus.md`) are derived from the migrations,
so they include later tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from graphlib import TopologicalSorter
from typing import NamedTuple

from ...errors import BadSetting
from ..sql.driver import Session
from ..sql.migrate import migrations

__all__ = [
    "PARTITIONS_MAX",
    "Rewritten",
    "check_partitions",
    "count_partitions",
    "distributing",
    "laid_out",
    "name_of",
    "rewritten",
    "tables",
]

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


PARTITIONS_MAX = 128
"""Partitions of a table. A migration creates those of several tables in one transaction, with a lock for each of them
and its indexes; a server has room for some six thousand by default (`max_locks_per_transaction`). Use Citus for more.
"""

_COUNT = """
    SELECT (SELECT count(*) FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid)
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relname = 'conversation' AND n.nspname = current_schema()"""
"""Returns no row if the table does not exist yet."""
_MAKE = re.compile(r"CREATE TABLE (\w+) \(.*\broot BIGINT\b", re.DOTALL)
_IDENTITY = re.compile(r"ALTER TABLE (\w+) (REPLICA IDENTITY .*)", re.DOTALL)


def name_of(table: str, number: int, parts: int) -> str:
    """Return the name of a partition: `message_p00`."""
    return f"{table}_p{number:0{max(2, len(str(parts - 1)))}}"


def count_partitions(session: Session, wanted: int) -> int:
    """Return the partitions of each table in this schema: 0 without partitions, `wanted` if there are no tables yet."""
    rows = session.rows(_COUNT)
    return int(rows[0][0]) if rows else wanted


def check_partitions(session: Session, wanted: int, place: str) -> None:
    """Raise BadSetting if the tables of this schema have another number of partitions than the URL."""
    actual = count_partitions(session, wanted)
    if actual != wanted:
        layout = f"have {actual} partitions each" if actual else "have no partitions"
        raise BadSetting(
            f"The tables of {place} {layout}, and the URL says partitions={wanted}. The number cannot change: leave it "
            f"out, or create a new schema, open it with partitions={wanted}, and move the conversations there "
            "(`foveate db export`, `foveate db import`)."
        )


def laid_out(statement: str, parts: int) -> list[str]:
    """Return the statements to run for one of a migration if tables have so many partitions."""
    if not parts:
        return [statement]
    if found := _MAKE.match(statement):
        table = found[1]
        return [
            f"{statement} PARTITION BY HASH (root)",
            *(
                f"CREATE TABLE {name_of(table, number, parts)} PARTITION OF {table} "
                f"FOR VALUES WITH (MODULUS {parts}, REMAINDER {number})"
                for number in range(parts)
            ),
        ]
    if found := _IDENTITY.match(statement):  # Unlike others, this setting is not inherited by partitions.
        table, order = found[1], found[2]
        return [statement, *(f"ALTER TABLE {name_of(table, number, parts)} {order}" for number in range(parts))]
    return [statement]


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
            if created := _MAKES.match(statement):
                refers[created[1]] = set(_REFERS.findall(statement))
    return [_FIRST, *(table for table in _in_order(refers) if table != _FIRST)]


def distributing(schema: str, shards: int | None = None) -> list[str]:
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
