"""Tables in hash partitions, where the URL of a new schema asks for them: `?partitions=16`.

All tables are parted by the same column, `root`, into the same number of parts, so that a tree of forks has all its
rows in parts of one number, and a statement about it goes into one. How many there are is read from the database:
whoever opens a schema, and whatever its URL says, lays out a new table as the first ones were. Knows SQL and no
connection.
"""

from __future__ import annotations

import re

from ...errors import BadSetting
from ..sql.driver import Session

__all__ = ["PARTITIONS_MAX", "check", "count", "laid_out", "name_of"]

PARTITIONS_MAX = 128
"""Parts of a table: a migration makes those of several tables in one transaction, which holds a lock for each of them
and its indexes, and a server as it is installed has room for some six thousand (`max_locks_per_transaction`). What
needs more parts needs more servers (`docs/citus.md`).
"""

_COUNT = """
    SELECT (SELECT count(*) FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid)
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relname = 'conversation' AND n.nspname = current_schema()"""
"""No row where there is no such table yet."""
_MAKE = re.compile(r"CREATE TABLE (\w+) \(.*\broot BIGINT\b", re.DOTALL)
_IDENTITY = re.compile(r"ALTER TABLE (\w+) (REPLICA IDENTITY .*)", re.DOTALL)


def name_of(table: str, number: int, parts: int) -> str:
    """What the part of this number is called, of so many: `message_p00`."""
    return f"{table}_p{number:0{max(2, len(str(parts - 1)))}}"


def count(session: Session, wanted: int) -> int:
    """In how many parts the tables of this schema lie, 0 where they are whole; where there are none yet, `wanted`."""
    found = session.rows(_COUNT)
    return int(found[0][0]) if found else wanted


def check(session: Session, wanted: int, place: str) -> None:
    """Raises BadSetting where this schema has tables that are laid out in another way than the URL says."""
    found = count(session, wanted)
    if found != wanted:
        there = f"lie in {found} partitions each" if found else "are not in partitions"
        raise BadSetting(
            f"The tables of {place} {there}, and the URL says partitions={wanted}. That is settled when they are made: "
            f"leave it out, or make a new schema, open it with partitions={wanted}, and move what is in this one there "
            f"(`foveate db export`, `foveate db import`)."
        )


def laid_out(statement: str, parts: int) -> list[str]:
    """What to run for a statement of a migration where tables lie in so many parts."""
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
    if found := _IDENTITY.match(statement):  # What is said of the whole is not said of its parts, in this alone.
        table, order = found[1], found[2]
        return [statement, *(f"ALTER TABLE {name_of(table, number, parts)} {order}" for number in range(parts))]
    return [statement]
