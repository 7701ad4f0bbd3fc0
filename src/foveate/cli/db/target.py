"""The database of a command, and JSON output: shared by all of `foveate db`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter

from ...errors import BadSetting, FoveateError
from ...ports import Database
from ..files import remove_database
from ..options import command_line, settings_of, store_url
from ..text import write_json

if TYPE_CHECKING:
    from ...stores import Place

__all__ = [
    "NOWHERE",
    "AsJson",
    "Url",
    "Where",
    "check_exists",
    "check_names",
    "located",
    "no_conversations",
    "opened",
    "print_json",
]

_URL_HELP = "The database: a SQLite file or a URL (default: from the settings)."
Url = Annotated[str | None, Parameter(name="--store", help=_URL_HELP)]
"""The option of a command for a whole database."""
AsJson = Annotated[bool, Parameter(name="--json", help="Print JSON Lines.")]


@Parameter(name="*")
@dataclass(frozen=True)
class Where:
    """The options that choose a database and a tenant."""

    store: Annotated[str | None, Parameter(help=_URL_HELP)] = None
    tenant: Annotated[str | None, Parameter(help="The tenant (default: from the settings, else the empty one).")] = None


NOWHERE = Where()


def no_conversations(where: Where) -> str:
    """Return the message for a tenant without conversations: its name may be misspelt."""
    return f"This tenant has no conversations. {command_line('db', 'tenants', store=where.store)} lists the tenants."


@contextmanager
def opened(where: Where, *, create: bool = False, reads: bool = False) -> Iterator[tuple[Database, str]]:
    """Open the database, and yield it with the tenant.

    `reads`: the command writes nothing, so that a file that this process cannot write is opened for reading. Creates a
    missing file only with `create`, and deletes it again if the command fails and left no conversation in it.
    Raises BadSetting for a missing file otherwise.
    """
    from ...open import open_store
    from ...stores import readable

    url, place, tenant = located(where)
    if not create:
        check_exists(place)
    file = Path(place.path).expanduser() if place.kind == "sqlite" else None
    is_new = file is not None and not file.exists()
    store = open_store(readable(url) if reads else url)
    try:
        yield store, tenant
    except BaseException:
        is_empty = is_new and _is_empty(store)
        store.close()
        if file is not None and is_empty:
            remove_database(file)
        raise
    store.close()


def _is_empty(store: Database) -> bool:
    try:
        return not store.tenants()
    except FoveateError:  # The content is unknown, so the file stays.
        return False


def located(where: Where) -> tuple[str, Place, str]:
    """Return the database's URL, the parsed URL, and the tenant. Raises BadSetting for a store in memory."""
    from ...stores import place_of
    from ...stores.checks import check_texts

    settings = settings_of()
    url = settings["store"] if where.store is None else store_url(where.store)
    place = place_of(url)
    if place.kind == "memory":
        raise BadSetting(f"The store {url} is empty when a command starts. Name a database: --store chat.db")
    tenant = settings["tenant"] if where.tenant is None else where.tenant
    check_texts("conversation", tenant=tenant)
    return url, place, tenant


def check_exists(place: Place) -> None:
    """Raise BadSetting for a SQLite file that is not there, or empty: opening it would create a database."""
    if place.kind != "sqlite":
        return
    file = Path(place.path).expanduser()
    if not file.exists():
        raise BadSetting(f"There is no database {place.path}.")
    if file.is_file() and not file.stat().st_size:
        raise BadSetting(f"{place.path} is an empty file, and no database.")


def check_names(conversations: Iterable[str]) -> None:
    """Raise BadSetting if a conversation's name is the URL of a database."""
    from ...stores import without_password

    for name in conversations:
        if name.startswith(("sqlite:", "postgresql:", "postgres:")):
            url = without_password(name)
            raise BadSetting(f"{url} is not a conversation. Name a database with --store {url}")


def print_json(values: Iterable[Any]) -> None:
    """Print one JSON object a line for each value."""
    for value in values:
        write_json(_json(msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else value))


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # Half of a surrogate pair needs an escape.
        return json.dumps(value, separators=(",", ":"))
