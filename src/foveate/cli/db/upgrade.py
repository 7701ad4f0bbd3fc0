"""`foveate db current` and `foveate db upgrade`: which schema a database has, and the one that this foveate knows."""

from __future__ import annotations

from pathlib import Path

from ...errors import BadSetting
from ...stores import Place, without_password
from ...stores.sql.driver import Driver
from ...stores.sql.migrate import EffectiveEdits, standing
from ...wiring import open_store
from ._where import Url, Where, located

__all__ = ["current", "upgrade"]


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
    from .._print import say

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
