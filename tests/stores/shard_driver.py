"""Two databases that share nothing, behind one driver that sends each statement to the one of its `root`.

It does by hand what Citus does: a statement reaches one shard only, and sees no row of the other. A statement without
a root is answered by the coordinator, here views of both shards. A transaction begins on every shard, and each commits
it; the driver records which shards had a statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from postgres_schemas import execute, taken_apart
from shard_rules import roots

from foveate.ports import Finding
from foveate.stores.postgres import PostgresDriver, PostgresStore
from foveate.stores.sql.driver import Dialect, Driver, Row, Session
from foveate.stores.sql.migrate import TABLES

__all__ = ["ShardDriver", "create_shards"]

T = TypeVar("T")


def create_shards(url: str, count: int = 2) -> None:
    """Create a schema for each shard next to the schema of the URL, which gets views of their tables."""
    server, schema = taken_apart(url)
    shards = shards_of(url, count)
    with psycopg.connect(server, autocommit=True) as connection:
        for shard in shards:
            connection.execute(f'CREATE SCHEMA "{taken_apart(shard)[1]}"'.encode())
    for shard in shards:
        PostgresStore(shard).close()
    for table in TABLES:
        parts = [f'SELECT * FROM "{taken_apart(shard)[1]}".{table}' for shard in shards]
        execute(url, f"CREATE VIEW {table} AS {' UNION ALL '.join(parts)}")
    execute(url, f'CREATE VIEW migration AS SELECT * FROM "{schema}_0".migration')


def shards_of(url: str, count: int = 2) -> list[str]:
    """Return the URLs of the shards."""
    return [f"{url}_{number}" for number in range(count)]


class ShardDriver:
    """The `Driver` of the shards of a URL. `touched` has the shards of each transaction, in their order."""

    dialect: Dialect = "postgres"

    def __init__(self, url: str, count: int = 2) -> None:
        self._coordinator: Driver = PostgresDriver(url)
        self._shards: list[Driver] = [PostgresDriver(shard) for shard in shards_of(url, count)]
        self.place, self.has_index = self._coordinator.place, self._coordinator.has_index
        self.touched: list[set[int]] = []

    def read(self, work: Callable[[Session], T]) -> T:
        return self._run("read", work)

    def write(self, work: Callable[[Session], T]) -> T:
        return self._run("write", work)

    def _run(self, method: str, work: Callable[[Session], T]) -> T:
        touched: set[int] = set()

        def nested(drivers: Sequence[Driver], sessions: tuple[Session, ...]) -> T:
            if not drivers:
                touched.clear()
                return work(_ShardSession(sessions, touched))
            begin = getattr(drivers[0], method) if sessions else drivers[0].read  # The views are only read.
            return begin(lambda session: nested(drivers[1:], (*sessions, session)))

        try:
            return nested([self._coordinator, *self._shards], ())
        finally:
            self.touched.append(touched)

    @contextmanager
    def hearing(self) -> Iterator[list[set[int]]]:
        """Yield the list of the shards of each transaction that runs meanwhile."""
        self.touched = []
        yield self.touched

    def check(self) -> tuple[list[Finding], list[str]]:
        checked = [shard.check() for shard in self._shards]
        findings = [finding for findings, _ in checked for finding in findings]
        return findings, [note for _, notes in checked for note in notes]

    def vacuum(self) -> None:
        for shard in self._shards:
            shard.vacuum()

    def close(self) -> None:
        for driver in (self._coordinator, *self._shards):
            driver.close()


class _ShardSession:
    """The `Session` of a transaction on the coordinator and the shards."""

    def __init__(self, sessions: Sequence[Session], touched: set[int]) -> None:
        self._coordinator, *self._shards = sessions
        self._touched = touched

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        if statement.startswith("SET LOCAL"):  # As with citus.propagate_set_commands.
            return [row for shard in self._shards for row in shard.rows(statement, values)]
        return self._of(statement, values).rows(statement, values)

    def ask(self, *queries: tuple[str, Sequence[Any]]) -> list[list[Row]]:
        return [self.rows(*query) for query in queries]

    def change(self, *queries: tuple[str, Sequence[Any]]) -> tuple[int, list[list[Row]]]:
        *before, last = queries
        rows = self.ask(*before)
        return self._of(*last).change(last)[0], rows

    def each(self, statement: str, many: Sequence[Sequence[Any]]) -> None:
        for values in many:
            self._of(statement, values).each(statement, [values])

    def scrub(self) -> None:
        for shard in self._shards:
            shard.scrub()

    def tables(self) -> set[str]:
        return self._shards[0].tables()

    def define(self, statement: str) -> None:
        raise AssertionError("The shards were migrated before.")

    def _of(self, statement: str, values: Sequence[Any]) -> Session:
        named = roots(statement, tuple(values))
        assert len(named) < 2, f"several roots: {statement}"
        if not named:
            return self._coordinator
        shard = hash(named.pop()) % len(self._shards)
        self._touched.add(shard)
        return self._shards[shard]
