"""Brings a database to the schema this foveate knows: numbered SQL files, each run once, in order.

Where databases differ, `0006_words_by_tree.postgres.sql` beside `0006_words_by_tree.sql` is what PostgreSQL runs after
it. How a database lays its tables out (in partitions, say) is its driver's to know. A migration runs in one transaction
together with the row that records it, so that it happened or it did not. The row keeps a checksum of the file. What is
only in `migrations/` has no effect on a database until it is opened for the first time after.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from importlib.resources import files

from msgspec import Struct

from ...errors import StoreError
from ...ports import Clock
from . import statements as sql
from .driver import Dialect, Driver, Session

__all__ = ["TABLES", "EffectiveEdits", "Migration", "bring_up_to_date", "migrations", "standing"]

TABLES = {
    *("conversation", "tree", "branch", "message", "body", "record", "snapshot", "indexed", "said"),
    *("run", "step", "action", "binding", "prompt", "erasure", "claim"),
}
"""The tables that foveate makes, but for the one of its migrations. Each has a column `root`."""


_NAME = re.compile(r"[0-9]{4}_[a-z_]+")


class Migration(Struct, frozen=True):
    """One numbered file of `migrations/`, with what one database adds to it."""

    version: int
    name: str
    statements: tuple[str, ...]
    checksum: str


class EffectiveEdits(Struct, frozen=True):
    """Which schema a database has."""

    version: int
    """Of the newest migration that it ran; 0 where it ran none."""
    name: str
    pending: tuple[str, ...]
    """Names of the migrations that this package has and it has not run, in order."""


def standing(driver: Driver) -> EffectiveEdits:
    """Which schema a database has; changes nothing. Raises StoreError as `bring_up_to_date` does."""
    known = migrations(driver.dialect)
    done = driver.read(lambda session: _check(session, known, driver.place))
    last = known[done - 1] if done else None
    pending = tuple(migration.name for migration in known[done:])
    return EffectiveEdits(last.version if last else 0, last.name if last else "", pending)


def migrations(dialect: Dialect = "sqlite") -> list[Migration]:
    """The migrations in this package for one database, in order."""
    folder = files(__package__).joinpath("migrations")
    texts = {file.name.removesuffix(".sql"): file.read_text("utf-8") for file in folder.iterdir()}
    return [
        _read(name, text + "\n" + texts.get(f"{name}.{dialect}", ""))
        for name, text in sorted(texts.items())
        if _NAME.fullmatch(name)
    ]


def bring_up_to_date(driver: Driver, clock: Clock, known: list[Migration] | None = None) -> None:
    """Run what is missing. `known` is what the package has, unless a test says otherwise.

    Raises StoreError where the database is something else's, was made by a newer foveate, or ran a migration that was
    changed since.
    """
    known = migrations(driver.dialect) if known is None else known
    done = driver.read(lambda session: _check(session, known, driver.place))
    for migration in known[done:]:
        driver.write(lambda session, migration=migration: _run(session, migration, known, driver.place, clock()))  # type: ignore[misc]


def _check(session: Session, known: list[Migration], place: str) -> int:
    """How many migrations this database has run."""
    tables = session.tables()
    if "migration" not in tables:
        if tables & TABLES:
            raise StoreError(
                f"{place} has tables of something else ({', '.join(sorted(tables & TABLES))}) where foveate would make "
                f"its own. Give foveate a database of its own."
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
    # Looked at again inside the transaction: another process may have opened the same new database a moment ago.
    if _check(session, known, place) >= migration.version:
        return
    session.rows(sql.MIGRATION_TABLE)
    for statement in migration.statements:
        session.define(statement)
    session.rows(sql.ADD_MIGRATION, (migration.version, migration.name, migration.checksum, now))


def _read(name: str, text: str) -> Migration:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    statements = tuple(part.strip() for part in "\n".join(lines).split(";") if part.strip())
    # Of the words alone, so that another line ending or a better comment is not another schema.
    words = re.sub(r"\s+", " ", "; ".join(statements))
    digest = blake2b(words.encode(), digest_size=20, person=b"foveate schema 1").hexdigest()
    return Migration(int(name[:4]), name, statements, digest)
