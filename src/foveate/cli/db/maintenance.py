"""`foveate db current`, `upgrade`, `vacuum`, `tenants` and `shards`: the database as a whole."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ...errors import BadSetting
from ...open import open_store
from ...replay.numbers import count
from ...stores import Place, without_password
from ...stores.sql.driver import Driver
from ...stores.sql.migrate import EffectiveEdits, standing
from ..text import printable
from .target import NOWHERE, AsJson, Url, Where, located, opened, print_json

__all__ = ["current", "shards", "tenants", "upgrade", "vacuum"]


def current(*, store: Url = None) -> int:
    """Print which schema a database has, and what an upgrade would run. Changes nothing.

    Example: `foveate db current --store sqlite:///chat.db`
    """
    url, place, _ = located(Where(store))
    _say(without_password(url), _standing(place), "would run")
    return 0


def upgrade(*, store: Url = None) -> int:
    """Bring a database to the schema that this foveate knows, as opening it does.

    Example: `foveate db upgrade --store postgresql://ann@db.example/chats`
    """
    url, place, _ = located(Where(store))
    before = _standing(place)
    open_store(url).close()
    after = _standing(place)
    _say(without_password(url), EffectiveEdits(after.version, after.name, before.pending), "ran")
    return 0


def _say(url: str, now: EffectiveEdits, did: str) -> None:
    from ..output import say

    say(f"{url} has schema {now.version} ({now.name})." if now.version else f"{url} has no schema yet.")
    if not now.pending:
        say("Nothing is to be done.")
    for name in now.pending:
        say(f"An upgrade {did}: {name}")


def _standing(place: Place) -> EffectiveEdits:
    driver = _driver(place)
    try:
        return standing(driver)
    finally:
        driver.close()


def _driver(place: Place) -> Driver:
    """The database, without what opening it as a store does to it."""
    if place.kind == "postgres":
        from ...stores.postgres import PostgresDriver

        return PostgresDriver(place.path)
    import sqlite3

    from ...stores.sqlite import SqliteDriver
    from ...stores.sqlite.file import SqliteFile

    if not Path(place.path).expanduser().exists():
        raise BadSetting(f"There is no database {place.path}.")
    return SqliteDriver(
        SqliteFile(place.path, synchronous="full", wait=10.0, connection=sqlite3.Connection), search=False
    )


def vacuum(*, store: Url = None) -> int:
    """Give back the room of what is gone, so that no byte of what was erased is left in the database's files.

    Others wait while it is done. A SQLite file needs as much free room on its disk as it has bytes; of a PostgreSQL
    database each of foveate's tables is written anew, and its log, its replicas and its backups are not touched.

    Example: `foveate db vacuum --store sqlite:///chat.db`
    """
    from ..output import say

    with opened(Where(store)) as (database, _):
        database.vacuum()
    say("Vacuumed.")
    return 0


def tenants(*, store: Url = None, as_json: AsJson = False) -> int:
    """List whose conversations a database holds, and how many each has.

    Example: `foveate db tenants --store sqlite:///chat.db`
    """
    from ..output import print_table, say

    with opened(Where(store)) as (database, _):
        found = database.tenants()
    if as_json:
        print_json({"tenant": tenant, "conversations": number} for tenant, number in found.items())
    elif not found:
        say("There is no conversation.")
    else:
        print_table(
            ("tenant", "conversations"),
            [(printable(tenant) or "(nobody)", count(number)) for tenant, number in found.items()],
        )
    return 0


_MAX = 32_000
"""Shards of a table that Citus allows."""


def shards(
    *,
    count: Annotated[int | None, Parameter(help="Shards of each table (what Citus takes: 32).")] = None,
    where: Where = NOWHERE,
) -> int:
    """Print the SQL that spreads the tables of a PostgreSQL database over a Citus cluster. Runs none of it.

    Run it on the coordinator, once, when the tables are made (`foveate db upgrade`) and before much is in them; and
    again after an upgrade that made another table: what is spread already says so, and stays.

    Example: `foveate db shards --store postgresql://ann@db.example/chats | psql ...`
    """
    url, place, _ = located(where)
    if place.kind != "postgres":
        raise BadSetting("Only tables of a PostgreSQL database can be spread: --store postgresql://USER@HOST/DATABASE.")
    if count is not None and not 1 <= count <= _MAX:
        raise BadSetting(f"--count is a number of shards, 1 to {_MAX:,}, not {count}.")
    from ...stores.postgres.shards import distributing
    from ...stores.postgres.url import read_url

    sys.stdout.write("\n".join(distributing(read_url(url).schema, count)) + "\n")
    return 0
