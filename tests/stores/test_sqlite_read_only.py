"""A SQLite file that is opened for reading only: it stays as it is, wherever it is."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from foveate.core.messages import user
from foveate.errors import StoreError
from foveate.open import open_store
from foveate.ports import append
from foveate.stores import readable
from foveate.stores.sqlite import SqliteStore
from foveate.stores.sqlite.errors import explain
from foveate.testing.rows import chain

NOBODY = 65534
IS_ROOT = getattr(os, "geteuid", lambda: 1)() == 0

CHILD = """
import os, sys
from foveate.open import open_store
from foveate.stores import readable
open_store("sqlite:///" + sys.argv[2]).close()  # Imports all modules, before their folders are closed.
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
with open_store(readable("sqlite:///" + sys.argv[1])) as store:
    print(store.names("acme"), len(store.messages(store.open("acme", "one", create=False), 1, 9)))
"""


def make(path: Path) -> bytes:
    """Create a database with one conversation; return its bytes."""
    with SqliteStore(path) as store:
        head = store.open("acme", "one")
        append(store, head, chain([user("said before")], head))
    return path.read_bytes()


def test_read_only_file_is_read_and_refuses_writes(tmp_path):
    content = make(tmp_path / "chat.db")
    with open_store(f"sqlite:///{tmp_path / 'chat.db'}?read_only=on") as store:
        head = store.open("acme", "one", create=False)
        assert len(store.messages(head, 1, 9)) == 1
        assert store.recent("acme")[1] == 1
        assert [hit.position for hit in store.search(head, "before")] == [1]
        with pytest.raises(StoreError, match="open for reading only"):
            append(store, head, chain([user("more")], head))
        with pytest.raises(StoreError, match="open for reading only"):
            store.open("acme", "two")
        with pytest.raises(StoreError, match="open for reading only"):
            store.vacuum()
    assert (tmp_path / "chat.db").read_bytes() == content


def test_missing_file_is_not_created_for_reading(tmp_path):
    with pytest.raises(StoreError, match="There is no database"):
        SqliteStore(tmp_path / "none.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_reader_sees_what_a_writer_adds(tmp_path):
    path = tmp_path / "chat.db"
    make(path)
    with SqliteStore(path) as writer, SqliteStore(path, read_only=True) as reader:
        head = writer.open("acme", "one")
        append(writer, head, chain([user("more")], head))
        assert reader.open("acme", "one", create=False).position == 2


def test_file_in_a_folder_that_nobody_may_write_is_read():
    with tempfile.TemporaryDirectory(prefix="foveate-read-only-") as name:
        folder = Path(name).resolve() / "shared"
        folder.mkdir()
        make(folder / "chat.db")
        if IS_ROOT:
            os.chown(folder / "chat.db", NOBODY, NOBODY)
        (folder / "chat.db").chmod(0o444)
        folder.chmod(0o555)
        folder.parent.chmod(0o755)
        try:
            environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src")}
            order = [sys.executable, "-c", CHILD, str(folder / "chat.db"), str(Path(name) / "warm.db")]
            done = subprocess.run(order, env=environment, capture_output=True, text=True, timeout=60)
            assert (done.stdout, done.returncode) == ("['one'] 1\n", 0), done.stderr
        finally:
            folder.chmod(0o755)


def test_only_a_file_that_cannot_be_written_is_opened_for_reading(tmp_path):
    make(tmp_path / "chat.db")
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    assert readable(url) == url
    assert readable(url, always=True) == f"{url}?read_only=on"
    assert readable(f"{url}?wait=1", always=True) == f"{url}?wait=1&read_only=on"
    assert readable(f"sqlite:///{tmp_path / 'none.db'}", always=True) == f"sqlite:///{tmp_path / 'none.db'}"
    assert readable("memory:", always=True) == "memory:"


def test_a_log_that_cannot_be_shared_is_named(tmp_path):
    path = tmp_path / "chat.db"
    make(path)
    (tmp_path / "chat.db-wal").write_bytes(b"newest")
    error = sqlite3.OperationalError("unable to open database file")
    error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
    text = str(explain(error, path, "chat.db", 1, is_read_only=True))
    assert "cannot be read" in text
    assert "its newest messages are in chat.db-wal" in text
    assert text.endswith("Copy both files into a folder of your own, and name the copy.")
