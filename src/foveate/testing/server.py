"""A local HTTP server for the APIs of Anthropic, OpenAI (chat completions and Responses) and Gemini, by script.

For tests of programs with the real SDK clients. A `ScriptedModel` decides on the reply. The server sends it over HTTP:
whole or as server-sent events, with the provider's status and error texts.

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
from .responses import as_sent, error_event, events
from .script import Failure, IllegalRequest, ProviderError, ScriptedReply, failure

__all__ = ["ReceivedRequest", "StubServer"]

_PATHS = {
    "anthropic": ("/messages",),
    "openai": ("/chat/completions",),
    "openai_responses": ("/responses",),
    "gemini": (":generateContent", ":streamGenerateContent"),
}
"""Ends of a request's path, by provider."""


class ReceivedRequest(NamedTuple):
    """A request as it arrived."""

    path: str
    """The path of its URL."""
    headers: Mapping[str, str]
    """Names are in lower case."""
    body: bytes
    """The bytes of its body."""

    @property
    def values(self) -> dict[str, Any]:
        """Return the body as a dict. Raises ValueError if it is not a JSON object."""
        body = json.loads(self.body)
        if not isinstance(body, dict):
            raise ValueError("the body is not a JSON object")
        return body


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the error, except for a client that closed its connection between two requests."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class StubServer:
    """A server that runs during its `with` block. `received`: all requests in order, including illegal ones.

    `models`: one for all requests, or one for each prefix of a path, such as `{"/a": model_a, "/b": model_b}`; the
    longest prefix wins. An illegal request gets the provider's answer with status 400 and is added to `illegal`. A
    script's `CutReply`, `SlowReply` and `Failure` happen as described. Its ConnectionError ends the connection without
    an answer.
    """

    def __init__(self, models: ScriptedModel | Mapping[str, ScriptedModel]) -> None:
        self.models = {"": models} if isinstance(models, ScriptedModel) else dict(models)
        """The models that answer, by the prefix of the path."""
        self.received: list[ReceivedRequest] = []
        """All requests in order."""
        self.illegal: list[IllegalRequest] = []
        """The refused requests in order."""
        self._closed = threading.Event()
        self._open: set[socket.socket] = set()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=lambda: self._server.serve_forever(poll_interval=0.02), daemon=True)

    @property
    def url(self) -> str:
        """Return its address for Anthropic's client. OpenAI's client needs `/v1` at the end."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> StubServer:
        """Start to answer until `close`. A `with` block does both. Returns this server."""
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop answering and end all connections."""
        self._closed.set()
        self._server.shutdown()
        for connection in list(self._open):  # Connections that clients keep for later requests.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> StubServer:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.close()

    def wait(self, seconds: float) -> None:
        """Wait this long. Raises ConnectionError if the server closes before."""
        if seconds and self._closed.wait(seconds):
            raise ConnectionError("The server was closed.")

    def model_at(self, path: str) -> ScriptedModel:
        """Return the model for a path. Raises ProviderError with status 404 if there is none."""
        path = path.partition("?")[0]
        fitting = [
            (len(start), model)
            for start, model in self.models.items()
            if path.startswith(start) and path.endswith(_PATHS[model.provider])
        ]
        if not fitting:
            raise _refusal(path, 404, f"No model answers at {path}.")
        return max(fitting, key=lambda item: item[0])[1]

    def answer(self, request: ReceivedRequest) -> ScriptedReply:
        """Return the script's reply to a request. Raises ProviderError, and ConnectionError if the script does.

        Any other error in a script becomes a refused request.
        """
        self.received.append(request)
        path = request.path
        model = self.model_at(path)
        try:
            return model.answer({**_fields_of(request), **_named_in(path)})
        except IllegalRequest as illegal:
            self.illegal.append(illegal)
            raise _refusal(path, 400, "; ".join(map(str, illegal.refusals))) from illegal
        except (ProviderError, ConnectionError):
            raise
        except Exception as error:  # An error in the script, or its end: clients must not retry.
            kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
            raise _refusal(path, 400, f"{kind}{error}") from error


def _handler(stub: StubServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # Send each piece at once.

        def setup(self) -> None:
            super().setup()
            stub._open.add(self.connection)

        def finish(self) -> None:
            stub._open.discard(self.connection)
            with suppress(OSError):  # The client closed the connection.
                super().finish()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = ReceivedRequest(self.path, headers, body)
            try:
                self._say(request, stub.answer(request))
            except ProviderError as error:
                self._whole(error.status_code, error.body, error.headers)
            except ConnectionError:  # The script ends the connection, or the client closed it.
                self.close_connection = True

        def _say(self, request: ReceivedRequest, answered: ScriptedReply) -> None:
            values = request.values
            if not (values.get("stream") or ":streamGenerateContent" in request.path):
                stub.wait(answered.seconds)
                self.close_connection = answered.cut is not None
                if not answered.cut:
                    response = as_sent(answered.response)
                    self._whole(200, _enclosed(response) if _is_code_assist(request.path) else response)
                return
            usage = bool((values.get("stream_options") or {}).get("include_usage"))
            sent = list(events(answered.response, usage=usage))
            if _is_code_assist(request.path):
                sent = [b"data: " + json.dumps(_enclosed(json.loads(event[6:]))).encode() + b"\n\n" for event in sent]
            half = len(sent) // 2
            self._begin(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
            self._chunks(sent[:half])
            stub.wait(answered.seconds)
            cut = answered.cut
            if cut is None:
                self._chunks(sent[half:])
            elif cut.error is not None:
                error = stub.model_at(request.path).cut(cut)
                self._chunks([error_event(getattr(error, "body", {}))])
            self.close_connection = cut is not None and not cut.is_clean and cut.error is None
            if not self.close_connection:
                self.wfile.write(b"0\r\n\r\n")

        def _whole(self, status: int, values: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
            text = json.dumps(values).encode()
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


def _is_code_assist(path: str) -> bool:
    """Return whether a path belongs to the API of Gemini CLI with a Google login, which has all inside of objects."""
    return "/v1internal:" in path


def _enclosed(response: Mapping[str, Any]) -> dict[str, Any]:
    return {"response": response, "traceId": f"trace-{response.get('responseId')}"}


def _fields_of(request: ReceivedRequest) -> dict[str, Any]:
    """Return the fields of a request's body."""
    values = request.values
    return {**values["request"], "model": values["model"]} if _is_code_assist(request.path) else values


def _named_in(path: str) -> dict[str, str]:
    """Return the model that a path of Gemini names, such as `/v1beta/models/gemini-3.8-flash:generateContent`."""
    name, colon, _ = path.rpartition("/models/")[2].rpartition(":")
    return {"model": name} if colon and "/models/" in path else {}


def _refusal(path: str, status: int, message: str) -> ProviderError:
    """Return an error in the words of the provider whose path this is."""
    provider = next((name for name, ends in _PATHS.items() if path.partition("?")[0].endswith(ends)), "openai")
    return failure(provider, Failure(status, message=message))
