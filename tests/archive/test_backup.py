"""A backup is a whole copy of one moment while others write, and never overwrites a file by itself."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread

import pytest
from waiting import until
from worlds import build, contents

from foveate.core.messages import user
from foveate.errors import BadSetting, Damaged, StoreError
from foveate.ops.archive import backup, export_archive, verify_all
from foveate.ops.archive.files import placed
from foveate.ports import append
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain

MADE = [(0, 0, 4), (3, 0, 2), (1, 0, 3), (2, 0, 0), (3, 1, 0), (4, 0, 5), (2, 1, 0), (3, 1, 1), (7, 1, 2)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with SqliteStore(tmp_path / "chat.db") as store:
        build(store, MADE)
    return tmp_path / "chat.db"


def test_backup_holds_what_the_database_holds(path: Path, tmp_path: Path) -> None:
    with SqliteStore(path) as store:
        head = store.open("acme", "begun")
        append(store, head, chain([user("still in the log")], head))
        size = backup(path, tmp_path / "copy.db")
        whole = contents(store)
    assert size == (tmp_path / "copy.db").stat().st_size
    with SqliteStore(tmp_path / "copy.db") as copy:
        assert contents(copy) == whole


def test_backup_is_one_file(path: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with SqliteStore(path):
        backup(f"sqlite:///{path}?search=off", tmp_path / "there" / "copy.db")
        assert [file.name for file in (tmp_path / "there").iterdir()] == ["copy.db"]


@pytest.mark.parametrize("options", ["", "?search=off", "?read_only=on", "?wait=30", "?wait=5&synchronous=normal"])
def test_database_is_found_by_any_url_that_opens_it(path: Path, tmp_path: Path, options: str) -> None:
    assert backup(f"sqlite:///{path}{options}", tmp_path / "copy.db") == (tmp_path / "copy.db").stat().st_size


def test_backup_is_one_moment_while_others_write(path: Path, tmp_path: Path) -> None:
    stop, acknowledged = Event(), []

    def write() -> None:
        with SqliteStore(path, synchronous="normal") as store:
            while not stop.is_set():
                head = store.open("acme", "busy")
                acknowledged.append(append(store, head, chain([user("on and on " * 99)], head)).position)

    writer = Thread(target=write)
    writer.start()
    try:
        for number in range(5):
            until(lambda: len(acknowledged) > 20 * number or not writer.is_alive())  # noqa: B023
            assert writer.is_alive()
            before = acknowledged[-1]
            backup(path, tmp_path / f"{number}.db")
            with SqliteStore(tmp_path / f"{number}.db", synchronous="normal") as copy:
                head = copy.open("acme", "busy", create=False)
                assert head.position >= before
                assert [copy.verify(copy.open("acme", name)) for name in copy.names("acme")] == [[]] * 3
    finally:
        stop.set()
        writer.join()


@pytest.mark.slow
def test_backup_holds_a_consistent_prefix_of_four_writers(path: Path, tmp_path: Path) -> None:
    names = [f"writer {n}" for n in range(4)]
    writers = [child("write", path, name) for name in names]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        reached = dict.fromkeys(names, 0)
        for number in range(6):
            with SqliteStore(path, synchronous="normal") as store:
                before = {name: store.open("acme", name).position for name in names}
            backup(path, tmp_path / f"{number}.db")
            with SqliteStore(tmp_path / f"{number}.db", synchronous="normal") as copy:
                assert [one for one in verify_all(copy) if one.findings] == []
                now = {name: copy.open("acme", name, create=False).position for name in names}
            assert all(reached[name] <= before[name] <= now[name] for name in names)
            reached = now
    finally:
        acknowledged = [int(writer.communicate(timeout=300)[0]) for writer in writers]
    assert min(acknowledged) > 0
    with SqliteStore(path) as store:
        assert [store.open("acme", name).position for name in names] == acknowledged
        assert [one for one in verify_all(store) if one.findings] == []


@pytest.mark.slow
@pytest.mark.parametrize("what", ["backup", "export"])
def test_full_disk_leaves_no_partial_copy(path: Path, tmp_path: Path, what: str) -> None:
    """The limit on file sizes acts like a full disk."""
    pytest.importorskip("resource", reason="this system sets no limit to the size of a file")
    (tmp_path / "there").mkdir()
    precious = tmp_path / "there" / "copy"
    for most in (1, 5000):
        output = child(what, path, precious, most).communicate(timeout=300)[0]
        assert re.match(r"(StoreError|BadSetting|Damaged): .*(could not be copied|cannot be written)", output), output
        assert list(precious.parent.iterdir()) == []


def test_journal_of_a_copy_for_which_there_was_no_room_is_taken_away(tmp_path: Path) -> None:
    """SQLite cannot apply the journal there, and once left it next to the copy."""
    with placed(tmp_path / "copy.db", database=True) as beside:
        for suffix in ("-journal", "-wal", "-shm"):
            beside.with_name(beside.name + suffix).write_bytes(b"half")
    (tmp_path / "copy.db").unlink()
    assert list(tmp_path.iterdir()) == []


def test_copy_that_is_interrupted_leaves_nothing(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*given: object) -> None:
        assert len([file for file in tmp_path.iterdir() if file.name.startswith(".copy")]) == 1
        raise KeyboardInterrupt

    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr("foveate.ops.archive.files._sync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        backup(path, tmp_path / "copy.db")
    with SqliteStore(path) as store, pytest.raises(KeyboardInterrupt):
        export_archive(store, tmp_path / "copy.jsonl", tenant="acme")
    assert [file for file in sorted(tmp_path.iterdir()) if "copy" in file.name] == []
    assert [file.name for file in before if "wal" not in file.name and "shm" not in file.name] == ["chat.db"]


def test_copy_takes_the_place_of_another_one_only_when_it_is_whole(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(b"the last good one")
    monkeypatch.setattr("foveate.ops.archive.files._sync", lambda path: (_ for _ in ()).throw(OSError(28, "No space")))
    with pytest.raises(BadSetting, match="cannot be written: No space"):
        backup(path, copy, overwrite=True)
    assert copy.read_bytes() == b"the last good one"


def test_copy_that_is_put_back_is_the_database_again(path: Path, tmp_path: Path) -> None:
    """As docs/guides/export.md describes: no program is running, and the log of the lost database is gone."""
    with SqliteStore(path) as store:
        before = contents(store)
    backup(path, tmp_path / "copy.db")
    with SqliteStore(path) as store:
        head = store.open("acme", "begun")
        append(store, head, chain([user("lost with the disk")], head))
    for lost in tmp_path.glob("chat.db*"):
        lost.unlink()
    (tmp_path / "copy.db").rename(path)
    with SqliteStore(path) as store:
        assert contents(store) == before
        head = store.open("acme", "begun")
        assert append(store, head, chain([user("and on")], head)).position == head.position + 1


def child(*arguments: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    program = [sys.executable, str(Path(__file__).with_name("backup_child.py")), *map(str, arguments)]
    return subprocess.Popen(program, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_existing_file_is_overwritten_only_on_request(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(b"precious")
    with pytest.raises(BadSetting, match="There is a file"):
        backup(path, copy)
    assert copy.read_bytes() == b"precious"
    backup(path, copy, overwrite=True)
    with SqliteStore(copy) as store:
        assert store.names("acme") == ["begun", "fork 5"]


def test_database_is_never_overwritten_by_its_own_copy(path: Path, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(path)
    for name in ("chat.db", "link.db"):
        with pytest.raises(BadSetting, match="is the database itself"):
            backup(path, tmp_path / name, overwrite=True)


def test_archive_never_takes_the_place_of_a_database(path: Path, tmp_path: Path) -> None:
    """`foveate db export chat.db --overwrite --store sqlite:///chat.db` once replaced the database."""
    before = path.read_bytes()
    (tmp_path / "link.db").symlink_to(path)
    with SqliteStore(path) as store:
        for name in ("chat.db", "link.db"):
            with pytest.raises(BadSetting, match="is a database, and must not be replaced by another kind of file"):
                export_archive(store, tmp_path / name, tenant="acme", overwrite=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_nothing_is_written_where_the_database_keeps_its_log(path: Path, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"chat.db{suffix}"
    with SqliteStore(path) as store:
        before = target.read_bytes() if target.exists() else None
        with pytest.raises(BadSetting, match="is a file that SQLite uses for"):
            backup(path, target, overwrite=True)
        with pytest.raises(BadSetting, match="is a file that SQLite uses for"):
            export_archive(store, target, tenant="acme", overwrite=True)
        assert (target.read_bytes() if target.exists() else None) == before


def test_folder_or_what_is_no_file_is_not_replaced(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    for name, cause in (("", "is a folder"), (".", "is a folder"), ("pipe", "is not a regular file")):
        with pytest.raises(BadSetting, match=cause):
            backup(path, name, overwrite=True)
        with SqliteStore(path) as store, pytest.raises(BadSetting, match=cause):
            export_archive(store, name, overwrite=True)
    assert Path("pipe").is_fifo()


def test_log_of_another_database_is_not_read_into_the_copy(path: Path, tmp_path: Path) -> None:
    (tmp_path / "copy.db-wal").write_bytes(b"left by a crash")
    with pytest.raises(BadSetting, match="the log of another database"):
        backup(path, tmp_path / "copy.db", overwrite=True)


def test_foreign_database_is_refused(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.execute("CREATE TABLE t (a)")
    connection.close()
    (tmp_path / "text.db").write_bytes(b"this is no database" * 99)
    for name, error, cause in (
        ("none.db", BadSetting, "There is no database"),
        ("other.db", BadSetting, "is not a database of foveate"),
        ("text.db", Damaged, "could not be copied"),
    ):
        with pytest.raises(error, match=cause):
            backup(tmp_path / name, tmp_path / "copy.db")
    with pytest.raises(BadSetting, match="pg_dump"):
        backup("postgresql://ann:secret@db/chats", tmp_path / "copy.db")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["other.db", "text.db"]


def test_damaged_database_makes_no_backup(path: Path, tmp_path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[8192:24576] = b"\xff" * 16384
    path.write_bytes(content)
    with pytest.raises(StoreError):
        backup(path, tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()
