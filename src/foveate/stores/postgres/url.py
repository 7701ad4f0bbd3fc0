"""Parse the URL of a PostgreSQL store into foveate's options and libpq's connection string.

The password is in the connection string only: never in an error or in the name of the database.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ...errors import BadSetting
from .dialect import PARTITIONS_MAX

__all__ = ["SCHEMES", "PostgresUrl", "read_url"]

SCHEMES = ("postgresql://", "postgres://")

_EXAMPLE = "postgresql://user:password@host:5432/database?schema=foveate"
_POOL_MAX = 1000
_PORTS = re.compile(r"[0-9,]*")
_DEFAULTS = {
    "application_name": "foveate",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
"""Defaults of the connection: a server that vanished is noticed within a minute."""
_IDLE_SECONDS = 60
"""How long a transaction may wait for its own process, so that a hanging process does not block others forever."""


class PostgresUrl(NamedTuple):
    """The parts of a URL."""

    place: str
    """The name of the database in errors, without the password."""
    conninfo: str
    """For libpq, with the password."""
    schema: str
    """Empty: the server's default for this user."""
    pool: int
    search: bool
    wait: float
    partitions: int
    """Partitions of each new table; 0: none."""
    answer: float = 70.0
    """Seconds of silence after which a server counts as hanging. They include waiting for a row."""
    is_for_primary: bool = False
    """Whether only a server that accepts writes is used."""


def read_url(url: str) -> PostgresUrl:
    """Parse `postgresql://user:password@host:port/database?schema=&pool=&search=&wait=&answer=&partitions=`.

    Other options are libpq's, such as `sslmode`. `pool`: connections at most (8). `wait`: seconds to wait for a
    connection, and for a row that another writer has locked (10). `answer`: seconds of silence after that until a
    server counts as hanging (60). `search=off`: no word index. `partitions`: of each new table. Raises BadSetting.
    """
    try:
        split = urlsplit(url)
        options = dict(parse_qsl(split.query, keep_blank_values=True, strict_parsing=bool(split.query)))
        schema, search = options.pop("schema", ""), options.pop("search", "on")
        pool, wait = options.pop("pool", "8"), options.pop("wait", "10")
        parts, answer = options.pop("partitions", "0"), options.pop("answer", "60")
        # Not by urlunsplit, which removes the slashes of a URL without a host: libpq requires them.
        query = urlencode(options, quote_via=quote)
        parsed = conninfo_to_dict(f"{split.scheme}://{split.netloc}{split.path}?{query}")
        is_empty = not (split.netloc or split.path or split.query)
        if is_empty or split.fragment or "@" in split.path or not _PORTS.fullmatch(str(parsed.get("port") or "")):
            raise ValueError  # Part of a password with special characters, which would be read as a host or a port.
    except (ValueError, ProgrammingError):
        # libpq's error quotes the text, which may be part of a password, so neither it nor the cause is shown.
        raise BadSetting(
            f"The URL of a PostgreSQL store cannot be parsed. It looks like {_EXAMPLE}; characters such as @ / : # ? % "
            "in a user's name or a password are written as %40 %2F %3A %23 %3F %25; an option after ? is one of "
            "libpq's, or schema, pool, search, wait, answer or partitions."
        ) from None
    if search not in ("on", "off"):
        raise BadSetting(f"search= in the URL of a store is on or off, not {search!r}.")
    if not (pool.isdecimal() and 1 <= int(pool) <= _POOL_MAX):
        raise BadSetting(f"pool= in the URL of a store is a number of connections, 1 to {_POOL_MAX}, not {pool!r}.")
    if parts != "0" and not (parts.isdecimal() and len(parts) < 9 and 2 <= int(parts) <= PARTITIONS_MAX):
        raise BadSetting(
            f"partitions= in the URL of a store is a number of partitions, 2 to {PARTITIONS_MAX}, not {parts!r}."
        )
    seconds, silence = _seconds("wait", wait), _seconds("answer", answer)
    if "\0" in schema or len(schema.encode()) > 63:
        raise BadSetting(f"schema= in the URL of a store is the name of a schema, of 63 bytes at most, not {schema!r}.")
    options_of_libpq = {name: str(value) for name, value in parsed.items() if value is not None}
    settings = _settings(schema, seconds, options_of_libpq.pop("options", ""))
    waiting = {
        "connect_timeout": str(max(2, round(seconds))),
        **_DEFAULTS,
        **options_of_libpq,
        "client_encoding": "utf8",
    }
    return PostgresUrl(
        _place(options_of_libpq, schema),
        make_conninfo(**waiting, options=settings),
        schema,
        int(pool),
        search == "on",
        seconds,
        int(parts),
        seconds + silence,
        options_of_libpq.get("target_session_attrs") in ("read-write", "primary"),
    )


def _seconds(name: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.001 <= seconds <= 3600:
        raise BadSetting(f"{name}= in the URL of a store is a number of seconds, up to 3600, not {text!r}.")
    return seconds


def _place(options: dict[str, str], schema: str) -> str:
    user, host, port, database = (options.get(name, "") for name in ("user", "host", "port", "dbname"))
    at = f"{quote(user, '')}@" if user else ""
    hosts, ports = host.split(","), port.split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    names = [f"[{host}]" if ":" in host else quote(host, "") for host in hosts]
    each = [f"{name}:{number}" if number else name for name, number in zip(names, ports, strict=False)]
    return f"postgresql://{at}{','.join(each)}/{quote(database, '')}" + (
        f"?schema={quote(schema, '')}" if schema else ""
    )


def _settings(schema: str, wait: float, more: str) -> str:
    """Return the session's settings in libpq's syntax. Those of the URL come last, so they win."""
    settings = {
        "lock_timeout": f"{round(wait * 1000)}ms",
        "idle_in_transaction_session_timeout": f"{_IDLE_SECONDS}s",
        # For the server: it notices that this process vanished, and releases its locks.
        "tcp_keepalives_idle": "30",
        "tcp_keepalives_interval": "10",
        "tcp_keepalives_count": "3",
    }
    if schema:
        settings["search_path"] = '"' + schema.replace('"', '""') + '"'
    options = [f"-c {name}={_escaped(value)}" for name, value in settings.items()]
    return " ".join([*options, more]).strip()


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")
