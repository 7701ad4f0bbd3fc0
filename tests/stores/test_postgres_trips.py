"""Round trips to the server, which decide the time of an operation over a network."""

from __future__ import annotations

import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from foveate.ports import append

pytest.importorskip("psycopg_pool", reason="psycopg is not installed (the extra `postgres`)")

from foveate.core.messages import user
from foveate.stores.postgres import PostgresStore
from foveate.testing.rows import chain, record_after
from foveate.testing.store_contract import talk


class Proxy:
    """Carries bytes between one client at a time and the server, and counts the round trips.

    It counts answers by their content, not by the order of the bytes: the server may answer the first half of a
    request that is still being sent.
    """

    def __init__(self, port: int) -> None:
        self.trips = 0
        self._to = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._is_over = False
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self) -> None:
        self._is_over = True
        socket.create_connection(("127.0.0.1", self.port)).close()  # Else it would be waited at for ever.
        self._accepting.join(60)
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client = self._listening.accept()[0]
            except OSError:
                return
            if self._is_over:
                client.close()
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.create_connection(("127.0.0.1", self._to)) as server:
            for side in (client, server):
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            behind = b""
            while True:
                for side in select.select([client, server], [], [])[0]:
                    if not (said := side.recv(65536)):
                        return
                    if side is server:
                        behind = self._counted(behind + said)
                    (server if side is client else client).sendall(said)

    def _counted(self, said: bytes) -> bytes:
        """Count the answers that end in these bytes; return the rest, an incomplete message."""
        while len(said) >= 5 and len(said) > (rest := struct.unpack("!I", said[1:5])[0]):
            self.trips += said[:1] == b"Z"  # ReadyForQuery: the server has nothing to say until it is asked again.
            said = said[1 + rest :]
        return said


@pytest.fixture
def proxy(postgres: Any) -> Iterator[Proxy]:
    proxy = Proxy(int(postgres.port))
    yield proxy
    proxy.close()


def test_append_and_commit_take_two_round_trips(postgres: Any, postgres_url: str, proxy: Proxy) -> None:
    def trips(work: Callable[[], Any]) -> int:
        before = proxy.trips
        work()
        return proxy.trips - before

    url = postgres_url.replace(f":{postgres.port}/", f":{proxy.port}/") + "&search=off&sslmode=disable"
    with PostgresStore(url) as store:
        head = store.open("acme", "one")
        for said in (talk(1), talk(40), [user("long " + "".join(map(chr, range(300, 9000))))]):
            head = append(store, head, chain(said, head))  # Statements are prepared after some uses.
        rows = chain(talk(1), head)
        counted = {"append": trips(lambda: append(store, head, rows))}
        head = store.open("acme", "one")
        many = chain(talk(100), head)
        counted["append of many"] = trips(lambda: append(store, head, many))
        head = store.open("acme", "one")
        counted["commit"] = trips(lambda: store.commit(head, *record_after(head)))
        counted["open"] = trips(lambda: store.open("acme", "one"))
        counted["read"] = trips(lambda: store.messages(head, 5, 20))
        for _ in range(6):
            head = store.extend(head, lambda tail: chain(talk(1), tail.head)).head
            store.changes(head)
        counted["extend"] = trips(lambda: store.extend(head, lambda tail: chain(talk(1), tail.head)))
        store.acquire_lock(head, "worker")
        head = store.changes(head).head
        for _ in range(6):
            head = store.extend(head, lambda tail: chain(talk(1), tail.head), owner="worker").head
        counted["extend as owner"] = trips(
            lambda: store.extend(head, lambda tail: chain(talk(1), tail.head), owner="worker")
        )
        counted["tail"] = trips(lambda: store.changes(head))
        many = [store.open("acme", "one")]
        for _ in range(6):  # Another is first, each time.
            many.append(append(store, many[-1], chain(talk(1), many[-1])))
            store._messages._crowded.clear()
            many.append(store.extend(many[-2], lambda tail: chain(talk(1), tail.head)).head)
        store._messages._crowded.clear()
        counted["extend, not first"] = trips(lambda: store.extend(head, lambda tail: chain(talk(1), tail.head)))
        counted["extend in a crowd"] = trips(lambda: store.extend(head, lambda tail: chain(talk(1), tail.head)))
    assert counted == {
        "append": 2,
        "append of many": 2,
        "commit": 2,
        "open": 3,
        "read": 4,
        "extend": 2,
        "extend as owner": 2,
        "tail": 2,
        "extend, not first": 3,
        "extend in a crowd": 2,
    }
