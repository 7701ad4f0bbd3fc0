"""An inspector that is served by a thread of this process, and requests to it as bytes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import uvicorn
from waiting import until
from web_server import WebServer

__all__ = ["Answer", "ask", "served"]


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve an application on a free port of this computer during the block. Yields its URL without a slash."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, lifespan="on", timeout_graceful_shutdown=1)
    server = WebServer(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive())
        assert server.started
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


class Answer(NamedTuple):
    """An answer as it came."""

    status: int
    headers: dict[str, str]
    body: bytes


def ask(url: str, target: str, method: str = "GET", body: bytes = b"", **headers: str) -> Answer:
    """Send a request whose target and headers are exactly these, as no well-behaved client would, and read the answer.

    `headers`: underscores in names stand for hyphens.
    """
    host, _, port = url.removeprefix("http://").partition(":")
    fields = {"host": f"{host}:{port}", "connection": "close", "content-length": str(len(body))}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    top, _, content = answer.partition(b"\r\n\r\n")
    first, *lines = top.decode("latin-1").split("\r\n")
    pairs = (line.partition(": ") for line in lines)
    return Answer(int(first.split()[1]), {name.lower(): value for name, _, value in pairs}, content)
