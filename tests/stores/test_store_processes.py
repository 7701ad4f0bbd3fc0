"""Several processes, and their writes when one is killed, forked, or exits without closing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from crash_child import text

from foveate.core import wire
from foveate.core.messages import user
from foveate.errors import StoreError
from foveate.ports import append
from foveate.stores.sqlite import SqliteStore
from foveate.stores.sqlite.file import SqliteFile
from foveate.testing.rows import chain

pytestmark = pytest.mark.slow

HERE = Path(__file__).resolve().parent
SRC = HERE.parent.parent / "src"


def start(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    return python(str(HERE / "crash_child.py"), str(path), name, str(count))


def python(*arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SRC), str(HERE)])}
    return subprocess.Popen([sys.executable, *arguments], env=environment, stdout=subprocess.PIPE, text=True)


def killed_after(child: subprocess.Popen[str], lines: int) -> dict[str, int]:
    """Return the highest acknowledged number of each kind, of a child that is killed after this many lines."""
    assert child.stdout is not None
    acknowledged = {"message": 0, "edit": 0}
    for _ in range(lines):
        kind, number = child.stdout.readline().split()
        acknowledged[kind] = int(number)
    child.kill()
    for line in child.stdout.read().splitlines():  # Its last output.
        if len(words := line.split()) == 2 and line.endswith(words[1]):
            acknowledged[words[0]] = int(words[1])
    child.stdout.close()
    child.wait()
    return acknowledged


def check_killed_writers(path: Path, kills: int, seed: int) -> None:
    random = Random(seed)
    for _ in range(kills):
        acknowledged = killed_after(start(path, "one", 10_000), random.randrange(1, 60))
        with SqliteStore(path) as store:
            head = store.open("acme", "one")
            assert store.verify(head) == []
            assert head.position >= acknowledged["message"]
            assert head.number >= acknowledged["edit"]
            outputs = [wire.decode_message(row.body).text for row in store.messages(head, 1, head.position)]
            assert outputs == [text(position, "one") for position in range(1, head.position + 1)]


def test_killed_writer_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """F30."""
    check_killed_writers(tmp_path / "chat.db", kills=5, seed=1)


def test_repeatedly_killed_writer_loses_nothing(tmp_path: Path) -> None:
    """F30."""
    check_killed_writers(tmp_path / "chat.db", kills=30, seed=2)


def test_two_processes_write_one_conversation_and_lose_nothing(tmp_path: Path) -> None:
    """Both also create the file at the same moment."""
    path = tmp_path / "chat.db"
    children = [start(path, "one", 40) for _ in range(2)]
    outputs = [child.communicate(timeout=300)[0].splitlines() for child in children]
    assert [child.returncode for child in children] == [0, 0]
    acknowledged = [line for lines in outputs for line in lines]
    assert len(set(acknowledged)) == len(acknowledged)  # No place was given to both.
    with SqliteStore(path) as store:
        head = store.open("acme", "one")
        assert store.verify(head) == []
        assert f"message {head.position}" in acknowledged
        assert head.number == sum(line.startswith("edit") for line in acknowledged)


def test_store_left_open_is_closed_when_python_ends(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    code = (
        "import sys; from foveate.ports import append; from foveate.stores.sqlite import SqliteStore;from "
        "foveate.testing.rows import chain;from foveate.core.messages import user;store = SqliteStore(sys.argv[1]); "
        "head = store.open('acme', 'one');append(store, head, chain([user('hi')], head)); print('done')"
    )
    child = python("-c", code, str(path))
    assert (child.communicate(timeout=300)[0], child.returncode) == ("done\n", 0)
    assert [file.name for file in tmp_path.iterdir()] == ["chat.db"]  # The log was written back and is gone.
    with SqliteStore(path) as store:
        assert store.open("acme", "one").position == 1


def test_store_that_python_closed_at_its_end_says_so(tmp_path: Path) -> None:
    """A handler that was registered before the store was opened runs after the close. It was told of a deleted log."""
    code = (
        "import atexit, sys; from foveate.errors import StoreError;"
        "late = lambda: [attempt(lambda: store.open('acme', 'one')), attempt(lambda: store.open('acme', 'two'))];"
        "atexit.register(lambda: late());"
        "from foveate.stores.sqlite import SqliteStore;"
        "store = SqliteStore(sys.argv[1]); store.open('acme', 'one')\n"
        "def attempt(work):\n"
        "    try: work()\n"
        "    except StoreError as error: print(error)\n"
    )
    child = python("-c", code, str(tmp_path / "chat.db"))
    assert (child.communicate(timeout=300)[0], child.returncode) == ("This store was closed. Open it again.\n" * 2, 0)
    assert [file.name for file in tmp_path.iterdir()] == ["chat.db"]


def test_write_that_ends_while_the_store_is_closed_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is gone after a close, which was reported as a deletion by another program."""
    store = SqliteStore(tmp_path / "chat.db")
    head = store.open("acme", "one")
    check, calls = SqliteFile.check, []

    def check_late(file: SqliteFile) -> None:
        calls.append(file)
        if len(calls) == 2:  # The check after the commit.
            store.close()
        check(file)

    monkeypatch.setattr(SqliteFile, "check", check_late)
    append(store, head, chain([user("hi")], head))
    monkeypatch.undo()
    with SqliteStore(tmp_path / "chat.db") as reopened:
        assert reopened.open("acme", "one").position == 1


def test_store_that_is_forgotten_is_closed(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "chat.db")
    store.names("acme")
    del store
    assert [file.name for file in tmp_path.iterdir()] == ["chat.db"]


FORK = """
import os, sys
from foveate.errors import StoreError
from foveate.ports import append
from foveate.stores.sqlite import SqliteStore
from foveate.stores.sqlite.file import SqliteFile

store = SqliteStore(sys.argv[1])
head = store.open("acme", "one")
child = os.fork()
if child == 0:
    for use in (lambda: store.names("acme"), lambda: append(store, head, []), lambda: SqliteStore(sys.argv[1])):
        try:
            use()
        except StoreError as error:
            print("before this process was forked" in str(error), flush=True)
    store.close()
    SqliteStore(sys.argv[1] + ".other").close()
    print("another file is fine", flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(store.names("acme"))
store.close()
child = os.fork()
if child == 0:
    with SqliteStore(sys.argv[1]) as store:
        print("closed before, open after:", store.names("acme"), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_store_is_not_used_after_os_fork(tmp_path: Path) -> None:
    """SQLite believes that the child holds the parent's locks: when the parent closes the file, acknowledged writes of
    the child are lost. So the child is refused while its parent has the file open.
    """
    child = python("-W", "ignore", "-c", FORK, str(tmp_path / "chat.db"))
    outputs, _ = child.communicate(timeout=300)
    assert outputs.splitlines() == [
        "True",
        "True",
        "True",
        "another file is fine",
        "['one']",
        "closed before, open after: ['one']",
    ]
    assert child.returncode == 0


def test_two_stores_of_one_process_may_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with SqliteStore(path) as ours, SqliteStore(path) as theirs:
        head = ours.open("acme", "one")
        assert theirs.open("acme", "one") == head
        now = append(theirs, head, chain([user("hi")], head))
        assert ours.open("acme", "one") == now
        with pytest.raises(StoreError, match="Another writer"):
            append(ours, head, chain([user("ho")], head))
