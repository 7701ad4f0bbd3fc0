"""The command `foveate proxy` in processes of its own: workers on one store, killed and stopped."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed (the extra `proxy`)")
pytest.importorskip("aiohttp", reason="aiohttp is not installed (the extra `proxy`)")

from servers import Exchange, RawProvider, RunningProxy, ask, chunked, numbers, post, split
from test_passing import EVENTS, REQUEST, STREAM
from waiting import until

import foveate
from foveate.open import open_store
from foveate.testing import ScriptedModel, say
from foveate.testing.server import StubServer

pytestmark = pytest.mark.slow


class Command:
    """A running `foveate proxy`, and the lines of its log."""

    def __init__(self, child: subprocess.Popen[str], port: int) -> None:
        self.child, self.port, self.lines = child, port, list[str]()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.child.stderr is not None
        self.lines.extend(self.child.stderr)

    def facts(self) -> list[dict[str, Any]]:
        """Return the log's objects."""
        return [json.loads(line) for line in self.lines if line.startswith("{")]

    def workers(self) -> list[int]:
        """Return the ids of the worker processes."""
        listed = subprocess.run(
            ["ps", "-eww", "-o", "pid,ppid,args"], capture_output=True, text=True, check=True
        ).stdout
        found = re.findall(rf"^ *(\d+) +{self.child.pid} .*spawn_main", listed, re.MULTILINE)
        return [int(pid) for pid in found]


@contextmanager
def command(*arguments: str) -> Iterator[Command]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "foveate", "proxy", "--port", str(port), "--json-logs", *arguments]
    environment = {**os.environ, "no_proxy": "127.0.0.1"}
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment) as child:
        running = Command(child, port)
        try:
            until(lambda: child.poll() is not None or is_healthy(port))
            assert child.poll() is None, running.lines
            yield running
        finally:
            child.terminate()
            try:
                child.wait(30)
            except subprocess.TimeoutExpired:
                child.kill()


def is_healthy(port: int) -> bool:
    with suppress(OSError):
        return ask(port, b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").endswith(b'"ok"}')
    return False


def is_refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=30).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no ps")
def test_killed_workers_lose_nothing(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    model = ScriptedModel(lambda request: say(f"Reply {len(request['messages'])}."), "anthropic", strict=True)
    messages: list[Any] = []
    killed = 0
    with (
        StubServer(model) as server,
        command("--upstream", server.url, "--store", url, "--workers", "2", "--window", "16000") as proxy,
    ):
        for number in range(16):
            text = f"Question {number}. " + "All is well with this part of the log. " * 60
            messages.append({"role": "user", "content": text})
            body = json.dumps({**REQUEST, "stream": False, "messages": messages}).encode()
            if number % 4 == 3:
                until(lambda: len(proxy.workers()) == 2)
                os.kill(proxy.workers()[0], signal.SIGKILL)
                killed += 1
            answer = b""
            while not answer:  # As clients do, which try again when a connection breaks.
                with suppress(ConnectionError):
                    answer = ask(proxy.port, post("/v1/messages", body))
            status, headers, content = split(answer)
            assert (status, "x-foveate-unchanged" in headers) == (200, False), headers
            messages.append({"role": "assistant", "content": json.loads(content)["content"]})
        assert server.illegal == []
        counts = numbers(RunningProxy("", proxy.port, None))  # type: ignore[arg-type]
        # A worker counts behind the last byte of an answer, and may be killed before.
        assert counts['foveate_requests_total{api="anthropic",outcome="managed"}'] >= 16 - killed - 1
    assert killed == 4
    with open_store(url) as store:
        names = store.names("")
        assert len(names) == 1
        with foveate.open_conversation(names[0], store=store, format="anthropic", window=16_000) as chat:
            texts = [entry.message.text for entry in chat.listed()]
            assert texts[0].startswith("Question 0.")
            assert texts[-1].startswith("Reply ")
            assert len(texts) == 32
            assert chat.journal.verify() == []


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no ps")
@pytest.mark.parametrize("sent", [0, 1, 4, len(EVENTS) - 1])
def test_a_worker_killed_in_an_answer_leaves_a_conversation_that_goes_on(tmp_path: Path, sent: int):
    """The client repeats its request, and the history has what was acknowledged, and each message once."""
    url = f"sqlite:///{tmp_path}/chats.db"
    cut = threading.Event()

    def answer(exchange: Exchange) -> None:
        if b"Question 2" in exchange.body and not cut.is_set():
            cut.set()
            exchange.connection.sendall(STREAM + chunked(*EVENTS[:sent]))
            return provider.wait_for_close(exchange)
        exchange.connection.sendall(STREAM + chunked(*EVENTS) + b"0\r\n\r\n")

    messages: list[Any] = [{"role": "user", "content": "Question 1"}]
    reply = {"role": "assistant", "content": [{"type": "text", "text": "café é"}]}
    provider = RawProvider(answer)
    arguments = ("--store", url, "--workers", "2", "--window", "16000")
    with provider, command("--upstream", provider.url, *arguments) as proxy:
        assert split(ask(proxy.port, question(messages)))[2] == b"".join(EVENTS)
        messages += [reply, {"role": "user", "content": "Question 2"}]
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=30) as client:
            client.sendall(question(messages))
            assert cut.wait(30)
            received = b""
            while sent and EVENTS[sent - 1] not in received:
                received += client.recv(65_536)
            for worker in proxy.workers():
                os.kill(worker, signal.SIGKILL)
        again = b""
        while not again:
            with suppress(ConnectionError):
                again = ask(proxy.port, question(messages))
        assert split(again)[2] == b"".join(EVENTS)
    sent_again = [exchange.body for exchange in provider.received if b"Question 2" in exchange.body]
    assert len(sent_again) == 2
    assert sent_again[0] == sent_again[1]
    with open_store(url) as store:
        (name,) = store.names("")
        with foveate.open_conversation(name, store=store, format="anthropic", window=16_000) as chat:
            texts = [entry.message.text for entry in chat.history()]
            assert texts == ["Question 1", "café é", "Question 2", "café é"]
            assert chat.journal.verify() == []


def question(messages: list[Any]) -> bytes:
    return post("/v1/messages", json.dumps({**REQUEST, "messages": messages}).encode())


@pytest.mark.parametrize("workers", [1, 2])
def test_a_stopped_proxy_lets_a_stream_end(tmp_path: Path, workers: int):
    """It refuses new connections. If the system accepted them, clients would wait for answers in vain."""
    may_end = threading.Event()

    def answer(exchange: Exchange) -> None:
        exchange.connection.sendall(STREAM + chunked(*EVENTS[:4]))
        assert may_end.wait(30)
        exchange.connection.sendall(chunked(*EVENTS[4:]) + b"0\r\n\r\n")

    url = f"sqlite:///{tmp_path}/chats.db"
    arguments = ("--store", url, "--workers", str(workers))
    with RawProvider(answer) as provider, command("--upstream", provider.url, *arguments) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=30) as client:
            client.sendall(post("/v1/messages", json.dumps(REQUEST).encode()))
            received = b""
            while EVENTS[3] not in received:
                received += client.recv(65_536)
            proxy.child.terminate()
            until(lambda: any("Shutting down" in line for line in proxy.lines))
            until(lambda: is_refused(proxy.port))
            may_end.set()
            while piece := client.recv(65_536):
                received += piece
        proxy.child.wait(30)
        facts = [fact for fact in proxy.facts() if fact.get("path") == "/v1/messages"]
    assert split(received)[2] == b"".join(EVENTS)
    assert [(fact["status"], fact["outcome"]) for fact in facts] == [(200, "managed")]
    with open_store(url) as store, foveate.open_conversation(store.names("")[0], store=store, window=16_000) as chat:
        assert [entry.message.role for entry in chat.history()] == ["user", "assistant"]


def test_the_log_has_one_line_a_request_and_no_secret(tmp_path: Path):
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
    with RawProvider(answer) as provider, command("--upstream", provider.url, "--store", f"{tmp_path}/a.db") as proxy:
        headers = ("x-api-key: sk-secret", "authorization: Bearer sk-secret")
        ask(proxy.port, post("/v1/messages?key=sk-secret", json.dumps(REQUEST).encode(), *headers))
        ask(proxy.port, post("/v1/other", b"{}", *headers))
        ask(proxy.port, post("/v1/messages", b"{", *headers))
        until(lambda: len([fact for fact in proxy.facts() if "outcome" in fact]) == 3)
        facts = [fact for fact in proxy.facts() if "outcome" in fact]
    assert [(fact["path"], fact["outcome"]) for fact in facts] == [
        ("/v1/messages", "managed"),
        ("/v1/other", "passed"),
        ("/v1/messages", "unchanged"),
    ]
    assert {"id", "method", "status", "ms_foveate", "ms_first_byte", "conversation"} <= facts[0].keys()
    assert "sk-secret" not in "".join(proxy.lines)
    assert all(json.loads(line) for line in proxy.lines)


def test_a_locked_store_costs_no_answer(tmp_path: Path):
    model = ScriptedModel(lambda request: say(f"Reply {len(request['messages'])}."), "anthropic", strict=True)
    url = f"sqlite:///{tmp_path}/chats.db"
    with (
        StubServer(model) as server,
        command("--upstream", server.url, "--store", f"{url}?wait=0.1", "--window", "16000") as proxy,
    ):
        talk = Talk(proxy, server)
        assert talk.ask("Question 0.") == ""
        with sqlite3.connect(tmp_path / "chats.db", isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            assert "another process" in talk.ask("Question 1.")
            assert server.received[-1].body == talk.body
            other.execute("ROLLBACK")
        other.close()
        assert talk.ask("Question 2.") == ""
        assert server.illegal == []
    talk.is_stored(url)


def test_a_full_disk_costs_no_answer(tmp_path: Path):
    resource = pytest.importorskip("resource", reason="this system has no limit on the size of files")
    if not hasattr(resource, "prlimit"):
        pytest.skip("this system sets no limits of other processes")
    model = ScriptedModel(lambda request: say(f"Reply {len(request['messages'])}."), "anthropic", strict=True)
    url = f"sqlite:///{tmp_path}/chats.db"
    with (
        StubServer(model) as server,
        command("--upstream", server.url, "--store", url, "--window", "200000") as proxy,
    ):
        talk, reasons = Talk(proxy, server), list[str]()
        for number in range(12):
            if number in (2, 10):
                limit = 400_000 if number == 2 else resource.RLIM_INFINITY
                resource.prlimit(proxy.child.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            reasons.append(talk.ask(f"Question {number}. {os.urandom(25_000).hex()}"))
        assert reasons[:2] == [""] * 2
        assert any("could not be written" in reason for reason in reasons[2:10])
        assert reasons[10:] == [""] * 2
        assert server.illegal == []
    talk.is_stored(url)


class Talk:
    """A client with one conversation, whose model answers with the number of messages in its request."""

    def __init__(self, proxy: Command, server: StubServer) -> None:
        self.proxy, self.server = proxy, server
        self.messages: list[Any] = []
        self.body = b""

    def ask(self, question: str) -> str:
        """Ask, and add the answer. Return why there was no view; "" if there was one."""
        self.messages.append({"role": "user", "content": question})
        self.body = json.dumps({**REQUEST, "stream": False, "messages": self.messages}).encode()
        status, headers, content = split(ask(self.proxy.port, post("/v1/messages", self.body)))
        assert status == 200, content
        self.messages.append({"role": "assistant", "content": json.loads(content)["content"]})
        return headers.get("x-foveate-unchanged", "")

    def is_stored(self, url: str) -> None:
        """Assert that one conversation has every message once."""
        with open_store(url) as store:
            (name,) = store.names("")
            with foveate.open_conversation(name, store=store, format="anthropic", window=200_000) as chat:
                texts = [entry.message.text for entry in chat.listed()]
                wanted = [each["content"] for each in self.messages]
                assert texts == [each if isinstance(each, str) else each[0]["text"] for each in wanted]
                assert chat.journal.verify() == []
