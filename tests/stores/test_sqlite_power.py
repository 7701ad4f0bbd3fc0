"""A power cut at any moment: every acknowledged write is stored whole and once."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from store_states import scenario, state, states_along_the_way
from waiting import until

import foveate
from foveate.core.messages import user
from foveate.ports import Head, append
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain

pytest.importorskip("apsw", reason="apsw, which lets Python stand between SQLite and the disk, is not installed")
from disks import Disk, Lost, put


def recorded(folder: Path) -> Disk:
    """Record all requests of SQLite while a file is created, the scenario run, the file vacuumed and closed."""
    disk = Disk()
    with SqliteStore(folder / "chat.db", connection=disk.connection, search=False) as store:
        heads: dict[str, Head] = {}
        for step in scenario():
            step(store, heads)
            disk.acknowledge()
        store.vacuum()
        disk.acknowledge()
    return disk


def check(folder: Path, lost: Lost, files: dict[str, bytes], along: list[dict[str, Any]]) -> None:
    put(folder, files)
    with SqliteStore(folder / "chat.db", synchronous="normal", search=False) as store:
        held = state(store)
        assert held in along[lost.acknowledged : lost.acknowledged + 2]
        head = store.open("acme", "later")
        assert append(store, head, chain([user("goes on")], head)).position == 1


@pytest.fixture(scope="module")
def along() -> list[dict[str, Any]]:
    held = states_along_the_way()
    return [*held, held[-1]]  # The vacuum changes nothing that can be read.


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Disk:
    return recorded(tmp_path_factory.mktemp("recorded"))


STEPS = pytest.mark.parametrize("step", [29, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "every"])
"""After one event in so many the power goes; in the thorough run, after every one."""


@pytest.mark.slow
@STEPS
def test_power_cut_keeps_acknowledged_data_once(
    disk: Disk, along: list[dict[str, Any]], tmp_path: Path, step: int
) -> None:
    """F30: none, all, or torn sectors of the unsynced writes remain, in any order. Each leaves the state before a
    write or after it. A file that was being created is empty, and the next store to open it creates it.
    """
    lost, random, met = Lost(), Random(step), Counter[str]()
    for number, event in enumerate(disk.events):
        lost.take(event)
        if number % step and event.kind != "acknowledged":
            continue
        try:
            check(tmp_path, lost, lost.left(None), along)
            met["nothing"] += 1
            if not lost.is_settled:
                check(tmp_path, lost, lost.left(None, all=True), along)
                check(tmp_path, lost, lost.left(random), along)
                met["torn"] += 1
        except BaseException as error:
            error.add_note(f"the power went after event {number}: {event.kind} {event.name} at {event.at}")
            raise
    assert lost.acknowledged == len(scenario()) + 1
    assert met["torn"] > 10


@pytest.mark.slow
def test_torn_unsynced_writes_keep_whole_states(disk: Disk, along: list[dict[str, Any]], tmp_path: Path) -> None:
    """F30: many cuts right before each sync, when most is unsynced."""
    lost, random, tries = Lost(), Random(7), 0
    for event in disk.events:
        if event.kind == "sync":
            for _ in range(12):
                check(tmp_path, lost, lost.left(random), along)
                tries += 1
        lost.take(event)
    assert tries > 400


def test_disk_that_says_it_synced_and_did_not_is_found_out(
    disk: Disk, along: list[dict[str, Any]], tmp_path: Path
) -> None:
    """Shows that these tests can fail: without the syncs, an acknowledged write is lost."""
    lost = Lost()
    for event in disk.events:
        if event.kind != "sync":
            lost.take(event)
    with pytest.raises(AssertionError):
        check(tmp_path, lost, lost.left(None), along)


def test_power_cut_under_normal_may_undo_only_whole_recent_writes(along: list[dict[str, Any]], tmp_path: Path) -> None:
    """The guarantee of `synchronous="normal"`."""
    (tmp_path / "made").mkdir()
    (tmp_path / "left").mkdir()
    disk, lost, heads, undone = Disk(), Lost(), dict[str, Head](), 0
    with SqliteStore(
        tmp_path / "made" / "chat.db", connection=disk.connection, search=False, synchronous="normal"
    ) as store:
        for step in scenario():
            step(store, heads)
            disk.acknowledge()
    random = Random(3)
    for event in disk.events:
        lost.take(event)
        if event.kind == "acknowledged":
            put(tmp_path / "left", lost.left(random))
            with SqliteStore(tmp_path / "left" / "chat.db", search=False) as store:
                held = state(store)
            assert held in along[: lost.acknowledged + 1]
            undone += held != along[lost.acknowledged]
    assert undone > 0


# ------------------------------------------------------------------------------------------------------------ syncs


def test_every_acknowledged_write_was_synced_first(disk: Disk) -> None:
    """Between two acknowledgements of changes, a sync follows the last write to the log."""
    since: list[str] = []
    written = 0
    for event in disk.events:
        if event.kind == "acknowledged":
            if "write" in since:
                assert since[-1] == "sync"
                written += 1
            since = []
        elif event.name == "chat.db-wal" and event.kind in ("write", "sync"):
            since.append(event.kind)
    assert written >= len(scenario()) - 1  # One of them is refused, and writes nothing.


def test_simultaneous_writers_share_one_sync(tmp_path: Path) -> None:
    disk, count = Disk(), 24

    class Slow(disk.connection):  # type: ignore[misc,name-defined]
        checkpoint = 0

        def execute(self, sql: str, values: Any = ()) -> Any:
            if sql == "COMMIT" and gate is not None:
                at_gate.set()
                assert gate.wait(100)
            return super().execute(sql, values)

    gate: threading.Event | None = None
    at_gate = threading.Event()
    with SqliteStore(tmp_path / "chat.db", connection=Slow, search=False) as store:
        heads = [store.open("acme", f"talk {n}") for n in range(count)]
        before = disk.syncs("chat.db-wal")
        append(store, heads[0], chain([user("alone")], heads[0]))
        assert disk.syncs("chat.db-wal") == before + 1
        heads[0] = store.open("acme", "talk 0")

        gate = threading.Event()
        threads = [
            threading.Thread(target=append, args=(store, head, chain([user("together")], head))) for head in heads
        ]
        threads[0].start()
        assert at_gate.wait(60)
        for thread in threads[1:]:
            thread.start()
        writer = store._driver._writer  # type: ignore[attr-defined]
        until(lambda: len(writer._queue) == count - 1)
        gate.set()
        for thread in threads:
            thread.join()
        assert disk.syncs("chat.db-wal") == before + 1 + 2  # Of the first, and of all who waited for it.
        for n, head in enumerate(heads):
            now = store.open("acme", head.name)
            assert (now.position, store.verify(now)) == (1 + (n == 0), [])


def test_every_connection_that_writes_syncs_in_full(tmp_path: Path) -> None:
    """This is the default, also for the vacuum, which has its own connection."""
    seen: list[tuple[object, ...]] = []

    class Asked(sqlite3.Connection):
        def execute(self, sql: str, values: Any = (), /) -> sqlite3.Cursor:
            if sql.split()[0] in ("COMMIT", "VACUUM"):
                names = "synchronous", "fullfsync", "checkpoint_fullfsync", "journal_mode"
                found = [super(Asked, self).execute(f"PRAGMA {name}").fetchone()[0] for name in names]
                seen.append((sql.split()[0], *found))
            return super().execute(sql, values)

    with SqliteStore(tmp_path / "chat.db", connection=Asked) as store:
        heads: dict[str, Head] = {}
        for step in scenario():
            step(store, heads)
        store.vacuum()
    assert set(seen) == {("COMMIT", 2, 1, 1, "wal"), ("VACUUM", 2, 1, 1, "wal")}
    assert len(seen) > len(scenario())


@pytest.mark.parametrize("opened", ["open_store", "open_conversation"])
def test_writes_survive_a_power_cut_unless_less_is_requested(tmp_path: Path, opened: str) -> None:
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    if opened == "open_conversation":
        chat = foveate.open_conversation("one", store=url, window=10_000)
        store = chat._agent.store
    else:
        store = foveate.open_store(url)
    level = store._driver.write(lambda session: session.rows("PRAGMA synchronous")[0][0])
    store.close()
    assert level == 2
