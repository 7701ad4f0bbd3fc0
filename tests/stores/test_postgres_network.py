"""A network that is cut anywhere, or swallows data: one clear error, nothing lost and nothing doubled."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from foveate.ports import append

pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")

from postgres_schemas import execute
from short_waits import impatient, in_time
from wires import Side, Wire, ends_of_messages

from foveate import open_conversation
from foveate.core import wire as said_as
from foveate.core.messages import user
from foveate.errors import BadSetting, ConflictError, StoreError
from foveate.ports import Head
from foveate.stores.postgres import PostgresStore
from foveate.testing.rows import chain, record_after

pytestmark = pytest.mark.slow


@pytest.fixture
def wire(postgres: Any) -> Iterator[Wire]:
    with Wire(int(postgres.port)) as wire:
        yield wire


def without_pause(attempt: int) -> None:
    """Replace the pause before the next attempt."""


class Talk:
    """A conversation over a wire: each operation once, with the retries of a caller."""

    def __init__(self, store: PostgresStore) -> None:
        self.store = store
        store._driver._connections.give_up()  # On a connection of its own: what is said on it is always the same.
        self.name = uuid.uuid4().hex
        head = store.open("acme", self.name)
        self.head = append(store, head, chain([user(f"message {n}") for n in range(4)], head))
        self.told: list[str] = []
        """The errors."""

    def append(self) -> None:
        rows = chain([user("the next one " + "and so on" * 900)], self.head)
        while True:
            try:
                self.head = append(self.store, self.head, rows)
                return
            except StoreError as error:
                self.told.append(str(error))
                now = self._again()
                if now.tip == rows[-1].id:
                    self.head = now
                    return
                assert now == self.head

    def commit(self) -> None:
        record, id = record_after(self.head)
        while True:
            try:
                self.head = self.store.commit(self.head, record, id)
                return
            except StoreError as error:
                self.told.append(str(error))
                now = self._again()
                if isinstance(error, ConflictError) or now.record == id:
                    self.head = now
                    return

    def erase(self) -> None:
        while True:
            try:
                self.store.erase(self.head, [(2, 2)])
                self.head = self.store.open("acme", self.name)
                return
            except StoreError as error:
                self.told.append(str(error))

    def fork(self) -> None:
        while True:
            try:
                self.store.fork(self.head, f"{self.name} two", 3, 0)
                return
            except BadSetting:  # It was created without an acknowledgement.
                return
            except StoreError as error:
                self.told.append(str(error))

    def open(self) -> None:
        while True:
            try:
                self.store.open("acme", f"{self.name} new")
                return
            except StoreError as error:
                self.told.append(str(error))

    def is_as(self, do: str) -> bool:
        """Return whether the store is as it must be after this operation, performed once."""
        head = self.store.open("acme", self.name, create=False)
        rows = self.store.messages(head, 1, 99)
        texts = [said_as.decode_message(row.body).text[:12] if row.body else "" for row in rows]
        mine = [name.removeprefix(self.name) for name in self.store.names("acme") if name.startswith(self.name)]
        matches = {
            "texts": texts,
            "edits": len(self.store.records(head)),
            "erased": head.erased,
            "names": mine,
            "wrong": self.store.verify(head),
        }
        return matches == {
            "texts": [
                "message 0",
                "" if do == "erase" else "message 1",
                "message 2",
                "message 3",
                *(["the next one"] if do == "append" else []),
            ],
            "edits": int(do == "commit"),
            "erased": int(do == "erase"),
            "names": ["", *{"fork": [" two"], "open": [" new"]}.get(do, [])],
            "wrong": [],
        }

    def _again(self) -> Head:
        while True:
            try:
                return self.store.open("acme", self.name)
            except StoreError as error:
                self.told.append(str(error))


def start_talk(store: PostgresStore, wire: Wire) -> Talk:
    """Return a conversation on the only connection of a store with `pool=1`."""
    talk = in_time(lambda: Talk(store))
    wire.until_alone()  # Else a late word of the connection before would be taken for one of this one.
    return talk


def places(store: PostgresStore, wire: Wire, do: str, side: Side, kinds: bytes = b"") -> list[int]:
    """Return the ends of the messages of one side during an operation, and the places one byte later.

    With kinds, only the ends of messages of these kinds.
    """
    talk = start_talk(store, wire)
    wire.listen()
    getattr(talk, do)()
    message = wire.heard[side]
    ends = ends_of_messages(message, kinds)
    return sorted({0, *(end + more for end in ends for more in range(1 if kinds else 2) if end + more < len(message))})


OPERATIONS = ["append", "commit", "erase", "fork", "open"]
KNOWN = {
    *("it is not known", "Another writer", "no connection free", "was lost", "has not answered"),
    *("held the same row", "cannot be reached"),
}


def check_cuts(url: str, wire: Wire, do: str, side: Side, step: int) -> int:
    """Return the number of outcomes that were reported as unknown."""
    errors, failed = [], []
    with PostgresStore(url + "&pool=1", pause=without_pause) as store:
        where = places(store, wire, do, side)[::step]
        for place in where:
            talk = start_talk(store, wire)
            wire.cut(side, place)
            getattr(talk, do)()
            failed.append(
                wire.has_failed
            )  # Prepared statements are shorter: fewer messages than when these were recorded.
            wire.listen()
            assert talk.is_as(do), f"cut after byte {place} of the {side}"
            errors += talk.told
    assert failed.count(True) > len(where) / 2
    # Else it is retried. A request before the cut may take effect a moment later.
    assert [message for message in errors if "not known" not in message and "Another writer" not in message] == []
    return len(errors)


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("do", ["append", "commit"])
def test_cut_connection_loses_and_doubles_nothing(
    postgres: Any, postgres_url: str, wire: Wire, do: str, side: Side
) -> None:
    check_cuts(
        wire.url(postgres_url, postgres.port), wire, do, side, step={"append": 7, "commit": 7, "erase": 99}.get(do, 31)
    )


@pytest.mark.parametrize("do", OPERATIONS)
def test_connection_that_is_cut_at_every_message(postgres: Any, postgres_url: str, wire: Wire, do: str) -> None:
    url = wire.url(postgres_url, postgres.port)
    step = {"append": 1, "commit": 2, "erase": 41}.get(do, 7)  # It says a great deal.
    unknown = [check_cuts(url, wire, do, side, step) for side in ("client", "server")]
    assert unknown[1] > 0  # The answer to a COMMIT was cut off.


def check_swallowed(url: str, wire: Wire, do: str, side: Side, some: Callable[[list[int]], list[int]]) -> list[str]:
    """The server's side stays open: the server does not notice the client's end, and ends the transaction itself."""
    errors: list[str] = []
    failed = []
    waits = "&pool=1&wait=60&connect_timeout=60&options=-c%20idle_in_transaction_session_timeout%3D300"
    with PostgresStore(url + waits, pause=without_pause) as store:
        # Of the client behind a Sync. A server that waits for the rest of something waits for as long as it takes the
        # connection for alive: it is, here; else `tcp_keepalives_idle` ends that.
        for place in some(places(store, wire, do, side, b"S" if side == "client" else b"")):
            talk = start_talk(store, wire)
            wire.cut(side, place, swallow=True)
            with impatient(store, answer=0.6):
                getattr(talk, do)()
            failed.append(
                wire.has_failed
            )  # Prepared statements are shorter: fewer messages than when these were recorded.
            wire.listen()
            assert in_time(lambda: talk.is_as(do)), f"swallowed after byte {place} of the {side}"  # noqa: B023
            errors += talk.told
    assert any(failed)
    assert [message for message in errors if not any(known in message for known in KNOWN)] == []
    return errors


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("do", ["append"])
def test_silent_network_is_abandoned_and_reported(
    postgres: Any, postgres_url: str, wire: Wire, do: str, side: Side
) -> None:
    errors = check_swallowed(wire.url(postgres_url, postgres.port), wire, do, side, lambda places: [0, places[-1]])
    assert [message for message in errors if "has not answered for 0.6 s" in message] != []


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("do", ["append", "commit"])
def test_silent_network_from_any_message_on(postgres: Any, postgres_url: str, wire: Wire, do: str, side: Side) -> None:
    check_swallowed(wire.url(postgres_url, postgres.port), wire, do, side, lambda places: places[::4])


def test_conversation_through_bad_cuts_says_everything_once_with_after(
    postgres: Any, postgres_url: str, wire: Wire
) -> None:
    """As in a program, each failed append is repeated after the same tip."""
    url = wire.url(postgres_url, postgres.port) + "&pool=1"  # Else one that is made meanwhile may get the cut.
    with open_conversation("one", store=url, policy="off", window=32_000) as chat:
        tip, failed = chat.append("message 0")[-1], []
        for n in range(1, 40):
            wire.cut("server" if n % 3 else "client", n * 37 % 400)
            while True:
                try:
                    tip = chat.append(f"message {n}", after=tip)[-1]
                    break
                except StoreError as error:
                    failed.append(str(error))
        wire.listen()
        assert [row.message.text for row in chat.history()] == [f"message {n}" for n in range(40)]
        assert chat.journal.verify() == []
        assert failed == [message for message in failed if "not known" in message] != []


def test_bytes_that_come_one_by_one_are_put_together(postgres: Any, postgres_url: str, wire: Wire) -> None:
    wire.is_slow = True
    with PostgresStore(wire.url(postgres_url, postgres.port)) as store:
        talk = Talk(store)
        talk.append()
        assert (talk.is_as("append"), talk.told) == (True, [])


def test_network_failure_is_reported_and_the_store_recovers(postgres: Any, postgres_url: str, wire: Wire) -> None:
    with PostgresStore(wire.url(postgres_url, postgres.port) + "&wait=60") as store:
        talk = Talk(store)
        for _ in range(2):
            wire.is_down = True
            wire.cut_all()
            with impatient(store, wait=1), pytest.raises(StoreError, match="cannot be reached"):
                append(store, talk.head, chain([user("while it is down")], talk.head))
            wire.is_down = False
            assert talk.is_as("")
    assert execute(postgres_url, "SELECT count(*) FROM message") == [(4,)]
