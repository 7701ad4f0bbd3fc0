"""The proxy under load: memory of 1,000 streams that are held open, and of 20,000 requests one after the other.

It takes minutes, so `run.py` runs it only by its name. The proxy and its clients run in this process, the provider in
another one. Memory is the growth of the resident set.
"""

from __future__ import annotations

import resource
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from databases import FigureRow
from proxy import history, provider, request, running

_STREAMS, _REQUESTS = 1_000, 20_000
_BYTES = 20_000
"""The size of a request."""
_FILES = 5
"""File descriptors of a stream: of the client, the server, and the connection to the provider; and some more."""


def figures(folder: Path, quick: bool) -> Iterator[FigureRow]:
    """Yield the memory of a stream that is held open, and of later requests."""
    streams, requests = (50, 200) if quick else (_STREAMS, _REQUESTS)
    _allow_files(_FILES * streams + 200)
    with provider() as upstream, running(upstream, f"sqlite:///{folder / 'load'}.db", "balanced") as port:
        _ask(port, "the first")
        yield f"proxy, {streams:,} streams held open, each", _held(port, streams), "kB", None, None, "list of 20 kB"
        for number in range(requests // 2):
            _ask(port, f"before {number}")
        before = _resident()
        for number in range(requests // 2):
            _ask(port, f"after {number}")
        what = f"proxy, {requests // 2:,} requests after as many, each"
        yield what, (_resident() - before) * 1000 / (requests // 2), "B", None, 100.0, "new conversations"


def _held(port: int, count: int) -> float:
    """Return the kB that each of several streams takes while it waits for its provider. All must end whole."""
    before, held = _resident(), []
    for number in range(count):
        client = socket.create_connection(("127.0.0.1", port))
        client.sendall(request("/v1/messages", _list(f"held {number}"), "X-Hold: 1\r\n"))
        assert client.recv(65_536).startswith(b"HTTP/1.1 200")
        held.append(client)
    grown = _resident() - before
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"GET /release HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert client.recv(65_536).startswith(b"HTTP/1.1 200")
    for client in held:
        answer = b""
        with client:
            while piece := client.recv(65_536):
                answer += piece
        assert b"message_stop" in answer
        assert answer.endswith(b"0\r\n\r\n")
    return grown / count


def _ask(port: int, question: str) -> None:
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(request("/v1/messages", _list(question)))
        answer = b""
        while piece := client.recv(65_536):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 200"), answer[:500]


def _list(question: str) -> list[dict[str, Any]]:
    """Return a list that belongs to no other conversation."""
    messages = history(_BYTES, question)
    for message in messages[1:]:
        for block in message["content"]:
            for key in block.keys() & {"id", "tool_use_id"}:
                block[key] = f"{block[key]}_{question.replace(' ', '_')}"
    return messages


def _resident() -> float:
    """Return the kB of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1000


def _allow_files(count: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count if hard < 0 else min(count, hard), hard))
