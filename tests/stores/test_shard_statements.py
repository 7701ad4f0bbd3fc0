"""No statement of a turn reaches beyond one tenant and root, or needs a single server.

So the tables can be distributed by `root` over partitions or servers, because all rows of a conversation share it.
`test_postgres_partitions.py` uses real partitions.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from shard_rules import problems, roots
from shard_turns import Recording, other_work, turns

from foveate.stores.sql import SqlStore, statements
from foveate.stores.sql.migrate import migrations
from foveate.stores.sqlite import SqliteDriver
from foveate.stores.sqlite.file import SqliteFile

OF_MANY = {
    "NAMES": "all names of a tenant",
    "TREES_WITH_BODIES": "a vacuum",
    "MIGRATION_TABLE": "a migration",
    "MIGRATIONS": "a migration",
    "ADD_MIGRATION": "a migration",
}
"""The statements that are not of one tree, and what they are for."""

STATEMENTS = {name: text for name, text in vars(statements).items() if name.isupper() and name[0] != "_"}


@pytest.mark.parametrize("name", sorted(set(STATEMENTS) - set(OF_MANY)))
def test_statement_is_of_one_tenant_and_root(name: str) -> None:
    assert problems(STATEMENTS[name]) == []


@pytest.mark.parametrize("name", sorted(OF_MANY))
def test_statements_declared_for_many_trees_are(name: str) -> None:
    assert problems(STATEMENTS[name]) != []


def test_locate_asks_one_tree() -> None:
    assert problems(statements.locate(3)) == []


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("SELECT body FROM message WHERE tenant = ? AND branch = ?", "not of one tenant and root"),
        ("SELECT body FROM message WHERE (tenant = ? OR root = ?) AND root = ?", "not of one tenant and root"),
        ("UPDATE branch SET root = ? WHERE tenant = ? AND root = ?", "root is changed"),
        ("UPDATE branch SET erased = random() WHERE tenant = ? AND root = ?", "random() is not known"),
        ("INSERT INTO tree (root, branches) VALUES (?, ?)", "does not begin with tenant and root"),
        ("INSERT INTO run (tenant, root, number) VALUES (?, ?, (SELECT 1))", "of no known kind"),
        (
            "INSERT INTO tree (tenant, root) VALUES (?, ?) ON CONFLICT (root) DO NOTHING",
            "a key without tenant and root",
        ),
        (
            "INSERT INTO tree (tenant, root) VALUES (?, ?) ON CONFLICT (tenant, root) DO UPDATE SET root = 1",
            "root is changed",
        ),
        ("SELECT 1 FROM branch x, tree y WHERE tenant = ? AND root = ?", "joins tables"),
        ("DELETE FROM body WHERE tenant = ? AND root = ? AND hash IN (SELECT hash FROM message)", "a part of it"),
        (
            "SELECT 1, (SELECT 1 FROM body b WHERE b.root = m.root) FROM message m WHERE m.tenant = ? AND m.root = ?",
            "part",
        ),
        ("VACUUM message", "of no known kind"),
    ],
)
def test_statement_for_several_shards_is_detected(statement: str, problem: str) -> None:
    assert problem in " ".join(problems(statement))


def test_every_transaction_of_a_turn_is_of_one_root(tmp_path: Path) -> None:
    """A name is stored at its own root, and a fork has another name than its tree. So operations that give another
    name (a fork, a departure, a renaming) write at more than one root, and no others do.
    """
    file = SqliteFile(tmp_path / "chat.db", synchronous="normal", wait=1, connection=sqlite3.Connection)
    driver = Recording(SqliteDriver(file))
    with SqlStore(driver) as store:
        with driver.hearing() as asked:
            turns(store)
        many = {"turns": most(asked)}
        for name, work in other_work(store).items():
            with driver.hearing() as asked:
                work()
            many[name] = most(asked)
    assert {name: number for name, number in many.items() if number > 1} == {"fork": 2, "repoint": 2, "rename": 3}


def most(asked: list) -> int:
    """Return the largest number of roots in one transaction."""
    named: dict[int, set[object]] = {}
    for number, statement, values in asked:
        named.setdefault(number, set()).update(roots(statement, values) - {0})
    return max(len(found) for found in named.values())


def test_every_key_contains_tenant_and_root() -> None:
    made = [text for one in migrations("postgres") for text in one.statements if text.startswith("CREATE")]
    tables = [text for text in made if text.startswith("CREATE TABLE")]
    indexes = [text for text in made if text not in tables and " gin " not in text]
    without = [text for text in tables if "PRIMARY KEY (tenant, root" not in text]
    assert [text.split()[2] for text in without] == ["said"]  # The one of an earlier schema: its key was an index.
    assert all("(tenant, root, " in text for text in indexes)
    for text in tables:
        for line in text.splitlines():
            if "REFERENCES" in line:
                assert line.count("(tenant, root, ") == 2, line
