"""Writes `golden/postgres_N.sql` and, with two partitions, `golden/postgres_N_parted.sql`.

They are small PostgreSQL databases of this version, which later versions must open. Run it once when a migration is
added, before the release, and never again for the same schema:

    PYTHONPATH=src python make_golden_postgres.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tools"))

import psycopg
from make_golden import fill
from postgres_server import Server

from foveate.stores.postgres import PostgresStore

SCHEMA = "golden_schema"
"""The name of the schema in the files, replaced when a file is loaded."""
_LEFT_OUT = ("--", "SET ", "SELECT pg_catalog.set_config", "\\", "CREATE SCHEMA")
"""Lines that are of the program that dumps, or of its version of the server."""


def main() -> None:
    server = Server.shared(Path(tempfile.gettempdir()) / f"foveate-golden-{os.getpid()}")
    try:
        for option, ending in (("", ""), ("&partitions=2", "_parted")):
            version, text = make_schema(server, option)
            target = Path(__file__).parent / "golden" / f"postgres_{version}{ending}.sql"
            if target.exists():
                raise SystemExit(f"{target} exists already: a released schema is never changed.")
            target.write_text(text, "utf-8")
    finally:
        server.release()


def make_schema(server: Server, option: str) -> tuple[int, str]:
    """Return the number of the newest migration, and a dump of a database that ran it."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA}".encode())
    with PostgresStore(f"{server.url()}?schema={SCHEMA}{option}", clock=lambda: 1_790_000_000_000) as store:
        fill(store)
        head = store.open("acme", "one")
        store.search(head, "wind")
    with psycopg.connect(server.url()) as connection:
        row = connection.execute(f"SELECT max(version) FROM {SCHEMA}.migration".encode()).fetchone()
    assert row
    order = ("pg_dump", "--inserts", "--no-owner", "--no-privileges", "--schema", SCHEMA, "--dbname", server.url())
    dumped = subprocess.run([server.binaries / order[0], *order[1:]], capture_output=True, check=True, text=True)
    lines = [line for line in dumped.stdout.splitlines() if line and not line.startswith(_LEFT_OUT)]
    return int(row[0]), "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
