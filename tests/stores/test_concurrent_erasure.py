"""Erasing while others append, commit, search, fork and save views: nothing comes back, nothing else is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from foveate.core.edits import Replace, Span, Summarize, Target
from foveate.core.messages import Text, user
from foveate.core.snapshots import VERSION, Facts, SlotState, Snapshot
from foveate.errors import BadSetting, ConflictError
from foveate.ports import Database, append
from foveate.stores.sqlite import SqliteStore
from foveate.testing.erase_contract import WORD
from foveate.testing.rows import chain, record_after

ROUNDS = 12
LONG = " ".join(f"{n * n % 7919:x}" for n in range(3000))


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: Any, tmp_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        with SqliteStore(tmp_path / "chat.db", synchronous="normal", wait=120) as sqlite:
            yield sqlite
    else:
        pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")
        from foveate.stores.postgres import PostgresStore

        with PostgresStore(request.getfixturevalue("postgres_url") + "&wait=120") as postgres:
            yield postgres


def together(*works: Callable[[], None]) -> None:
    """Run each in its own thread, and raise the error of any of them."""
    failed: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    threads = [Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


@pytest.mark.slow
def test_nothing_comes_back_and_nothing_else_is_lost(store: Database) -> None:
    head = store.open("acme", "one")
    for n in range(ROUNDS):
        head = append(store, head, chain([user(f"{WORD} {n} {LONG}"), user(f"kept {n}")], head))
    ids = [row.id for row in store.messages(head, 1, head.position)]

    def erasing() -> None:
        for n in range(ROUNDS):
            store.erase(store.open("acme", "one"), [(2 * n + 1, 2 * n + 1)])

    def appending() -> None:
        for n in range(ROUNDS):
            while True:
                now = store.open("acme", "one")
                try:
                    append(store, now, chain([user(f"more {n}"), user(LONG)], now))
                    break
                except ConflictError:
                    continue

    def planning() -> None:
        for n in range(ROUNDS):
            now = store.open("acme", "one")
            row = store.messages(now, 2 * n + 1, 2 * n + 1)[0]
            if row.body:  # A reader of the message may repeat it while it exists.
                edits = Replace(Target(row.id), (Text(f"a {WORD}"),)), Summarize(Span(ids[0], row.id), f"some {WORD}")
                kept = Snapshot(VERSION, 1, 0, [], [SlotState(1, [(1, edits[0])])], [], Facts())
                try:
                    store.commit(now, *record_after(now, *edits))
                    store.save_snapshot(now, 1, 0, kept.encode())
                except ConflictError:
                    continue

    def searching() -> None:
        for _ in range(ROUNDS):
            store.search(store.open("acme", "one"), f"{WORD} more")

    def forking() -> None:
        for n in range(ROUNDS):
            now = store.open("acme", "one")
            try:
                store.fork(now, f"fork{n}", now.position, now.number)
            except BadSetting:
                continue

    together(erasing, appending, planning, searching, forking)
    heads = [store.open("acme", name) for name in store.names("acme")]
    assert [store.verify(one) for one in heads] == [[]] * len(heads)
    assert [store.find_residue(one) for one in heads] == [(ROUNDS, [])] * len(heads)
    now = store.open("acme", "one")
    assert store.search(now, WORD) == []
    has_body = [bool(row.body) for row in store.messages(now, 1, now.position)]
    assert has_body == [False, True] * ROUNDS + [True] * 2 * ROUNDS


@pytest.mark.parametrize("is_still", [True, False])
def test_message_before_a_whole_erasure_prevents_it(store: Any, is_still: bool) -> None:
    """Derived data is collected before the transaction that erases."""
    head = store.open("acme", "one")
    head = append(store, head, chain([user(f"{WORD} {n}") for n in range(4)], head))
    write = store._driver.write

    def late(work: Callable[[Any], Any]) -> Any:
        store._driver.write = write
        append(store, head, chain([user("I am back.")], head))
        return write(work)

    store._driver.write = late
    if is_still:
        with pytest.raises(ConflictError, match="A message was added to 'one'"):
            store.erase(head, [(1, 4)], seen=[head], is_still=True)
        assert store.erasures(head) == []
    else:
        assert store.erase(head, [(1, 4)], seen=[head]).messages == 4
    assert store.open("acme", "one").position == 5
