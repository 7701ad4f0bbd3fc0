"""A full disk: one clear error; reading works, and writing works again when there is space; nothing is doubled.

Portable by a limit on the pages of a file or on the size of a process's files; with a real small file system in memory
if one can be mounted.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import foveate
from foveate.core import wire
from foveate.errors import StoreError
from foveate.stores.sqlite import SqliteStore

FULL = r"The disk of .*chat\.db is full \(database or disk is full\)\. Nothing was written\. Make room, then retry"


def noise(number: int) -> str:
    """Return some kilobytes that no codec compresses."""
    return f"{number} " + Random(number).randbytes(3000).hex()


def texts_in(store: Any) -> list[str]:
    head = store.open("", "one", create=False)
    assert store.verify(head) == []
    rows = store.messages(head, 1, head.position)
    return [wire.decode_message(row.body).text.split()[0] for row in rows]


class Limited(sqlite3.Connection):
    """A connection whose file has at most `pages` pages; 0: no limit. With `is_full` its log may not grow either."""

    pages = 0
    is_full = False

    def execute(self, sql: str, values: Any = (), /) -> sqlite3.Cursor:
        if sql == "COMMIT" and Limited.is_full:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        if sql == "BEGIN IMMEDIATE":
            super().execute(f"PRAGMA max_page_count = {Limited.pages or 2**30}")
        return super().execute(sql, values)


def test_conversation_meets_a_full_disk_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    Limited.pages = 0
    store = SqliteStore(tmp_path / "chat.db", connection=Limited)
    with foveate.open_conversation("one", store=store, window=100_000) as chat:
        chat.append({"role": "user", "content": noise(1)})
        Limited.pages = 1  # No page more than there are.
        for _ in range(3):
            with pytest.raises(StoreError, match=FULL):
                chat.append({"role": "user", "content": noise(2)})
        assert [entry.message.text.split()[0] for entry in chat.view] == ["1"]
        assert len(chat.prompt()["messages"]) == 1
        assert texts_in(store) == ["1"]
        Limited.pages = 0
        chat.append({"role": "user", "content": noise(2)})
        chat.append({"role": "assistant", "content": "3 and on"})
        assert [entry.message.text.split()[0] for entry in chat.view] == ["1", "2", "3"]
        assert texts_in(store) == ["1", "2", "3"]
    store.close()


def test_plan_that_finds_the_disk_full_is_made_again_later(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "chat.db", connection=Limited)
    with foveate.open_conversation("one", store=store, window=8_000) as chat:
        for number in range(6):
            chat.append({"role": "user", "content": noise(number)})
            chat.append({"role": "assistant", "content": f"{number} it is"})
        chat.append({"role": "user", "content": "and now?"})
        before = list(chat.view)
        Limited.is_full = True
        with pytest.raises(StoreError, match=FULL):
            chat.prompt()
        assert list(chat.view) == before
        Limited.is_full = False
        assert 0 < len(chat.prompt()["messages"]) < 13
        assert len(texts_in(store)) == 13
    store.close()


CHILD = """
import resource, sys
import foveate
from test_sqlite_full import noise, texts_in

store = foveate.open_store("sqlite:///" + sys.argv[1])
chat = foveate.open_conversation("one", store=store, window=100_000)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
number = 0
try:
    while number < 1000:
        number += 1
        chat.append({"role": "user", "content": noise(number)})
except foveate.StoreError as error:
    print(error)
print(texts_in(store) == [str(n) for n in range(1, number)])
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
chat.append({"role": "user", "content": noise(number)})
print(texts_in(store) == [str(n) for n in range(1, number + 1)])
"""


def test_limit_on_the_size_of_files_is_met_like_a_full_disk(tmp_path: Path) -> None:
    pytest.importorskip("resource", reason="this system has no such limit")
    here = Path(__file__).resolve().parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here.parents[1] / "src"), str(here)])}
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path / "chat.db")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    error, *rest = child.stdout.splitlines()
    assert error.startswith(f"{tmp_path / 'chat.db'} could not be written to (disk I/O error): this user's quota or ")
    assert error.endswith("(`ulimit -f`) is reached, or the disk fails. Nothing was written. Correct that, then retry.")
    assert rest == ["True", "True"]


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """Mount a file system of two megabytes."""
    folder = tempfile.mkdtemp(prefix="foveate-small-disk-")
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    try:
        if not mounted:
            pytest.skip("nothing can be mounted here; a limit on pages and one on the size of files stand in for it")
        yield Path(folder)
    finally:
        if mounted:
            subprocess.run(["umount", "-l", folder], check=True)
        os.rmdir(folder)


def test_disk_that_is_really_full(small_disk: Path) -> None:
    path, ballast = small_disk / "chat.db", small_disk / "ballast"
    with foveate.open_store(f"sqlite:///{path}") as store:
        chat = foveate.open_conversation("one", store=store, window=100_000)
        chat.append({"role": "user", "content": noise(1)})
        fill(ballast)
        with pytest.raises(StoreError, match=FULL):
            append_until_it_fails(chat)
        number = int(texts_in(store)[-1]) + 1
        whole = [str(n) for n in range(1, number)]
        assert texts_in(store) == whole  # Reading goes on, in the conversation too.
        assert len(chat.prompt()["messages"]) == len(whole)
        ballast.unlink()
        chat.append({"role": "user", "content": noise(number)})
        assert texts_in(store) == [*whole, str(number)]
        fill(ballast)
    # Closed while it was full: the log could not be written back, or could; either way it is all there.
    ballast.unlink()
    with foveate.open_store(f"sqlite:///{path}") as store:
        assert texts_in(store) == [*whole, str(number)]


def test_file_on_a_full_disk_cannot_be_opened_and_says_so(small_disk: Path) -> None:
    path, ballast = small_disk / "chat.db", small_disk / "ballast"
    with foveate.open_store(f"sqlite:///{path}") as store:
        foveate.open_conversation("one", store=store, window=100_000).append({"role": "user", "content": noise(1)})
    fill(ballast)
    with pytest.raises(StoreError, match=r"The disk of .*chat\.db is full"):
        foveate.open_store(f"sqlite:///{path}")
    with pytest.raises(StoreError, match=r"The disk of .*new\.db is full"):
        foveate.open_store(f"sqlite:///{small_disk / 'new.db'}")
    ballast.unlink()
    with foveate.open_store(f"sqlite:///{path}") as store:
        assert texts_in(store) == ["1"]


def append_until_it_fails(chat: foveate.Conversation) -> None:
    for number in range(2, 999):
        chat.append({"role": "user", "content": noise(number)})


def fill(ballast: Path) -> None:
    """Use all free space."""
    with ballast.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    assert shutil.disk_usage(ballast.parent).free == 0
