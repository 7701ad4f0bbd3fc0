"""The database itself refuses the same catalog values as Python."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from foveate.core.catalog import Action, Binding, Prompt, validated
from foveate.errors import BadSetting, Damaged, StoreError
from foveate.stores.sqlite import SqliteStore
from foveate.testing.catalog_contract import REFUSED, binding


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(tmp_path / "chat.db", synchronous="normal") as store:
        store.put_prompt("acme", Prompt("Ordre", "{{ text }}"))
        store.put_action("acme", Action("look"))
        yield store


@pytest.fixture
def raw(store: SqliteStore) -> Iterator[sqlite3.Connection]:
    """Return the file as any other program may open it."""
    connection = sqlite3.connect(store._driver.place, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    yield connection
    connection.close()


def insert(raw: sqlite3.Connection, **values_by_name: Any) -> None:
    """Bind the action `look` to the agent `support` with SQL."""
    (root,) = raw.execute("SELECT root FROM action").fetchone()
    row = {"tenant": "acme", "root": root, "agent": "support", "action": "look", **values_by_name}
    marks = ", ".join("?" * len(row))
    raw.execute(f"INSERT INTO binding ({', '.join(row)}) VALUES ({marks})", list(row.values()))


@pytest.mark.parametrize("constraint", REFUSED)
def test_database_refuses_what_python_refuses(store: SqliteStore, raw: sqlite3.Connection, constraint: str) -> None:
    values_by_name, answer = REFUSED[constraint]
    with pytest.raises(BadSetting, match=answer):
        store.put_binding("acme", binding(**values_by_name))
    at = "only_compact_says_how" if constraint.startswith("only") else constraint
    with pytest.raises(sqlite3.IntegrityError, match=f"CHECK constraint failed: {at}$"):
        insert(raw, **values_by_name)
    assert store.bindings("acme") == []


@pytest.mark.parametrize(
    "values_by_name",
    [
        {},
        {"result_expiration_turns": 0},
        {"result_expiration_mode": "remove", "result_expiration_turns": 3},
        {"result_expiration_mode": "compact", "compact_mode": "first_chars", "compact_length": 1},
        {"result_expiration_mode": "compact", "compact_mode": "summary"},
        {"result_expiration_mode": "compact", "compact_mode": "summary", "compact_prompt": "Ordre"},
    ],
)
def test_database_accepts_what_python_accepts(
    store: SqliteStore, raw: sqlite3.Connection, values_by_name: dict[str, Any]
) -> None:
    insert(raw, **values_by_name)
    assert store.bindings("acme") == [binding(**values_by_name)]
    store.put_binding("acme", binding(**values_by_name))
    assert store.bindings("acme") == [binding(**values_by_name)]


def test_python_and_the_database_agree_on_every_binding(raw: sqlite3.Connection) -> None:
    """Every combination of missing, extreme and wrong values."""
    fields = ("result_expiration_turns", "result_expiration_mode", "compact_mode", "compact_length", "compact_prompt")
    modes, ways = ("none", "remove", "compact", "Compact", ""), (None, "first_chars", "summary", "none")
    taken = 0
    for values in product((None, -1, 0, 7), modes, ways, (None, -1, 0, 1), ("", "Ordre")):
        values_by_name = dict(zip(fields, values, strict=True))
        try:
            validated(binding(**values_by_name))
            is_right = True
        except BadSetting:
            is_right = False
        try:
            insert(raw, **{**values_by_name, "compact_prompt": values_by_name["compact_prompt"] or None})
            raw.execute("DELETE FROM binding")
            is_taken = True
        except sqlite3.IntegrityError:
            is_taken = False
        assert is_taken == is_right, values_by_name
        taken += is_taken
    assert taken == 3 * (
        1 + 1 + 2 * (1 + 2)
    )  # Turns; none, remove, or compact with a prompt or without, in three ways.


def test_every_constraint_of_a_binding_is_tried(raw: sqlite3.Connection) -> None:
    (definition,) = raw.execute("SELECT sql FROM sqlite_master WHERE name = 'binding'").fetchone()
    named = {word for line in definition.splitlines() for word in line.split()[1:2] if line.split()[0] == "CONSTRAINT"}
    assert named == {name for name in REFUSED if name in definition}
    assert len(named) == 7


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO binding (tenant, root, agent, action) SELECT tenant, root, 'support', 'Look' FROM action",
        "UPDATE action SET default_compact_prompt = 'nothing'",
        "UPDATE binding SET result_expiration_mode = 'compact', compact_mode = 'summary', compact_prompt = 'nothing'",
        "DELETE FROM action",
        "DELETE FROM prompt",
        "UPDATE action SET tenant = 'zeta'",
    ],
)
def test_database_lets_no_name_lead_nowhere(store: SqliteStore, raw: sqlite3.Connection, statement: str) -> None:
    store.put_action("acme", Action("look", default_compact_prompt="Ordre"))
    store.put_binding("acme", binding())
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        raw.execute(statement)


def test_store_itself_keeps_foreign_keys(store: SqliteStore) -> None:
    """SQLite checks them only if a connection asks for it."""
    store.put_binding("acme", binding())
    with pytest.raises(StoreError, match="FOREIGN KEY"):
        store._driver.write(lambda session: session.rows("DELETE FROM action"))
    assert [action.name for action in store.actions("acme")] == ["look"]


def test_row_garbled_by_another_program_is_named(store: SqliteStore, raw: sqlite3.Connection) -> None:
    store.put_binding("acme", binding())
    raw.execute("UPDATE binding SET result_expiration_turns = 'soon'")
    with pytest.raises(Damaged, match=r"binding 'support' cannot be read: .*result_expiration_turns.* Set or drop it"):
        store.bindings("acme")
    store.put_binding("acme", binding(result_expiration_turns=2))
    assert store.bindings("acme") == [binding(result_expiration_turns=2)]


def test_two_stores_of_one_file_see_what_the_other_set_up(store: SqliteStore) -> None:
    with SqliteStore(store._driver.place) as other:
        other.put_binding("acme", Binding("writer", "look"))
        with pytest.raises(BadSetting, match="still bound to writer"):
            store.drop_action("acme", "look")
