"""Hash partitions for the tables of a new schema: `?partitions=16` in its URL.

All tables are partitioned by `root` into the same number of partitions, so that all rows of a tree of forks are in
partitions of one number. The number is read from the database, so that new tables are partitioned like the first ones.
"""

from __future__ import annotations

import re

from ...errors import BadSetting
from ..sql.driver import Session

__all__ = ["PARTITIONS_MAX", "check", "count", "laid_out", "name_of"]

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


def count(session: Session, wanted: int) -> int:
    """Return the partitions of each table in this schema: 0 without partitions, `wanted` if there are no tables yet."""
    rows = session.rows(_COUNT)
    return int(rows[0][0]) if rows else wanted


def check(session: Session, wanted: int, place: str) -> None:
    """Raise BadSetting if the tables of this schema have another number of partitions than the URL."""
    actual = count(session, wanted)
    if actual != wanted:
        layout = f"have {actual} partitions each" if actual else "have no partitions"
        raise BadSetting(
            f"The tables of {place} {layout}, and the URL says partitions={wanted}. The number cannot change: leave it "
            f"out, "
            f"or create a new schema, open it with partitions={wanted}, and move the conversations there "
            f"(`foveate db export`, `foveate db import`)."
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
