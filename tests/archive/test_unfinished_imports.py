"""An import that stops anywhere shows none of its data, and can be continued or dropped."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from worlds import TENANT, build, contents, furnish

from foveate import open_async_conversation, open_conversation
from foveate.errors import BadSetting, StoreError
from foveate.ops.archive import UnfinishedImport, drop_unfinished, export_archive, find_unfinished, import_archive
from foveate.ports import Database
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing.faults import Countdown, failing_connection, failing_store

MADE = [(0, 1, 3), (3, 1, 1), (4, 0, 1), (2, 1, 0), (5, 0, 2), (7, 2, 2), (9, 0, 0), (6, 0, 0), (1, 5, 4)]


@pytest.fixture
def first() -> MemoryStore:
    store = MemoryStore()
    build(store, MADE)
    furnish(store)
    return store


@pytest.fixture
def path(first: MemoryStore, tmp_path: Path) -> Path:
    export_archive(first, tmp_path / "all.jsonl", tenant=TENANT, catalog=True)
    return tmp_path / "all.jsonl"


def exported(store: Database) -> bytes:
    file = io.BytesIO()
    export_archive(store, file, tenant=TENANT, catalog=True)
    return file.getvalue()


def half(path: Path, store: Database) -> Database:
    """Return the store with an import that failed in the second tree."""
    for fatal in range(10, 200):
        with pytest.raises(StoreError):
            import_archive(failing_store(store, Countdown(fatal)), path)
        if store.names(TENANT) and list(find_unfinished(store)):
            return store
    raise AssertionError("it never stopped there")


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_import_with_any_failed_statement_ends_the_same(path: Path, tmp_path: Path, step: int) -> None:
    """Each statement of each transaction, or each seventh; BEGIN and COMMIT too."""
    archive = path.read_bytes()
    for fatal in range(1, 2000, step):
        file = tmp_path / f"{fatal}.db"
        SqliteStore(file, synchronous="normal", search=False).close()
        countdown = Countdown(fatal)
        store = None
        try:
            store = SqliteStore(file, synchronous="normal", search=False, connection=failing_connection(countdown))
            import_archive(store, path)
        except StoreError:
            pass
        finally:
            if store:
                store.close()
        if not countdown.is_used_up:
            assert fatal > 100
            return
        with SqliteStore(file, synchronous="normal", search=False) as store:
            import_archive(store, path)
            assert exported(store) == archive
            assert list(find_unfinished(store)) == []
        for left in tmp_path.glob(f"{fatal}.db*"):
            left.unlink()
    raise AssertionError("it never succeeded")


@pytest.mark.slow
@pytest.mark.parametrize("fatal", [3, 40, 90, 140])
def test_killed_import_continues_and_ends_the_same(path: Path, tmp_path: Path, fatal: int) -> None:
    """The process is killed in the middle of a statement."""
    program = f"""
import os, sqlite3, sys
from foveate.ops.archive import import_archive
from foveate.stores.sqlite import SqliteStore
left = {fatal}
class Fatal(sqlite3.Connection):
    def execute(self, *given):
        global left
        left -= 1
        if not left:
            super().execute(*given)
            os.kill(os.getpid(), 9)
        return super().execute(*given)
SqliteStore({str(tmp_path / "a.db")!r}).close()
import_archive(SqliteStore({str(tmp_path / "a.db")!r}, connection=Fatal), {str(path)!r})
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", program], env=environment, check=False).returncode == -9
    with SqliteStore(tmp_path / "a.db") as store:
        import_archive(store, path)
        assert exported(store) == path.read_bytes()


def test_unfinished_imports_are_listed_and_removed(first: MemoryStore, path: Path) -> None:
    store = half(path, MemoryStore())
    whole = [name for name in store.names(TENANT) if not name.startswith("~importing ")]
    kept = {name: content for name, content in contents(store).items() if name in whole}
    (unfinished,) = find_unfinished(store)
    assert (unfinished.tenant, all(name.startswith("~importing ") for name in unfinished.names)) == (TENANT, True)
    assert list(find_unfinished(store, tenant="zeta")) == drop_unfinished(store, tenant="zeta") == []
    assert drop_unfinished(store, tenant=TENANT) == [unfinished]
    assert (list(find_unfinished(store)), contents(store)) == ([], kept)
    import_archive(store, path)
    assert contents(store) == contents(first)


def test_named_conversation_is_not_discarded(path: Path) -> None:
    store = half(path, MemoryStore())
    (unfinished,) = find_unfinished(store)
    store.fork(store.open(TENANT, unfinished.names[0]), "mine", 0, 0)
    before = contents(store)
    with pytest.raises(BadSetting, match="'mine' is in that tree"):
        drop_unfinished(store)
    assert contents(store) == before


def test_no_conversation_can_be_named_as_what_is_unfinished() -> None:
    """Such a conversation would not be exported, and would be dropped with unfinished imports."""
    store = MemoryStore()
    refused = "begins with '~importing '.*db unfinished --drop"
    with pytest.raises(BadSetting, match=f"The name of a conversation {refused}"):
        open_conversation("~importing my notes", store=store, window=9_000)
    with pytest.raises(BadSetting, match=f"The name of a conversation {refused}"):
        asyncio.run(open_async_conversation("~importing my notes", store=store, window=9_000))
    with open_conversation("notes", store=store, window=9_000) as chat:
        with pytest.raises(BadSetting, match=f"The name of a fork {refused}"):
            chat.fork("~importing my notes")
        chat.fork("importing my notes").close()
    assert store.names("") == ["importing my notes", "notes"]


def test_store_in_which_nothing_is_unfinished_says_so(first: MemoryStore) -> None:
    assert list(find_unfinished(first)) == drop_unfinished(first) == []
    first.open(TENANT, "~importing 7-1")
    assert list(find_unfinished(first)) == [UnfinishedImport(TENANT, ("~importing 7-1",), 0)]
