"""`foveate db current`, `upgrade`, `index`, `vacuum`, `list`, `tenants` and `shards`: the database as a whole."""

from __future__ import annotations

import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from msgspec import structs

from ...errors import BadSetting
from ...open import open_store
from ...ports import IMPORTING
from ...replay.numbers import count as count_text
from ...stores import Place, place_of, readable, without_password
from ...stores.sql import SqlStore
from ...stores.sql.driver import Driver
from ...stores.sql.migrate import SchemaVersion, schema_version
from .target import NOWHERE, AsJson, Url, Where, located, opened, print_json

__all__ = ["current", "index", "list_conversations", "schema_of", "shards", "tenants", "upgrade", "vacuum"]

_MOST_SHARDS = 32_000
"""Shards of a table that Citus allows."""


def current(*, store: Url = None, as_json: AsJson = False) -> int:
    """Print the schema of a database and the upgrades it needs. Changes nothing.

    Example: `foveate db current --store chat.db`
    """
    url, _, _ = located(Where(store))
    schema = schema_of(place_of(readable(url)))
    if as_json:
        name = schema.name if schema.version else ""
        print_json([{"version": schema.version, "name": name, "pending": list(schema.pending)}])
    else:
        _print_schema(without_password(url), schema, "Needed upgrade")
    return 0


def upgrade(*, store: Url = None) -> int:
    """Upgrade a database to the newest schema, as opening it does.

    Example: `foveate db upgrade --store postgresql://ann@db.example/chats`
    """
    url, place, _ = located(Where(store))
    before = schema_of(place)
    open_store(url).close()
    after = schema_of(place)
    _print_schema(without_password(url), SchemaVersion(after.version, after.name, before.pending), "Upgraded")
    return 0


def index(*, store: Url = None) -> int:
    """Bring the word index of all conversations up to date, as their searches do.

    Useful after an import, and after an upgrade that drops the index. It works in small steps, between which others
    write. It may be interrupted at any time, and continues there.

    Example: `foveate db index --store chat.db`
    """
    from ..output import progress, say

    with opened(Where(store)) as (database, _):
        if not isinstance(database, SqlStore):
            raise BadSetting(
                "Only a database has a word index: --store FILE or --store postgresql://USER@HOST/DATABASE."
            )
        heads = [
            database.open(tenant, name, create=False)
            for tenant in database.tenants()
            for name in database.names(tenant)
        ]
        done = before = 0
        total = sum(head.position for head in heads)
        with progress("Indexing", total) as update:
            for head in heads:
                for messages in database.index_words(head):
                    done += messages
                    if update:
                        update(before + messages, total, head.name)
                before += head.position
    say(f"{count_text(done)} {'message' if done == 1 else 'messages'} indexed. The word index is up to date.")
    return 0


def vacuum(*, store: Url = None) -> int:
    """Release the space of deleted rows, so that no byte of an erased text stays in the database's files.

    Others wait meanwhile. The disk needs as much free space as the SQLite file has, or in PostgreSQL as the largest
    table. There the command rewrites foveate's tables; it does not touch the log, replicas and backups.

    Example: `foveate db vacuum --store chat.db`
    """
    from ..output import say

    with opened(Where(store)) as (database, _):
        database.vacuum()
    say("The database is vacuumed.")
    return 0


def tenants(*, store: Url = None, as_json: AsJson = False) -> int:
    """List the tenants of a database, each with its number of conversations.

    Example: `foveate db tenants --store chat.db`
    """
    from ..output import print_table, say

    with opened(Where(store), reads=True) as (database, _):
        numbers = database.tenants()
    if as_json:
        print_json({"tenant": tenant, "conversations": number} for tenant, number in numbers.items())
    elif not numbers:
        say("There are no conversations.")
    else:
        rows = [(tenant or "(none)", count_text(number)) for tenant, number in numbers.items()]
        print_table(("tenant", "conversations"), rows)
    return 0


_ALL = 10**9
"""More conversations than a tenant has."""


def list_conversations(*, as_json: AsJson = False, where: Where = NOWHERE) -> int:
    """List the conversations of a database, the one with the newest message first.

    Without a tenant, in the options or in the settings, it lists those of all tenants.

    Example: `foveate db list --store chat.db`
    """
    from ..output import print_table, say

    with opened(where, reads=True) as (database, tenant):
        owners = [tenant] if tenant or where.tenant is not None else list(database.tenants())
        found = [
            (owner, listed)
            for owner in owners
            for listed in database.recent(owner, limit=_ALL)[0]
            if not listed.name.startswith(IMPORTING)
        ]
    if as_json:
        print_json({"tenant": owner, **structs.asdict(listed)} for owner, listed in found)
    elif not found:
        say("There are no conversations.")
    else:
        titles = ("tenant", "conversation", "newest message (UTC)", "messages", "edits")
        rows = [
            (
                owner or "(none)",
                listed.name,
                _time(listed.time),
                count_text(listed.messages),
                count_text(listed.edits),
            )
            for owner, listed in found
        ]
        first = 0 if any(owner for owner, _ in found) else 1
        print_table(titles[first:], [row[first:] for row in rows], left=3 - first)
    return 0


def _time(milliseconds: int) -> str:
    """Return a time as text; a dash if it is unknown or no date."""
    with suppress(OverflowError, OSError, ValueError):
        if milliseconds:
            return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M}"
    return "-"


def shards(
    *,
    count: Annotated[int | None, Parameter(help="Shards of each table (default: chosen by Citus, 32).")] = None,
    where: Where = NOWHERE,
) -> int:
    """Print the SQL that distributes the tables of a PostgreSQL database over a Citus cluster. Runs nothing.

    Run the SQL on the coordinator after foveate db upgrade and before storing much data, and again after an upgrade
    that creates a table. It skips tables that are already distributed.

    Example: `foveate db shards --store postgresql://ann@db.example/chats | psql ...`
    """
    url, place, _ = located(where)
    if place.kind != "postgres":
        raise BadSetting("Only PostgreSQL tables can be distributed: --store postgresql://USER@HOST/DATABASE.")
    if count is not None and not 1 <= count <= _MOST_SHARDS:
        raise BadSetting(f"--count must be a number of shards from 1 to {_MOST_SHARDS:,}, not {count}.")
    from ...stores.postgres.dialect import distributing
    from ...stores.postgres.url import read_url

    sys.stdout.write("\n".join(distributing(read_url(url).schema, count)) + "\n")
    return 0


def _print_schema(url: str, schema: SchemaVersion, label: str) -> None:
    from ..output import say

    say(f"{url} has schema {schema.version} ({schema.name})." if schema.version else f"{url} has no schema yet.")
    if not schema.pending:
        say("The schema is up to date.")
    for name in schema.pending:
        say(f"{label}: {name}")


def schema_of(place: Place) -> SchemaVersion:
    """Return the schema of a database. Changes nothing."""
    driver = _driver(place)
    try:
        return schema_version(driver)
    finally:
        driver.close()


def _driver(place: Place) -> Driver:
    """Open the database without the changes that opening it as a store makes."""
    if place.kind == "postgres":
        from ...stores.postgres import PostgresDriver

        return PostgresDriver(place.path)
    import sqlite3

    from ...stores.sqlite import SqliteDriver
    from ...stores.sqlite.file import SqliteFile

    if not Path(place.path).expanduser().exists():
        raise BadSetting(f"There is no database {place.path}.")
    file = SqliteFile(
        place.path,
        synchronous="full",
        wait=10.0,
        connection=sqlite3.Connection,
        is_read_only=place.is_read_only,
    )
    return SqliteDriver(file, search=False)
