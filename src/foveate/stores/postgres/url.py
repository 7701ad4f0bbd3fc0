"""The URL of a PostgreSQL store: what of it is foveate's, what libpq's, and what may be shown.

A password never leaves this file but in the connection string: neither by an error nor by the name of the place. Opens
nothing.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ...errors import BadSetting
from .partitions import PARTITIONS_MAX

__all__ = ["SCHEMES", "Told", "read_url"]

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
"""Of the connection, where the URL says nothing else: a server that vanished without a word is noticed in a minute."""
_IDLE_SECONDS = 60
"""How long a transaction may wait for its own process, so that one that hangs does not stop all others for good."""


class Told(NamedTuple):
    """What a URL says."""

    place: str
    """How to call the database in an error: without the password."""
    conninfo: str
    """For libpq, with the password."""
    schema: str
    """Empty: whatever schema the server takes for this user."""
    pool: int
    search: bool
    wait: float
    partitions: int
    """Of each table, where tables are made; 0: whole tables."""
    answer: float = 70.0
    """Seconds of silence after which a server is taken to hang. Waiting for a row is among them."""
    is_for_primary: bool = False
    """Whether connections are only made to a server that takes writes."""


def read_url(url: str) -> Told:
    """What `postgresql://user:password@host:port/database?schema=&pool=&search=&wait=&answer=&partitions=`
    says. Else BadSetting.

    Other options are libpq's own, such as `sslmode`. `pool`: connections at most (8). `wait`: seconds to wait for a
    connection, and for a row that another writer holds (10). `answer`: seconds of silence beyond that, after which
    a server is taken to hang (60). `search=off`: no index of words. `partitions`: into how many each table is parted
    when it is made.
    """
    try:
        split = urlsplit(url)
        options = dict(parse_qsl(split.query, keep_blank_values=True, strict_parsing=bool(split.query)))
        schema, search = options.pop("schema", ""), options.pop("search", "on")
        pool, wait = options.pop("pool", "8"), options.pop("wait", "10")
        parts, answer = options.pop("partitions", "0"), options.pop("answer", "60")
        found = conninfo_to_dict(urlunsplit(split._replace(query=urlencode(options, quote_via=quote))))
        if split.fragment or "@" in split.path or not _PORTS.fullmatch(str(found.get("port") or "")):
            raise ValueError  # The rest of a password, whose first half would be taken for a host or a port.
    except (ValueError, ProgrammingError):
        # libpq quotes what it cannot read, which may be the end of a password; so neither it nor the cause is shown.
        raise BadSetting(
            f"The URL of a PostgreSQL store cannot be read. It looks like {_EXAMPLE}; signs such as @ / : # ? % in a "
            f"user's name or a password are written as %40 %2F %3A %23 %3F %25; an option after ? is one of libpq's, "
            f"or schema, pool, search, wait, answer or partitions."
        ) from None
    if search not in ("on", "off"):
        raise BadSetting(f"search= in the URL of a store is on or off, not {search!r}.")
    if not (pool.isdecimal() and 1 <= int(pool) <= _POOL_MAX):
        raise BadSetting(f"pool= in the URL of a store is a number of connections, 1 to {_POOL_MAX}, not {pool!r}.")
    if parts != "0" and not (parts.isdecimal() and len(parts) < 9 and 2 <= int(parts) <= PARTITIONS_MAX):
        raise BadSetting(
            f"partitions= in the URL of a store is how many each table is parted into, 2 to {PARTITIONS_MAX}, not "
            f"{parts!r}."
        )
    seconds, silence = _seconds("wait", wait), _seconds("answer", answer)
    if "\0" in schema or len(schema.encode()) > 63:
        raise BadSetting(f"schema= in the URL of a store is the name of a schema, of 63 bytes at most, not {schema!r}.")
    told = {name: str(value) for name, value in found.items() if value is not None}
    settings = _settings(schema, seconds, told.pop("options", ""))
    waiting = {"connect_timeout": str(max(2, round(seconds))), **_DEFAULTS, **told, "client_encoding": "utf8"}
    return Told(
        _place(told, schema),
        make_conninfo(**waiting, options=settings),
        schema,
        int(pool),
        search == "on",
        seconds,
        int(parts),
        seconds + silence,
        told.get("target_session_attrs") in ("read-write", "primary"),
    )


def _seconds(name: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.001 <= seconds <= 3600:
        raise BadSetting(f"{name}= in the URL of a store is a number of seconds, up to 3600, not {text!r}.")
    return seconds


def _place(told: dict[str, str], schema: str) -> str:
    user, host, port, database = (told.get(name, "") for name in ("user", "host", "port", "dbname"))
    at = f"{quote(user, '')}@" if user else ""
    hosts, ports = host.split(","), port.split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    names = [f"[{one}]" if ":" in one else quote(one, "") for one in hosts]
    each = [f"{name}:{number}" if number else name for name, number in zip(names, ports, strict=False)]
    return f"postgresql://{at}{','.join(each)}/{quote(database, '')}" + (
        f"?schema={quote(schema, '')}" if schema else ""
    )


def _settings(schema: str, wait: float, more: str) -> str:
    """The session's settings, in libpq's own way of writing them. What the URL says comes last, and so holds."""
    settings = {
        "lock_timeout": f"{round(wait * 1000)}ms",
        "idle_in_transaction_session_timeout": f"{_IDLE_SECONDS}s",
        # For the server: how it notices that this process vanished without a word, and lets go of what it held.
        "tcp_keepalives_idle": "30",
        "tcp_keepalives_interval": "10",
        "tcp_keepalives_count": "3",
    }
    if schema:
        settings["search_path"] = '"' + schema.replace('"', '""') + '"'
    said = [f"-c {name}={_escaped(value)}" for name, value in settings.items()]
    return " ".join([*said, more]).strip()


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")
