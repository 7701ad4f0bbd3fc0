"""A provider on the loopback: answers the SDKs' real clients by script, and keeps what they sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from foveate.testing import ScriptedModel


class Provider:
    """One server. `requests`: the bodies that came, in order, each legal for the provider."""

    def __init__(self, script: Any, provider: str) -> None:
        self.requests: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.hangs = threading.Event()
        self._model = ScriptedModel(script, provider)
        self.url = ""

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.paths.append(path)
        self.requests.append(body)
        try:
            return 200, self._model.reply(body)
        except ConnectionError as error:
            return 529, {"type": "error", "error": {"type": "overloaded_error", "message": str(error)}}


@contextmanager
def provider(script: Any, name: str = "anthropic", *, hangs: bool = False) -> Iterator[Provider]:
    """A provider that runs while the block does. `hangs`: it takes requests and never answers them."""
    one, over = Provider(script, name), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if hangs:
                over.wait(30)
                return
            status, said = one.answer(self.path, body)
            text = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=_serve(server), daemon=True)
    thread.start()
    one.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield one
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _serve(server: ThreadingHTTPServer) -> Callable[[], None]:
    return lambda: server.serve_forever(poll_interval=0.02)
