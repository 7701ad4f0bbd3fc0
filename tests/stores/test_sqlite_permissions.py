"""A file that is not writable, locked, on an unsuitable disk or removed: one clear error each."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from waiting import until

from foveate.core.messages import user
from foveate.errors import StoreError
from foveate.ports import Head, append
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain

HERE = Path(__file__).resolve().parent
NOBODY = 65534
IS_ROOT = getattr(os, "geteuid", lambda: 1)() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root can give a file to another user, or mount anything")


def python(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parents[1] / "src"), str(HERE)])}
    command = [sys.executable, *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, **options)


def told(*paths: Path) -> list[list[str]]:
    """Return the results of opening, reading and writing these files as a user who is not root."""
    child = python(str(HERE / "permissions_child.py"), str(NOBODY if IS_ROOT else 0), *map(str, paths))
    found: list[list[str]] = []
    for line in child.communicate(timeout=300)[0].splitlines():
        if line.startswith("file: "):
            found.append([])
        else:
            found[-1].append(line.replace(str(paths[len(found) - 1].parent), "FOLDER"))
    return found


@pytest.fixture(scope="module")
def everyones() -> Iterator[Path]:
    """Return a folder that everyone may enter; only root may enter pytest's folders if root runs it."""
    with tempfile.TemporaryDirectory(prefix="foveate-refused-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder).resolve()


def made(folder: Path) -> Path:
    """Create a database with one conversation, in its own folder, owned by the user who tries it."""
    folder.mkdir()
    path = folder / "chat.db"
    with SqliteStore(path, synchronous="normal") as store:
        head = store.open("acme", "one")
        append(store, head, chain([user("said before")], head))
    if IS_ROOT:
        give(folder, NOBODY)
        give(path, NOBODY)
    return path


def give(path: Path, id: int) -> None:
    os.chown(path, id, id)


# ------------------------------------------------------------------------------------------------- may not be written


def read_only(path: Path) -> None:
    path.chmod(0o444)


def unreadable(path: Path) -> None:
    path.chmod(0o000)


def in_a_read_only_folder(path: Path) -> None:
    path.parent.chmod(0o555)


def in_a_closed_folder(path: Path) -> None:
    path.parent.chmod(0o000)


def of_somebody_else(path: Path) -> None:
    give(path, 0)
    path.chmod(0o600)


def with_a_log_of_somebody_else(path: Path) -> None:
    """Leave a log as a program does that was once run as root."""
    path.with_name("chat.db-wal").touch(0o600)


FOR_ALL = (read_only, unreadable, in_a_read_only_folder, in_a_closed_folder)
FOR_ROOT = (of_somebody_else, with_a_log_of_somebody_else)


@pytest.fixture(scope="module")
def refusals(everyones: Path) -> Iterator[dict[str, list[str]]]:
    """Return the results of opening, reading and writing a file, by its obstacle."""
    cases = [*FOR_ALL, *(FOR_ROOT if IS_ROOT else ())]
    paths = [made(everyones / case.__name__) for case in cases]
    for case, path in zip(cases, paths, strict=True):
        case(path)
    yield dict(zip((case.__name__ for case in cases), told(*paths), strict=True))
    for path in paths:
        path.parent.chmod(0o755)


def test_read_only_file_is_read_and_a_write_says_why_not(refusals: dict[str, list[str]]) -> None:
    read, write, again, opened = refusals["read_only"]
    assert (read, again, opened) == ("read: done", "read again: done", "open: done")
    assert write.startswith(
        "write: StoreError FOLDER/chat.db cannot be opened for writing (attempt to write a readonly database): this "
        "user (id "
    )
    assert write.endswith(
        ") may not read and write chat.db, although it owns the file: allow it (`chmod u+rw`), or make it mutable "
        "(`chattr -i`, `chflags nouchg`)."
    )


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("unreadable", "may not read and write chat.db, although it owns the file: allow it"),
        ("in_a_read_only_folder", "may not make files in FOLDER, where SQLite keeps its log. Have its owner allow it"),
        ("in_a_closed_folder", "FOLDER/chat.db cannot be reached ([Errno 13] Permission denied"),
        pytest.param("of_somebody_else", "may not read and write chat.db, which belongs to root.", marks=needs_root),
        pytest.param(
            "with_a_log_of_somebody_else",
            "may not read and write chat.db-wal, which belongs to root. Have its owner allow it, or run as its owner.",
            marks=needs_root,
        ),
    ],
)
def test_file_that_may_not_be_opened_says_why_not(refusals: dict[str, list[str]], case: str, says: str) -> None:
    (opened,) = refusals[case]
    assert opened.startswith("open: StoreError FOLDER/chat.db cannot be ")
    assert says in opened


@needs_root
def test_file_system_that_is_mounted_read_only_says_so(everyones: Path) -> None:
    path = made(everyones / "mounted")
    folder = str(path.parent)
    if subprocess.run(["mount", "--bind", folder, folder], capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        if subprocess.run(["mount", "-o", "remount,ro,bind", folder], capture_output=True, check=False).returncode:
            pytest.skip("nothing can be mounted read-only here")
        with pytest.raises(StoreError, match=r"its file system is mounted read-only\. Copy it to a disk that can be"):
            SqliteStore(path)
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
    with SqliteStore(path) as store:
        assert append_text(store, "hi").position == 2


# ----------------------------------------------------------------------------------------------------------- the disk


class NoSharing(sqlite3.Connection):
    """A connection as on a network folder: files, and no memory shared between processes."""

    def __init__(self, name: str, **named: Any) -> None:
        uri = name if named.pop("uri") else Path(name).as_uri()
        super().__init__(uri + ("&" if "?" in uri else "?") + "vfs=unix-none", uri=True, **named)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such file system here to stand in for it")
def test_file_system_without_shared_memory_is_refused_before_writing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"is on a file system where SQLite cannot share its log \(a network folder"):
        SqliteStore(tmp_path / "chat.db", connection=NoSharing)


@pytest.mark.parametrize("code", [sqlite3.SQLITE_IOERR_LOCK, sqlite3.SQLITE_IOERR_SHMLOCK, sqlite3.SQLITE_PROTOCOL])
def test_file_system_without_locks_says_so(tmp_path: Path, code: int) -> None:
    class NoLocks(sqlite3.Connection):
        def execute(self, sql: str, values: Any = (), /) -> sqlite3.Cursor:
            if sql == "BEGIN IMMEDIATE":
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = code
                raise error
            return super().execute(sql, values)

    with pytest.raises(StoreError, match=r"does not lock files as SQLite needs it .* Move it to a disk of this comp"):
        SqliteStore(tmp_path / "chat.db", connection=NoLocks)


def test_too_many_open_files_is_reported_and_recovers(tmp_path: Path) -> None:
    """Runs in a separate process with a lower limit."""
    code = (
        "import resource, os, sys; from foveate.stores.sqlite import SqliteStore;"
        "from foveate.errors import StoreError;"
        "SqliteStore(sys.argv[1]).close();"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)); held = []\n"
        "try:\n    while True: held.append(os.open(os.devnull, os.O_RDONLY))\nexcept OSError: pass\n"
        "try: SqliteStore(sys.argv[1])\nexcept StoreError as error: print(error)\n"
        "for one in held[:20]: os.close(one)\n"
        "with SqliteStore(sys.argv[1]) as store: print(store.names('acme'))\n"
    )
    pytest.importorskip("resource", reason="this system has no such limit")
    said = python("-c", code, str(tmp_path / "chat.db")).communicate(timeout=300)[0].splitlines()
    assert "this process has as many files open as it may" in said[0]
    assert "`ulimit -n`" in said[0]
    assert said[1:] == ["[]"]


# --------------------------------------------------------------------------------------------------------- locked


HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2:]:
    connection.execute(statement).fetchall()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(tmp_path / "chat.db", synchronous="normal", wait=0.1) as store:
        store.open("acme", "one")
        yield store


@pytest.fixture
def holding() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start processes that run statements on a file and keep their locks; end them afterwards."""
    begun: list[subprocess.Popen[str]] = []

    def hold(path: str | Path, *statements: str) -> subprocess.Popen[str]:
        child = python("-c", HOLD, str(path), *statements, stdin=subprocess.PIPE)
        begun.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        return child

    yield hold
    for child in begun:
        child.kill()
        child.communicate()


def append_text(store: SqliteStore, text: str) -> Head:
    head = store.open("acme", "one")
    return append(store, head, chain([user(text)], head))


def test_writer_hanging_in_a_write_is_reported_and_overcome(
    store: SqliteStore, holding: Callable[..., subprocess.Popen[str]]
) -> None:
    child = holding(store._driver.place, "BEGIN IMMEDIATE", "DELETE FROM conversation")
    child.send_signal(getattr(signal, "SIGSTOP", signal.SIGTERM))
    with pytest.raises(StoreError, match=r"locked: another process .* than 0.1 s .* end it if it hangs; then retry"):
        append_text(store, "hi")
    assert store.names("acme") == ["one"]  # Reading goes on meanwhile, and sees nothing of it.
    child.kill()
    child.wait()
    assert append_text(store, "hi").position == 1
    assert store.verify(store.open("acme", "one")) == []


def test_many_threads_at_a_lock_are_refused_within_twice_the_wait(
    store: SqliteStore, holding: Callable[..., subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting writers wait together, not one after the other: at most two periods in all."""
    holding(store._driver.place, "BEGIN IMMEDIATE")
    head, said = store.open("acme", "one"), []
    writer, waits = store._driver._writer, []  # type: ignore[attr-defined]
    begin = writer._begin

    def waited(connection: sqlite3.Connection) -> None:
        waits.append(connection)
        if len(waits) == 1:
            until(lambda: len(writer._queue) == 39)
        begin(connection)

    monkeypatch.setattr(writer, "_begin", waited)

    def work() -> None:
        try:
            append(store, head, chain([user("hi")], head))
        except StoreError as error:
            said.append("is locked" in str(error))

    threads = [threading.Thread(target=work) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == [True] * 40
    assert len(waits) == 2
    assert store.open("acme", "one") == head


def test_exclusively_locked_file_is_reported_on_open_and_read(
    tmp_path: Path, holding: Callable[..., subprocess.Popen[str]]
) -> None:
    path = tmp_path / "chat.db"
    SqliteStore(path).close()
    child = holding(path, "PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE", "DELETE FROM conversation", "COMMIT")
    with pytest.raises(StoreError, match=r"chat\.db is locked: another process"):
        SqliteStore(path, wait=0.1)
    child.kill()
    child.wait()
    with SqliteStore(path, wait=0.1) as store:
        assert append_text(store, "hi").position == 1


# ----------------------------------------------------------------------------------------------------- taken away


def test_folder_that_is_removed_takes_no_more_writes(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    with SqliteStore(folder / "chat.db") as store:
        append_text(store, "hi")
        shutil.rmtree(folder)
        for use in (lambda: append_text(store, "ho"), lambda: store.names("acme"), lambda: store.vacuum()):
            with pytest.raises(StoreError, match=r"chat.db was deleted or replaced while it was open"):
                use()
    assert not folder.exists()


def test_folder_in_place_of_the_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with SqliteStore(path) as store:
        append_text(store, "hi")
        path.unlink()
        path.mkdir()
        with pytest.raises(StoreError, match=r"was deleted or replaced"):
            append_text(store, "ho")
    with pytest.raises(StoreError, match=r"is a folder"):
        SqliteStore(path)


def test_another_file_in_its_place_gets_nothing(tmp_path: Path) -> None:
    path, other = tmp_path / "chat.db", tmp_path / "other.db"
    with SqliteStore(other) as store:
        append_text(store, "another's")
    with SqliteStore(path) as store:
        append_text(store, "hi")
        os.replace(other, path)
        with pytest.raises(StoreError, match=r"was deleted or replaced"):
            append_text(store, "ho")
    for name in ("chat.db-wal", "chat.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    with SqliteStore(path) as store:
        head = store.open("acme", "one")
        assert (head.position, store.verify(head)) == (1, [])


@pytest.mark.parametrize("name", ["chat.db-wal", "chat.db-shm"])
@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_removed_log_stops_writing_without_loss(tmp_path: Path, name: str, how: str) -> None:
    """SQLite continues to write to the deleted file and acknowledges it; another process would create a new log."""
    path, beside = tmp_path / "chat.db", tmp_path / name
    with SqliteStore(path) as store:
        append_text(store, "hi")
        if how == "replaced":
            shutil.copy(beside, tmp_path / "copy")
            os.replace(tmp_path / "copy", beside)
        else:
            beside.unlink()
        for use in (lambda: append_text(store, "ho"), lambda: store.names("acme")):
            with pytest.raises(StoreError, match=rf"{name} was deleted or replaced while .*chat.db was open"):
                use()
    with SqliteStore(path) as store:
        head = store.open("acme", "one")
        assert (head.position, store.verify(head)) == (1, [])
        assert append_text(store, "ho").position == 2


def settle(folder: Path) -> None:
    """Let the folder look as if it changed ten seconds ago."""
    then = time.time() - 10
    os.utime(folder, (then, then))


@pytest.mark.parametrize("name", ["chat.db", "chat.db-wal", "chat.db-shm"])
@pytest.mark.parametrize("how", ["deleted", "replaced", "renamed with its folder"])
def test_change_of_a_settled_folder_is_seen(tmp_path: Path, name: str, how: str) -> None:
    """An unchanged folder has the same files, which are not looked at one by one."""
    folder = tmp_path / "here"
    folder.mkdir()
    with SqliteStore(folder / "chat.db") as store:
        append_text(store, "hi")
        settle(folder)
        append_text(store, "ho")
        if how == "replaced":
            shutil.copy(folder / name, tmp_path / "copy")
            os.replace(tmp_path / "copy", folder / name)
        elif how == "deleted":
            (folder / name).unlink()
        else:
            folder.rename(tmp_path / "there")
            folder.mkdir()
            settle(folder)
        for use in (lambda: append_text(store, "he"), lambda: store.names("acme")):
            with pytest.raises(StoreError, match=r"was deleted or replaced"):
                use()
            settle(folder)


def test_append_asks_once_for_the_folder_before_and_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SqliteStore(tmp_path / "chat.db") as store:
        head = store.open("acme", "one")
        settle(tmp_path)
        head = append(store, head, chain([user("hi")], head))
        asked: list[Any] = []
        look = os.stat
        monkeypatch.setattr(os, "stat", lambda path, **more: asked.append(path) or look(path, **more))
        append(store, head, chain([user("ho")], head))
    assert asked == [str(tmp_path), str(tmp_path)]


@pytest.mark.parametrize("name", ["chat.db", "chat.db-wal"])
def test_file_removed_during_a_write_is_not_acknowledged(tmp_path: Path, name: str) -> None:
    class Taking(sqlite3.Connection):
        taken = False

        def execute(self, sql: str, values: Any = (), /) -> sqlite3.Cursor:
            if sql == "COMMIT" and Taking.taken:
                (tmp_path / name).unlink()
            return super().execute(sql, values)

    with SqliteStore(tmp_path / "chat.db", connection=Taking) as store:
        head = store.open("acme", "one")
        Taking.taken = True
        with pytest.raises(StoreError, match=r"was deleted or replaced"):
            append(store, head, chain([user("hi")], head))


def test_writer_that_lost_its_connection_makes_a_new_log(tmp_path: Path) -> None:
    """The last connection deletes the log when it closes, which is no error."""

    class Breaking(sqlite3.Connection):
        breaks: ClassVar[list[str]] = []

        def execute(self, sql: str, values: Any = (), /) -> sqlite3.Cursor:
            if Breaking.breaks and sql == Breaking.breaks[0]:
                Breaking.breaks.pop(0)
                raise sqlite3.OperationalError("made to fail")
            return super().execute(sql, values)

    with SqliteStore(tmp_path / "chat.db", connection=Breaking) as store:
        head = store.open("acme", "one")
        while store._driver._idle:  # type: ignore[attr-defined]
            store._driver._idle.pop().close()  # type: ignore[attr-defined]
        Breaking.breaks = ["COMMIT", "ROLLBACK"]
        with pytest.raises(StoreError, match="made to fail"):
            append(store, head, chain([user("hi")], head))
        assert store.names("acme") == ["one"]
        assert append_text(store, "hi").position == 1
        assert append_text(store, "ho").position == 2
