"""An export and an import change nothing, for any contents and any databases."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from worlds import TENANT, build, contents, furnish, moves

from foveate.errors import BadTranscript, FoveateError
from foveate.ops.archive import export_archive, import_archive
from foveate.ports import Database
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing.faults import Countdown, failing_store

SOME = settings(max_examples=max(10, settings.default.max_examples // 2))  # type: ignore[union-attr]


def exported(store: Database, conversation: str | None = None, tenant: str = TENANT) -> bytes:
    file = io.BytesIO()
    export_archive(store, file, tenant=tenant, conversation=conversation, catalog=True)
    return file.getvalue()


def imported(store: Database, archive: bytes) -> None:
    handle, path = tempfile.mkstemp(suffix=".jsonl")
    with open(handle, "wb") as file:
        file.write(archive)
    try:
        import_archive(store, path)
    finally:
        os.unlink(path)


def around(actions: list[tuple[int, int, int]], *openers: Callable[[], Database]) -> None:
    """Pass an archive from memory through these stores; it stays the same byte for byte."""
    first = MemoryStore()
    build(first, actions)
    furnish(first)
    archive, whole = exported(first), contents(first)
    for opener in openers:
        store = opener()
        try:
            imported(store, archive)
            assert exported(store) == archive
            assert contents(store) == whole
            assert (store.actions(TENANT), store.prompts(TENANT)) == (first.actions(TENANT), first.prompts(TENANT))
            imported(store, archive)
            assert exported(store) == archive
            assert contents(store) == whole
        finally:
            store.close()


@pytest.mark.slow
@SOME
@given(actions=moves)
def test_archive_stays_the_same_through_sqlite_and_memory(actions: list[tuple[int, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        around(actions, lambda: SqliteStore(Path(folder) / "a.db", synchronous="normal"), MemoryStore)


@pytest.mark.slow
def test_archive_stays_the_same_through_postgres(postgres_url: str) -> None:
    from postgres_schemas import emptied

    from foveate.stores.postgres import PostgresStore

    PostgresStore(postgres_url).close()

    @settings(max_examples=6)
    @given(actions=moves)
    def check(actions: list[tuple[int, int, int]]) -> None:
        around(actions, lambda: PostgresStore(emptied(postgres_url)))

    check()


@settings(max_examples=10)
@given(actions=moves)
def test_same_history_makes_the_same_archive_wherever_it_was_made(actions: list[tuple[int, int, int]]) -> None:
    memory = MemoryStore()
    build(memory, actions)
    with tempfile.TemporaryDirectory() as folder, SqliteStore(Path(folder) / "a.db", synchronous="normal") as sqlite:
        build(sqlite, actions)
        assert exported(sqlite) == exported(memory)


@SOME
@given(actions=moves)
def test_conversation_takes_its_whole_tree_along_and_nothing_else(actions: list[tuple[int, int, int]]) -> None:
    first, second = MemoryStore(), MemoryStore()
    build(first, actions)
    for name in first.names(TENANT):
        tree = {branch.head.name for branch in first.branches(first.open(TENANT, name))}
        archive = exported(first, name)
        imported(second, archive)
        assert tree <= set(second.names(TENANT))
        assert exported(second, name) == archive
    assert contents(second) == contents(first)


@SOME
@given(actions=moves, more=moves)
def test_grown_archive_can_be_imported_again(
    actions: list[tuple[int, int, int]], more: list[tuple[int, int, int]]
) -> None:
    """Later messages and forks are imported too, if no name leads elsewhere."""
    first, second = MemoryStore(), MemoryStore()
    build(first, actions)
    imported(second, exported(first))
    # Neither leads a name elsewhere nor erases, which no import repeats.
    build(first, [(0 if kind in (5, 9) else kind, a, b) for kind, a, b in more], tag=" later")
    archive = exported(first)
    imported(second, archive)
    assert exported(second) == archive


@pytest.mark.parametrize("actions", [[(0, 1, 3), (3, 1, 1), (4, 0, 1), (2, 1, 0), (5, 0, 2), (7, 2, 2), (1, 0, 4)]])
def test_interrupted_import_shows_nothing_and_continues(actions: list[tuple[int, int, int]]) -> None:
    first = MemoryStore()
    build(first, actions)
    archive, names = exported(first), first.names(TENANT)
    for fatal in range(1, 1000):
        second = MemoryStore()
        countdown = Countdown(fatal)
        try:
            imported(failing_store(second, countdown), archive)
        except FoveateError:
            assert [name for name in second.names(TENANT) if not name.startswith("~importing ")] in ([], names)
            imported(second, archive)
            assert exported(second) == archive
            assert second.names(TENANT) == names
        else:
            assert fatal > 20
            return
    pytest.fail("it never succeeded")


@SOME
@given(actions=moves)
def test_file_that_is_cut_anywhere_is_refused(actions: list[tuple[int, int, int]]) -> None:
    first, second = MemoryStore(), MemoryStore()
    build(first, actions)
    archive = exported(first)
    for end in {len(archive) - 1, len(archive) // 2, archive.rindex(b'{"is":"end"'), archive.index(b"\n") + 1, 0}:
        with pytest.raises(BadTranscript):
            imported(second, archive[:end])
        assert second.names(TENANT) == []
