"""A census reports exactly the rows that belong to nothing, each with its place."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from string import ascii_letters

import pytest

from foveate.core.catalog import Prompt
from foveate.core.messages import user
from foveate.core.runs import AgentRun, AgentRunStep
from foveate.errors import Damaged
from foveate.ports import Head, Orphan, append
from foveate.stores.memory import MemoryStore
from foveate.stores.sql import SqlStore, census
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain, record_after

Run = Callable[[str], object]


def filled(store: SqlStore) -> SqlStore:
    """Return a store with a conversation, a fork, an erasure and all rows of a tree; and one of another tenant."""
    noise = Random(7)
    head = store.open("acme", "one")
    head = append(store, head, chain([user("".join(noise.choices(ascii_letters, k=9000))) for n in range(6)], head))
    head = store.commit(head, *record_after(head))
    two = store.fork(head, "two", 3, 0)
    two = append(store, two, chain([user("own words")], two))
    store.put_run(head, AgentRun("r", "me", "one"))
    store.put_step(head, AgentRunStep("r", 1, "action", output="done"))
    store.erase(two, [(4, 4)])
    for name in ("one", "two"):
        head = store.open("acme", name)
        store.save_snapshot(head, 1, 0, b"a view")
        store.search(head, "words")
    store.put_prompt("acme", Prompt("short", "{{ text }}"))
    store.open("zeta", "theirs")
    return store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    with SqliteStore(tmp_path / "chat.db", synchronous="normal") as store:
        yield filled(store)


@pytest.fixture
def run(tmp_path: Path) -> Callable[[str], object]:
    """Run SQL on the store's file, from outside."""

    def run(statement: str) -> None:
        connection = sqlite3.connect(tmp_path / "chat.db")
        with connection:
            assert connection.execute(statement).rowcount > 0
        connection.close()

    return run


def strays(store: SqlStore | MemoryStore, tenant: str | None = None) -> list[Orphan]:
    return [one for one in store.census(tenant) if isinstance(one, Orphan)]


def test_rows_with_an_owner_are_not_reported(store: SqlStore) -> None:
    assert strays(store) == strays(store, "acme") == []


DAMAGE = [
        ("DELETE FROM branch WHERE name = 'two'", "name 'two'", "it leads to branch 2 of tree {}, which is gone"),
        ("DELETE FROM branch WHERE name = 'two'", "branch 2 of tree {}", "no such branch, and a message lies on it"),
        ("DELETE FROM branch WHERE name = 'two'", "tree {}", "it has had 2 branches, and there are 1,"),
        ("UPDATE record SET branch = 7", "branch 7 of tree {}", "no such branch, and a record of edits lies on it"),
        ("UPDATE snapshot SET branch = branch + 6", "branch 7 of tree {}", "and a saved view lies on it"),
        ("UPDATE indexed SET branch = 7 WHERE branch = 1", "branch 7 of tree {}", "and a mark of the index of words"),
        ("UPDATE message SET root = 5 WHERE position > 4", "branch 1 of tree 5", "and 2 messages lie on it"),
        ("UPDATE body SET root = 5", "tree 5", "there is no such tree, and 6 large bodies lie in it"),
        ("UPDATE erasure SET root = 5", "tree 5", "there is no such tree, and a record of an erasure lies in it"),
        ("UPDATE run SET root = 5", "tree 5", "there is no such tree, and a run lies in it"),
        ("UPDATE run SET id = 's'", "run 'r' of tree {}", "there is no such run, and a step lies of it"),
        ("DELETE FROM tree WHERE branches = 2", "tree {}", "there is no such tree, and 2 conversations lie in it"),
        ("UPDATE tree SET branches = 1 WHERE branches = 2", "tree {}", "it has had 1 branches, and there are 2"),
        ("DELETE FROM erasure", "tree {}", "its conversations know of 1 erasures, and records are kept of 0"),
        ("UPDATE erasure SET number = 2", "tree {}", "records are kept of 1, the newest number 2"),
        ("UPDATE branch SET erased = 0 WHERE branch = 2", "tree {}", "know of 1 erasures"),
        ("UPDATE conversation SET name = 'uno' WHERE name = 'one'", "name 'uno'", "wrong root"),
        ("UPDATE conversation SET tenant = 'zeta'", "name 'one'", "wrong root"),
        ("UPDATE conversation SET branch = 2 WHERE name = 'one'", "name 'one'", "that is called 'two'"),
        ("DELETE FROM message WHERE position = 6", "body ", "no message has it"),
        ("UPDATE run SET task = 'ab'", "runs", "Run 'r' of 'tree {}' of the tenant 'acme' is damaged"),
        ("UPDATE step SET output = 'ab'", "runs", "Step 1 of run 'r' of 'tree {}' of the tenant 'acme' is damaged"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "where", "problem"), DAMAGE)
def test_orphan_rows_are_reported(store: SqlStore, run: Run, statement: str, where: str, problem: str) -> None:
    tree = store.open("acme", "one").root
    run(statement)
    orphan_rows = [(stray.where, stray.problem) for stray in strays(store)]
    expected = where.format(tree), problem.format(tree)
    assert [one for one in orphan_rows if one[0].startswith(expected[0]) and expected[1] in one[1]], orphan_rows


def test_postgres_reports_the_same(store: SqlStore, run: Run, postgres_url: str) -> None:
    from postgres_schemas import execute

    from foveate.stores.postgres import PostgresStore

    with PostgresStore(postgres_url) as other:
        assert list(filled(other).census()) == list(store.census())
        assert other.tenants() == store.tenants()
        for statement, _, _ in DAMAGE[::-1]:
            # Not what leaves another one nothing to do, and not text in the place of bytes, which only SQLite takes.
            if not re.match(r"DELETE FROM (branch|tree|erasure)|.*'ab'", statement):
                run(statement)
                execute(postgres_url, statement)
        assert list(other.census()) == list(store.census())
        assert [list(other.census(tenant)) for tenant in ("acme", "zeta")] == [
            list(store.census(tenant)) for tenant in ("acme", "zeta")
        ]
        assert len(strays(other)) > 12


@pytest.mark.parametrize("page", [1, 2, 3])
def test_census_does_not_depend_on_the_page_size(
    store: SqlStore, run: Run, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    for n in range(4):
        store.open(f"tenant {n % 2}", f"name {n}")
    for table, places in (("message", "position > 4"), ("run", "1 = 1")):
        run(f"UPDATE {table} SET root = 5 WHERE {places}")
    run("UPDATE conversation SET name = 'uno' WHERE name = 'one'")
    expected = list(store.census()), [list(store.census(tenant)) for tenant in store.tenants()]
    monkeypatch.setattr(census, "_PAGE", page)
    assert (list(store.census()), [list(store.census(tenant)) for tenant in store.tenants()]) == expected
    assert sum(isinstance(one, Head) for one in expected[0]) == 7


def test_unreadable_binding_is_reported(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "chat.db") as store:
        store.put_prompt("acme", Prompt("short", "{{ text }}"))
        connection = sqlite3.connect(tmp_path / "chat.db")
        with connection:
            connection.execute("UPDATE prompt SET text = x'00'")
        connection.close()
        (orphan_rows,) = strays(store)
        assert (orphan_rows.tenant, orphan_rows.where) == ("acme", "catalog")
        assert "The prompt 'short' cannot be read" in orphan_rows.problem


def test_name_that_is_no_text_ends_the_list_with_a_sentence(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "chat.db") as store:
        store.open("acme", "one")
        connection = sqlite3.connect(tmp_path / "chat.db")
        with connection:
            connection.execute("UPDATE branch SET tenant = CAST(x'ff61' AS TEXT)")
        connection.close()
        with pytest.raises(Damaged, match="cannot be listed"):
            list(store.census())


def test_census_of_memory_reports_the_same() -> None:
    store = MemoryStore()
    head = store.open("acme", "one")
    store.put_run(store.open("zeta", "two"), AgentRun("r", "me", "two"))
    store.erase(head, [(1, 0)])
    del store._branches["acme", head.root, 1]
    tree = store.open("zeta", "two").root
    del store._branches["zeta", tree, 1]
    assert strays(store) == [
        Orphan("acme", "name 'one'", f"it leads to branch 1 of tree {head.root}, which is gone"),
        Orphan("zeta", "name 'two'", f"it leads to branch 1 of tree {tree}, which is gone"),
        Orphan("zeta", f"tree {tree}", "there is no such tree"),
    ]
    assert strays(store, "zeta") == strays(store)[1:]
