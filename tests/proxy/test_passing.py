"""Requests that a proxy passes on: the bytes in both directions, and the headers that belong to one connection."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed (the extra `proxy`)")
pytest.importorskip("aiohttp", reason="aiohttp is not installed (the extra `proxy`)")

from servers import RawProvider, ask, chunked, post, running_proxy, split

EVENTS = [
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant",'
    b'"model":"claude-haiku-4-5","content":[],"stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}}\n\n',
    b'event: ping\ndata: {"type": "ping"}\n\n',
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text",'
    b'"text":""}}\n\n',
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta",'
    b'"text":"caf\xc3\xa9 \\u00e9"}}\n\n',
    b": a comment\n\n",
    b'event: future_kind\r\ndata: {"type":"future_kind","x":1.0}\r\n\r\n',
    b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},'
    b'"usage":{"output_tokens":3}}\n\n',
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
]
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nrequest-id: req_1\r\n"
STREAM += b"anthropic-ratelimit-tokens-remaining: 5\r\ntransfer-encoding: chunked\r\n\r\n"
REQUEST = {
    "model": "claude-haiku-4-5",
    "max_tokens": 9,
    "stream": True,
    "tools": [{"name": "read_log", "input_schema": {"type": "object"}}],
    "messages": [{"role": "user", "content": "Hi"}],
}


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/other"])
def test_a_stream_reaches_the_client_byte_for_byte(path: str):
    with RawProvider(STREAM + chunked(*EVENTS) + b"0\r\n\r\n") as provider, running_proxy(provider.url) as proxy:
        status, headers, body = split(ask(proxy.port, post(path, json.dumps(REQUEST).encode())))
    assert (status, body) == (200, b"".join(EVENTS))
    assert headers["request-id"] == "req_1"
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["anthropic-ratelimit-tokens-remaining"] == "5"


@pytest.mark.parametrize("count", range(len(EVENTS)))
def test_a_cut_stream_is_cut_for_the_client_as_well(count: int):
    sent = STREAM + chunked(*EVENTS[:count])
    with RawProvider(sent) as provider, running_proxy(provider.url) as proxy:
        status, _, body = split(ask(proxy.port, post("/v1/messages", json.dumps(REQUEST).encode())))
    assert (status, body) == (200, b"".join(EVENTS[:count]) + b"<cut>")


def test_the_request_goes_on_with_its_headers_and_its_target():
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-count: 7\r\nconnection: x-own, close\r\nx-own: 1\r\n\r\n{}"
    headers = ("anthropic-beta: b-2, a-1", "X-Api-Key: secret", "Connection: x-hop", "x-hop: 1", "TE: trailers")
    with RawProvider(answer) as provider, running_proxy(provider.url) as proxy:
        request = post("/v1/messages/count_tokens?beta=true&x=%2F%20", b'{"a": 1}', *headers)
        status, answered, body = split(ask(proxy.port, request))
        host = provider.url.removeprefix("http://")
    sent = provider.received[0]
    assert (sent.target, sent.body) == ("/v1/messages/count_tokens?beta=true&x=%2F%20", b'{"a": 1}')
    assert sent.headers["anthropic-beta"] == "b-2, a-1"
    assert sent.headers["x-api-key"] == "secret"
    assert sent.headers.keys() == {"host", "content-length", "anthropic-beta", "x-api-key"}
    assert sent.headers["host"] == host
    assert (status, body, answered["x-count"]) == (200, b"{}", "7")
    assert "x-own" not in answered


@pytest.mark.parametrize("own", ["x-api-key: secret", "authorization: Bearer secret"])
def test_logins_of_a_netrc_file_stay_in_it(own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login someone password other")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
    with RawProvider(answer) as provider, running_proxy(provider.url) as proxy:
        status, _, body = split(ask(proxy.port, post("/v1/other", b"{}", own)))
    assert (status, body) == (200, b"{}")
    assert provider.received[0].headers.get("authorization", "Bearer secret") == "Bearer secret"


@pytest.mark.parametrize("is_bypassed", [False, True])
def test_requests_take_the_proxy_of_the_environment(is_bypassed: bool, monkeypatch: pytest.MonkeyPatch):
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"
    with RawProvider(answer + b"{}") as provider, RawProvider(answer + b"[]") as other:
        monkeypatch.setenv("http_proxy", other.url.replace("://", "://someone:secret@"))
        monkeypatch.setenv("no_proxy", "127.0.0.1" if is_bypassed else "localhost")
        with running_proxy(provider.url) as proxy:
            _, _, body = split(ask(proxy.port, post("/v1/other", b"{}")))
        target = f"{provider.url}/v1/other"
    assert body == (b"{}" if is_bypassed else b"[]")
    if not is_bypassed:
        assert other.received[0].target == target
        assert other.received[0].headers["proxy-authorization"] == "Basic c29tZW9uZTpzZWNyZXQ="


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "OPTIONS", "PUT", "PATCH"])
def test_every_method_and_unknown_route_is_passed_on(method: str):
    with RawProvider(b"HTTP/1.1 204 No Content\r\nx-a: b\r\n\r\n") as provider, running_proxy(provider.url) as proxy:
        request = f"{method} /v1/files/a%20b?limit=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        status, headers, body = split(ask(proxy.port, request.encode()))
    assert provider.received[0].head.startswith(f"{method} /v1/files/a%20b?limit=1 ".encode())
    assert (status, headers["x-a"], body) == (204, "b", b"")


def test_a_compressed_answer_on_another_route_stays_compressed():
    content = gzip.compress(b'{"data": []}')
    head = f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {len(content)}\r\n\r\n".encode()
    with RawProvider(head + content) as provider, running_proxy(provider.url) as proxy:
        request = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n"
        _, headers, body = split(ask(proxy.port, request))
    assert provider.received[0].headers["accept-encoding"] == "gzip"
    assert (headers["content-encoding"], body) == ("gzip", content)


def test_an_answer_that_is_compressed_against_the_request_is_passed_on():
    content = gzip.compress(b'{"id": "x"}')
    head = f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {len(content)}\r\n\r\n".encode()
    with RawProvider(head + content) as provider, running_proxy(provider.url) as proxy:
        _, headers, body = split(ask(proxy.port, post("/v1/messages", json.dumps(REQUEST).encode())))
    assert provider.received[0].headers["accept-encoding"] == "identity"
    assert (headers["content-encoding"], body) == ("gzip", content)


@pytest.mark.parametrize("status", [400, 401, 404, 413, 429, 500, 529])
def test_an_error_of_the_provider_is_passed_on_as_it_is(status: int):
    content = b'{"type": "error", "error": {"type": "some_error", "message": "no"}, "request_id": "req_2"}'
    head = f"HTTP/1.1 {status} Why\r\nretry-after: 7\r\ncontent-length: {len(content)}\r\n\r\n".encode()
    with RawProvider(head + content) as provider, running_proxy(provider.url) as proxy:
        answered, headers, body = split(ask(proxy.port, post("/v1/messages", json.dumps(REQUEST).encode())))
    assert len(provider.received) == 1
    assert (answered, headers["retry-after"], body) == (status, "7", content)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
def test_a_compressed_request_is_read_and_sent_on_plain(encoding: str):
    zstandard = pytest.importorskip("zstandard")
    encode = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.ZstdCompressor().compress}[encoding]
    plain = json.dumps({**REQUEST, "stream": False}).encode()
    with (
        RawProvider(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}") as provider,
        running_proxy(provider.url) as proxy,
    ):
        answer = ask(proxy.port, post("/v1/messages", encode(plain), f"Content-Encoding: {encoding}"))
    sent = provider.received[0]
    assert split(answer)[1]["x-foveate-conversation"]
    assert b"Hi" in sent.body
    assert "content-encoding" not in sent.headers


@pytest.fixture(scope="module")
def refusing() -> Iterator[Any]:
    """A provider that refuses every request, and the proxy before it."""
    refusal = b'HTTP/1.1 400 Bad Request\r\ncontent-length: 13\r\n\r\n{"error": {}}'
    with RawProvider(refusal) as provider, running_proxy(provider.url) as proxy:
        yield provider, proxy


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b'{"messages": 5}',
        b'{"messages": [{"role": "user", "content": "\xff\xfe"}]}',
        b'{"model": "m", "messages": []}',
        b"[" * 100_000,
        b'{"messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"model": "unknown-model", "messages": [{"role": "alien", "content": "x"}]}',
    ],
    ids=["empty", "cut", "list", "text", "number", "not-utf8", "no-messages", "open", "deep", "alien"],
)
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions", "/v1/responses"])
def test_a_body_that_cannot_be_read_is_sent_as_it_came(refusing: Any, path: str, body: bytes):
    provider, proxy = refusing
    provider.received.clear()
    status, headers, content = split(ask(proxy.port, post(path, body)))
    assert [sent.body for sent in provider.received] == [body]
    assert (status, content) == (400, b'{"error": {}}')
    assert "x-foveate-conversation" not in headers


def test_a_stateful_request_of_the_responses_api_is_passed_on():
    body = b'{"model": "gpt-5",  "input": "Hi", "previous_response_id": "resp_1"}'
    with (
        RawProvider(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}") as provider,
        running_proxy(provider.url) as proxy,
    ):
        assert split(ask(proxy.port, post("/v1/responses", body)))[0] == 200
    assert provider.received[0].body == body


@pytest.mark.parametrize(
    ("state", "fields"),
    [
        ("previous_response_id=", b'"input": "Hi", "previous_response_id": "resp_1"'),
        ("An item_reference", b'"input": [{"type": "item_reference", "id": "msg_1"}, {"role": "user"}]'),
    ],
)
def test_the_log_says_once_that_the_provider_keeps_the_history(state: str, fields: bytes, caplog: Any):
    """The Vercel AI SDK refers to items of the provider by default: nobody would notice that it has no views."""
    with (
        RawProvider(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}") as provider,
        running_proxy(provider.url) as proxy,
        caplog.at_level("WARNING"),
    ):
        for _ in range(2):
            assert split(ask(proxy.port, post("/v1/responses", b'{"model": "gpt-5", ' + fields + b"}")))[0] == 200
    [warning] = [record.getMessage() for record in caplog.records if record.name == "foveate.proxy"]
    assert warning.startswith(f"A request is sent without a view: {state} lets the provider keep the history.")


def test_a_websocket_elsewhere_is_answered_with_426():
    request = b"GET /v1/realtime HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    request += b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    with RawProvider(b"") as provider, running_proxy(provider.url) as proxy:
        assert split(ask(proxy.port, request))[0] == 426
    assert provider.received == []
