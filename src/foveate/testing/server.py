"""A provider on the loopback: speaks Anthropic's Messages API and OpenAI's chat completions, by script.

For tests of programs that use the SDKs' real clients. What a request leads to is a `ScriptedModel`'s affair; here it
goes over HTTP: whole or as server-sent events, with the status and the words the provider has for what it refuses.

    >>> with StubServer(ScriptedModel(["Hello."], "openai")) as server:
    ...     client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none")  # doctest: +SKIP
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from .model import ScriptedModel
from .script import Answered, Fails, IllegalRequest, ProviderError, failure
from .sse import anthropic_events, error_event, openai_events

__all__ = ["Received", "StubServer"]

_PATHS = {"anthropic": "/messages", "openai": "/chat/completions"}
"""How the path of a request ends, by provider."""


class Received(NamedTuple):
    """A request as it came over the wire."""

    path: str
    headers: Mapping[str, str]
    """By names in small letters."""
    body: bytes

    @property
    def said(self) -> dict[str, Any]:
        """The body as values. Raises ValueError where it is no JSON object."""
        values = json.loads(self.body)
        if not isinstance(values, dict):
            raise ValueError("the body is not a JSON object")
        return values


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say what went wrong, but for a client that hung up between two requests, as those do that are closed."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class StubServer:
    """A server, that runs while its `with` block does. `received`: what came, in order, the illegal too.

    `models`: one for all requests, or one for each beginning of a path, such as `{"/a": one, "/b": another}`; the
    longest that fits is asked. An illegal request is answered as the provider does, with status 400, and `illegal`
    remembers it. A script's `Cut`, `Slow` and `Fails` happen as they would; its ConnectionError ends the connection
    without an answer.
    """

    def __init__(self, models: ScriptedModel | Mapping[str, ScriptedModel]) -> None:
        self.models = {"": models} if isinstance(models, ScriptedModel) else dict(models)
        self.received: list[Received] = []
        self.illegal: list[IllegalRequest] = []
        self._over = threading.Event()
        self._open: set[socket.socket] = set()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=lambda: self._server.serve_forever(poll_interval=0.02), daemon=True)

    @property
    def url(self) -> str:
        """Its address, as Anthropic's client wants it; OpenAI's wants `/v1` behind it."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> StubServer:
        """Begin to answer, until `close`; a `with` block does both. Returns this server."""
        self._thread.start()
        return self

    def close(self) -> None:
        """Answer nobody any more, and end all connections."""
        self._over.set()
        self._server.shutdown()
        for connection in list(self._open):  # Those that clients keep for their next request.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> StubServer:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.close()

    def wait(self, seconds: float) -> None:
        """Let so much time pass. Raises ConnectionError where the server is closed before."""
        if seconds and self._over.wait(seconds):
            raise ConnectionError("The server was closed.")

    def model_at(self, path: str) -> ScriptedModel:
        """Who answers there. Raises ProviderError, with status 404, if nobody does."""
        path = path.partition("?")[0]
        fitting = [
            (len(start), model)
            for start, model in self.models.items()
            if path.startswith(start) and path.endswith(_PATHS[model.provider])
        ]
        if not fitting:
            raise _refusal(path, 404, f"Nobody answers at {path}.")
        return max(fitting, key=lambda one: one[0])[1]

    def answer(self, request: Received) -> Answered:
        """What the script says to a request. Raises ProviderError, and ConnectionError where the script does.

        Whatever else goes wrong in a script is told as a request that is refused.
        """
        self.received.append(request)
        path = request.path
        model = self.model_at(path)
        try:
            return model.answer(request.said)
        except IllegalRequest as illegal:
            self.illegal.append(illegal)
            raise _refusal(path, 400, "; ".join(map(str, illegal.refusals))) from illegal
        except (ProviderError, ConnectionError):
            raise
        except Exception as error:  # Of the script, which is over or fails: not to be tried again.
            kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
            raise _refusal(path, 400, f"{kind}{error}") from error


def _handler(stub: StubServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # A piece is sent when it is said.

        def setup(self) -> None:
            super().setup()
            stub._open.add(self.connection)

        def finish(self) -> None:
            stub._open.discard(self.connection)
            with suppress(OSError):  # The client went away.
                super().finish()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Received(self.path, headers, body)
            try:
                self._say(request, stub.answer(request))
            except ProviderError as error:
                self._whole(error.status_code, error.body, error.headers)
            except ConnectionError:  # The script ends the connection, or the client went away.
                self.close_connection = True

        def _say(self, request: Received, answered: Answered) -> None:
            said = request.said
            if not said.get("stream"):
                stub.wait(answered.seconds)
                self.close_connection = answered.cut is not None
                if not answered.cut:
                    self._whole(200, answered.response)
                return
            if "choices" in answered.response:
                usage = bool((said.get("stream_options") or {}).get("include_usage"))
                events = list(openai_events(answered.response, usage=usage))
            else:
                events = list(anthropic_events(answered.response))
            half = len(events) // 2
            self._begin(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
            self._chunks(events[:half])
            stub.wait(answered.seconds)
            cut = answered.cut
            if cut is None:
                self._chunks(events[half:])
            elif cut.why is not None:
                error = stub.model_at(request.path).cut(cut)
                self._chunks([error_event(getattr(error, "body", {}))])
            self.close_connection = cut is not None and not cut.politely and cut.why is None
            if not self.close_connection:
                self.wfile.write(b"0\r\n\r\n")

        def _whole(self, status: int, said: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
            text = json.dumps(said).encode()
            self._begin(
                status, {"Content-Type": "application/json", "Content-Length": str(len(text)), **(headers or {})}
            )
            self.wfile.write(text)

        def _begin(self, status: int, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def _chunks(self, events: Iterable[bytes]) -> None:
            for event in events:
                self.wfile.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
                self.wfile.flush()

        def log_message(self, *args: object) -> None:
            pass

    return Handler


def _refusal(path: str, status: int, message: str) -> ProviderError:
    """An error in the words of whoever's path this looks like."""
    provider = "anthropic" if path.endswith(_PATHS["anthropic"]) else "openai"
    return failure(provider, Fails(status, message=message))
