"""Migrations: numbered SQL files that bring a database to the schema of this foveate, each run once, in order.

If databases differ, PostgreSQL also runs `0006_words_by_tree.postgres.sql` after `0006_words_by_tree.sql`. The driver
knows the layout of tables, such as partitions. A migration runs in one transaction with the row that records it and the
checksum of its file. A database is migrated when it is opened.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import blake2b
from pathlib import Path

from msgspec import Struct

from ...errors import StoreError
from ...ports import Clock
from . import statements as sql
from .driver import Dialect, Driver, Session

__all__ = ["TABLES", "Migration", "SchemaVersion", "bring_up_to_date", "migrations", "schema_version"]

TABLES = {
    *("conversation", "tree", "branch", "message", "body", "record", "snapshot", "indexed", "said"),
    *("run", "step", "action", "binding", "prompt", "erasure", "claim"),
}
"""The tables of foveate, without the table of migrations. Each has a column `root`."""

_NAME = re.compile(r"[0-9]{4}_[a-z_]+")


class Migration(Struct, frozen=True):
    """One numbered file of `migrations/`, with the additions for one database."""

    version: int
    name: str
    statements: tuple[str, ...]
    checksum: str


class SchemaVersion(Struct, frozen=True):
    """The schema of a database."""

    version: int
    """The number of the newest migration that it ran; 0 if it ran none."""
    name: str
    pending: tuple[str, ...]
    """Names of the migrations that it has not run yet, in order."""


def schema_version(driver: Driver) -> SchemaVersion:
    """Return the schema of a database. Raises StoreError as `bring_up_to_date` does."""
    known = migrations(driver.dialect)
    done = driver.read(lambda session: _check(session, known, driver.place))
    last = known[done - 1] if done else None
    pending = tuple(migration.name for migration in known[done:])
    return SchemaVersion(last.version if last else 0, last.name if last else "", pending)


def migrations(dialect: Dialect = "sqlite") -> list[Migration]:
    """Return the migrations in this package for one kind of database, in order."""
    return list(_migrations(dialect))


@cache  # Every opening of a database compares them.
def _migrations(dialect: Dialect) -> list[Migration]:
    folder = Path(__file__).with_name("migrations")
    texts = {file.name.removesuffix(".sql"): file.read_text("utf-8") for file in folder.iterdir()}
    return [
        _read(name, text + "\n" + texts.get(f"{name}.{dialect}", ""))
        for name, text in sorted(texts.items())
        if _NAME.fullmatch(name)
    ]


def bring_up_to_date(driver: Driver, clock: Clock, known: list[Migration] | None = None) -> None:
    """Run the missing migrations. `known`: all migrations, by default those in this package.

    Raises StoreError if the database belongs to something else, was made by a newer foveate, or ran a migration that
    was changed since.
    """
    known = migrations(driver.dialect) if known is None else known
    done = driver.read(lambda session: _check(session, known, driver.place))
    for migration in known[done:]:
        driver.write(lambda session, migration=migration: _run(session, migration, known, driver.place, clock()))  # type: ignore[misc]


def _check(session: Session, known: list[Migration], place: str) -> int:
    """Return how many migrations this database has run."""
    tables = session.tables()
    if "migration" not in tables:
        if tables & TABLES:
            raise StoreError(
                f"{place} has tables of something else ({', '.join(sorted(tables & TABLES))}) with the names of "
                "foveate's tables. Give foveate a separate database."
            )
        return 0
    ran = session.rows(sql.MIGRATIONS)
    for (version, name, checksum), ours in zip(ran, known, strict=False):
        if (version, checksum) != (ours.version, ours.checksum):
            raise StoreError(
                f"{place} was made with another version of migration {name!r} than this foveate has, so its tables may "
                f"differ. Open it with the foveate that made it, export, and import into a new one."
            )
    if len(ran) > len(known):
        raise StoreError(
            f"{place} was made by a newer foveate: its schema is {ran[-1][0]} ({ran[-1][1]}), this foveate knows up to "
            f"{known[-1].version if known else 0}. Upgrade foveate."
        )
    return len(ran)


def _run(session: Session, migration: Migration, known: list[Migration], place: str, now: int) -> None:
    # Checked again in the transaction: another process may be opening the same new database.
    if _check(session, known, place) >= migration.version:
        return
    session.rows(sql.MIGRATION_TABLE)
    for statement in migration.statements:
        session.define(statement)
    session.rows(sql.ADD_MIGRATION, (migration.version, migration.name, migration.checksum, now))


def _read(name: str, text: str) -> Migration:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    statements = tuple(part.strip() for part in "\n".join(lines).split(";") if part.strip())
    # Without white space and comments, so that another line ending is not another schema.
    words = re.sub(r"\s+", " ", "; ".join(statements))
    digest = blake2b(words.encode(), digest_size=20, person=b"foveate schema 1").hexdigest()
    return Migration(int(name[:4]), name, statements, digest)
