"""A wire between a client and a PostgreSQL server on this machine, which can be cut or made to swallow data.

It knows bytes and the frames of PostgreSQL's protocol, version 3, and not their content.
"""

from __future__ import annotations

import select
import socket
import struct
import threading
from typing import Literal, Self

from waiting import until

__all__ = ["Side", "Wire", "ends_of_messages"]

Side = Literal["client", "server"]
"""Who speaks."""


class Wire:
    """Carries bytes between clients and the server at `port`. A context manager."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._clients: set[socket.socket] = set()
        """Those that may still say something."""
        self.heard: dict[Side, bytes] = {"client": b"", "server": b""}
        """The messages since `listen`, with their senders."""
        self._fault: tuple[Side, int, bool] | None = None
        self.is_slow = False
        """Whether every byte comes alone."""
        self.is_down = False
        """Whether new connections are refused."""
        self._is_over = False
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def url(self, url: str, port: str) -> str:
        """The same URL through this wire."""
        return url.replace(f":{port}/", f":{self.port}/") + "&sslmode=disable"

    def listen(self) -> None:
        """Forget the recorded bytes, and every fault."""
        with self._lock:
            self.heard, self._fault = {"client": b"", "server": b""}, None

    def cut(self, side: Side, after: int, *, swallow: bool = False) -> None:
        """From now on, once `side` has said so many bytes, end the connection; or swallow what both say, for good."""
        with self._lock:
            self.heard, self._fault = {"client": b"", "server": b""}, (side, after, swallow)

    @property
    def has_failed(self) -> bool:
        """Whether the fault has happened."""
        return self._fault is None

    def until_alone(self) -> None:
        """Wait until all is heard that was said by clients which are gone, and no more than one is left."""
        until(lambda: len(self._clients) <= 1)

    def cut_all(self) -> None:
        """End all connections."""
        with self._lock:
            for one in self._open:
                _reset(one)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        # Not by closing it: who waits at a closed socket goes on waiting, and where the process is stopped and goes on,
        # at another socket with the same number, such as the next wire.
        self._is_over = True
        socket.create_connection(("127.0.0.1", self.port)).close()
        self._accepting.join(60)
        self._listening.close()
        self.cut_all()

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
        if self.is_down:
            _reset(client)
            client.close()
            return
        try:
            server = socket.create_connection(("127.0.0.1", self._to))
        except OSError:
            client.close()
            return
        with client, server:
            with self._lock:
                self._open |= {client, server}
                self._clients.add(client)
            try:
                for one in (client, server):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if not self.is_down:  # Else it began before that, and `cut_all` may have come too early for it.
                    self._hand_on(client, server)
            except OSError:
                pass
            finally:
                with self._lock:
                    self._open -= {client, server}
                    self._clients.discard(client)

    def _hand_on(self, client: socket.socket, server: socket.socket) -> None:
        swallows = False
        while True:
            for one in select.select([client, server], [], [])[0]:
                said = one.recv(65536)
                if not said and swallows and one is client:
                    self._clients.discard(client)
                    select.select([server], [], [])  # The server never notices that the client is gone.
                if not said:
                    return
                side: Side = "client" if one is client else "server"
                rest, swallows_now = (0, False) if swallows else self._heard(side, said)
                if not swallows:
                    self._send(server if one is client else client, said[: len(said) - rest])
                if rest and not swallows_now:
                    _reset(client)
                    _reset(server)
                    return
                swallows = swallows or bool(rest)

    def _heard(self, side: Side, said: bytes) -> tuple[int, bool]:
        """How many of these bytes are not handed on, and whether the connection stays open all the same."""
        with self._lock:
            self.heard[side] += said
            if self._fault is None or self._fault[0] != side or len(self.heard[side]) <= self._fault[1]:
                return 0, False
            _, after, swallow = self._fault
            self._fault = None
            return min(len(said), len(self.heard[side]) - after), swallow

    def _send(self, to: socket.socket, said: bytes) -> None:
        for piece in [said[n : n + 1] for n in range(len(said))] if self.is_slow else [said]:
            to.sendall(piece)


def ends_of_messages(said: bytes, kinds: bytes = b"") -> list[int]:
    """Where each message ends in what one side said, from a type's byte on; or each of some types."""
    ends, at = [], 0
    while at + 5 <= len(said):
        kind = said[at]
        at += 1 + struct.unpack("!I", said[at + 1 : at + 5])[0]
        if not kinds or kind in kinds:
            ends.append(at)
    return ends


def _reset(one: socket.socket) -> None:
    """End it as a network does that fails: without a goodbye."""
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
