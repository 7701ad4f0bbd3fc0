"""The word index in a SQLite file: it follows the messages with a delay, may be lost, and finds what memory finds."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from contextlib import suppress
from itertools import count, islice
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate.core import wire
from foveate.core.edits import Hide, Target
from foveate.core.ids import body_hash
from foveate.core.messages import tool_result, user
from foveate.errors import BadSetting, StoreError
from foveate.formats import get_format
from foveate.open import open_store
from foveate.ports import Database, Head, append
from foveate.stores import place_of
from foveate.stores.memory import MemoryStore
from foveate.stores.sql import search as sql_search
from foveate.stores.sql import words as sql_words
from foveate.stores.sqlite import SqliteStore
from foveate.testing.rows import chain, record_after


def opened(path: Path, **settings: Any) -> SqliteStore:
    return SqliteStore(path, synchronous="normal", **settings)


def talked(store: Database, count: int, name: str = "one") -> Head:
    head = store.open("acme", name)
    return append(store, head, chain([user(f"rain {n}") for n in range(count)], head))


def committed(store: Database, head: Head) -> Head:
    return store.commit(head, *record_after(head))


def positions(store: Database, head: Head, query: str, limit: int = 1000) -> list[int]:
    return [found.position for found in store.search(head, query, limit)]


def marks(path: Path) -> list[tuple[int, int]]:
    """Return the (branch, position) of each watermark."""
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT branch, position FROM indexed ORDER BY branch").fetchall()
    connection.close()
    return found


# ---------------------------------------------------------------------------------------------------- catching up


def test_appending_leaves_the_index_alone_and_a_commit_lets_it_follow(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with opened(path) as store:
        head = talked(store, 10)
        head = committed(store, head)  # Not far enough behind to be worth a transaction.
        assert marks(path) == []
        head = append(store, head, chain([user(f"wind {n}") for n in range(30)], head))
        assert marks(path) == []
        head = committed(store, head)
        assert marks(path) == [(1, 40)]
        assert len(positions(store, head, "rain")) == 10


def test_no_commit_waits_for_more_than_one_step(tmp_path: Path) -> None:
    path, long = tmp_path / "chat.db", "rain " * 2_000
    with opened(path) as store:
        head = store.open("acme", "one")
        head = append(store, head, chain([tool_result("c", long)] * 100, head))
        steps = []
        for _ in range(3):
            head = committed(store, head)
            steps.append(marks(path)[0][1])
        assert steps == [4, 8, 12]  # Of 10,000 characters each: what fills a step of 32,000.
        assert len(positions(store, head, "rain")) == 100
        assert marks(path) == [(1, 100)]


def test_search_catches_up_in_steps_so_that_writers_get_in_between(tmp_path: Path, monkeypatch: Any) -> None:
    with opened(tmp_path / "chat.db") as store:
        head = talked(store, 200)
        sizes = []
        add = sql_search.add_words
        monkeypatch.setattr(
            sql_search, "add_words", lambda *given, **rest: sizes.append(len(given[2])) or add(*given, **rest)
        )
        monkeypatch.setattr(sql_search, "_BYTES_AT_SEARCH", 5_000)
        assert len(positions(store, head, "rain")) == 200
        assert sum(sizes) == 200
        assert max(sizes) < 100


def test_index_failure_does_not_touch_committed_data(tmp_path: Path, monkeypatch: Any) -> None:
    with opened(tmp_path / "chat.db") as store:
        head = talked(store, 50)

        def fail(*given: object, **rest: object) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        with monkeypatch.context() as patch:
            patch.setattr(sql_search, "add_words", fail)
            head = committed(store, head)
            assert store.open("acme", "one") == head
            assert len(positions(store, head, "rain")) == 50  # Read without the index.
        assert len(positions(store, head, "rain")) == 50


def test_lost_index_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with opened(path) as store:
        head = talked(store, 40)
        assert positions(store, head, "rain 7", 1) == [8]
    connection = sqlite3.connect(path)
    connection.executescript("DELETE FROM said; DELETE FROM indexed;")
    connection.close()
    with opened(path) as store:
        assert positions(store, head, "rain 7", 1) == [8]


def test_concurrent_indexing_of_a_file_is_done_once(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "chat.db"
    with opened(path) as chat, opened(path) as other:
        head = talked(chat, 40)
        add, rows = sql_search.add_words, []

        def slow(*given: Any, **rest: Any) -> None:
            rows.append(len(given[2]))
            add(*given, **rest)

        behind = sql_search.Search._next_batch

        def overtaken(self: Any, *given: Any) -> Any:
            found = behind(self, *given)
            if self is chat._search and found:
                other.search(head, "rain")
            return found

        monkeypatch.setattr(sql_search, "add_words", slow)
        monkeypatch.setattr(sql_search.Search, "_next_batch", overtaken)
        assert len(positions(chat, head, "rain")) == 40
        assert rows == [40]


@pytest.mark.parametrize("behind", [0, 100, 200])
def test_outline_is_found_if_its_block_was_being_divided(tmp_path: Path, monkeypatch: Any, behind: int) -> None:
    monkeypatch.setattr(sql_search, "_BYTES_AT_COMMIT", 400)
    with opened(tmp_path / "chat.db") as store:
        head = talked(store, 256 + behind)
        for _ in range(60):
            store._search.keep_up(head)
        words = [f"{letter * 4}outline" for letter in "abcdefghijklmnop"]  # None is like another.
        outline = wire.encode_message(user(" ".join(words)))
        edit = Hide(Target(store.messages(head, 8, 8)[0].id), keeps_original=False, released=body_hash(outline))
        head = store.release(head, *record_after(head, edit), {8: outline})
        for _ in range(2):
            assert {word: positions(store, head, word) for word in words} == {word: [8] for word in words}
            assert 8 not in positions(store, head, "rain")
            head = append(store, head, chain([user(f"snow {n}") for n in range(300)], head))
            for _ in range(60):
                store._search.keep_up(head)


@pytest.mark.parametrize("behind", [0, 10, 33, 100, 255, 256, 300])
def test_block_is_searched_and_erased_while_commits_divide_it(tmp_path: Path, monkeypatch: Any, behind: int) -> None:
    """The keys of some buckets are in the pieces and in rows of their own: each message is found once."""
    monkeypatch.setattr(sql_search, "_BYTES_AT_COMMIT", 400)
    with opened(tmp_path / "chat.db") as store:
        head = store.open("acme", "one")
        head = append(store, head, chain([user(f"rain apple{n} pear{n}") for n in range(256 + behind)], head))
        for _ in range(60):
            store._search.keep_up(head)
        assert sorted(positions(store, head, "rain")) == list(range(1, 257 + behind))
        assert positions(store, head, "apple7") == positions(store, head, "pear7") == [8]
        store.erase(head, [(8, 8)])
        head = store.open("acme", "one")
        head = append(store, head, chain([user(f"snow {n}") for n in range(300)], head))
        for _ in range(60):
            store._search.keep_up(head)
        assert 8 not in positions(store, head, "rain")
        assert len(positions(store, head, "rain")) == 255 + behind
        assert positions(store, head, "pear9") == [10]
        assert store.find_residue(head)[1] == []


# ----------------------------------------------------------------------------------------------- what is not found


def test_message_erased_after_it_was_indexed_is_not_found(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with opened(path) as store:
        head = talked(store, 30)
        assert positions(store, head, "rain", 2) == [30, 29]
        connection = sqlite3.connect(path)
        connection.execute("UPDATE message SET body = x'' WHERE position IN (30, 29, 27, 26, 25, 24, 23)")
        connection.commit()
        connection.close()
        assert positions(store, head, "rain", 2) == [28, 22]
        assert positions(store, head, "rain snow", 2) == [28, 22]


def test_large_body_that_was_erased_is_not_found(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with opened(path) as store:
        head = store.open("acme", "one")
        head = append(store, head, chain([user("rain " + " ".join(str(n * n) for n in range(5_000)))], head))
        assert positions(store, head, "rain") == [1]
        connection = sqlite3.connect(path)
        assert connection.execute("UPDATE body SET body = x''").rowcount == 1
        connection.commit()
        connection.close()
        assert positions(store, head, "rain") == []


def test_damaged_message_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with opened(path) as store:
        head = talked(store, 3)
        connection = sqlite3.connect(path)
        connection.execute("UPDATE message SET body = x'0217' WHERE position = 2")
        connection.execute("UPDATE message SET body = 'text' WHERE position = 1")
        connection.commit()
        connection.close()
        assert positions(store, head, "rain") == [3]


# ------------------------------------------------------------------------------------------------ having no index


def test_store_without_an_index_says_so_and_keeps_none(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with open_store(f"sqlite:///{path}?search=off") as store:  # type: ignore[attr-defined]
        head = committed(store, talked(store, 50))
        with pytest.raises(StoreError, match="has no word index: it was opened with search off"):
            store.search(head, "rain")
    assert marks(path) == []
    with open_store(f"sqlite:///{path}") as store:  # type: ignore[attr-defined]
        assert len(positions(store, head, "rain")) == 50


@pytest.mark.parametrize(
    ("at_commits", "step"),
    [(False, 7), pytest.param(False, 1, marks=pytest.mark.slow), pytest.param(True, 1, marks=pytest.mark.slow)],
)
def test_indexing_continues_after_an_interruption_at_any_statement(tmp_path: Path, at_commits: bool, step: int) -> None:
    """The words of an older file are indexed in steps; a crash in one of them loses nothing."""
    with opened(tmp_path / "whole.db") as store:
        head = talked(store, 150)
        expected = store.search(head, "rain 77")
    for number in count(1, step):
        path = tmp_path / f"{number}.db"
        copyfile(tmp_path / "whole.db", path)
        connection = sqlite3.connect(path)
        connection.executescript("DELETE FROM said; UPDATE indexed SET version = 0;")
        connection.close()
        failing = type("Failing", (FailingConnection,), {"left": [10_000]})
        with pytest.MonkeyPatch.context() as patch:
            for name, value in (("BLOCK", 32), ("_MERGED", 2), ("_PIECE_MIN", 2)):
                patch.setattr(sql_words, name, value)
            patch.setattr(sql_search, "_BYTES_AT_COMMIT", 400)
            with opened(path, connection=failing) as store:
                failing.left[0] = number
                with suppress(StoreError):
                    if at_commits:
                        for _ in range(30):
                            store._search.keep_up(head)
                    else:
                        for _ in store.index_words(head):
                            pass
                is_over = failing.left[0] > 0
                failing.left[0] = 10_000_000
                assert store.search(head, "rain 77") == expected, number
                assert store.verify(head) == []
        if is_over:
            break
    assert number > 100


class FailingConnection(sqlite3.Connection):
    """A connection that fails at one statement about the word index, as a full disk does."""

    left: list[int]

    def _count(self, statement: str) -> None:
        if " said" in statement or " indexed" in statement:
            self.left[0] -= 1
            if not self.left[0]:
                raise sqlite3.OperationalError("disk I/O error")

    def execute(self, statement: str, *rest: Any) -> Any:
        self._count(statement)
        return super().execute(statement, *rest)

    def executemany(self, statement: str, *rest: Any) -> Any:
        self._count(statement)
        return super().executemany(statement, *rest)


def test_index_of_another_version_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with opened(path) as store:
        head = talked(store, 40)
        assert len(positions(store, head, "rain")) == 40
        connection = sqlite3.connect(path)
        connection.execute("UPDATE indexed SET version = 0")
        connection.commit()
        connection.close()
        assert list(store.index_words(head)) == [40]
        assert list(store.index_words(head)) == []
        assert positions(store, head, "rain 7", 1) == [8]


def test_damaged_index_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with opened(path) as store:
        head = talked(store, 40)
        assert positions(store, head, "rain 7", 1) == [8]
        connection = sqlite3.connect(path)
        connection.execute("UPDATE said SET body = x'1234'")
        connection.commit()
        connection.close()
        assert positions(store, head, "rain 7", 1) == [8]
        assert len(positions(store, head, "rain")) == 40


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("memory:", ("memory", "", True)),
        ("sqlite:///chat.db", ("sqlite", "chat.db", True)),
        ("sqlite:////var/a?b.db?search=off", ("sqlite", "/var/a?b.db", False)),
        ("sqlite:///chat.db?search=on", ("sqlite", "chat.db", True)),
    ],
)
def test_url_may_say_that_no_index_is_kept(url: str, said: tuple[str, str, bool]) -> None:
    assert place_of(url)[:3] == said


@pytest.mark.parametrize("url", ["sqlite:///?search=off", "sqlite:///chat.db?search=no", "sqlite:///"])
def test_url_that_says_something_else_is_refused(url: str) -> None:
    with pytest.raises(BadSetting):
        place_of(url)


def test_file_made_before_there_was_a_search_is_searched(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    connection = sqlite3.connect(path)
    connection.executescript((Path(__file__).parent / "golden" / "schema_1.sql").read_text("utf-8"))
    connection.close()
    with opened(path) as store:
        head = store.open("acme", "one", create=False)
        assert positions(store, head, "wind") == [2]
        assert store.verify(head) == []


# ------------------------------------------------------------------------------------------- as memory, and its size

WORDS = st.sampled_from(
    [
        *("rain", "rains", "rian", "wind", "fooBar", "foo_bar", "foobar", "a/b.py", "b", "py", "数据", "Rain", "café"),
        *("NOT", "the", "und", "nicht", "wir", "verbindung", "verbindungen", "connected", "conection", '"'),
    ]
)
TEXTS = st.lists(WORDS, max_size=6).map(" ".join)
QUERIES = st.lists(st.one_of(WORDS, TEXTS.map('"{}"'.format)), max_size=4).map(" ".join)


COURSES = st.lists(st.tuples(st.integers(0, 50), st.lists(TEXTS, max_size=8)), min_size=1, max_size=4)
ASKED = st.lists(st.tuples(QUERIES, st.integers(1, 12)), min_size=1, max_size=6)


def compare(courses: list[tuple[int, list[str]]], queries: list[tuple[str, int]]) -> None:
    """Compare the stores along courses; each course forks from the one before it and appends its own messages.

    Blocks are small, so that the index is divided into buckets and merged.
    """
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for name, value in (("BLOCK", 3), ("_MERGED", 2), ("_PIECE_MIN", 2)):
            patch.setattr(sql_words, name, value)
        for name in ("_BEHIND", "_BYTES_AT_COMMIT"):
            patch.setattr(sql_search, name, 1)
        stores: list[Database] = [MemoryStore(), opened(Path(folder) / "chat.db")]
        outcomes = []
        for store in stores:
            found = []
            head = store.open("acme", "0")
            for number, (at, texts) in enumerate(courses):
                if number:
                    head = store.fork(head, str(number), at % (head.position + 1), 0)
                head = append(store, head, chain(map(user, texts), head))
                if isinstance(store, SqliteStore):
                    for _ in texts[1:]:
                        store._search.keep_up(head)  # As commits do: a message each.
                found += [store.search(head, query, limit) for query, limit in queries]
            outcomes.append(found)
            store.close()
    assert outcomes[0] == outcomes[1]


@settings(max_examples=20, deadline=None)
@given(COURSES, ASKED)
def test_sqlite_finds_what_memory_finds(courses: Any, queries: Any) -> None:
    compare(courses, queries)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(COURSES, ASKED)
def test_sqlite_finds_what_memory_finds_over_and_over(courses: Any, queries: Any) -> None:
    compare(courses, queries)


@pytest.mark.slow
def test_index_of_recordings_is_smaller_than_an_eighth_of_their_json(transcripts: Path, tmp_path: Path) -> None:
    format = get_format("openai")
    lines = (
        line for path in sorted((transcripts / "neutral").glob("*/*.jsonl")) for line in path.read_bytes().splitlines()
    )
    said = list(islice((message for line in lines for message in format.parse(json.loads(line))), 3_000))
    path = tmp_path / "chat.db"
    with opened(path) as store:
        head = store.open("acme", "one")
        head = append(store, head, chain(said, head))
    before = path.stat().st_size
    with opened(path) as store:
        store.search(head, "error")
    size = sum(len(wire.encode_message(message)) for message in said)
    assert 0.03 < (path.stat().st_size - before) / size < 0.12
