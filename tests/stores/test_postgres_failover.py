"""A primary with a standby: failover under load, to one that was behind, waiting for one, reading from one."""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from foveate.ports import append

pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")

from leaders import TOLD, Leaders, check
from postgres_schemas import execute
from short_waits import impatient
from waiting import until

from foveate import open_conversation
from foveate.core.messages import user
from foveate.errors import StoreError, StoreRolledBack
from foveate.ops.archive import head_text, heads_in, verify_head
from foveate.stores.postgres import PostgresStore
from foveate.testing.rows import chain

pytestmark = pytest.mark.slow


class Pair:
    """A primary and its standby."""

    def __init__(self, primary: Any) -> None:
        self.primary = primary
        self.standby = primary.follow("standby")

    def url(self) -> str:
        """Return the URL of the server that accepts writes."""
        hosts = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        secret = quote(self.primary.password, "")
        return f"postgresql://postgres:{secret}@{hosts}/postgres?target_session_attrs=read-write&connect_timeout=30"

    def set(self, server: Any, name: str, value: str) -> None:
        execute(server.url(), f"ALTER SYSTEM SET {name} = '{value}'")
        execute(server.url(), "SELECT pg_reload_conf()")

    def wait_for_standby(self) -> None:
        """Acknowledge from now on only what the standby has."""
        self.set(self.primary, "synchronous_standby_names", "standby")
        until(
            lambda: execute(self.primary.url(), "SELECT sync_state FROM pg_stat_replication") == [("sync",)],
        )

    def stop_streaming(self) -> None:
        """Stop the standby from receiving more."""
        until(self.is_even)
        self.set(self.standby, "primary_conninfo", "")
        until(lambda: execute(self.standby.url(), "SELECT 1 FROM pg_stat_wal_receiver") == [])

    def is_even(self) -> bool:
        (end,) = execute(self.primary.url(), "SELECT pg_current_wal_flush_lsn()")[0]
        return execute(self.standby.url(), f"SELECT pg_last_wal_replay_lsn() >= '{end}'") == [(True,)]

    def fail_over(self) -> None:
        self.primary.kill()
        self.standby.promote()


@pytest.fixture
def pair(postgres: Any) -> Iterator[Pair]:
    server = type(postgres).shared(Path(postgres.folder).with_name(f"foveate-postgres-own-{uuid.uuid4().hex[:8]}"))
    if not (server.binaries / "pg_basebackup").exists():
        server.release()
        pytest.skip(f"{server.binaries} has no pg_basebackup, which makes a standby")
    try:
        yield Pair(server)
    finally:
        server.release()


def test_synchronous_failover_under_load_loses_and_doubles_nothing(pair: Pair) -> None:
    url = pair.url() + "&wait=30"
    PostgresStore(url).close()
    pair.wait_for_standby()
    with Leaders(url, ["one", "one", "two"], 40) as leaders:
        leaders.until(0.4)
        pair.fail_over()
        leaders.end()
        assert check(pair.standby.url(), leaders) == {"one": 80, "two": 40}
        assert set(leaders.told()) <= TOLD


def test_failover_to_a_late_standby_raises_for_readers_of_lost_data(pair: Pair) -> None:
    url = pair.url() + "&wait=20"
    with (
        PostgresStore(url) as store,
        open_conversation("one", store=store, policy="off", window=32_000) as chat,
        open_conversation("one", store=store, policy="off", window=32_000) as early,
        open_conversation("two", store=store, policy="off", window=32_000) as other,
    ):
        chat.append("a")
        chat.append("b")
        other.append("untouched")
        early.refresh()
        pair.stop_streaming()
        chat.append("lost")
        kept = heads_in(head_text(store.open("", "one")))[0]
        assert verify_head(store, kept) == []
        pair.fail_over()
        with pytest.raises(
            StoreRolledBack, match="3 messages and 0 edits were acknowledged, and it holds 2 and 0"
        ) as told:
            again(lambda: chat.append("c"))
        assert (told.value.known, told.value.now) == ((3, 0), (2, 0))
        assert [finding.where for finding in verify_head(store, kept)] == ["head"]
        early.append("d")  # A writer that had not seen it goes on; the number of messages is then the acknowledged one.
        other.append("goes on")
        with pytest.raises(StoreRolledBack, match="it holds others"):
            chat.append("c")
        assert [finding.where for finding in verify_head(store, kept)] == ["head"]
        with open_conversation("one", store=store, policy="off", window=32_000) as fresh:
            fresh.append("c")
            assert [row.message.text for row in fresh.history()] == ["a", "b", "d", "c"]
            assert (fresh.journal.verify(), other.journal.verify(), len(other)) == ([], [], 2)


def again(work: Callable[[], Any]) -> Any:
    """Repeat the action until the standby has become the primary."""
    end = time.monotonic() + 180
    while True:
        assert time.monotonic() < end, "it does not become one"
        try:
            return work()
        except StoreRolledBack:
            raise
        except StoreError as error:
            if not any(mark in str(error) for mark in ("not known", "cannot be reached", "lost again")):
                raise


def test_commit_that_stops_waiting_for_its_standby_is_not_safe(pair: Pair) -> None:
    with PostgresStore(pair.primary.url() + "?wait=60") as store:
        head = store.open("acme", "one")
        head = append(store, head, chain([user("safe")], head))
        pair.wait_for_standby()
        pair.stop_streaming()
        rows = chain([user("waits")], head)
        with (
            impatient(store, answer=1.2),
            pytest.raises(StoreError, match=r"has not answered .* not known whether this was written"),
        ):
            append(store, head, rows)  # For as long as the standby is away.
    until(lambda: cancelled(pair) == 1)  # The abandoned write locks its row until then.
    with PostgresStore(pair.primary.url()) as store:
        until(lambda: store.open("acme", "one").position == 2)
        head = store.open("acme", "one")
        waiting: list[StoreError] = []

        def append_cancelled() -> None:
            try:
                append(store, head, chain([user("cancelled")], head))
            except StoreError as error:
                waiting.append(error)

        thread = threading.Thread(target=append_cancelled)
        thread.start()
        until(lambda: cancelled(pair) == 1)
        thread.join()
        assert [str(error).partition("has written this, but ")[2][:50] for error in waiting] == [
            "its wait for the standby was cancelled, so it is n"
        ]


def cancelled(pair: Pair) -> int:
    """Return the number of commits whose wait for the standby was cancelled, as an administrator may do."""
    waiting = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    return len(execute(pair.primary.url(), waiting))


def test_standby_can_be_read_and_says_that_it_takes_no_writes(pair: Pair) -> None:
    with open_conversation("one", store=pair.primary.url(), policy="off", window=32_000) as chat:
        chat.append("Where is the rain?")
        found = chat.search("rain")
        until(pair.is_even)
        with open_conversation("one", store=pair.standby.url(), policy="off", window=32_000) as reader:
            assert [entry.message.text for entry in reader.view] == ["Where is the rain?"]
            assert (len(reader.history()), reader.search("rain"), reader.journal.verify()) == (1, found, [])
            for write in (lambda: reader.append("no"), lambda: reader.fork("two"), lambda: reader.privacy.erase("m1")):
                with pytest.raises(StoreError, match=r"accepts no writes .*it is a standby.* Nothing was written"):
                    write()
            chat.append("It comes.")
            until(pair.is_even)
            reader.refresh()
            assert len(reader.history()) == 2
        with pytest.raises(StoreError, match="Only a standby answers"):
            PostgresStore(pair.standby.url() + "?target_session_attrs=read-write&wait=1")
        with contextlib.suppress(StoreError), PostgresStore(pair.standby.url()) as store:
            store.open("acme", "new")
        with PostgresStore(pair.primary.url()) as store:
            assert (store.names(""), store.names("acme")) == (["one"], [])
