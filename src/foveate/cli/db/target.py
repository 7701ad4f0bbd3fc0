"""Which database a command is about, and how what it holds is said: shared by all of `foveate db`."""

from __future__ import annotations

import json
import sys
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
from ..options import settings_of

if TYPE_CHECKING:
    from ...stores import Place

__all__ = ["NOBODYS", "NOWHERE", "AsJson", "Url", "Where", "check_names", "located", "opened", "print_json"]

_URL_HELP = "URL of the database, such as sqlite:///chat.db (as settings say)."
Url = Annotated[str | None, Parameter(name="--store", help=_URL_HELP)]
"""Which database, for a command that is about the whole of it."""
AsJson = Annotated[bool, Parameter(name="--json", help="Print JSON Lines: an object for each.")]


@Parameter(name="*")
@dataclass(frozen=True)
class Where:
    """Which database, and whose part of it."""

    store: Annotated[str | None, Parameter(help=_URL_HELP)] = None
    tenant: Annotated[
        str | None, Parameter(help="Whose conversations and catalog (as settings say, else nobody's).")
    ] = None


NOWHERE = Where()

NOBODYS = "There are no conversations of this tenant: foveate db tenants tells whose there are."


@contextmanager
def opened(where: Where, *, create: bool = False) -> Iterator[tuple[Database, str]]:
    """The database and the tenant. A file that there is not is made only if `create`, and stays only if all goes well
    or a conversation is in it; else BadSetting is raised.
    """
    from ...open import open_store

    url, place, tenant = located(where)
    file = Path(place.path).expanduser() if place.kind == "sqlite" else None
    is_new = file is not None and not file.exists()
    if is_new and not create:
        raise BadSetting(f"There is no database {place.path}.")
    store = open_store(url)
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
    except FoveateError:  # What it holds cannot be told, so it stays.
        return False


def located(where: Where) -> tuple[str, Place, str]:
    """The database's URL, what that says, and the tenant. Raises BadSetting where nothing can lie there."""
    from ...stores import place_of
    from ...stores.checks import check_words

    settings = settings_of()
    url = settings["store"] if where.store is None else where.store
    place = place_of(url)
    if place.kind == "memory":
        raise BadSetting(f"Nothing lies in {url} when a command begins. Name a database: --store sqlite:///chat.db")
    tenant = settings["tenant"] if where.tenant is None else where.tenant
    check_words("conversation", tenant=tenant)
    return url, place, tenant


def check_names(conversations: Iterable[str]) -> None:
    """Raises BadSetting where what stands in the place of a conversation's name is a database."""
    from ...stores import without_password

    for name in conversations:
        if name.startswith(("sqlite:", "postgresql:", "postgres:")):
            url = without_password(name)
            raise BadSetting(f"{url} is no conversation. A database is named by --store {url}")


def print_json(values: Iterable[Any]) -> None:
    """A line for each, with every field by its name."""
    for value in values:
        sys.stdout.write(_json(msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else value) + "\n")


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # Half of a surrogate pair, which only an escape can carry.
        return json.dumps(value, separators=(",", ":"))
