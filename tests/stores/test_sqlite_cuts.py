"""A database file or log that was cut, flipped, blanked or exchanged: an error, or all data is there.

The contents of a file that was closed properly were acknowledged, so none may be missing without a report. The log is
valid up to a whole write. A report is a clear error on opening, or a finding of `verify` with an earlier head.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from foveate.core.messages import user
from foveate.errors import Damaged, StoreError
from foveate.ports import Head, StoredMessage, append
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain, record_after
from foveate.testing.store_contract import talk

PAGE = 512
"""Bytes of a page, here: the smallest that SQLite has, so that every byte of many pages can be tried."""
FRAME = 24 + PAGE
"""Bytes of a page in the log, after a header of 32."""


class SmallPages(sqlite3.Connection):
    """A connection that creates files with small pages; an existing file keeps its own."""

    def __init__(self, *values: Any, **named: Any) -> None:
        super().__init__(*values, **named)
        self.execute(f"PRAGMA page_size = {PAGE}").close()


History = tuple[Head, list[StoredMessage], list[Any]]


@dataclass(frozen=True)
class Made:
    """The files of a database, and its contents: now, and after each write of its log."""

    content: bytes
    log: bytes
    held: tuple[History, ...]


def store_at(path: Path) -> SqliteStore:
    return SqliteStore(path, synchronous="normal", wait=0.5, search=False, connection=SmallPages)


def history(store: SqliteStore) -> History:
    head = store.open("acme", "one", create=False)
    rows = store.messages(head, 1, head.position)
    assert store.locate(head, [row.id for row in rows]) == {row.id: row.position for row in rows}
    return head, rows, store.records(head)


def write_on(store: SqliteStore, times: int) -> Iterable[History]:
    """Write this often, appends and commits in turn; return the contents after each write."""
    for number in range(times):
        head = store.open("acme", "one")
        if number % 3 == 2:
            store.commit(head, *record_after(head))
        else:
            append(store, head, chain(talk(2, f"turn {number}"), head))
        yield history(store)


def files_of(path: Path) -> tuple[bytes, bytes]:
    log = path.with_name(path.name + "-wal")
    return path.read_bytes(), log.read_bytes() if log.exists() else b""


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return a database that was closed properly, without a log."""
    path = tmp_path_factory.mktemp("closed") / "chat.db"
    with store_at(path) as store:
        *_, last = write_on(store, 9)
    return Made(*files_of(path), (last,))


def leave(path: str) -> None:
    """Write and exit as if killed, in a separate process."""
    store = store_at(Path(path))
    list(write_on(store, 6))
    os._exit(0)


@pytest.fixture(scope="module")
def leftover(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return a database whose program was killed: its newest writes are only in the log."""
    path = tmp_path_factory.mktemp("left") / "chat.db"
    with store_at(path) as store:
        before = list(write_on(store, 3))[-1:]
    here = Path(__file__).resolve().parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here.parents[1] / "src"), str(here)])}
    code = "import sys, test_sqlite_cuts; test_sqlite_cuts.leave(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(path)], env=environment, check=True, timeout=300)
    expected = files_of(path)
    again = path.with_name("again.db")
    again.write_bytes(expected[0])
    with store_at(again) as store:
        after = list(write_on(store, 6))
    assert expected[1]
    return Made(*expected, (*before, *after))


def outcome(folder: Path, content: bytes, log: bytes, expected: Made) -> str:
    """Read such a file; return "told" for an error, or the number of writes of the log that are present."""
    path = folder / "met.db"
    for name in ("met.db", "met.db-wal", "met.db-shm"):
        (folder / name).unlink(missing_ok=True)
    path.write_bytes(content)
    if log:
        (folder / "met.db-wal").write_bytes(log)
    try:
        with store_at(path) as store:
            findings = store.verify(expected.held[-1][0])
            if store.verify(store.open("acme", "one", create=False)):
                return "told"
            found = history(store)
    except StoreError:
        return "told"
    if found != expected.held[-1]:
        assert findings, "other than the head that was exported, and verify did not say so"
    if found not in expected.held:
        return "told"
    return str(expected.held.index(found))


@pytest.fixture
def meet(tmp_path: Path) -> Callable[..., str]:
    return lambda content, log, expected: outcome(tmp_path, content, log, expected)


def every(step: int, first: int, last: int) -> range:
    """Return the places from `first` to `last` that a quick run tries; a thorough run uses step 1."""
    return range(first, last, step)


STEPS = pytest.mark.parametrize("step", [61, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "every"])
"""One byte in so many is tried; by the thorough run, every one."""


@STEPS
def test_file_cut_in_its_last_pages_is_reported(closed: Made, meet: Callable[..., str], step: int) -> None:
    """F30."""
    size = len(closed.content)
    for end in every(step, size - 2 * PAGE, size):
        assert meet(closed.content[:end], b"", closed) == "told", f"cut at {end} of {size}"


def test_file_cut_between_pages_is_reported(closed: Made, meet: Callable[..., str]) -> None:
    """F30."""
    for end in range(0, len(closed.content), PAGE):
        assert meet(closed.content[:end], b"", closed) == "told", f"cut at {end}"


@STEPS
def test_log_cut_at_any_byte_holds_whole_writes(leftover: Made, meet: Callable[..., str], step: int) -> None:
    """F30: a crash leaves such a cut of an unacknowledged write. For an acknowledged one it is damage, which an
    earlier head reveals.
    """
    outcome, size = Counter[str](), len(leftover.log)
    assert meet(leftover.content, leftover.log, leftover) == str(len(leftover.held) - 1)
    # A frame that ends a write tells how many pages the file has then.
    ends = [
        end for end in range(32 + FRAME, size + 1, FRAME) if leftover.log[end - FRAME + 4 : end - FRAME + 8] != bytes(4)
    ]
    last_write = ends[-2]
    for end in every(29 * step, 0, last_write):
        outcome[meet(leftover.content, leftover.log[:end], leftover)] += 1
    for end in every(step, last_write, size):
        outcome[meet(leftover.content, leftover.log[:end], leftover)] += 1
    assert set(outcome) == {str(number) for number in range(len(leftover.held) - 1)}


def test_writing_continues_after_a_cut_log(leftover: Made, tmp_path: Path) -> None:
    """F30."""
    path, log = tmp_path / "met.db", tmp_path / "met.db-wal"
    for end in range(100, len(leftover.log), FRAME):
        path.write_bytes(leftover.content)
        log.write_bytes(leftover.log[:end])
        with store_at(path) as store:
            *_, last = write_on(store, 3)
        assert not log.exists()
        with store_at(path) as store:
            assert history(store) == last
            assert store.verify(last[0]) == []


@STEPS
def test_flipped_byte_in_the_last_page_is_reported_or_unused(closed: Made, meet: Callable[..., str], step: int) -> None:
    """F30."""
    check_flips(closed, meet, every(step, len(closed.content) - PAGE, len(closed.content)))


def test_any_flipped_byte_is_reported_or_unused(closed: Made, meet: Callable[..., str]) -> None:
    """F30: this test once found a damaged index of ids, and rows that `verify` could not read."""
    check_flips(closed, meet, every(1999, 0, len(closed.content)))


@pytest.mark.slow
def test_each_flipped_byte_is_reported_or_unused(closed: Made, meet: Callable[..., str]) -> None:
    """F30."""
    check_flips(closed, meet, every(23, 0, len(closed.content)))


def check_flips(expected: Made, meet: Callable[..., str], places: range) -> None:
    outcome = Counter[str]()
    for place in places:
        for flipped in (255, 1 << place % 8):
            content = bytearray(expected.content)
            content[place] ^= flipped
            try:
                outcome[meet(bytes(content), b"", expected)] += 1
            except BaseException as error:
                error.add_note(f"byte {place % PAGE} of page {place // PAGE + 1} xor {flipped}")
                raise
    assert set(outcome) == {"told", "0"}


def test_message_missing_from_the_id_index_is_reported(closed: Made, tmp_path: Path) -> None:
    """A lookup by id would miss it, and a repeated append would not be detected."""
    head, rows, _ = closed.held[-1]
    id = bytes.fromhex(rows[4].id)
    (at,) = (
        at
        for at in range(len(closed.content))
        if closed.content.startswith(id[:8], at) and not closed.content.startswith(id, at)
    )
    content = bytearray(closed.content)
    content[at + 7] ^= 1
    (tmp_path / "met.db").write_bytes(content)
    with store_at(tmp_path / "met.db") as store:
        assert store.messages(head, 1, head.position) == rows
        assert store.locate(head, [rows[4].id]) == {}
        (found,) = store.verify(head)
    assert (found.where, found.problem) == (
        "message 5",
        "it is not found by its id: the index `message_by_id` is damaged (REINDEX)",
    )
    connection = sqlite3.connect(tmp_path / "met.db")
    connection.execute("REINDEX")
    connection.close()
    with store_at(tmp_path / "met.db") as store:
        assert store.verify(head) == []


def test_page_of_zeroes_is_reported_or_unused(closed: Made, meet: Callable[..., str]) -> None:
    """F30."""
    outcome = Counter[str]()
    for begin in range(0, len(closed.content), PAGE):
        outcome[meet(closed.content[:begin] + bytes(PAGE) + closed.content[begin + PAGE :], b"", closed)] += 1
    assert set(outcome) == {"told", "0"}
    assert outcome["told"] > 20


@pytest.mark.parametrize("where", ["header", "frame", "page"])
def test_flipped_byte_in_a_log_ends_it_there(leftover: Made, meet: Callable[..., str], where: str) -> None:
    """F30."""
    at = {"header": range(0, 32, 5), "frame": range(32, 56, 5), "page": range(56, FRAME, 101)}[where]
    for frame in range(0, len(leftover.log) // FRAME, 3) if where != "header" else [0]:
        for offset in at:
            log = bytearray(leftover.log)
            log[frame * FRAME + offset] ^= 255
            found = meet(leftover.content, bytes(log), leftover)
            assert found != str(len(leftover.held) - 1), (frame, offset)


# ------------------------------------------------------------------------------------------------ companion files


def test_exported_head_reveals_the_writes_of_a_deleted_log(leftover: Made, meet: Callable[..., str]) -> None:
    assert meet(leftover.content, b"", leftover) == "0"


def test_empty_file_with_a_log_is_not_treated_as_new(leftover: Made, tmp_path: Path) -> None:
    """SQLite itself treats it as new, and deletes the log, the only place of the newest writes."""
    (tmp_path / "met.db").touch()
    (tmp_path / "met.db-wal").write_bytes(leftover.log)
    with pytest.raises(Damaged, match=r"met\.db is empty or gone, and its log has [\d,]+ bytes"):
        store_at(tmp_path / "met.db")
    assert (tmp_path / "met.db-wal").read_bytes() == leftover.log


def test_file_cut_to_nothing_is_a_new_one_and_the_exported_head_tells(closed: Made, tmp_path: Path) -> None:
    (tmp_path / "met.db").touch()
    with store_at(tmp_path / "met.db") as store:
        assert store.names("acme") == []
        assert store.verify(closed.held[-1][0]) != []


def test_log_of_another_file_is_reported(leftover: Made, closed: Made, meet: Callable[..., str]) -> None:
    assert meet(closed.content, leftover.log, closed) == "told"


def test_log_of_another_tenants_file_is_reported(leftover: Made, tmp_path: Path) -> None:
    """Its pages are valid and fit, so SQLite accepts it."""
    path = tmp_path / "other.db"
    with store_at(path) as store:
        for name in "abc":
            head = store.open("other", name)
            head = append(store, head, chain([user("mine")], head))
    (tmp_path / "other.db-wal").write_bytes(leftover.log)
    try:
        with store_at(path) as store:
            assert store.verify(head) != []
    except StoreError:
        pass


@pytest.mark.parametrize("what", [b"", b"\0" * 32768, b"\xff" * 32768, b"junk"], ids=["empty", "zero", "ones", "short"])
def test_log_index_is_always_rebuilt(leftover: Made, tmp_path: Path, what: bytes) -> None:
    (tmp_path / "met.db").write_bytes(leftover.content)
    (tmp_path / "met.db-wal").write_bytes(leftover.log)
    (tmp_path / "met.db-shm").write_bytes(what)
    with store_at(tmp_path / "met.db") as store:
        assert history(store) == leftover.held[-1]
        assert store.verify(leftover.held[-1][0]) == []
