"""PostgreSQL refuses the same catalog values as SQLite and as Python."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")

import psycopg

from foveate.core.catalog import Action, Prompt, validated
from foveate.errors import BadSetting
from foveate.stores.lineage import root_of
from foveate.stores.postgres import PostgresStore
from foveate.testing.catalog_contract import REFUSED, binding

FIELDS = ("result_expiration_turns", "result_expiration_mode", "compact_mode", "compact_length", "compact_prompt")


@pytest.fixture(scope="module")
def raw(postgres: Any) -> Iterator[psycopg.Connection]:
    """Return the schema as any other program may use it, with the action `look` and the prompt `Ordre`."""
    name = f"t{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
        with PostgresStore(f"{postgres.url()}?schema={name}") as store:
            store.put_prompt("acme", Prompt("Ordre", "{{ text }}"))
            store.put_action("acme", Action("look"))
        connection.execute(f"SET search_path = {name}".encode())
        yield connection


def insert(raw: psycopg.Connection, said: dict[str, Any]) -> None:
    """Bind the action `look` to the agent `support` with SQL, and roll back."""
    row = {"tenant": "acme", "root": root_of("acme", ""), "agent": "support", "action": "look", **said}
    marks = ", ".join(["%s"] * len(row))
    with raw.transaction(force_rollback=True):
        raw.execute(f"INSERT INTO binding ({', '.join(row)}) VALUES ({marks})".encode(), list(row.values()))


@pytest.mark.parametrize("constraint", REFUSED)
def test_postgres_names_the_constraint_that_refuses(raw: psycopg.Connection, constraint: str) -> None:
    at = "only_compact_says_how" if constraint.startswith("only") else constraint
    with pytest.raises(psycopg.errors.CheckViolation, match=f'check constraint "{at}"'):
        insert(raw, REFUSED[constraint][0])


def test_python_and_postgres_agree_on_every_binding(raw: psycopg.Connection) -> None:
    """Every combination of missing, extreme and wrong values."""
    modes, ways = ("none", "remove", "compact", "Compact"), (None, "first_chars", "summary", "none")
    for values in product((None, -1, 0), modes, ways, (None, 0, 1), ("", "Ordre")):
        said = dict(zip(FIELDS, values, strict=True))
        try:
            validated(binding(**said))
            is_right = True
        except BadSetting:
            is_right = False
        try:
            insert(raw, {**said, "compact_prompt": said["compact_prompt"] or None})
            is_taken = True
        except psycopg.errors.CheckViolation:
            is_taken = False
        assert is_taken == is_right, said


@pytest.mark.parametrize("said", [{"action": "Look"}, {"result_expiration_mode": "compact", "compact_mode": "summary"}])
def test_postgres_lets_no_name_lead_nowhere(raw: psycopg.Connection, said: dict[str, Any]) -> None:
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        insert(raw, said if "action" in said else {**said, "compact_prompt": "nothing"})
