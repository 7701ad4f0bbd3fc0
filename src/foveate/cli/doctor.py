"""`foveate doctor`: what is installed, whether the store is sound, and which programs record sessions here."""

from __future__ import annotations

import os
import platform
import re
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter
from msgspec import Struct

from ..core.plurals import plural
from ..errors import FoveateError
from .options import settings_of, store_url
from .text import write_json

__all__ = ["doctor"]

_KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY"}
"""Environment variables with the keys of providers."""
_MISSING = "not created yet"
"""The state of a store, a file or a folder that the first use creates."""


class Extra(Struct, frozen=True):
    """One extra of the package."""

    name: str
    missing: tuple[str, ...]
    """Packages that are not installed."""


class StoreState(Struct, frozen=True):
    """The store of the settings."""

    url: str
    """Without a password."""
    state: str
    """`sound`, `damaged`, `unusable`, `not created yet` or `in memory`."""
    conversations: int = 0
    messages: int = 0
    findings: tuple[str, ...] = ()
    """The faults, each in a sentence."""


class DataState(Struct, frozen=True):
    """The data folder of this user, and the store in it that `chat`, `proxy` and `inspect` use without a setting."""

    folder: str
    state: str
    """Of the folder: `writable`, `read-only`, `unusable`, `not created yet` or `missing, and cannot be created`."""
    file: str
    file_state: str
    """`writable`, `read-only`, `unusable` or `not created yet`."""
    schema: int = 0
    """The number of the newest migration that the file ran."""
    is_current: bool = True
    """Whether the schema is the newest. If not, foveate upgrades the file when it opens it to write."""
    conversations: int = 0
    findings: tuple[str, ...] = ()
    """The faults, each in a sentence."""


class ClientState(Struct, frozen=True):
    """The recorded sessions of one agent program."""

    name: str
    folder: str
    sessions: int


class Health(Struct, frozen=True):
    """Everything that the command finds: the object of `--json`."""

    foveate: str
    python: str
    sqlite: str
    system: str
    extras: tuple[Extra, ...]
    keys: tuple[str, ...]
    """Providers whose key is in the environment. The keys themselves are never read out."""
    store: StoreState
    data: DataState
    clients: tuple[ClientState, ...]

    @property
    def is_well(self) -> bool:
        """Return whether the store, the data folder and the file in it can be used, as far as they exist."""
        states = {self.store.state, self.data.state, self.data.file_state}
        return states.isdisjoint({"damaged", "unusable"})


def doctor(*, store: str | None = None, as_json: Annotated[bool, Parameter(name="--json")] = False) -> int:
    """Show what is installed, whether the store is sound, and which recordings are on this computer.

    It also looks into the data folder, where foveate chat and foveate proxy store conversations by default. Nothing is
    changed, and no network is used. The exit code is 1 if a store is damaged or cannot be used.

    Example: `foveate doctor --store chats.db`

    Parameters
    ----------
    store
        The store to check: a SQLite file or a URL (default: from the settings).
    as_json
        Print one JSON object.
    """
    health = Health(
        foveate=_version("foveate") or "not installed as a package",
        python=platform.python_version(),
        sqlite=sqlite3.sqlite_version,
        system=f"{platform.system()} {platform.machine()}",
        extras=_extras(),
        keys=tuple(name for name, variable in _KEYS.items() if os.environ.get(variable)),
        store=_store(store),
        data=_data(),
        clients=_clients(os.environ),
    )
    if as_json:
        write_json(msgspec.json.encode(health).decode())
    else:
        _print(health)
    return 0 if health.is_well else 1


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


_REQUIREMENT = re.compile(r"""([\w.-]+)(?:\[[^]]*\])?[^;]*;(.*)\bextra == ['"]([\w-]+)['"]""")
_COLLECTIONS = {"all", "dev", "docs", "build", "release", "local-model"}
"""Extras that name other extras, or that only the development of foveate needs."""


def _extras() -> tuple[Extra, ...]:
    """Return the extras in alphabetical order, each with the packages that are missing."""
    try:
        requirements = metadata("foveate").get_all("Requires-Dist") or []
    except PackageNotFoundError:
        return ()
    missing: dict[str, list[str]] = {}
    for requirement in requirements:
        match = _REQUIREMENT.match(requirement)
        if match is None or match[3] in _COLLECTIONS:
            continue
        absent = missing.setdefault(match[3], [])
        if match[1] != "foveate" and _applies(match[2]) and not _version(match[1]):
            absent.append(match[1])
    return tuple(Extra(name, tuple(sorted(absent))) for name, absent in sorted(missing.items()))


_PYTHON = re.compile(r"""python_version (<|>=) ['"]3\.(\d+)['"]""")


def _applies(condition: str) -> bool:
    """Return whether a requirement's condition on the version of Python holds. Others are taken to hold."""
    match = _PYTHON.search(condition)
    if match is None:
        return True
    minor = int(match[2])
    return sys.version_info[1] < minor if match[1] == "<" else sys.version_info[1] >= minor


def _store(name: str | None) -> StoreState:
    """Open the store for reading, and verify everything in it."""
    from ..open import open_store
    from ..ops.archive import verify_all
    from ..stores import place_of, readable, without_password
    from .output import status_line

    shown = name or ""
    try:
        url = store_url(name) if name else str(settings_of()["store"])
        shown = without_password(url)
        place = place_of(url)
        if place.kind == "memory":
            return StoreState(shown, "in memory")
        if place.kind == "sqlite" and not Path(place.path).expanduser().exists():
            return StoreState(shown, _MISSING)
        conversations = messages = 0
        findings: list[str] = []
        with closing(open_store(readable(url, always=True))) as store, status_line() as show:
            for result in verify_all(store):
                conversations += bool(result.name)
                messages += result.messages
                show(f"{plural(conversations, 'conversation')}, {plural(messages, 'message')} verified")
                label = f"{result.tenant}/{result.name}" if result.tenant else result.name
                findings += [f"{label}: {finding.where}: {finding.problem}" for finding in result.findings]
    except (FoveateError, OSError) as error:
        return StoreState(shown, "unusable", findings=(str(error),))
    return StoreState(shown, "damaged" if findings else "sound", conversations, messages, tuple(findings))


def _data() -> DataState:
    """Look into the data folder, and open the store in it for reading."""
    from ..open import open_store
    from ..stores import place_of, readable
    from .chat.options import data_path
    from .db.maintenance import schema_of

    folder = data_path()
    file = folder / "chats.db"
    state, file_state = _state_of(folder, os.path.isdir(folder)), _state_of(file, os.path.isfile(file))
    above = next(filter(os.path.exists, folder.parents), folder)
    if state == _MISSING and not (os.path.isdir(above) and os.access(above, os.W_OK | os.X_OK)):
        state = "missing, and cannot be created"
    look = partial(DataState, str(folder), state, file.name)
    if file_state in (_MISSING, "unusable"):
        return look(file_state)
    url = readable(f"sqlite:///{file}", always=True)
    try:
        schema = schema_of(place_of(url))
        if schema.pending:
            return look(file_state, schema.version, is_current=False)
        with closing(open_store(url)) as store:
            return look(file_state, schema.version, conversations=sum(store.tenants().values()))
    except (FoveateError, OSError) as error:
        return look("unusable", findings=(str(error),))


def _state_of(path: Path, is_expected: bool) -> str:
    """Return the state of a folder or file. `is_expected`: whether it is of the right kind."""
    if not os.path.lexists(path):
        return _MISSING
    if not is_expected or not os.access(path, os.R_OK):
        return "unusable"
    return "writable" if os.access(path, os.W_OK) else "read-only"


def _clients(environ: Mapping[str, str]) -> tuple[ClientState, ...]:
    from ..replay.recordings.session_folders import TITLES, session_files, session_folder

    found = []
    for client, title in TITLES.items():
        folder = session_folder(client, environ)
        found.append(ClientState(title, str(folder), len(session_files(folder, client))))
    return tuple(found)


def _print(health: Health) -> None:
    from ..replay.numbers import count
    from .output import heading, print_table, say

    heading("foveate " + health.foveate, f"Python {health.python}, SQLite {health.sqlite}, {health.system}")
    say()
    say(f"Installed extras: {', '.join(extra.name for extra in health.extras if not extra.missing) or 'none'}.")
    for extra in health.extras:
        if extra.missing:
            say(f'Missing: {", ".join(extra.missing)}. To add that: pip install "foveate[{extra.name}]"')
    say(f"Keys in the environment: {', '.join(health.keys) or 'none'}.")
    store = health.store
    figures = f", {plural(store.conversations, 'conversation')}, {plural(store.messages, 'message')}"
    say(f"Store: {store.state}{figures if store.state in ('sound', 'damaged') else ''} ({store.url}).")
    for finding in store.findings:
        say(f"  {finding}")
    data = health.data
    say(f"Data folder: {data.state} ({data.folder}).")
    if data.file_state != _MISSING or data.state in ("writable", "read-only"):
        upgrade = "" if data.is_current else ", which is upgraded when it is written"
        facts = f", schema {data.schema}{upgrade}" if data.schema else ""
        facts += f", {plural(data.conversations, 'conversation')}" if data.schema and data.is_current else ""
        say(f"Store in it: {data.file_state}{facts} ({data.file}).")
    for finding in data.findings:
        say(f"  {finding}")
    say()
    found = [(client.name, count(client.sessions), client.folder) for client in health.clients if client.sessions]
    if found:
        print_table(("recordings of", "sessions", "folder"), found, left=3)
        say("Replay the newest: foveate replay --last")
    else:
        names = ", ".join(client.name for client in health.clients)
        say(f"There are no recordings of {names} in the usual folders.")
