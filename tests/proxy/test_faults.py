"""Faults of stores, providers and clients: the client gets an answer, and nothing wrong is stored."""

from __future__ import annotations

import json
import logging
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed (the extra `proxy`)")
pytest.importorskip("aiohttp", reason="aiohttp is not installed (the extra `proxy`)")

from servers import Exchange, RawProvider, ask, chunked, numbers, post, read_request, running_proxy, split
from sweeps import STEP, by_thirds
from test_passing import EVENTS, REQUEST, STREAM
from waiting import until

import foveate
from foveate.errors import ConflictError, StoreError
from foveate.open import open_store
from foveate.proxy.turns import Outage
from foveate.requests import WireRequest, api_of
from foveate.testing import ScriptedModel, call, say
from foveate.testing.faults import Countdown, failing_store
from foveate.testing.responses import events
from foveate.testing.script import Failure
from foveate.testing.server import StubServer

WHOLE = {**REQUEST, "stream": False}
REPLY = {
    **{"id": "m1", "type": "message", "role": "assistant", "model": "claude-opus-4-8", "stop_reason": "end_turn"},
    **{"content": [{"type": "text", "text": "Yes."}], "usage": {"input_tokens": 9, "output_tokens": 2}},
}
ANSWERED = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"


def test_a_request_goes_on_unchanged_if_the_store_fails(monkeypatch, caplog):
    def fail(*arguments: Any, **options: Any) -> Any:
        raise StoreError("The disk is full.")

    monkeypatch.setattr("foveate.open.pool.Conversations.get", fail)
    body = json.dumps(WHOLE).encode()
    with RawProvider(ANSWERED) as provider, running_proxy(provider.url) as proxy, caplog.at_level(logging.WARNING):
        for _ in range(3):
            status, headers, content = split(ask(proxy.port, post("/v1/messages", body)))
            assert (status, content) == (200, b"{}")
            assert headers["x-foveate-unchanged"] == "StoreError: The disk is full."
        until(lambda: numbers(proxy)['foveate_requests_total{api="anthropic",outcome="unchanged"}'] == 3)
    assert [sent.body for sent in provider.received] == [body] * 3
    warnings = [record.getMessage() for record in caplog.records if record.name == "foveate.proxy"]
    assert warnings == ["A request is sent without a view. StoreError: The disk is full."]


def test_requests_do_not_wait_one_after_the_other_for_a_store_that_is_down(monkeypatch):
    """A database that is down answers after ten seconds."""
    tried: list[str] = []

    def fail(pool: object, name: str, *arguments: Any, **options: Any) -> Any:
        tried.append(name)
        raise StoreError("The server cannot be reached.")

    monkeypatch.setattr("foveate.open.pool.Conversations.get", fail)
    monkeypatch.setattr("foveate.proxy.turns._SLOW_SECONDS", 0)
    body = json.dumps(WHOLE).encode()
    with RawProvider(ANSWERED) as provider, running_proxy(provider.url) as proxy:
        answers = [split(ask(proxy.port, post("/v1/messages", body))) for _ in range(3)]
    assert [(status, content) for status, _, content in answers] == [(200, b"{}")] * 3
    reasons = {headers["x-foveate-unchanged"] for _, headers, _ in answers}
    assert (reasons, len(tried)) == ({"StoreError: The server cannot be reached."}, 1)


def test_waiting_requests_do_not_wait_again_for_a_store_that_is_down(monkeypatch):
    tried: list[str] = []
    down = threading.Event()

    def fail(pool: object, name: str, *arguments: Any, **options: Any) -> Any:
        tried.append(name)
        down.wait()
        raise StoreError("The server cannot be reached.")

    monkeypatch.setattr("foveate.open.pool.Conversations.get", fail)
    monkeypatch.setattr("foveate.proxy.turns._SLOW_SECONDS", 0)
    monkeypatch.setattr("foveate.proxy.turns._THREADS", 2)
    lists = [[{"role": "user", "content": f"Question {number}"}] for number in range(6)]
    bodies = [json.dumps({**WHOLE, "messages": messages}).encode() for messages in lists]
    with RawProvider(ANSWERED) as provider, running_proxy(provider.url) as proxy, ThreadPoolExecutor(6) as clients:
        answers = [clients.submit(ask, proxy.port, post("/v1/messages", body)) for body in bodies]
        until(lambda: len(tried) == 2 and numbers(proxy)["foveate_requests_active"] == 7)
        down.set()
        assert [split(answer.result())[0] for answer in answers] == [200] * 6
    assert len(tried) == 2


def test_replies_do_not_wait_one_after_the_other_for_a_store_that_is_down(monkeypatch):
    tried: list[str] = []

    def fail(*arguments: Any, **options: Any) -> Any:
        tried.append("record")
        raise StoreError("The server cannot be reached.")

    monkeypatch.setattr("foveate.requests.WireRequest._record", fail)
    monkeypatch.setattr("foveate.proxy.turns._SLOW_SECONDS", 0)
    outage = Outage()
    with open_store("memory:") as store:
        for name in "ab":
            chat = foveate.open_conversation(name, store=store, format="anthropic", window=16_000)
            api = api_of("/v1/messages")
            assert api is not None
            request = WireRequest(chat, api, json.dumps(WHOLE).encode(), watch=outage.watch)
            answer = json.dumps(REPLY).encode()
            assert request.received(answer) == answer
    assert tried == ["record"]


def test_refused_requests_do_not_wait_in_turn_for_a_store_that_is_down(monkeypatch):
    """Each waited for its time limit, and the client with it for the provider's error."""
    tried: list[str] = []

    def fail(chat: object) -> None:
        tried.append("refresh")
        raise StoreError("The server cannot be reached.")

    outage = Outage()
    with open_store("memory:") as store:
        chats = [foveate.open_conversation(name, store=store, format="anthropic", window=16_000) for name in "ab"]
        api = api_of("/v1/messages")
        assert api is not None
        requests = [WireRequest(chat, api, json.dumps(WHOLE).encode(), watch=outage.watch) for chat in chats]
        monkeypatch.setattr("foveate.Conversation.refresh", fail)
        monkeypatch.setattr("foveate.proxy.turns._SLOW_SECONDS", 0)
        for request in requests:
            assert not request.refused(400, b"prompt is too long: 20000 tokens > 16000 maximum")
    assert tried == ["refresh"]


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def try_store(outage: Outage, clock: Clock, seconds: float, error: Exception | None) -> str:
    """Use the store for so many seconds. Return `refused` if that was not allowed, else `tried`."""
    result = "refused"
    with suppress(StoreError, ValueError), outage.watch():
        result = "tried"
        clock.now += seconds
        if error:
            raise error
    return result


@pytest.mark.parametrize(
    ("seconds", "error", "then"),
    [
        (9.0, StoreError("The server cannot be reached."), "refused"),
        (0.1, StoreError("The disk is full."), "tried"),
        (9.0, ConflictError("Another request went on first."), "tried"),
        (9.0, ValueError("This list is wrong."), "tried"),
        (9.0, None, "tried"),
    ],
)
def test_a_slow_failure_of_the_store_is_an_outage(seconds: float, error: Exception | None, then: str):
    clock = Clock()
    outage = Outage(clock)
    assert [try_store(outage, clock, seconds, error), try_store(outage, clock, 0, None)] == ["tried", then]


def test_one_request_tries_the_store_again_after_a_pause():
    clock = Clock()
    outage = Outage(clock)
    try_store(outage, clock, 9, StoreError("The server cannot be reached."))
    clock.now += 5
    with outage.watch():  # Meanwhile:
        assert try_store(outage, clock, 0, None) == "refused"
    outage.end()
    assert try_store(outage, clock, 0, None) == "tried"


def test_a_request_goes_out_again_if_the_provider_closed_the_unused_connection():
    open_answer = ANSWERED.replace(b"connection: close\r\n", b"")

    def answer(exchange: Exchange) -> None:
        exchange.connection.sendall(open_answer)
        if len(provider.received) == 1:
            read_request(exchange.connection)  # Of the second request, which gets no answer here.

    body = json.dumps(WHOLE).encode()
    with RawProvider(answer) as provider, running_proxy(provider.url) as proxy:
        for _ in range(2):
            status, _, content = split(ask(proxy.port, post("/v1/messages", body)))
            assert (status, content) == (200, b"{}")
    assert len(provider.received) == 2


def test_a_request_goes_out_once_if_a_new_connection_is_closed():
    body = json.dumps(WHOLE).encode()
    with RawProvider(b"") as provider, running_proxy(provider.url) as proxy:
        status, _, _ = split(ask(proxy.port, post("/v1/messages", body)))
    assert (status, len(provider.received)) == (502, 1)


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/v1/messages", {"type": "error", "error": {"type": "api_error"}}),
        ("/v1/chat/completions", {"error": {"type": "api_error", "param": None, "code": None}}),
    ],
)
def test_a_strict_proxy_refuses_what_it_cannot_show(path: str, shape: dict[str, Any]):
    body = json.dumps({**WHOLE, "messages": 5}).encode()
    with RawProvider(ANSWERED) as provider, running_proxy(provider.url, is_strict=True) as proxy:
        status, _, content = split(ask(proxy.port, post(path, body)))
    refusal = json.loads(content)
    assert "foveate cannot make a view" in refusal["error"].pop("message")
    assert (status, refusal, provider.received) == (502, shape, [])


@pytest.mark.parametrize(
    "path", ["/v1/messages", "/v1/projects/p/locations/l/publishers/anthropic/models/{}:rawPredict"]
)
@pytest.mark.parametrize(("model", "is_changed"), [("claude-opus-5-5", True), ("claude-haiku-4-5", False)])
def test_an_unchanged_request_asks_to_drop_bound_thinking(monkeypatch, model: str, is_changed: bool, path: str):
    """Requests before it may have been shorter, and thinking is then bound to another prefix."""

    def fail(*arguments: Any, **options: Any) -> Any:
        raise StoreError("The disk is full.")

    monkeypatch.setattr("foveate.open.pool.Conversations.get", fail)
    thinking = {"type": "thinking", "thinking": "Hm \u00e9 1.0", "signature": "abc"}
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": [thinking]}]
    request = {"model": model, "messages": messages, "thinking": {"type": "adaptive", "display": "omitted"}, "x": 1.0}
    if "{}" in path:  # The path names the model.
        del request["model"]
    raw = json.dumps(request).encode()
    with RawProvider(ANSWERED) as provider, running_proxy(provider.url) as proxy:
        ask(proxy.port, post(path.format(model), raw, "anthropic-beta: mine-1"))
    sent = provider.received[0]
    if not is_changed:
        assert (sent.body, sent.headers["anthropic-beta"]) == (raw, "mine-1")
        return
    body = json.loads(sent.body)
    assert body.pop("thinking") == {
        "type": "adaptive",
        "display": "omitted",
        "block_binding": {"prefix_mismatch_behavior": "drop_block"},
    }
    assert body == {key: value for key, value in request.items() if key != "thinking"}
    assert json.dumps(messages).encode() in sent.body
    assert sent.headers["anthropic-beta"] == "mine-1,thinking-binding-controls-2026-08-01"


@by_thirds
def test_no_failure_of_the_store_loses_an_answer(n: int, monkeypatch, tmp_path: Path):
    """One operation of the store fails, in a conversation of three requests."""
    real = open_store
    while True:
        countdown = Countdown(n)
        url = f"sqlite:///{tmp_path}/{n}.db"
        monkeypatch.setattr("foveate.proxy.app.open_store", lambda url, c=countdown, **_: failing_store(real(url), c))
        model = ScriptedModel(lambda request: say("Fine."), "anthropic", strict=True)
        messages: list[Any] = []
        with StubServer(model) as server, running_proxy(server.url, store=url) as proxy:
            for number in range(3):
                messages.append({"role": "user", "content": f"Question {number}"})
                body = json.dumps({**WHOLE, "messages": messages}).encode()
                status, _, content = split(ask(proxy.port, post("/v1/messages", body)))
                assert status == 200
                messages.append({"role": "assistant", "content": json.loads(content)["content"]})
                assert f"Question {number}".encode() in server.received[-1].body
            assert server.illegal == []
        with real(url) as store:
            for name in store.names(""):
                with foveate.open_conversation(name, store=store, format="anthropic", window=16_000) as chat:
                    texts = [entry.message.text for entry in chat.listed()]
                    assert texts == [texts[0], *["Fine.", "Question 1", "Fine.", "Question 2", "Fine."]][: len(texts)]
                    assert chat.journal.verify() == []
        if not countdown.is_used_up:
            break
        n += STEP
    assert n > 10


@pytest.mark.parametrize("status", [429, 400])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_follow_up_that_is_refused_goes_out_once(status: int, stream: bool):
    """Its answer ends the request: nobody reads the answer to another one."""
    model = ScriptedModel([call("e1", "expand", handle="m1"), Failure(status), say("Late.")], "anthropic")
    with StubServer(model) as server, running_proxy(server.url) as proxy:
        answer = ask(proxy.port, post("/v1/messages", json.dumps({**WHOLE, "stream": stream}).encode()))
        until(lambda: numbers(proxy)["foveate_requests_active"] == 1)  # That of the numbers.
        assert answer.count(b"It did not work out.") == 1
        assert len(server.received) == 2


def test_a_follow_up_that_is_no_stream_ends_the_stream_with_an_error(caplog):
    """Some gateways report an error with the status 200."""
    model = ScriptedModel([call("e1", "expand", handle="m1")], "anthropic")
    error = json.dumps({"error": {"type": "api_error", "message": "No capacity."}}).encode()

    def answer(exchange: Exchange) -> None:
        if len(provider.received) == 1:
            response = model.answer(json.loads(exchange.body)).response
            exchange.connection.sendall(STREAM + chunked(*events(response, usage=True)) + b"0\r\n\r\n")
        else:
            exchange.connection.sendall(ANSWERED.replace(b"length: 2", b"length: %d" % len(error))[:-2] + error)

    with RawProvider(answer) as provider, running_proxy(provider.url) as proxy:
        status, _, content = split(ask(proxy.port, post("/v1/messages", json.dumps(REQUEST).encode())))
    assert (status, len(provider.received)) == (200, 2)
    end = content.split(b"event: ")[-1]
    assert (end.startswith(b"error\n"), b"No capacity." in end) == (True, True)
    assert "Traceback" not in caplog.text


def test_an_answer_that_cannot_be_continued_gives_503(monkeypatch):
    def fail(*arguments: Any, **options: Any) -> Any:
        raise StoreError("The disk is full.")

    monkeypatch.setattr("foveate.conversation.exchange.Exchange.record", fail)
    model = ScriptedModel([call("e1", "expand", handle="m1")], "anthropic")
    with StubServer(model) as server, running_proxy(server.url) as proxy:
        status, headers, content = split(ask(proxy.port, post("/v1/messages", json.dumps(WHOLE).encode())))
    error = json.loads(content)["error"]
    assert (status, headers["retry-after"], error["type"]) == (503, "5", "overloaded_error")
    assert "Send the request again. The disk is full." in error["message"]


@pytest.mark.parametrize("count", range(len(EVENTS)))
def test_a_cut_stream_is_not_recorded_and_the_next_request_is(count: int):
    answers = iter([STREAM + chunked(*EVENTS[:count]), STREAM + chunked(*EVENTS) + b"0\r\n\r\n"])
    with (
        RawProvider(lambda exchange: exchange.connection.sendall(next(answers))) as provider,
        running_proxy(provider.url) as proxy,
    ):
        for cut in (True, False):
            answer = ask(proxy.port, post("/v1/messages", json.dumps(REQUEST).encode()))
            assert answer.endswith(b"0\r\n\r\n") is not cut
        history = histories(proxy)
    assert [[(entry.message.role, entry.message.text) for entry in one] for one in history] == [
        [("user", "Hi"), ("assistant", "caf\u00e9 \u00e9")]
    ]


def histories(proxy: Any) -> list[Any]:
    """Return the messages of each conversation of a proxy in this process."""
    turns = proxy.server.config.loaded_app.routes[0].endpoint.turns
    return [chat.history() for pool in turns._pools.values() for chat in pool._recent.values()]


def test_a_client_that_goes_away_ends_the_request_to_the_provider():
    def answer(exchange: Any) -> None:
        exchange.connection.sendall(STREAM + chunked(EVENTS[0]))
        provider.wait_for_close(exchange)

    with RawProvider(answer) as provider, running_proxy(provider.url) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as client:
            client.sendall(post("/v1/messages", json.dumps(REQUEST).encode()))
            received = b""
            while EVENTS[0] not in received:
                received += client.recv(65_536)
        assert provider.closed.wait(20)
        until(lambda: numbers(proxy)['foveate_requests_total{api="anthropic",outcome="gone"}'] == 1)


def test_a_client_that_goes_away_before_an_answer_ends_it_too():
    def answer(exchange: Any) -> None:
        provider.wait_for_close(exchange)

    with RawProvider(answer) as provider, running_proxy(provider.url) as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as client:
            client.sendall(post("/v1/messages", json.dumps(REQUEST).encode()))
            until(lambda: provider.received)
        assert provider.closed.wait(20)


def test_a_provider_that_cannot_be_reached_gives_502():
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with running_proxy(f"http://127.0.0.1:{port}") as proxy:
        status, _, content = split(ask(proxy.port, post("/v1/messages", json.dumps(WHOLE).encode())))
    assert (status, json.loads(content)["error"]["type"]) == (502, "api_error")


def test_a_provider_that_does_not_answer_gives_504():
    def answer(exchange: Any) -> None:
        provider.wait_for_close(exchange)

    with RawProvider(answer) as provider, running_proxy(provider.url, max_seconds=0.2) as proxy:
        status, _, content = split(ask(proxy.port, post("/v1/messages", json.dumps(WHOLE).encode())))
    assert (status, json.loads(content)["error"]["type"]) == (504, "timeout_error")
