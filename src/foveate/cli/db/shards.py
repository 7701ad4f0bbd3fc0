"""`foveate db shards`: what spreads the tables over the servers of a Citus cluster."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from ...errors import BadSetting
from ._where import NOWHERE, Where, located

__all__ = ["shards"]

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
