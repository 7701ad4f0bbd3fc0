"""Live pages over HTTP: a stream of events follows what other writers do, and ends with its page or its server."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from serving import served
from waiting import until

from foveate import Conversation, open_conversation
from foveate.inspector import build_app
from foveate.testing import say, user

SERVE = """
import sys
from foveate.inspector.app import build_app
from foveate.inspector.server import serve
try:
    serve(build_app(sys.argv[1]), "127.0.0.1", 0, default_port=0, begun=lambda port: print(port, flush=True))
except KeyboardInterrupt:
    pass
"""


class Event(NamedTuple):
    id: str
    updates: list[dict[str, Any]]


@contextmanager
def listening(port: int, *, seen: str = "", last: str = "") -> Iterator[Iterator[Event]]:
    """Read the stream of events of the conversation `a`. Closing the connection is what a browser does."""
    head = f"GET /c/store/a/events?seen={seen} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    head += f"Last-Event-ID: {last}\r\n" if last else ""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(f"{head}\r\n".encode())
        with connection.makefile("r", encoding="utf-8", newline="\n") as lines:
            assert " 200 " in lines.readline()
            headers = "".join(iter(lines.readline, "\r\n")).lower()
            assert "content-type: text/event-stream" in headers
            assert "cache-control: no-store" in headers
            yield _events(lines)


def _events(lines: Any) -> Iterator[Event]:
    id = ""
    for line in lines:
        if line.startswith("id: "):
            id = line[4:].strip()
        elif line.startswith("data: "):
            yield Event(id, json.loads(line[6:]))
        elif line.startswith(": ") or line == ":\n":
            yield Event(id, [])


def port_of(site: str) -> int:
    return int(site.rpartition(":")[2])


def opened(url: str) -> Conversation:
    return open_conversation("a", store=url, window=50_000)


@pytest.fixture
def url(tmp_path) -> str:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    with opened(url) as chat:
        chat.append([user("Hi"), say("Hello")])
    return url


@pytest.fixture(params=["sqlite", "postgres"])
def any_url(request: pytest.FixtureRequest, url: str) -> str:
    if request.param == "sqlite":
        return url
    other: str = request.getfixturevalue("postgres_url")
    with opened(other) as chat:
        chat.append([user("Hi"), say("Hello")])
    return other


@pytest.mark.slow
def test_page_hears_of_a_message_that_another_writer_appends(any_url):
    with served(build_app(any_url)) as site, opened(any_url) as chat, listening(port_of(site)) as events:
        assert next(events).updates == []
        chat.append(user("Are you there?"))
        (update,) = next(events).updates
        assert (update["kind"], update["position"], update["role"]) == ("message", 3, "user")
        chat.pin("m3")
        (update,) = next(events).updates
        assert (update["kind"], update["rows"]) == ("receipt", [3])


def test_stream_resumes_after_the_last_event(url):
    with served(build_app(url)) as site, opened(url) as chat:
        with listening(port_of(site)) as events:
            seen = next(events).id
        chat.append([user("One"), user("Two")])
        for options in ({"last": seen}, {"seen": seen}):
            with listening(port_of(site), **options) as events:
                assert [update["position"] for update in next(events).updates] == [3, 4]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows replaces no open file")
def test_stream_goes_on_in_the_file_that_replaces_its_store(url, tmp_path):
    path, other = tmp_path / "chats.db", tmp_path / "other.db"
    with served(build_app(url)) as site, listening(port_of(site)) as events:
        assert next(events).updates == []
        with open_conversation("a", store=f"sqlite:///{other}", window=50_000) as chat:
            chat.append([user("Hi"), say("Hello"), user("Are you there?")])
        other.replace(path)
        (update,) = next(events).updates
        assert (update["kind"], update["position"]) == ("message", 3)


def test_watcher_ends_when_the_browser_leaves(url):
    app = build_app(url)
    with served(app) as site:
        with listening(port_of(site)) as events:
            next(events)
            assert len(app.state.page.watchers) == 1
        until(lambda: len(app.state.page.watchers) == 0)


def test_events_of_an_unknown_conversation_are_not_found(client):
    assert client.get("/c/store/nothing/events").status_code == 404


@pytest.mark.skipif(sys.platform == "win32", reason="the signal is one of POSIX")
def test_interrupt_ends_a_server_with_open_streams_quietly(url):
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        with listening(port) as events:
            next(events)
            server.send_signal(signal.SIGINT)
            assert list(events) == []
        _, errors = server.communicate(timeout=60)
    assert errors == ""
