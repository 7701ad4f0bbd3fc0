"""Emptying of a schema of the test server, which is quicker than creating one."""

from __future__ import annotations

import atexit
from functools import cache

import psycopg
from waiting import until


def emptied(url: str) -> str:
    """Empty all tables of this URL except the list of migrations; return the URL."""
    server, schema = taken_apart(url)
    connection = connection_to(server)
    found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
    orders = [f'DELETE FROM "{schema}"."{name}"' for (name,) in found if name != "migration"]
    if orders:
        # In no order: this setting lets foreign keys be.
        connection.execute("; ".join(["SET session_replication_role = replica", *orders]).encode())
    return url


@cache
def connection_to(server: str) -> psycopg.Connection:
    """Return a connection that this process keeps: a new one reads the definition of every table again."""
    connection = psycopg.connect(server, autocommit=True)
    atexit.register(connection.close)
    return connection


def named(url: str) -> str:
    """Return the URL with a name of its connections that no other test uses."""
    return f"{url}&application_name={taken_apart(url)[1]}"


def alone(url: str) -> str:
    """Return the URL when the server has ended all connections of its `named` URL: a cut one may still run its
    request.
    """
    here = f"SELECT 1 FROM pg_stat_activity WHERE application_name = '{taken_apart(url)[1]}'"
    until(lambda: execute(url, here) == [])
    return url


def taken_apart(url: str) -> tuple[str, str]:
    """Return the URL of the server, and the schema."""
    server, _, rest = url.partition("?schema=")
    return server, rest.partition("&")[0]


def execute(url: str, statement: str) -> list[tuple[object, ...]]:
    """Run a statement in the schema of this URL with a new connection; return its rows."""
    server, schema = taken_apart(url)
    with psycopg.connect(server, autocommit=True, options=f"-c search_path={schema}") as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []
