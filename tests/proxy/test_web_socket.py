"""The WebSocket of `/v1/responses`, with a real client before a provider that refuses illegal requests."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed (the extra `proxy`)")
pytest.importorskip("aiohttp", reason="aiohttp is not installed (the extra `proxy`)")
pytest.importorskip("websockets", reason="websockets is not installed (the extra `proxy`)")

from hypothesis import given
from hypothesis import strategies as st
from servers import RawProvider, RunningProxy, ask, chunked, numbers, post, running_proxy
from waiting import until
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

import foveate
from foveate.open import open_store
from foveate.proxy.frames import ResponseLists, limits_frame, read_frame, request_headers
from foveate.requests.access import token_key
from foveate.testing import Failure, ScriptedModel, call, say
from foveate.testing.server import StubServer

CALLS = 30
TOOLS = [{"type": "function", "name": "read_log", "parameters": {"type": "object", "properties": {}}}]
PREFIX = [{"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]}]
QUESTION = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Which log?"}]}]
MANAGED = 'foveate_requests_total{api="openai_responses",outcome="managed"}'
ENDS = ("response.completed", "response.incomplete", "response.failed", "error")


def log_text(number: int) -> str:
    return "".join(f"Line {line} of log {number}: every request was answered in time.\n" for line in range(100))


def script() -> list[Any]:
    return [*(call(f"c{n}", "read_log", number=n) for n in range(CALLS)), say("Log 7.")]


@contextmanager
def connected(proxy: RunningProxy, path: str = "/v1/responses", **headers: str) -> Iterator[ClientConnection]:
    """Connect as a client with one key does."""
    given = {"authorization": "Bearer sk-1", "openai-beta": "responses_websockets=2026-02-06", **headers}
    with connect(f"ws://127.0.0.1:{proxy.port}{path}", additional_headers=given, max_size=None) as socket:
        yield socket


def send(socket: ClientConnection, items: Any, **fields: Any) -> None:
    frame = {"type": "response.create", "model": "gpt-5", "tools": TOOLS, "store": False, "input": items, **fields}
    socket.send(json.dumps(frame))


def events_of(socket: ClientConnection, lane: str | None = None) -> list[dict[str, Any]]:
    """Return the events up to the end of a response."""
    events: list[dict[str, Any]] = []
    while not events or events[-1]["type"] not in ENDS:
        event = json.loads(socket.recv(timeout=20))
        if lane is None or event.get("stream_id") == lane:
            events.append(event)
    return events


def answer(socket: ClientConnection, items: Any, **fields: Any) -> dict[str, Any]:
    """Send a frame, and return the response."""
    send(socket, items, **fields)
    events = events_of(socket)
    assert events[-1]["type"] == "response.completed", events[-1]
    numbers = [event["sequence_number"] for event in events]
    assert numbers == list(range(len(events)))
    return dict(events[-1]["response"])


def output_of(response: dict[str, Any]) -> list[Any]:
    return [
        {
            "type": "function_call_output",
            "call_id": item["call_id"],
            "output": log_text(json.loads(item["arguments"])["number"]),
        }
        for item in response["output"]
        if item["type"] == "function_call"
    ]


def loop(ask_for: Callable[[list[Any], str], dict[str, Any]]) -> str:
    """Work as an agent that sends new items only."""
    response = ask_for(QUESTION, "")
    while outputs := output_of(response):
        response = ask_for(outputs, response["id"])
    return str(response["output"][-1]["content"][0]["text"])


def texts(url: str, format: str = "openai_responses") -> dict[str, list[tuple[str, str]]]:
    """Return the messages of each conversation of a store."""
    with open_store(url) as store:
        found = {}
        for name in store.names(""):
            with foveate.open_conversation(name, store=store, format=format, window=16_000) as chat:
                assert chat.journal.verify() == []
                found[name] = [(entry.message.role, entry.message.text) for entry in chat.history()]
        return found


def by_socket(proxy: RunningProxy, server: StubServer) -> int:
    """Let an agent work by WebSocket. Returns the bytes of its frames."""
    with connected(proxy) as socket:
        warm = answer(socket, PREFIX, generate=False)
        assert (warm["output"], server.received) == ([], [])
        sent: list[Any] = []

        def ask_for(new: list[Any], previous: str) -> dict[str, Any]:
            sent.append(new)
            return answer(socket, new, previous_response_id=previous or warm["id"])

        assert loop(ask_for) == "Log 7."
        return len(json.dumps(sent))


def by_post(proxy: RunningProxy, server: StubServer) -> int:
    """Let the same agent send whole lists by POST. Returns the bytes of its last list."""
    items = [*PREFIX]

    def ask_for(new: list[Any], previous: str) -> dict[str, Any]:
        items.extend(new)
        body = {"model": "gpt-5", "tools": TOOLS, "store": False, "input": items, "stream": True}
        got = ask(proxy.port, post("/v1/responses", json.dumps(body).encode(), "authorization: Bearer sk-1"))
        response = json.loads([line for line in got.split(b"\n") if line.startswith(b"data: ")][-1][6:])["response"]
        items.extend(response["output"])
        return dict(response)

    assert loop(ask_for) == "Log 7."
    return len(json.dumps(items))


def test_an_agent_sends_new_items_only_and_stays_in_the_window(tmp_path: Path):
    """The provider gets the requests that it gets from a client that sends whole lists by POST."""
    sent, sizes = [], []
    for work in (by_socket, by_post):
        url = f"sqlite:///{tmp_path}/{work.__name__}.db"
        model = ScriptedModel(script(), "openai_responses", strict=True)
        with StubServer(model) as server, running_proxy(server.url, store=url) as proxy:
            sizes.append(work(proxy, server))
            until(lambda: numbers(proxy)[MANAGED] == CALLS + 1)
        assert server.illegal == []
        assert all(request.headers["authorization"] == "Bearer sk-1" for request in server.received)
        assert not any("upgrade" in name or "websocket" in name for name in server.received[0].headers)
        sent.append([json.loads(request.body) for request in server.received])
    assert sent[0] == sent[1]
    assert max(len(json.dumps(body)) for body in sent[0]) < 0.4 * sizes[1]
    (history,) = texts(f"sqlite:///{tmp_path}/by_socket.db").values()
    assert [role for role, _ in history].count("assistant") == CALLS + 1


def test_recorded_frames_of_codex_become_requests(transcripts: Path):
    path = transcripts.parent / "wire" / "ws.jsonl"
    if not path.is_file():
        pytest.skip(f"{path} is missing")
    handshake, *frames = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    headers = {
        k: v
        for k, v in handshake["headers"].items()
        if not k.startswith("sec-") and k not in ("connection", "upgrade", "authorization", "user-agent")
    }
    replies = [call("call_2", "exec_command", cmd="echo hello"), say("Done.")]
    with (
        StubServer(ScriptedModel(replies, "openai_responses")) as server,
        running_proxy(server.url) as proxy,
        connected(proxy, **headers) as socket,
    ):
        previous = ""
        for recorded in frames:
            frame = {**recorded["frame"], **({"previous_response_id": previous} if previous else {})}
            socket.send(json.dumps(frame))
            end = events_of(socket)[-1]
            assert end["type"] == "response.completed", end
            previous = end["response"]["id"]
    assert server.illegal == []
    bodies = [request.values for request in server.received]
    assert [[item["type"] for item in body["input"]] for body in bodies] == [
        ["message"] * 4,
        [*["message"] * 4, "function_call", "function_call_output"],
    ]
    first = bodies[0]
    given = frames[1]["frame"]
    assert {key: value for key, value in first.items() if key not in ("input", "tools", "instructions")} == {
        key: value
        for key, value in given.items()
        if key not in ("type", "previous_response_id", "input", "tools", "instructions")
    }
    sent = server.received[0].headers
    assert sent["x-codex-window-id"] == given["client_metadata"]["x-codex-window-id"]
    assert sent["session-id"] == headers["session-id"]
    assert "openai-beta" not in sent


@given(st.lists(st.tuples(st.sampled_from(["", "a", "b"]), st.integers(0, 3), st.integers(-1, 3), st.booleans())))
def test_each_request_has_the_whole_list_before_it(steps: list[tuple[str, int, int, bool]]):
    """Frames of three lanes bring 0 to 3 items each, and follow nothing or the newest response of a lane."""
    lists, lists_behind, newest = ResponseLists(), dict[str, list[int]](), dict[str, str]()
    numbers = count()
    for lane, new, parent, is_warmup in steps:
        previous = newest.get(["", "a", "b", "never"][parent], "") if parent >= 0 else ""
        items = [next(numbers) for _ in range(new)]
        fields: dict[str, Any] = {"input": items, "previous_response_id": previous or None, "generate": not is_warmup}
        text = json.dumps({"type": "response.create", "stream_id": lane or None, "store": False, **fields})
        frame = read_frame(text.encode())
        whole = lists.whole(frame)
        assert whole is not None
        expected = [*lists_behind.get(previous, []), *items]
        assert json.loads(frame.body(whole)) == {"store": False, "input": expected, "stream": True}
        if is_warmup:
            newest[lane] = json.loads(lists.warmed(frame, whole)[-1])["response"]["id"]
            lists_behind[newest[lane]] = expected
        else:
            reply = next(numbers)
            newest[lane] = f"resp_{reply}"
            lists.answered(frame, newest[lane], whole, [str(reply).encode()])
            lists_behind[newest[lane]] = [*expected, reply]


def test_an_unknown_response_makes_the_client_send_everything(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/chats.db"
    model = ScriptedModel([say("One."), say("Two."), say("Three.")], "openai_responses")
    with StubServer(model) as server, running_proxy(server.url, store=url) as proxy:
        with connected(proxy) as socket:
            first = answer(socket, QUESTION)
        with connected(proxy) as socket:  # A new connection knows nothing.
            send(socket, QUESTION, previous_response_id=first["id"], stream_id="main")
            assert events_of(socket) == [
                {
                    "type": "error",
                    "stream_id": "main",
                    "status": 400,
                    "error": {
                        "type": "invalid_request_error",
                        "code": "previous_response_not_found",
                        "message": f"Previous response with id '{first['id']}' not found.",
                        "param": "previous_response_id",
                    },
                }
            ]
            assert len(server.received) == 1
            answer(socket, [*QUESTION, *first["output"], *QUESTION])
            # A provider that stores responses may know one that the connection does not know.
            answer(socket, "Hi", previous_response_id="resp_stored", store=True)
    assert server.received[-1].values["previous_response_id"] == "resp_stored"
    assert server.received[-1].values["input"] == "Hi"
    (history,) = texts(url).values()
    assert [text for _, text in history] == ["Which log?", "One.", "Which log?", "Two."]


def test_errors_of_the_provider_become_frames_and_the_connection_goes_on():
    replies = [Failure(429, retry_after=7, message="Slow down."), Failure(500), say("Fine.")]
    with (
        StubServer(ScriptedModel(replies, "openai_responses")) as server,
        running_proxy(server.url) as proxy,
        connected(proxy) as socket,
    ):
        for status in (429, 500):
            send(socket, QUESTION)
            (error,) = events_of(socket)
            assert (error["type"], error["status"]) == ("error", status)
            if status == 429:
                assert error["error"]["message"] == "Slow down."
                assert error["headers"]["retry-after"] == "7"
                assert not any("foveate" in name for name in error["headers"])
        assert answer(socket, QUESTION)["output"][0]["content"][0]["text"] == "Fine."


def test_a_request_that_is_too_long_is_made_smaller():
    too_long = Failure(400, message="prompt is too long: 12000 tokens > 6000 maximum")
    model = ScriptedModel([*script()[:20], too_long, *script()[20:]], "openai_responses")
    with StubServer(model) as server, running_proxy(server.url, window=20_000) as proxy, connected(proxy) as socket:
        text = loop(
            lambda new, previous: answer(socket, new, **({"previous_response_id": previous} if previous else {}))
        )
        assert text == "Log 7."
        until(lambda: numbers(proxy)['foveate_retries_total{api="openai_responses"}'] == 1)
        assert len(server.received) == CALLS + 2


def test_expansions_stay_inside_an_answer():
    replies = [call("c0", "read_log", number=1), call("e1", "expand", handle="m3"), say("Log 1.")]
    with (
        StubServer(ScriptedModel(replies, "openai_responses")) as server,
        running_proxy(server.url, policy="keep-last-1") as proxy,
        connected(proxy) as socket,
    ):
        first = answer(socket, QUESTION)
        second = answer(socket, output_of(first), previous_response_id=first["id"])
        assert [item["type"] for item in second["output"]] == ["message"]
        assert len(server.received) == 3
        assert server.illegal == []


STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
CREATED = b'event: response.created\ndata: {"type":"response.created","response":{"id":"resp_9","output":[]}}\n\n'
ITEM = (
    b'{"type":"message","id":"msg_1","role":"assistant","status":"completed","x": 1.0,'
    b'"content":[{"type":"output_text","text":"Hi"}]}'
)
DONE = b'data: {"type":"response.output_item.done","output_index":0,"item":%b}\n\n' % ITEM
COMPLETED = b'data: {"type":"response.completed","response":{"id":"resp_9","status":"completed","output":[]}}\n\n'


def test_a_follow_up_that_is_refused_goes_out_once():
    """A WebSocket connection does not end the request behind its answer, so the request was repeated for ever."""
    refusals = [Failure(429, message="Later.") for _ in range(20)]
    model = ScriptedModel([call("e1", "expand", handle="m1"), *refusals], "openai_responses", strict=True)
    with StubServer(model) as server, running_proxy(server.url) as proxy:
        with connected(proxy) as socket:
            send(socket, QUESTION)
            assert events_of(socket)[-1]["error"]["message"] == "Later."
            until(lambda: numbers(proxy)[MANAGED] == 1)
        assert len(server.received) == 2


def test_an_answer_whose_end_holds_no_items_goes_on_with_its_bytes():
    with (
        RawProvider(
            STREAM + chunked(CREATED, DONE, b": still here\n\n", COMPLETED, b"data: [DONE]\n\n") + b"0\r\n\r\n"
        ) as provider,
        running_proxy(provider.url) as proxy,
        connected(proxy) as socket,
    ):
        send(socket, QUESTION)
        frames = [socket.recv(timeout=20) for _ in range(3)]
        assert [frame.encode() for frame in frames] == [
            CREATED.split(b"data: ")[1].strip(),
            DONE[6:].strip(),
            COMPLETED[6:].strip(),
        ]
        send(socket, QUESTION, previous_response_id="resp_9")
        events_of(socket)
    assert ITEM in provider.received[1].body
    assert b"previous_response_id" not in provider.received[1].body


def test_limits_of_codex_become_the_first_frame():
    limits = (
        b"x-codex-primary-used-percent: 12.5\r\nx-codex-primary-window-minutes: 300\r\n"
        b"x-codex-primary-reset-at: 1700009000\r\nx-codex-secondary-used-percent: soon\r\n"
        b"x-codex-credits-has-credits: True\r\nx-codex-credits-unlimited: false\r\n\r\n"
    )
    head = STREAM.removesuffix(b"\r\n") + limits
    with (
        RawProvider(head + chunked(CREATED, COMPLETED) + b"0\r\n\r\n") as provider,
        running_proxy(provider.url) as proxy,
        connected(proxy) as socket,
    ):
        send(socket, QUESTION)
        frames = [json.loads(socket.recv(timeout=20)) for _ in range(3)]
    assert [frame["type"] for frame in frames] == ["codex.rate_limits", "response.created", "response.completed"]
    assert frames[0]["rate_limits"] == {
        "primary": {"used_percent": 12.5, "window_minutes": 300, "reset_at": 1700009000}
    }
    assert frames[0]["credits"] == {"has_credits": True, "unlimited": False, "balance": None}


@pytest.mark.parametrize("percent", ["", "nan", "1e999", "12 %"])
def test_a_limit_that_is_no_number_is_left_out(percent: str):
    assert limits_frame("", {"x-codex-primary-used-percent": percent, "x-codex-primary-reset-at": "7"}) is None


@pytest.mark.parametrize("end", [b"", b"0\r\n\r\n"], ids=["cut", "ended early"])
def test_a_cut_answer_closes_the_connection(end: bytes):
    with (
        RawProvider(STREAM + chunked(CREATED) + end) as provider,
        running_proxy(provider.url) as proxy,
        connected(proxy) as socket,
    ):
        send(socket, QUESTION)
        assert json.loads(socket.recv(timeout=20))["type"] == "response.created"
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=20)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1011


def test_a_client_that_goes_away_ends_the_request_to_the_provider():
    def reply(exchange: Any) -> None:
        exchange.connection.sendall(STREAM + chunked(CREATED))
        provider.wait_for_close(exchange)

    with RawProvider(reply) as provider, running_proxy(provider.url) as proxy:
        with connected(proxy) as socket:
            send(socket, QUESTION)
            socket.recv(timeout=20)
        assert provider.closed.wait(20)
        until(lambda: numbers(proxy)['foveate_requests_total{api="openai_responses",outcome="gone"}'] == 1)


def test_the_next_frame_need_not_wait_for_the_end_of_the_stream():
    """Some servers keep a stream open behind its last event."""
    held: list[Any] = []

    def reply(exchange: Any) -> None:
        exchange.connection.sendall(STREAM + chunked(CREATED, DONE, COMPLETED))
        held.append(exchange)
        provider.wait_for_close(exchange)

    with RawProvider(reply) as provider, running_proxy(provider.url) as proxy, connected(proxy) as socket:
        for previous in ("", "resp_9", "resp_9"):
            send(socket, QUESTION, **({"previous_response_id": previous} if previous else {}))
            assert events_of(socket)[-1]["type"] == "response.completed"
        until(lambda: numbers(proxy)[MANAGED] == 2)
        proxy.server.should_exit = True  # Nor does the server wait when it stops.
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=20)


def test_the_proxy_lets_answers_end_when_it_stops():
    begun, go_on = threading.Event(), threading.Event()

    def reply(exchange: Any) -> None:
        exchange.connection.sendall(STREAM + chunked(CREATED))
        begun.set()
        go_on.wait(20)
        exchange.connection.sendall(chunked(DONE, COMPLETED) + b"0\r\n\r\n")

    with (
        RawProvider(reply) as provider,
        running_proxy(provider.url) as proxy,
        connected(proxy) as busy,
        connected(proxy) as idle,
    ):
        send(busy, QUESTION)
        assert begun.wait(20)
        proxy.server.should_exit = True
        with pytest.raises(ConnectionClosed) as closed:
            idle.recv(timeout=20)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1012
        go_on.set()
        assert events_of(busy)[-1]["type"] == "response.completed"
        with pytest.raises(ConnectionClosed) as closed:
            busy.recv(timeout=20)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1012


def test_lanes_are_answered_at_the_same_time_and_fork():
    """A lane that waits does not stop another one. Frames of one lane keep their order."""
    held: dict[str, threading.Event] = {"slow": threading.Event()}

    def reply(exchange: Any) -> None:
        body = json.loads(exchange.body)
        if "slow" in json.dumps(body["input"][-1]):
            held["slow"].wait(20)
        name = f"resp_{len(provider.received)}".encode()
        exchange.connection.sendall(STREAM + chunked(CREATED, DONE, COMPLETED.replace(b"resp_9", name)) + b"0\r\n\r\n")

    with RawProvider(reply) as provider, running_proxy(provider.url) as proxy, connected(proxy) as socket:
        send(socket, "slow", stream_id="a")
        send(socket, "second", stream_id="a")
        until(lambda: provider.received)
        send(socket, "quick", stream_id="b")
        quick = events_of(socket)
        assert {event["stream_id"] for event in quick} == {"b"}
        held["slow"].set()
        assert events_of(socket, "a")[-1]["type"] == "response.completed"
        end = events_of(socket, "a")[-1]
        assert [json.loads(one.body)["input"][-1]["content"] for one in provider.received] == [
            "slow",
            "quick",
            "second",
        ]
        send(socket, "fork", stream_id="c", previous_response_id=end["response"]["id"])
        assert events_of(socket, "c")[-1]["type"] == "response.completed"
        assert [item.get("content") for item in json.loads(provider.received[-1].body)["input"]][::2] == [
            "second",
            "fork",
        ]
        for number in range(30):
            send(socket, [], stream_id=f"lane-{number}", generate=False)
        ends = [
            event
            for event in (json.loads(socket.recv(timeout=20)) for _ in range(29 * 2 + 1))
            if event["type"] == "error"
        ]
        assert [(event["stream_id"], event["error"]["code"]) for event in ends] == [
            ("lane-29", "websocket_stream_limit_reached")
        ]


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("not json", "invalid_json"),
        ("[1]", "invalid_json"),
        ('{"type": "response.cancel"}', "unknown_event_type"),
        ('{"type": "response.create", "input": 5, "store": false}', "invalid_type"),
        ('{"type": "response.create", "stream_id": "a b"}', "invalid_stream_id"),
        ('{"type": "response.create", "conversation": "c", "generate": false}', "unsupported_parameter"),
        ('{"type": "response.create", "previous_response_id": "r", "generate": false}', "previous_response_not_found"),
    ],
)
def test_a_frame_that_cannot_be_served_gets_an_error(frame: str, code: str):
    with RawProvider(b"") as provider, running_proxy(provider.url) as proxy, connected(proxy) as socket:
        socket.send(frame)
        (error,) = events_of(socket)
        assert (error["status"], error["error"]["code"]) == (400, code)
        socket.send(frame.encode())
        assert events_of(socket)[0]["error"]["code"] == code
        assert provider.received == []


def test_limits_of_a_connection():
    """A frame that is too large closes the connection; a list that grew too large gets an error."""
    with (
        StubServer(ScriptedModel([say("One.")], "openai_responses")) as server,
        running_proxy(server.url, max_body=20_000) as proxy,
    ):
        with connected(proxy) as socket:
            first = answer(socket, [{"role": "user", "content": "x" * 15_000}])
            send(socket, [{"role": "user", "content": "x" * 15_000}], previous_response_id=first["id"])
            (error,) = events_of(socket)
            assert (error["status"], error["error"]["type"]) == (413, "request_too_large")
            send(socket, [{"role": "user", "content": "x" * 30_000}])
            with pytest.raises(ConnectionClosed) as closed:
                socket.recv(timeout=20)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1009
        assert len(server.received) == 1


def test_pings_and_compression():
    with RawProvider(b"") as provider, running_proxy(provider.url) as proxy, connected(proxy) as socket:
        assert socket.ping().wait(20)
        assert [extension.name for extension in socket.protocol.extensions] == ["permessage-deflate"]


@pytest.mark.parametrize("offer", ["", "permessage-deflate; client_max_window_bits", "x-other"])
def test_headers_of_a_successful_upgrade(offer: str):
    """The key and its answer are the example of RFC 6455, section 1.3."""
    head = (
        "GET /v1/responses?a=b HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
    )
    head += "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer sk-1\r\n"
    head += f"Sec-WebSocket-Extensions: {offer}\r\n" if offer else ""
    with (
        RawProvider(b"") as provider,
        running_proxy(provider.url) as proxy,
        socket.create_connection(("127.0.0.1", proxy.port)) as client,
    ):
        client.sendall(f"{head}\r\n".encode())
        answered = b""
        while not answered.endswith(b"\r\n\r\n"):
            answered += client.recv(1)
    line, *lines = answered.decode().lower().rstrip().split("\r\n")
    headers = dict(each.split(": ", 1) for each in lines)
    assert line.startswith("http/1.1 101 ")
    assert (headers.pop("connection"), headers.pop("upgrade")) == ("upgrade", "websocket")
    assert headers.pop("sec-websocket-accept") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=".lower()
    extension = headers.pop("sec-websocket-extensions", "")
    assert extension.partition(";")[0] == ("permessage-deflate" if offer.startswith("permessage") else "")
    assert headers == {}  # Nothing names the server, and nothing of the request comes back.
    assert provider.received == []


@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        ({"origin": "https://evil.example"}, "/v1/responses", 403),
        ({}, "/v1/responses/resp_1", 426),
        ({}, "/v1/chat/completions", 426),
    ],
)
def test_a_handshake_that_is_refused(headers: dict[str, str], path: str, status: int):
    with RawProvider(b"") as provider, running_proxy(provider.url) as proxy:
        with pytest.raises(InvalidStatus) as refused, connected(proxy, path, **headers):
            pass
        assert refused.value.response.status_code == status
        assert "foveate: " in json.loads(refused.value.response.body or b"")["error"]["message"]


def test_a_connection_needs_the_token_and_its_headers_stay_here():
    tokens = {token_key("a-long-token-of-a"): "a"}
    with (
        StubServer(ScriptedModel([say("One.")], "openai_responses")) as server,
        running_proxy(server.url, tokens=tokens) as proxy,
    ):
        with pytest.raises(InvalidStatus) as refused, connected(proxy):
            pass
        assert refused.value.response.status_code == 401
        with connected(proxy, **{"x-foveate-token": "a-long-token-of-a"}) as socket:
            answer(socket, QUESTION)
    assert not any(name.startswith(("x-foveate", "sec-")) for name in server.received[0].headers)


@pytest.mark.filterwarnings("ignore:connect:DeprecationWarning")  # The SDK is older than websockets 17.
def test_the_sdk_of_openai_speaks_to_the_proxy():
    openai = pytest.importorskip("openai", reason="openai is not installed")
    replies = [call("c0", "read_log", number=1), say("Log 1.")]
    with (
        StubServer(ScriptedModel(replies, "openai_responses", strict=True)) as server,
        running_proxy(server.url) as proxy,
    ):
        client = openai.OpenAI(base_url=f"{proxy.url}/v1", api_key="sk-1")
        with client, client.responses.connect() as connection:
            items: Any = "Which log?"
            previous: dict[str, Any] = {}
            for expected in ("function_call", "message"):
                connection.response.create(model="gpt-5", tools=TOOLS, input=items, store=False, **previous)
                events = iter(connection)
                event = next(event for event in events if event.type == "response.completed")
                assert [item.type for item in event.response.output] == [expected]
                previous = {"previous_response_id": event.response.id}
                items = output_of(event.response.model_dump())
    assert server.illegal == []
    assert len(server.received[1].values["input"]) == 3


def test_headers_of_one_request_stand_in_the_metadata_of_its_frame():
    """Codex sends some headers with each POST request, and on a connection in the frame."""
    frame = {
        "type": "response.create",
        "client_metadata": {
            "x-codex-window-id": "w:1",
            "x-codex-turn-state": "a\r\nb: c",
            "x-codex-installation-id": "i",
            "ws_request_header_x_openai_internal_codex_responses_lite": "true",
            "ws_request_header_content_length": "5",
            "ws_request_header_x y": "z",
            "turn_id": "t",
        },
    }
    handshake = [
        (b"host", b"localhost"),
        (b"upgrade", b"websocket"),
        (b"sec-websocket-key", b"AAA"),
        (b"content-length", b"0"),
        (b"openai-beta", b"other=1, responses_websockets=2026-02-06"),
        (b"x-codex-window-id", b"w:0"),
        (b"authorization", b"Bearer sk-1"),
    ]
    assert request_headers(handshake, read_frame(json.dumps(frame).encode())) == [
        (b"host", b"localhost"),
        (b"openai-beta", b"other=1"),
        (b"authorization", b"Bearer sk-1"),
        (b"x-codex-window-id", b"w:1"),
        (b"x-openai-internal-codex-responses-lite", b"true"),
        (b"accept", b"text/event-stream"),
        (b"content-type", b"application/json"),
    ]
