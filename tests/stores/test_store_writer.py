"""Group commits: grouping, isolation of failures, and interrupts."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from foveate.core.messages import user
from foveate.errors import ConflictError, StoreError
from foveate.ports import append
from foveate.stores.sqlite import SqliteStore
from foveate.stores.sqlite.writer import Writer, _Job
from foveate.testing.rows import chain


class Watched(sqlite3.Connection):
    """Notes its statements, and stops before each commit until the gate is open."""

    said: list[str]
    at_gate: threading.Event
    gate: threading.Event

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        if sql == "COMMIT":
            self.at_gate.set()
            assert self.gate.wait(100)
        self.said.append(sql)
        return super().execute(sql, parameters)


@pytest.fixture
def watched() -> type[Watched]:
    return type("Watched", (Watched,), {"said": [], "at_gate": threading.Event(), "gate": threading.Event()})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE line (text TEXT UNIQUE)")
    connection.close()
    return path


@pytest.fixture
def writer(path: Path, watched: type[Watched]) -> Iterator[Writer]:
    writer = Writer(lambda: sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=watched))
    yield writer
    watched.gate.set()
    writer.close()


def add(text: str) -> Callable[[sqlite3.Connection], str]:
    def work(connection: sqlite3.Connection) -> str:
        connection.execute("INSERT INTO line VALUES (?)", (text,))
        if text == "refused":
            raise ValueError(text)
        if text == "fatal":
            connection.execute("ROLLBACK")  # As SQLite does by itself when the disk is full.
            raise sqlite3.OperationalError("disk full")
        return text

    return work


def lines(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    found = sorted(text for (text,) in connection.execute("SELECT text FROM line"))
    connection.close()
    return found


def behind_a_commit(
    writer: Writer,
    watched: type[Watched],
    jobs: Sequence[Callable[[], object]],
    then: Callable[[], object] = lambda: None,
) -> list[object]:
    """Run these jobs: the others arrive in order while the first is being committed. Return their results."""
    outcomes: list[object] = [None] * len(jobs)

    def run(number: int) -> None:
        try:
            outcomes[number] = jobs[number]()
        except Exception as error:
            outcomes[number] = error

    watched.gate.clear()
    watched.at_gate.clear()
    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(jobs))]
    threads[0].start()
    assert watched.at_gate.wait(60)
    watched.said.clear()
    for queued, thread in enumerate(threads[1:], 1):
        thread.start()
        until(lambda queued=queued: len(writer._queue) >= queued)
    then()
    watched.gate.set()
    for thread in threads:
        thread.join()
    return outcomes


def jobs(writer: Writer, *texts: str) -> list[Callable[[], object]]:
    return [lambda text=text: writer.run(add(text)) for text in texts]  # type: ignore[misc]


def test_writes_during_a_commit_are_committed_together(path: Path, writer: Writer, watched: type[Watched]) -> None:
    texts = [f"line {n}" for n in range(9)]
    assert behind_a_commit(writer, watched, jobs(writer, *texts)) == texts
    assert lines(path) == texts
    assert watched.said.count("COMMIT") == 2


def test_failing_write_spares_the_others_of_its_group(path: Path, writer: Writer, watched: type[Watched]) -> None:
    outcomes = behind_a_commit(writer, watched, jobs(writer, "a", "b", "refused", "a", "c"))
    assert [outcome if isinstance(outcome, str) else type(outcome) for outcome in outcomes] == [
        "a",
        "b",
        ValueError,
        sqlite3.IntegrityError,
        "c",
    ]
    assert lines(path) == ["a", "b", "c"]
    assert watched.said.count("COMMIT") == 2


def test_write_that_breaks_the_transaction_spares_the_others(
    path: Path, writer: Writer, watched: type[Watched]
) -> None:
    outcomes = behind_a_commit(writer, watched, jobs(writer, "a", "b", "fatal", "c"))
    assert (outcomes[0], outcomes[1], str(outcomes[2]), outcomes[3]) == ("a", "b", "disk full", "c")
    assert lines(path) == ["a", "b", "c"]


def test_single_write_is_committed_at_once(path: Path, writer: Writer, watched: type[Watched]) -> None:
    watched.gate.set()
    assert [writer.run(add(text)) for text in "abc"] == ["a", "b", "c"]
    assert [said for said in watched.said if "INSERT" not in said] == ["BEGIN IMMEDIATE", "COMMIT"] * 3


def test_accepted_writes_are_committed_before_the_writer_ends(
    path: Path, writer: Writer, watched: type[Watched]
) -> None:
    closing = threading.Thread(target=writer.close)
    assert behind_a_commit(writer, watched, jobs(writer, "a", "b", "c"), then=closing.start) == ["a", "b", "c"]
    closing.join()
    assert lines(path) == ["a", "b", "c"]
    with pytest.raises(StoreError, match="closed"):
        writer.run(add("late"))


def test_closing_does_what_waits(path: Path, writer: Writer, watched: type[Watched]) -> None:
    """The owners are threads that have not had their turn yet."""
    watched.gate.set()
    writer._queue.extend(_Job(add(text)) for text in "abc")
    writer.close()
    assert lines(path) == ["a", "b", "c"]


def test_first_of_two_writes_in_one_group_wins(tmp_path: Path, watched: type[Watched]) -> None:
    watched.gate.set()
    with SqliteStore(tmp_path / "chat.db", connection=watched) as store:
        head, other = store.open("acme", "one"), store.open("acme", "two")
        appends = [
            lambda to=to, text=text: append(store, to, chain([user(text)], to))  # type: ignore[misc]
            for to, text in [(other, "first"), (head, "wins"), (head, "late")]
        ]
        writer = store._driver._writer  # type: ignore[attr-defined]
        outcomes = behind_a_commit(writer, watched, appends)
        assert isinstance(outcomes[2], ConflictError)
        assert store.open("acme", "one") == outcomes[1]
        assert watched.said.count("COMMIT") == 2


def test_threads_that_write_at_once_share_commits_and_lose_nothing(tmp_path: Path, watched: type[Watched]) -> None:
    watched.gate.set()
    with SqliteStore(tmp_path / "chat.db", connection=watched) as store:
        heads = [store.open("acme", f"talk {n}") for n in range(8)]
        watched.said.clear()
        watched.gate.clear()

        def write(n: int) -> None:
            for turn in range(20):
                heads[n] = append(store, heads[n], chain([user(f"turn {turn}")], heads[n]))

        threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        until(lambda: len(store._driver._writer._queue) == 7)  # type: ignore[attr-defined]
        watched.gate.set()
        for thread in threads:
            thread.join()
        assert [head.position for head in heads] == [20] * 8
        assert watched.said.count("COMMIT") <= 160 - 6  # The jobs that waited for the first were committed together.
        assert [store.verify(store.open("acme", f"talk {n}")) for n in range(8)] == [[]] * 8


class Interrupted(sqlite3.Connection):
    """Raises KeyboardInterrupt before the statements that begin with these words, once each."""

    before: list[str]

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        if self.before and sql.strip().startswith(self.before[0]):
            self.before.pop(0)
            raise KeyboardInterrupt
        return super().execute(sql, parameters)


def test_nested_write_is_refused_without_a_deadlock(path: Path) -> None:
    """For example by a finalizer, which Python may run at any point."""
    writer = Writer(lambda: sqlite3.connect(path, isolation_level=None, check_same_thread=False))
    said: list[str] = []

    def within(connection: sqlite3.Connection) -> str:
        with pytest.raises(StoreError, match="in the middle of another write of the same thread"):
            writer.run(add("inner"))
        with pytest.raises(StoreError, match="in the middle of another write"):
            writer.close()
        said.extend(run_elsewhere())
        return add("outer")(connection)

    def run_elsewhere() -> list[str]:
        """Run the job in another thread, which waits for its turn as usual."""
        other.start()
        until(lambda: writer._queue)
        return ["waits"]

    other = threading.Thread(target=lambda: said.append(writer.run(add("other"))))
    assert writer.run(within) == "outer"
    other.join(60)
    assert (said, lines(path)) == (["waits", "other"], ["other", "outer"])
    assert writer.run(add("later")) == "later"
    writer.close()


@pytest.mark.parametrize("before", [["BEGIN IMMEDIATE"], ["UPDATE branch"], ["COMMIT"], ["COMMIT", "ROLLBACK"]])
def test_ctrl_c_leaves_the_state_before_and_a_store_that_goes_on(tmp_path: Path, before: list[str]) -> None:
    Interrupted.before = []
    with SqliteStore(tmp_path / "chat.db", connection=Interrupted) as store:
        head = store.open("acme", "one")
        rows = chain([user("hi")], head)
        Interrupted.before = [*before]
        with pytest.raises(KeyboardInterrupt):
            append(store, head, rows)
        assert Interrupted.before == []
        assert store.open("acme", "one") == head
        now = append(store, head, rows)
        assert store.messages(now, 1, 9) == rows
        assert store.verify(now) == []


def test_ctrl_c_in_one_thread_costs_another_nothing(path: Path) -> None:
    """The interrupted thread had the other's job in its transaction; its owner repeats it."""
    Interrupted.before = ["COMMIT"]
    writer = Writer(lambda: sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=Interrupted))
    with writer._turn:
        outcomes: list[str] = []
        other = threading.Thread(target=lambda: outcomes.append(writer.run(add("other"))))
        other.start()
        until(lambda: writer._queue)
        group = writer._waiting()
        with pytest.raises(KeyboardInterrupt):
            writer._group(group)
        assert lines(path) == []
    other.join()
    assert outcomes == ["other"]
    assert lines(path) == ["other"]
    writer.close()


class InterruptedAfter(sqlite3.Connection):
    """Raises KeyboardInterrupt during a commit: Python reports it when SQLite is done."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        done = super().execute(sql, parameters)
        if sql == "COMMIT":
            raise KeyboardInterrupt
        return done


def test_ctrl_c_after_a_commit_does_not_repeat_the_write(path: Path) -> None:
    kind = InterruptedAfter
    writer = Writer(lambda: sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=kind))
    with writer._turn:
        outcomes: list[str] = []
        other = threading.Thread(target=lambda: outcomes.append(writer.run(add("other"))))
        other.start()
        until(lambda: writer._queue)
        with pytest.raises(KeyboardInterrupt):
            writer._group(writer._waiting())
    other.join()
    assert outcomes == ["other"]
    assert lines(path) == ["other"]
    with pytest.raises(KeyboardInterrupt):
        writer.run(add("mine"))
    writer.close()
    assert lines(path) == ["mine", "other"]


def test_late_commit_acknowledgement_causes_no_second_write(path: Path, writer: Writer) -> None:
    """Ctrl-C arrives after the commit, before all jobs are marked as done."""
    writer._connection.close()
    writer._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    with writer._turn:
        outcomes: list[str] = []
        other = threading.Thread(target=lambda: outcomes.append(writer.run(add("other"))))
        other.start()
        until(lambda: writer._queue)
        writer._transaction(writer._waiting())
    other.join()
    assert (outcomes, lines(path)) == (["other"], ["other"])


def test_abandoned_write_is_not_done_later(path: Path, writer: Writer, watched: type[Watched]) -> None:
    class NeverMyTurn:
        def __enter__(self) -> None:
            raise KeyboardInterrupt

        def __exit__(self, *exception: object) -> None:
            raise AssertionError

    watched.gate.set()
    turn, writer._turn = writer._turn, NeverMyTurn()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        writer.run(add("given up"))
    writer._turn = turn
    assert writer.run(add("later")) == "later"
    writer.close()
    assert lines(path) == ["later"]
