"""The disk fails at any request: one clear error, the state before or after a write, and the store continues."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from store_states import Step, scenario, state
from sweeps import STEP, by_thirds

from foveate.core.messages import user
from foveate.errors import StoreError
from foveate.ports import Database, Head, append
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain

pytest.importorskip("apsw", reason="apsw, which lets Python stand between SQLite and the disk, is not installed")
from disks import Disk, Kind

CODES: dict[Kind, tuple[int, ...]] = {
    "read": (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_CORRUPTFS),
    "write": (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE),
    "truncate": (sqlite3.SQLITE_IOERR_TRUNCATE,),
    "sync": (sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC),
    "open": (sqlite3.SQLITE_CANTOPEN,),
    "delete": (sqlite3.SQLITE_IOERR_DELETE,),
    "lock": (sqlite3.SQLITE_IOERR_LOCK, sqlite3.SQLITE_BUSY),
    "size": (sqlite3.SQLITE_IOERR_FSTAT,),
}
"""With what each thing that is asked of a disk may be answered when it fails."""


PART = ("opening", "appending", "committing", "appending", "forking", "repointing", "erasing")
"""Steps of the scenario that are few enough to be run some hundreds of times in a quick run."""


@dataclass(frozen=True)
class Life:
    """The steps of a store, and its contents before the first and after each."""

    steps: list[Step]
    along: list[dict[str, Any]]


@pytest.fixture(scope="module", params=["part", pytest.param("whole", marks=pytest.mark.slow)])
def life(request: pytest.FixtureRequest) -> Life:
    every = scenario()
    named = {step.__name__: step for step in every}
    steps = [named[name] for name in PART] if request.param == "part" else every
    store, heads = MemoryStore(), dict[str, Head]()
    found = [state(store)]
    for step in steps:
        step(store, heads)
        found.append(state(store))
    return Life(steps, found)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "made.db"
    SqliteStore(path, search=False).close()
    return path


def run(store: Database, steps: list[Step]) -> tuple[int, str]:
    """Return the number of steps before the first failure, and its error."""
    heads: dict[str, Head] = {}
    for done, step in enumerate(steps):
        try:
            step(store, heads)
        except StoreError as error:
            return done, str(error)
    return len(steps), ""


def code_for(kind: Kind, turn: int) -> int:
    return CODES[kind][turn % len(CODES[kind])]


def tried(made: Path, path: Path, fails: Callable[[Kind, int], int], life: Life) -> str:
    """Run the steps on a failing disk; check the state after each failure. Return the errors."""
    shutil.copy(made, path)
    disk, done, said = Disk(), 0, ""
    disk.fail(fails)
    try:
        store = SqliteStore(path, connection=disk.connection, search=False, wait=0.01)
    except StoreError as error:
        said = str(error)
        disk.mend()
    else:
        done, said = run(store, life.steps)
        disk.mend()
        head = store.open("acme", "later")  # The failure is over: the same store goes on.
        append(store, head, chain([user("still here")], head))
        store.close()
    with SqliteStore(path, search=False, synchronous="normal") as store:
        held = state(store)
    held.pop("later", None)
    assert held in life.along[done : done + 2]
    return said


@by_thirds
def test_any_disk_failure_leaves_a_whole_state(made: Path, life: Life, tmp_path: Path, n: int) -> None:
    """F30."""
    met = Counter[str]()
    while True:
        failed: list[Kind] = []

        def fails(kind: Kind, count: int, n: int = n, failed: list[Kind] = failed) -> int:
            if count == n:
                failed.append(kind)
                return code_for(kind, n)
            return 0

        try:
            said = tried(made, tmp_path / f"{n}.db", fails, life)
        except BaseException as error:
            error.add_note(f"{failed} failed, which was number {n}")
            raise
        if not failed:
            break
        assert f"{n}.db" in said or not said
        met[f"{failed[0]}: {'told' if said else 'not needed'}"] += 1
        n += STEP
    assert met["write: told"] > 6
    assert met["read: told"] > 3
    assert met["sync: told"] + met["sync: not needed"] > 0


def test_lost_disk_fails_every_call_and_loses_nothing(made: Path, life: Life, tmp_path: Path) -> None:
    """F30."""
    for n in range(1, 170, 7):

        def fails(kind: Kind, count: int, n: int = n) -> int:
            return code_for(kind, n) if count >= n else 0

        try:
            tried(made, tmp_path / f"{n}.db", fails, life)
        except BaseException as error:
            error.add_note(f"nothing worked from number {n} on")
            raise


def meets(store: SqliteStore, head: Head, path: Path, disk: Disk) -> None:
    append(store, head, chain([user("hi")], head))
    SqliteStore(path, connection=disk.connection, search=False)


@pytest.mark.parametrize(
    ("kind", "code", "says"),
    [
        ("write", sqlite3.SQLITE_FULL, r"disk of .* is full .*Make room, then retry; reading goes on meanwhile"),
        ("write", sqlite3.SQLITE_IOERR_WRITE, r"could not be written to .*quota .*Nothing was written"),
        ("sync", sqlite3.SQLITE_IOERR_FSYNC, r"Open the conversation again to see whether the last write took place"),
        ("read", sqlite3.SQLITE_IOERR_READ, r"could not be read .*its disk fails.*foveate db verify"),
    ],
)
def test_failing_disk_is_reported_with_advice(made: Path, tmp_path: Path, kind: Kind, code: int, says: str) -> None:
    path = Path(shutil.copy(made, tmp_path / "chat.db"))
    disk = Disk()
    with SqliteStore(path, connection=disk.connection, search=False) as store:
        head = store.open("acme", "one")
        disk.fail(lambda asked, count: code if asked == kind else 0)
        with pytest.raises(StoreError, match=says) as failure:
            meets(store, head, path, disk)
        assert str(path) in str(failure.value)
        if kind == "write":
            assert store.messages(head, 1, 9) == []  # Reading goes on.
        disk.mend()
        head = store.open("acme", "one")
        assert (head.position, store.verify(head)) == (0, [])
        assert append(store, head, chain([user("hi")], head)).position == 1


@pytest.mark.parametrize("kind", ["write", "sync"])
def test_checkpoint_that_fails_costs_no_write(made: Path, tmp_path: Path, kind: Kind) -> None:
    """The log is copied into the file after a valid commit; if that fails, the log keeps everything."""
    path = Path(shutil.copy(made, tmp_path / "chat.db"))
    disk, failed = Disk(), Counter[str]()

    def fails(asked: Kind, count: int) -> int:
        if asked == kind and disk.asking == "chat.db":
            failed[asked] += 1
            return code_for(asked, count)
        return 0

    with SqliteStore(path, connection=disk.connection, search=False) as store:
        head = store.open("acme", "one")
        disk.fail(fails)
        for n in range(30):
            head = append(store, head, chain([user(f"turn {n}")], head))
        assert failed[kind] > 1
        if kind == "write":
            disk.mend()
    with SqliteStore(path, search=False, synchronous="normal") as store:
        assert store.open("acme", "one") == head
        assert store.verify(head) == []


@pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "every"])
def test_vacuum_on_a_failing_disk_changes_nothing(tmp_path: Path, step: int) -> None:
    """A vacuum needs space for a second file, which an almost full disk does not have."""
    made = tmp_path / "made.db"
    with SqliteStore(made, search=False, synchronous="normal") as store:
        heads: dict[str, Head] = {}
        for one in scenario():
            one(store, heads)
        before = state(store)
    n, told = 1, 0
    while True:
        path, disk = Path(shutil.copy(made, tmp_path / f"{n}.db")), Disk()
        failed: list[Kind] = []

        def fails(kind: Kind, count: int, n: int = n, failed: list[Kind] = failed) -> int:
            if count == n:
                failed.append(kind)
            return code_for(kind, n) if count == n else 0

        with SqliteStore(path, connection=disk.connection, search=False) as store:
            disk.fail(fails)
            try:
                store.vacuum()
            except StoreError:
                told += 1
            disk.mend()
            assert state(store) == before, f"{failed} failed, which was number {n}"
            store.vacuum()
            assert state(store) == before
        if not failed:
            break
        n += step
    assert told > 5
