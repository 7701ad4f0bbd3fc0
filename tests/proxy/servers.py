"""A running proxy on loopback, and a provider that answers with exact bytes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import uvicorn
from waiting import until
from web_server import WebServer

from foveate.proxy.server import config_of
from foveate.proxy.settings import ProxySettings


class RunningProxy(NamedTuple):
    """A proxy that serves in a thread of this process."""

    url: str
    port: int
    server: uvicorn.Server


@contextmanager
def running_proxy(upstream: str, **settings: Any) -> Iterator[RunningProxy]:
    """Serve during the block. `settings`: those of `ProxySettings`."""
    chosen = {"store": "memory:", "policy": "balanced", "window": 16_000, **settings}
    chosen = {"gemini": upstream, "code_assist": upstream, "bedrock": upstream, **chosen}
    config = config_of(ProxySettings(anthropic=upstream, openai=upstream, port=0, **chosen))
    server = WebServer(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive())
        assert server.started
        port = server.servers[0].sockets[0].getsockname()[1]
        yield RunningProxy(f"http://127.0.0.1:{port}", port, server)
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


def numbers(proxy: RunningProxy, token: str = "") -> dict[str, float]:
    """Return the numbers at `/metrics`, by name and labels."""
    request = f"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nx-foveate-token: {token}\r\n\r\n"
    status, _, body = split(ask(proxy.port, request.encode()))
    assert status == 200, body
    lines = (line.rsplit(" ", 1) for line in body.decode().splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in lines}


class Exchange(NamedTuple):
    """A request as its bytes arrived, and its connection."""

    head: bytes
    body: bytes
    connection: socket.socket

    @property
    def target(self) -> str:
        return self.head.split(b" ", 2)[1].decode()

    @property
    def headers(self) -> dict[str, str]:
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}


class RawProvider:
    """A provider whose answers are bytes on a socket. `answer` writes them; then the connection is closed."""

    def __init__(self, answer: Callable[[Exchange], None] | bytes) -> None:
        self.received: list[Exchange] = []
        self.closed = threading.Event()
        """Set when the other side closed a connection early, as seen by `wait_for_close`."""
        self._answer = (lambda exchange: exchange.connection.sendall(answer)) if isinstance(answer, bytes) else answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> RawProvider:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def wait_for_close(self, exchange: Exchange) -> None:
        """Read until the other side closes the connection."""
        with suppress(OSError):
            while exchange.connection.recv(65_536):
                pass
        self.closed.set()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            head, body = read_request(connection)
            exchange = Exchange(head, body, connection)
            self.received.append(exchange)
            self._answer(exchange)
            connection.shutdown(socket.SHUT_WR)
            self.wait_for_close(exchange)


def read_request(connection: socket.socket) -> tuple[bytes, bytes]:
    """Return the head and the body of a request, with its chunks joined."""
    file = connection.makefile("rb")
    lines: list[bytes] = []
    while (line := file.readline()) not in (b"\r\n", b""):
        lines.append(line)
    head = b"".join(lines).removesuffix(b"\r\n")
    lower = head.lower()
    body = b""
    if b"\r\ncontent-length: " in lower:
        body = file.read(int(lower.split(b"\r\ncontent-length: ")[1].split(b"\r\n")[0]))
    elif b"\r\ntransfer-encoding: chunked" in lower:
        while size := int(file.readline(), 16):
            body += file.read(size)
            file.readline()
        file.readline()
    return head, body


def ask(port: int, request: bytes) -> bytes:
    """Send the bytes of a request on a new connection, and return all bytes until the connection ends.

    A server that closes the connection before it has read everything resets it, so that its answer may be lost.
    """
    pieces: list[bytes] = []
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection, suppress(ConnectionError):
        connection.sendall(request)
        while piece := connection.recv(65_536):
            pieces.append(piece)
    return b"".join(pieces)


def post(path: str, body: bytes, *headers: str) -> bytes:
    """Return the bytes of a POST request that closes its connection."""
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunked(*pieces: bytes) -> bytes:
    """Return a body in chunks, without its end."""
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


def split(answer: bytes) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers by lower-case names, and body of an answer, its chunks joined.

    A body in chunks without its end gets the mark `<cut>`.
    """
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        whole = b""
        while True:
            size, _, rest = body.partition(b"\r\n")
            if not size:
                return int(status.split()[1]), headers, whole + b"<cut>"
            if int(size, 16) == 0:
                return int(status.split()[1]), headers, whole
            whole += rest[: int(size, 16)]
            body = rest[int(size, 16) + 2 :]
    return int(status.split()[1]), headers, body
