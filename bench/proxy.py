"""The proxy: CPU of a request with 400 kB, compared with a request that the same process only passes on.

The proxy runs in this process, the provider in another one. The client is a socket in this process; its cost is in
both numbers. Each managed request has two more messages than the one before it, as the requests of an agent have: the
provider's reply, which calls a tool, and its result.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter, process_time, sleep
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from databases import FigureRow

_BYTES = 400_000
"""The size of a request: of the first one, and the median of the later ones, which grow."""
_TURN = 4_200
"""Bytes that a turn adds, about."""
_WORDS = ["some words "] * 44 + ["some words"]
"""The texts of an answer's events. Clients trim the end of an answer."""
_AIM = 3.0
"""Milliseconds of CPU that a managed request may cost more."""


def figures(folder: Path, quick: bool) -> Iterator[FigureRow]:
    """Yield the CPU of requests and the time to their first byte."""
    count = 5 if quick else 60
    policies = ("balanced",) if quick else ("prune", "balanced")
    with provider() as upstream:
        for policy in policies:
            with running(upstream, f"sqlite:///{folder / policy}.db", policy) as port:
                _measured(port, "/v1/messages", history(10_000, "anything"))  # Loads the modules.
                lists = [history(_BYTES, f"service {number}") for number in range(5)]
                cold = median(_measured(port, "/v1/messages", messages)[0] for messages in lists)
                messages = history(_BYTES - count // 2 * _TURN, "the worker")
                _measured(port, "/v1/messages", messages)
                bare, managed = [], []
                for _ in range(count):
                    messages += turn(len(messages), "the worker")
                    bare.append(_measured(port, "/v1/other", messages))
                    managed.append(_measured(port, "/v1/messages", messages))
            for number, what, unit in ((0, "CPU", "ms"), (1, "first byte", "ms")):
                floor = median(one[number] for one in bare)
                value = median(one[number] for one in managed)
                aim = floor + _AIM if number == 0 else None
                yield f"proxy, request of 400 kB, {policy}, {what}, p50", value, unit, floor, aim, "floor: passed on"
                p99 = sorted(one[number] for one in managed)[int(0.99 * len(managed))]
                yield f"proxy, request of 400 kB, {policy}, {what}, p99", p99, unit, None, None, ""
            yield f"proxy, first request of 400 kB, {policy}, CPU, p50", cold, "ms", None, 60.0, "a new conversation"


def history(size: int, service: str) -> list[dict[str, Any]]:
    """Return a list of so many bytes: a question about a service, and turns with its logs."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Why is {service} slow?"}]
    while len(json.dumps(messages)) < size:
        messages += turn(len(messages), service)
    return messages


def turn(number: int, service: str) -> list[dict[str, Any]]:
    """Return a reply with a call, and its result."""
    use = {"type": "tool_use", "id": f"toolu_{number}", "name": "read_log", "input": {"number": number}}
    text = "".join(f"{number}:{line} {service} answered the request in time\n" for line in range(200))[:3_600]
    result = {"type": "tool_result", "tool_use_id": use["id"], "content": text}
    reply = {"role": "assistant", "content": [{"type": "text", "text": "".join(_WORDS)}, use]}
    return [reply, {"role": "user", "content": [result]}]


def request(path: str, messages: list[dict[str, Any]], headers: str = "") -> bytes:
    """Return the bytes of a request. `headers`: further ones, each with its line end."""
    tools = [{"name": "read_log", "input_schema": {"type": "object"}}]
    body = {"model": "claude-haiku-4-5", "max_tokens": 99, "stream": True, "tools": tools, "messages": messages}
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n"
    return f"{head}X-Number: {len(messages)}\r\n{headers}Connection: close\r\n\r\n".encode() + content


def _measured(port: int, path: str, messages: list[dict[str, Any]]) -> tuple[float, float]:
    """Send a request; return the milliseconds of CPU, and those to the first byte of the answer."""
    content = request(path, messages)
    began, cpu = perf_counter(), process_time()
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(content)
        answer = client.recv(65_536)
        first = perf_counter() - began
        while piece := client.recv(65_536):
            answer += piece
    sleep(0.01)  # The reply is recorded behind the last byte.
    took = process_time() - cpu
    assert answer.startswith(b"HTTP/1.1 200"), answer[:500]
    assert answer.endswith(b"0\r\n\r\n")
    assert (b"x-foveate-conversation" in answer) == (path == "/v1/messages"), answer[:900]
    return took * 1000, first * 1000


@contextmanager
def running(upstream: str, store: str, policy: str) -> Iterator[int]:
    """Run a proxy in a thread; yield its port."""
    import uvicorn

    from foveate.proxy.collector import spare_collector
    from foveate.proxy.server import config_of
    from foveate.proxy.settings import ProxySettings

    settings = ProxySettings(store=store, anthropic=upstream, openai=upstream, policy=policy, port=0)
    server = uvicorn.Server(config_of(settings))
    spare_collector()  # As the command does.
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def provider() -> Iterator[str]:
    """Run a provider in another process; yield its URL."""
    with subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            yield child.stdout.readline().strip()
        finally:
            child.kill()


def _events(number: int) -> Iterator[dict[str, Any]]:
    """Yield the events of the reply of a turn."""
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "m", "content": []}
    usage = {"input_tokens": 100_000, "output_tokens": 1}
    text, use = turn(number, "")[0]["content"]
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}}
    yield {"type": "content_block_start", "index": 0, "content_block": {**text, "text": ""}}
    for words in _WORDS:
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": words}}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "content_block_start", "index": 1, "content_block": {**use, "input": {}}}
    arguments = {"type": "input_json_delta", "partial_json": json.dumps(use["input"])}
    yield {"type": "content_block_delta", "index": 1, "delta": arguments}
    yield {"type": "content_block_stop", "index": 1}
    yield {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 90}}
    yield {"type": "message_stop"}


def _serve() -> None:
    """Answer each request with a stream of events: the reply of the turn with the number in its header.

    A stream with the header X-Hold stops behind its first event until there is a request to `/release`.
    """
    import asyncio

    from aiohttp import web

    released = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        if request.path == "/release":
            released.set()
            return web.Response()
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for event in _events(int(request.headers["x-number"])):
            await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            if "x-hold" in request.headers:
                await released.wait()
        await response.write_eof()
        return response

    async def serve() -> None:
        app = web.Application(client_max_size=2**27)
        app.router.add_route("*", "/{path:.*}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
        await asyncio.Event().wait()

    asyncio.run(serve())


if __name__ == "__main__":
    _serve()
